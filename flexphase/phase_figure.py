"""Phases as a picture: raster, lengths, runs and spectrum."""

from typing import Any

import numpy as np

from .drawing import PALETTE
from .phases.statistics import run_lengths, spectrum, statistics

COLOURS = {1: PALETTE[0], -1: PALETTE[1], 0: "#bbbbbb"}
NAMES = {1: "positive", -1: "negative", 0: "no plasticity"}
SHOWN = 40  # phases in the raster, about


def figure(sign: Any, ticks: Any, title: str = "", hold: int | None = None) -> Any:
    """Four panels; returns the axes of the first.

    Args:
        sign, ticks: of the phases, such as those of `tape`.
        title: what they are.
        hold: ticks for which a stimulus is held; marked in the raster.
    """
    from .sheet import Sheet

    sign, ticks = np.asarray(sign, float), np.asarray(ticks, np.int64)
    sheet = Sheet(figsize=(9, 5.2), layout="constrained")
    top, *below = sheet.subplot_mosaic(
        [["raster"] * 3, ["lengths", "runs", "spectrum"]], height_ratios=(1, 2.4)
    ).values()
    raster(top, sign, ticks, hold)
    lengths(below[0], sign, ticks)
    runs(below[1], sign)
    rhythm(below[2], sign, ticks)
    s = statistics(sign, ticks)
    words = f"b = {s.b:.3f}, mean length {s.mean_length:.4g}, cv {s.cv_length:.3g}"
    sheet.suptitle(f"{title}\n{words}" if title else words, fontsize="medium")
    for ax in (top, *below):
        ax.spines[["top", "right"]].set_visible(False)
    return top


def raster(ax: Any, sign: np.ndarray, ticks: np.ndarray, hold: int | None = None) -> None:
    """The first phases along time; graded ones as a curve."""
    edges = np.concatenate([[0], np.cumsum(ticks)])
    graded = not np.isin(sign, (-1, 0, 1)).all()
    last = min(len(ticks), 400 if graded else SHOWN)
    if graded:
        ax.step(edges[: last + 1], np.append(sign[:last], sign[last - 1]), where="post")
    for kind in (1, -1, 0):
        own = np.flatnonzero(sign[:last] == kind)
        if len(own) and not graded:
            bars = list(zip(edges[own], ticks[own], strict=True))
            place = {1: (0.5, 0.45), -1: (0.05, 0.45), 0: (0.4, 0.2)}[kind]
            ax.broken_barh(bars, place, color=COLOURS[kind], edgecolor="white", linewidth=0.6)
    if hold is not None and edges[last] / hold <= 400:
        changes = np.arange(0, edges[last], hold)
        ax.plot(changes, np.zeros_like(changes, float) - 0.04, "|", color="black", markersize=5)
    if not graded:
        ax.set_yticks([0.725, 0.275], ["+", "-"])
        ax.set_ylim(-0.1, 1)
    ax.set(xlim=(0, edges[last]), xlabel="time (ticks)")
    marks = "; marks: a new stimulus" if hold is not None else ""
    rest = ", grey: no plasticity" if (sign[:last] == 0).any() and not graded else ""
    ax.set_title(f"the first {last} phases{rest}{marks}", fontsize="small")


def lengths(ax: Any, sign: np.ndarray, ticks: np.ndarray) -> None:
    """The distribution of lengths, for each sign; the longest 1 % are gathered in the last bin."""
    top = max(int(np.quantile(ticks, 0.99)), int(ticks.min()) + 1)
    width = max(1, (top - int(ticks.min())) // 40)
    edges = np.arange(ticks.min(), top + 2 * width, width) - 0.5
    shown = np.minimum(ticks, edges[-1] - 0.5)
    for kind in (1, -1, 0):
        own = shown[np.sign(sign) == kind]
        if len(own):
            weights = np.full(len(own), 1 / len(own))
            ax.hist(
                own,
                edges,
                weights=weights,
                histtype="step",
                color=COLOURS[kind],
                label=NAMES[kind],
                linewidth=1.5,
                linestyle="--" if kind < 0 else "-",
            )
    ax.set(xlabel="length of a phase (ticks)", ylabel="share of phases")
    ax.legend(frameon=False, fontsize="small")


def runs(ax: Any, sign: np.ndarray) -> None:
    """How many phases of the same sign come in a row."""
    many = run_lengths(sign)
    if not len(many):
        ax.text(0.5, 0.5, "no phase has a sign", ha="center", transform=ax.transAxes)
        return
    share = np.bincount(many)[1:] / len(many)
    n = np.arange(1, len(share) + 1)
    ax.plot(n[share > 0], share[share > 0], "o-", color=PALETTE[2], markersize=4)
    ax.set(xlabel="phases of a sign in a row", ylabel="share of runs")
    if len(share) > 3 and (share > 0).sum() > 2:
        ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)


def rhythm(ax: Any, sign: np.ndarray, ticks: np.ndarray) -> None:
    """The spectrum of the sign."""
    if ticks.sum() < 64:
        ax.text(0.5, 0.5, "too few ticks", ha="center", transform=ax.transAxes)
        return
    frequency, power = spectrum(sign, ticks)
    positive = power > 0
    ax.loglog(frequency[positive], power[positive], color=PALETTE[3], linewidth=1)
    ax.set(xlabel="frequency (1 / ticks)", ylabel="power of the sign (ticks)")
