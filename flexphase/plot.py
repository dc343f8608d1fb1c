"""A Record -> axes. Every function takes `ax=` (None makes a figure of its own, without pyplot's
global state) and returns the axes.
"""

import itertools
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from .record import CLOCKS, Record, replacing

Clock = Literal["ticks", "phases", "updates"]

#: Okabe and Ito's colours, told apart by the colour-blind; their yellow is left out, which is too
#: pale on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")

METRICS = {"nll": "NLL (nats, sum over rows)"}


def axes(ax: Any = None, width: float = 5.0, height: float = 3.5) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def metric_label(name: str) -> str:
    """A metric's name for an axis, with its unit."""
    return METRICS.get(
        name, f"{name.replace('_', ' ')} (%)" if name.endswith("error") else name.replace("_", " ")
    )


def shown(values: xr.DataArray, name: str) -> xr.DataArray:
    """Errors are recorded as fractions and shown in per cent."""
    return values * 100 if name.endswith("error") else values


def pick_metric(record: Record, metric: str | None) -> str:
    if not record.metrics:
        raise ValueError("this record holds no metric; train with metrics={name: function}.")
    if metric is not None and metric not in record.metrics:
        raise ValueError(
            f"this record holds no metric {metric!r}; choose from {', '.join(record.metrics)}."
        )
    return metric or record.metrics[0]


def settings(record: Record) -> Iterable[tuple[dict[str, float], xr.Dataset]]:
    """The record cut along its swept dimensions: (setting, what was recorded under it over seed and
    record).
    """
    swept = [str(d) for d in record[pick_metric(record, None)].dims if d not in ("seed", "record")]
    for point in itertools.product(*(record[d].values for d in swept)):
        setting = dict(zip(swept, point, strict=True))
        yield setting, record.dataset.sel(setting)


def over_seeds(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the seeds that did not diverge; a single seed has no spread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all seeds diverged: NaN is the answer
        finite = values.where(np.isfinite(values))
        return finite.mean("seed").values, finite.std("seed", ddof=1).values


def curves(
    records: Record | Sequence[Record] | Mapping[str, Record],
    metric: str | None = None,
    x: Clock = "phases",
    ax: Any = None,
) -> Any:
    """A metric against one of the three clocks: mean and a band of one standard deviation over
    seeds, a curve for each setting.
    """
    if x not in CLOCKS:
        raise ValueError(f"the clock must be one of {', '.join(CLOCKS)}, not {x!r}.")
    unnamed = [records] if isinstance(records, Record) else records
    named = (
        list(unnamed.items())
        if isinstance(unnamed, Mapping)
        else [("", record) for record in unnamed]
    )
    if not named:
        raise ValueError("give at least one record to draw.")
    ax = axes(ax)
    style = itertools.product(LINES, PALETTE)
    for name, record in named:
        chosen = pick_metric(record, metric)
        for setting, ds in settings(record):
            line, colour = next(style, (LINES[0], PALETTE[0]))
            mean, sd = over_seeds(shown(ds[chosen], chosen))
            clock = ds[x].mean("seed").values
            words = [name, *(f"{k} = {v:g}" for k, v in setting.items())]
            ax.plot(clock, mean, line, color=colour, label=", ".join(filter(None, words)) or None)
            ax.fill_between(clock, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
        ax.set_ylabel(metric_label(chosen))
    ax.set_xlabel(CLOCKS[x] + (" (ticks)" if x == "ticks" else ""))
    ax.locator_params(axis="x", nbins=6)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return finish(ax, seeds_in(record for _, record in named))


def against(
    record: Record, dim: str, metric: str | None = None, ax: Any = None, label: str | None = None
) -> Any:
    """The final value of a metric against a swept dimension (b, eta, tau, ...), with the standard
    deviation over seeds.
    """
    metric = pick_metric(record, metric)
    final = shown(record.final(metric), metric)
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
    ax.set_xlabel(dim)
    ax.set_ylabel(metric_label(metric))
    return finish(ax, seeds_in([record]))


def seeds_in(records: Iterable[Record]) -> str:
    """What the bands are."""
    numbers = sorted({record.dataset.sizes["seed"] for record in records})
    return (
        "one seed" if numbers == [1] else f"mean and sd over {' or '.join(map(str, numbers))} seeds"
    )


def finish(ax: Any, title: str) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(
            frameon=False, title=title, alignment="left", fontsize="small", title_fontsize="small"
        )
    return ax


def picture_shape(pixels: int, shape: tuple[int, int] | None = None) -> tuple[int, int]:
    """Height and width of a picture; square where nothing else is said, one row where that does not
    fit.
    """
    side = round(pixels**0.5)
    height, width = shape or ((side, side) if side * side == pixels else (1, pixels))
    if height * width != pixels:
        raise ValueError(f"{pixels} pixels are no picture of {height} x {width}.")
    return height, width


def tiles(
    rows: Any, shape: tuple[int, int] | None = None, columns: int | None = None
) -> np.ndarray:
    """Rows of pixels as one picture: a grid of tiles with a margin of one pixel of NaN between
    them.
    """
    rows = np.asarray(rows, float)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            "pictures must be rows of pixels, an array of shape (pictures, pixels), not "
            f"{rows.shape}."
        )
    height, width = picture_shape(rows.shape[1], shape)
    columns = columns or int(np.ceil(len(rows) ** 0.5))
    lines = -(-len(rows) // columns)
    canvas = np.full((lines * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for i, row in enumerate(rows):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        canvas[top : top + height, left : left + width] = row.reshape(height, width)
    return canvas


def pictures(
    rows: Any,
    shape: tuple[int, int] | None = None,
    columns: int | None = None,
    ax: Any = None,
    signed: bool = False,
    label: str = "",
) -> Any:
    """Samples (0 white, 1 black), or signed values such as weights (blue below, red above zero), as
    a grid of pictures.
    """
    canvas = tiles(rows, shape, columns)
    ax = axes(ax, *np.clip(np.array(canvas.shape[::-1]) * 0.06, 3, 10))
    top = float(np.nanmax(np.abs(canvas), initial=0)) or 1.0
    from matplotlib import colormaps

    colours = colormaps["RdBu_r" if signed else "Greys"].with_extremes(
        bad="#bdbdbd" if signed else "#b0c4d8"
    )
    image = ax.imshow(
        canvas,
        cmap=colours,
        vmin=-top if signed else 0,
        vmax=top if signed else 1,
        interpolation="nearest",
    )
    if signed:
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label=label or "weight")
    ax.set_axis_off()
    return ax


def class_pictures(samples: Any, ax: Any = None) -> Any:
    """One row of square pictures for each class; the axes."""
    samples = np.asarray(samples)
    classes, each, pixels = samples.shape
    side = round(pixels**0.5)
    if side * side != pixels:
        raise ValueError(
            f"{pixels} pixels are not a square picture; reshape the samples and draw them yourself."
        )
    ax = axes(ax, width=0.6 * each + 0.8, height=0.6 * classes + 0.5)
    sheet = (
        samples.reshape(classes, each, side, side)
        .transpose(0, 2, 1, 3)
        .reshape(classes * side, each * side)
    )
    ax.imshow(sheet, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_yticks((np.arange(classes) + 0.5) * side - 0.5, np.arange(classes))
    ax.set_xticks([])
    ax.set(ylabel="label that is clamped", xlabel="independent chains")
    return ax


def receptive_fields(
    record: Record, lane: int = 0, shape: tuple[int, int] | None = None, ax: Any = None
) -> Any:
    """The weights of every hidden unit of an RBM to the picture, one lane's."""
    if "W" not in record.params or "a" not in record.params:
        raise ValueError("receptive fields are drawn for RBMs, whose parameters are W, a and c.")
    W = record.params["W"]
    fields = W.reshape(-1, *W.shape[-2:])[lane].T
    return pictures(
        fields[:, : shape[0] * shape[1]] if shape else fields, shape, ax=ax, signed=True
    )


def save(ax: Any, path: str | Path) -> Path:
    """Write the figure that the axes belong to, whole or not at all; the ending chooses the format,
    the same data give the same bytes.
    """
    import matplotlib

    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    known = ax.figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise ValueError(
            f"a figure cannot be written as {path.name!r}; end the name in .png, .svg or .pdf."
        )
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with (
        matplotlib.rc_context({"svg.hashsalt": "flexphase"}),
        replacing(path) as part,
        open(part, "wb") as file,
    ):
        ax.figure.savefig(file, format=kind, dpi=150, metadata=metadata)
        file.flush()
        os.fsync(file.fileno())
    return path
