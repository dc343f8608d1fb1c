"""Curves in a terminal, made of characters."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MARKS = "ox+*"
COLOURS = (34, 33, 32, 35)  # ANSI: blue, yellow, green, magenta


class Curve(NamedTuple):
    x: Sequence[float]
    y: Sequence[float]


def chart(
    curves: Mapping[str, Curve], width: int = 60, height: int = 14, colour: bool = False
) -> str:
    """The curves on common axes, each with a mark of its own, and a legend.

    Args:
        curves: by name, at most four.
        width, height: of the area in characters.
        colour: mark the curves by ANSI colours too.
    """
    pairs = [p for c in curves.values() for p in zip(c.x, c.y, strict=True) if math.isfinite(p[1])]
    if not pairs:
        return "(nothing to draw)"
    last = max(x for x, _ in pairs) or 1
    low, high = min(y for _, y in pairs), max(y for _, y in pairs)
    cells = [[" "] * width for _ in range(height)]
    legend = []
    for (name, curve), mark, code in zip(curves.items(), MARKS, COLOURS, strict=False):
        shown = f"\x1b[{code}m{mark}\x1b[0m" if colour else mark
        legend.append(f"{shown} {name}")
        for x, y in zip(curve.x, curve.y, strict=True):
            if math.isfinite(y):
                row = round((high - y) / ((high - low) or 1) * (height - 1))
                cells[row][round(x / last * (width - 1))] = shown
    edge = max(len(f"{value:.4g}") for value in (low, high))
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    lines = [f"{labels.get(i, ''):>{edge}} |{''.join(row)}" for i, row in enumerate(cells)]
    ends = f"0{f'{last:,.0f}':>{width - 1}}"
    return "\n".join([*lines, f"{'':>{edge}} +{'-' * width}", f"{'':>{edge}}  {ends}", *legend])
