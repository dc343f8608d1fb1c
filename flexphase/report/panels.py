"""A figure is a list of panels, a panel a list of series.

They are drawn once by matplotlib and once by the page's script, and written once as CSV.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from ..drawing import LINES, PALETTE
from ..plot import class_pictures, over_seeds

FEW = 6  # places on a logarithmic axis that are labelled each
MANY = 6  # names in a legend of one column


class Series(NamedTuple):
    """One curve of a panel."""

    name: str  # in the legend; none if empty
    x: Any
    y: Any  # mean over seeds
    sd: Any = None
    colour: int = 0  # in PALETTE
    line: int = 0  # in LINES
    kind: str = "line"  # "line", "points" (with error bars), "dots" (no line) or "steps"
    star: tuple[float, float] | None = None
    at: float | None = None  # a dotted line at this x


class Panel(NamedTuple):
    """Axes with their series, or with pictures."""

    title: str
    x: str  # label of the axis
    y: str
    series: Sequence[Series]
    logx: bool = False
    logy: bool = False
    shade: Sequence[tuple[float, float]] = ()  # stretches of x with a grey ground
    ylim: tuple[float, float] | None = None
    samples: Any = None  # (classes, each, pixels), drawn as pictures in place of series
    names: Sequence[str] = ()  # of x = 0, 1, 2, ..., in place of numbers


def curve(
    name: str, dataset: xr.Dataset, clock: str, metric: str, scale: float = 1.0, **style: Any
) -> Series:
    """One cell's metric over a clock: mean and sd over seeds, both times `scale`."""
    mean, sd = over_seeds(dataset[metric] * scale)
    return Series(name, dataset[clock].mean("seed").values, mean, sd, **style)


def star(series: Series, x: float) -> Series:
    """The same series, marked with a star at x."""
    return series._replace(star=(float(x), float(np.interp(x, series.x, series.y))))


def points(name: str, x: Any, values: Sequence[Any], kind: str = "points", **style: Any) -> Series:
    """Mean and sd of values[i] (over seeds) at x[i]."""
    spread = [float(np.std(v, ddof=1)) if np.size(v) > 1 else 0.0 for v in values]
    middle = np.array([np.mean(v) for v in values])
    return Series(name, np.asarray(x, float), middle, np.array(spread), kind=kind, **style)


def medians(name: str, x: Any, values: Sequence[Any], kind: str = "points", **style: Any) -> Series:
    """Median of values[i] (over seeds) at x[i] and a robust spread: the interquartile range over
    1.349, which is the standard deviation where the law is normal. One seed that is stuck does not
    hide the others.
    """
    spread = np.array([np.subtract(*np.quantile(v, [0.75, 0.25])) / 1.349 for v in values])
    middle = np.array([np.median(v) for v in values])
    return Series(name, np.asarray(x, float), middle, spread, kind=kind, **style)


def table(panels: Sequence[Panel]) -> pd.DataFrame:
    """All that is drawn, a row for each point: panel, series, x, mean, sd."""
    rows = []
    for panel in panels:
        for s in panel.series:
            columns = {"x": s.x, "mean": s.y, "sd": np.nan if s.sd is None else s.sd}
            frame = pd.DataFrame({"panel": panel.title, "series": s.name} | columns)
            rows.append(frame.astype({"x": float}))
    return pd.concat(rows, ignore_index=True)


def figure_of(panels: Sequence[Panel], columns: int) -> Any:
    """All panels as one matplotlib figure, row by row.

    Colours of text and ground come from matplotlib's present rc parameters.
    """
    from matplotlib.figure import Figure

    columns = max(1, min(columns, len(panels)))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.0 * columns, 3.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(grid, panels, strict=False):
        panel_on(ax, panel)
    for ax in grid[len(panels) :]:
        ax.set_axis_off()
    return figure


def ink(colour: int) -> str:
    """A colour of the palette; the last one is that of text: black on white, light on dark."""
    from matplotlib import rcParams

    return rcParams["text.color"] if colour == len(PALETTE) - 1 else PALETTE[colour]


def panel_on(ax: Any, panel: Panel) -> None:
    """Draw a panel on matplotlib axes."""
    if panel.samples is not None:
        class_pictures(panel.samples, ax).set_title(panel.title)
        return
    for low, high in panel.shade:
        ax.axvspan(low, high, color="#888888", alpha=0.25, linewidth=0)
    for series in panel.series:
        series_on(ax, series)
    ax.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    ax.set_xscale("log" if panel.logx else "linear")
    ax.set_yscale("log" if panel.logy else "linear")
    if panel.logx and (few := few_places(panel)):
        ax.set_xticks(few, [f"{x:.2g}" for x in few])
        ax.set_xticks([], minor=True)
    if panel.ylim:
        ax.set_ylim(*panel.ylim)
    if panel.names:
        ax.set_xticks(range(len(panel.names)), panel.names, fontsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    if names := ax.get_legend_handles_labels()[1]:
        many = len(names) > MANY
        size = {"fontsize": 7 if many else 8, "ncols": 2 if many else 1, "handlelength": 3}
        ax.legend(framealpha=0.85, edgecolor="none", **size)


def few_places(panel: Panel) -> list[float]:
    """The x of a panel's points where they are few, so that each can have its label."""
    places = sorted({float(x) for s in panel.series for x in np.atleast_1d(s.x)})
    return places if len(places) <= FEW else []


def series_on(ax: Any, s: Series) -> None:
    """Draw one series on matplotlib axes, with its star and its dotted line."""
    colour = ink(s.colour)
    style = {
        "color": colour,
        "linestyle": LINES[s.line],
        "label": s.name or None,
        "linewidth": 1.4,
    }
    if s.kind == "dots":
        ax.errorbar(s.x, s.y, s.sd, fmt="o", markersize=4, capsize=2.5, color=colour, label=s.name)
    elif s.kind == "points":
        ax.errorbar(s.x, s.y, s.sd, marker="o", markersize=3.5, capsize=2.5, **style)
    elif s.kind == "steps":
        ax.step(s.x, s.y, where="post", **style)
    else:
        ax.plot(s.x, s.y, **style)
        if s.sd is not None and np.isfinite(s.sd).any():
            ax.fill_between(s.x, s.y - s.sd, s.y + s.sd, color=colour, alpha=0.2, linewidth=0)
    if s.star:
        ax.plot(*s.star, "*", color=colour, markersize=13, markeredgecolor=ax.get_facecolor())
    if s.at is not None:
        ax.axvline(s.at, color=colour, linestyle=":", linewidth=1)
