"""What a record shows of itself: a few lines of text, and a page with a curve in a notebook."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import shown

if TYPE_CHECKING:
    from .record import Record


def summary(record: "Record") -> list[dict[str, Any]]:
    """See `Record.summary`."""
    kinds = (False, True) if record.averaged else (False,)
    return [row_of(record, name, averaged) for name in record.metrics for averaged in kinds]


def row_of(record: "Record", name: str, averaged: bool) -> dict[str, Any]:
    """A metric at the end of training, over the lanes that did not diverge."""
    values = np.asarray(record.final(name, averaged), float).ravel()
    fine = values[np.isfinite(values)]
    return {
        "metric": f"averaged {name}" if averaged else name,
        "mean": float(fine.mean()) if len(fine) else None,
        "sd": float(fine.std(ddof=1)) if len(fine) > 1 else None,
        "median": float(np.median(fine)) if len(fine) else None,
        "lanes": len(fine),
        "untrained": record.untrained(name),
        "optimum": record.optimum(name),
    }


def kind_of(record: "Record") -> str:
    """RBM: the class of the method; nothing if the record does not say."""
    method = record.config.get("run", {}).get("method", {})
    return str(method.get("class", "")).rpartition(".")[2]


def with_seeds(values: Any) -> Any:
    """An array or a dataset with its dimension `seed`, also where one seed was chosen."""
    return values if "seed" in values.dims else values.expand_dims("seed")


def over_seeds(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the seeds that did not diverge; one seed has no spread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all seeds diverged: NaN is the answer
        finite = values.where(np.isfinite(values))
        return finite.mean("seed").values, finite.std("seed", ddof=1).values


def title(record: "Record") -> str:
    """Record of RBM: 8 seeds, 800,000 ticks, 0.9 s on the native engine"""
    kind = kind_of(record) or "a run"
    sizes = record["diverged_at"].sizes.items()
    lanes = " x ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in sizes) or "one lane"
    ticks = int(record["ticks"].isel(record=-1).max())
    spent = f"{record.attrs['seconds']:.3g} s on the {record.attrs['engine']} engine"
    return f"Record of {kind}: {lanes}, {ticks:,} ticks, {spent}"


def text(record: "Record") -> str:
    """The title, a line for each row of the summary, and what the dataset holds."""
    lines = [title(record)]
    for row in summary(record):
        spread = "" if row["sd"] is None else f" +- {row['sd']:.3g}"
        mean = "diverged" if row["mean"] is None else f"{row['mean']:.6g}{spread}"
        best = "" if row["optimum"] is None else f", optimum {row['optimum']:.6g}"
        lines.append(f"  {row['metric']} {mean}; untrained {row['untrained']:.6g}{best}")
    names = (str(name) for name in record.dataset if not str(name).startswith("data."))
    return "\n".join([*lines, f"  dataset: {', '.join(names)}"])


def page(record: "Record") -> str:
    """HTML: the title, the summary as a table, the curve of the first metric, xarray's own view."""
    rows = summary(record)
    cells = [[cell(value) for value in row.values()] for row in rows]
    table = shown.table(cells, list(rows[0])) + curve(record) if rows else ""
    whole = shown.folded("all that was recorded", record.dataset._repr_html_())
    return f"<p>{title(record)}</p>{table}{whole}"


def cell(value: Any) -> str:
    """A value of the summary in a table."""
    if value is None:
        return ""
    return shown.number(value) if isinstance(value, float) else str(value)


def curve(record: "Record") -> str:
    """The first metric against phases: a line for each setting, mean -+ sd over seeds; of a record
    without settings a second line for its slow weights.
    """
    name = record.metrics[0]
    averaged = f"averaged.{name}"
    values = record.dataset[[n for n in (name, averaged, "phases") if n in record.dataset]]
    values = with_seeds(values)
    swept = [d for d in values[name].dims if d not in ("seed", "record")]
    stacked = values.stack(setting=swept) if swept else values.expand_dims("setting")
    lines = []
    for i in range(stacked.sizes["setting"]):
        one = stacked.isel(setting=i)
        lines.append(line(one, name, ", ".join(f"{d} = {float(one[d]):g}" for d in swept)))
    if averaged in values and not swept:
        lines = [lines[0]._replace(name="last weights"), line(values, averaged, "slow weights")]
    best = record.optimum(name)
    seeds = values.sizes["seed"]
    said = f"{name}, mean and sd over {seeds} seeds," if seeds > 1 else name
    return shown.curve(lines, "phases", said, {} if best is None else {"optimum": best})


def line(values: Any, name: str, label: str) -> shown.Line:
    """A metric over seeds against phases."""
    mean, sd = over_seeds(values[name])
    sd = np.nan_to_num(sd)  # one seed has no band
    return shown.Line(values["phases"].mean("seed").values, mean, mean - sd, mean + sd, label)
