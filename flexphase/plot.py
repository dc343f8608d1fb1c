"""A Record -> axes. Every function takes `ax=` (None makes a figure of its own, without pyplot's
global state) and returns the axes.
"""

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from .checks import one_of
from .drawing import LINES, PALETTE, axes, figure_format, save, verbatim
from .pictures import class_pictures, picture_shape, pictures, receptive_fields, tiles
from .record import Record
from .record_schema import CLOCKS
from .record_view import kind_of, over_seeds, with_seeds

__all__ = [
    "against",
    "averaged_curve",
    "axes",
    "class_pictures",
    "common_metric",
    "curves",
    "figure_format",
    "finish",
    "label_of",
    "log_y",
    "metric_label",
    "named_records",
    "picture_shape",
    "pictures",
    "raster",
    "receptive_fields",
    "save",
    "seeds_in",
    "settings",
    "shown",
    "tiles",
    "with_band",
]

Clock = Literal["ticks", "phases", "updates"]
Band = Literal["sd", "sem", "quantiles"]
Log = Literal["x", "y", "both"]

#: What a curve and its band are, for each kind of band.
BANDS = {
    "sd": "mean and sd",
    "sem": "mean and standard error",
    "quantiles": "median and quartiles",
}

METRICS = {
    "nll": "NLL (nats, sum over rows)",
    "nll_ais": "NLL by AIS (nats, sum over rows)",
}


def metric_label(name: str) -> str:
    """A metric's name for an axis, with its unit."""
    words = verbatim(name.replace("_", " "))
    return METRICS.get(name, f"{words} (%)" if name.endswith("error") else words)


def shown(values: xr.DataArray, name: str) -> xr.DataArray:
    """Errors are recorded as fractions and shown in per cent."""
    return values * 100 if name.endswith("error") else values


def settings(record: Record) -> Iterable[tuple[dict[str, float], xr.Dataset]]:
    """The record cut along its swept dimensions: (setting, what was recorded under it over seed and
    record).
    """
    dataset = with_seeds(record.dataset)
    swept = [str(d) for d in dataset[record.metric_name()].dims if d not in ("seed", "record")]
    for point in itertools.product(*(record[d].values for d in swept)):
        setting = dict(zip(swept, point, strict=True))
        yield setting, dataset.sel(setting)


def with_band(values: xr.DataArray, band: Band) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middle of the values over the seeds that did not diverge, and the lower and the upper
    edge of the band around it.

    `sd`: mean -+ one standard deviation; `sem`: mean -+ standard error of the mean, sd / sqrt(n);
    `quantiles`: median, and the quartiles on both sides, which heavy tails do not move.
    """
    if band == "quantiles":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # all seeds diverged
            finite = values.where(np.isfinite(values))
            low, middle, high = finite.quantile([0.25, 0.5, 0.75], "seed").values
        return middle, low, high
    mean, half = over_seeds(values)
    if band == "sem":
        seeds = values.where(np.isfinite(values)).count("seed").values
        half = half / np.sqrt(np.maximum(seeds, 1))
    return mean, mean - half, mean + half


def named_records(
    records: Record | Sequence[Record] | Mapping[str, Record],
) -> list[tuple[str, Record]]:
    """Records with their names in a legend. Of several without names each gets its label, or the
    kind of its method; one alone needs no name.
    """
    if isinstance(records, Mapping):
        return list(records.items())
    several = [records] if isinstance(records, Record) else list(records)
    if len(several) == 1:
        return [("", several[0])]
    return [(verbatim(label_of(record)), record) for record in several]


def label_of(record: Record) -> str:
    """What a legend calls a record: the label that `flexphase train` gave it, or the kind of its
    method.
    """
    return record.attrs.get("label") or kind_of(record)


def common_metric(records: Iterable[Record], metric: str | None) -> str:
    """The metric that is drawn of all records; a ValueError if they do not share it."""
    chosen = sorted({record.metric_name(metric) for record in records})
    if len(chosen) > 1:
        raise ValueError(
            f"these records measure different things ({', '.join(chosen)}), which share no axis; "
            "draw each in a figure of its own, or name a metric that all of them hold "
            "(metric=, or --metric)."
        )
    return chosen[0]


def curves(
    records: Record | Sequence[Record] | Mapping[str, Record],
    metric: str | None = None,
    x: Clock = "phases",
    ax: Any = None,
    band: Band = "sd",
    log: Log | None = None,
    averaged: bool = False,
) -> Any:
    """A metric against one of the three clocks, over seeds: a curve with a band for each record and
    each of its settings.

    Args:
        records: one, several, or a dictionary from the name in the legend to the record.
        metric: its name; the first one of the records if None. Records whose metrics differ are
            refused.
        x: the clock, "ticks", "phases" or "updates".
        ax: axes to draw in, beside the curves that they have; None makes a figure.
        band: "sd", "sem" or "quantiles", see `with_band`; the title of the legend says which.
        log: "x", "y" or "both" for logarithmic axes; the start, at 0, is then left out of x.
        averaged: the slow weights, from where their average begins, instead of the last iterate.

    Returns the axes:

        plot.curves({"CD": a, "AoL": b}, x="ticks", band="quantiles", log="x")
    """
    one_of(x, CLOCKS, "the clock")
    one_of(band, BANDS, "the band")
    if log is not None:
        one_of(log, ("x", "y", "both"), "the logarithmic axis")
    named = named_records(records)
    if not named:
        raise ValueError("give at least one record to draw.")
    metric = common_metric([record for _, record in named], metric)
    ax = axes(ax)
    style = itertools.islice(itertools.product(LINES, PALETTE), len(ax.lines), None)
    for name, record in named:
        for setting, ds in settings(record):
            line, colour = next(style, (LINES[0], PALETTE[0]))
            curve = averaged_curve(ds, metric) if averaged else ds[metric]
            middle, low, high = with_band(shown(curve, metric), band)
            clock = ds[x].mean("seed").values
            words = [name, *(f"{verbatim(k)} = {v:g}" for k, v in setting.items())]
            ax.plot(clock, middle, line, color=colour, label=", ".join(filter(None, words)) or None)
            ax.fill_between(clock, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.set_ylabel(metric_label(metric))
    ax.set_xlabel(CLOCKS[x] + (" (ticks)" if x == "ticks" else ""))
    if log in ("x", "both"):
        ax.set_xscale("log", nonpositive="mask")
    else:
        ax.locator_params(axis="x", nbins=6)
    if log in ("y", "both"):
        log_y(ax)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return finish(ax, seeds_in((record for _, record in named), band))


def averaged_curve(ds: xr.Dataset, metric: str) -> xr.DataArray:
    """The metric of the slow weights along training."""
    if f"averaged.{metric}" not in ds:
        raise ValueError("this record holds no slow weights; train with average=0.5 (--average).")
    return ds[f"averaged.{metric}"]


def log_y(ax: Any) -> None:
    """A logarithmic y-axis with plain numbers: 350, not 3.5 x 10^2."""
    from matplotlib.ticker import LogFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))


def against(
    record: Record, dim: str, metric: str | None = None, ax: Any = None, label: str | None = None
) -> Any:
    """The final value of a metric against a swept dimension (b, eta, tau, ...), with the standard
    deviation over seeds.
    """
    metric = record.metric_name(metric)
    final = shown(with_seeds(record.final(metric)), metric)
    if set(final.dims) - {"seed"} != {dim}:
        raise ValueError(
            f"the record sweeps {', '.join(map(str, final.dims))}, not {dim!r} alone; select the "
            "others first."
        )
    ax = axes(ax)
    mean, sd = over_seeds(final)
    colour = PALETTE[len(ax.containers) % len(PALETTE)]
    ax.errorbar(
        record[dim].values, mean, sd, fmt="o-", color=colour, capsize=3, markersize=4, label=label
    )
    ax.set_xlabel(verbatim(dim))
    ax.set_ylabel(metric_label(metric))
    return finish(ax, seeds_in([record]))


def seeds_in(records: Iterable[Record], band: Band = "sd") -> str:
    """What the curves and their bands are."""
    numbers = sorted({record.dataset.sizes.get("seed", 1) for record in records})
    if numbers == [1]:
        return "one seed"
    return f"{BANDS[band]} over {' or '.join(map(str, numbers))} seeds"


def finish(ax: Any, title: str) -> Any:
    """The frame, the grid, and a legend whose title says what the bands are, even where no curve
    has a name.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.legend(
        *ax.get_legend_handles_labels(),
        framealpha=0.85,
        edgecolor="none",
        title=title,
        alignment="left",
        fontsize="small",
        title_fontsize="small",
    )
    return ax


def raster(record: Record, name: str = "trace", lane: int = 0, ax: Any = None) -> Any:
    """What a `Trace` saw, tick by tick: grey for negative phases, a row for each unit or weight.

    record: one that was trained with observers={name: Trace(...)}.
    name: of the observer.
    lane: which of the networks, counted through all dimensions.
    ax: axes to draw in; None makes a figure.

    Binary rows are drawn as filled where they are on, others as lines scaled to their range. Ticks
    that the run did not reach are left out.
    """
    seen = {key: values.values for key, values in record.lane(lane).observed(name).items()}
    reached = np.flatnonzero(np.isfinite(seen["sign"]))
    if not len(reached):
        raise ValueError(
            f"the run ended before the trace {name!r} began; train for longer, or begin to trace "
            "earlier: Trace(ticks, start=0)."
        )
    seen = {key: values[: reached[-1] + 1] for key, values in seen.items()}
    sign, first = seen.pop("sign"), seen.pop("first")
    rows = {
        f"{key}" if v.ndim == 1 else f"{key} {i}": part
        for key, v in seen.items()
        for i, part in enumerate(v.reshape(len(v), -1).T)
    }
    ax = axes(ax, height=1.2 + 0.22 * len(rows))
    starts = np.flatnonzero(first)
    for start, end in zip(starts, [*starts[1:], len(sign)], strict=True):
        if sign[start] <= 0:
            shade = "#888888" if sign[start] < 0 else "#e6c75e"
            ax.axvspan(start, end, color=shade, alpha=0.3, linewidth=0)
    for i, values in enumerate(rows.values()):
        base, values = len(rows) - 1 - i, np.asarray(values, float)
        low, high = values.min(), values.max()
        scaled = (values - low) / (high - low) if high > low else np.full_like(values, high > 0)
        colour = PALETTE[i % len(PALETTE)]
        if np.isin(values, (0, 1)).all():
            ax.fill_between(
                np.arange(len(values)),
                base,
                base + 0.8 * scaled,
                step="post",
                color=colour,
                linewidth=0,
            )
        else:
            ax.plot(np.arange(len(values)) + 0.5, base + 0.8 * scaled, color=colour, linewidth=1)
    ax.set_yticks([len(rows) - 0.6 - i for i in range(len(rows))], list(rows), fontsize="small")
    ax.set(xlabel="network time steps (ticks)", xlim=(0, len(sign)), ylim=(-0.1, len(rows)))
    rest = ", yellow: no plasticity" if (sign == 0).any() else ""
    ax.set_title(f"grey: negative phases{rest}", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
