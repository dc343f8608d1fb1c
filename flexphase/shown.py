"""How values show themselves: a run with its numbers as text, tables and small curves as HTML.

Nothing here knows runs, records or plans; they call it in `__repr__` and `_repr_html_`.
"""

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

#: Okabe and Ito's colours, as in `drawing.PALETTE`; lines beyond the last one are dashed.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT, LEFT, BELOW = 420, 180, 56, 34  # of a small curve, in pixels


class Line(NamedTuple):
    """A curve with a band around it: arrays of the same length."""

    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    name: str = ""


def number(value: Any) -> str:
    """At most six digits: 0.005, 108.131, 1e+06."""
    return f"{float(value):.6g}"


def as_written(leaf: Any) -> Any:
    """A number in an array as the plain number that the user wrote; everything else as it is."""
    concrete = isinstance(leaf, (np.ndarray, jax.Array)) and not isinstance(leaf, Tracer)
    if not concrete or leaf.ndim or leaf.dtype.kind not in "biuf":
        return leaf
    if leaf.dtype.kind == "f":
        return float(f"{float(leaf):.7g}")  # 0.005, not 0.004999999888
    return leaf.item()


def text(value: Any, width: int = 100) -> str:
    """A tree of modules on a line or a few, with its numbers, and arrays by their shape."""
    return eqx.tree_pformat(jax.tree.map(as_written, value), width=width)


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """An HTML table; the first cell of each row is its name. Texts are escaped."""

    def cells(tag: str, row: Sequence[Any]) -> str:
        style = ' style="text-align:left;padding:0.1em 1em 0.1em 0"'
        return "".join(f"<{tag}{style}>{html.escape(str(cell))}</{tag}>" for cell in row)

    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{cells('th', row[:1])}{cells('td', row[1:])}</tr>" for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def folded(title: str, inside: str) -> str:
    """HTML that opens when its title is clicked."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def curve(lines: Sequence[Line], x: str, y: str, marks: Mapping[str, float] | None = None) -> str:
    """A small figure as SVG: lines with bands, and horizontal marks such as an optimum.

    It takes its ink from the page (currentColor), so it reads on light and dark ones, and needs
    no library. Values that are not finite are left out.
    """
    marks = {name: value for name, value in (marks or {}).items() if np.isfinite(value)}
    values = np.concatenate([np.ravel(part) for line in lines for part in line[1:4]])
    values = np.append(values[np.isfinite(values)], list(marks.values()))
    if not len(values):
        return ""
    bottom, top = float(values.min()), float(values.max())
    last = max(float(np.max(line.x)) for line in lines)

    def across(value: Any) -> Any:
        return LEFT + (WIDTH - LEFT - 8) * np.asarray(value, float) / (last or 1)

    def up(value: Any) -> Any:
        share = (np.asarray(value, float) - bottom) / ((top - bottom) or 1)
        return 8 + (HEIGHT - BELOW - 8) * (1 - share)

    def points(xs: Any, ys: Any) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across(xs), up(ys), strict=True))

    def words(at_x: float, at_y: float, anchor: str, said: str, fill: str = "currentColor") -> str:
        place = f'x="{at_x:.0f}" y="{at_y:.0f}" text-anchor="{anchor}"'
        return f'<text {place} font-size="11" fill="{fill}">{html.escape(said)}</text>'

    ink, floor = 'stroke="currentColor"', HEIGHT - BELOW
    parts = [
        f'<path d="M{LEFT} 8V{floor}H{WIDTH - 8}" fill="none" {ink}/>',
        words(LEFT - 6, 14, "end", f"{top:.4g}"),
        words(LEFT - 6, floor, "end", f"{bottom:.4g}"),
        words(LEFT, floor + 14, "middle", "0"),
        words(WIDTH - 8, floor + 14, "end", f"{last:,.0f}"),
        words((LEFT + WIDTH) / 2, floor + 28, "middle", f"{y} against {x}"),
    ]
    for name, value in marks.items():
        dash = f'stroke-dasharray="4 3" {ink}'
        parts.append(f'<path d="M{LEFT} {up(value):.1f}H{WIDTH - 8}" {dash}/>')
        parts.append(words(LEFT + 4, up(value) - 3, "start", f"{name} {value:.4g}"))
    ends = np.concatenate([line.middle[np.isfinite(line.middle)][-1:] for line in lines])
    ends_high = len(ends) and ends.mean() > (bottom + top) / 2
    named = min(len(lines), (floor - 16) // 14)  # there is room for no more; all have a title
    names_at = floor - 14 * named if ends_high else 16  # off the curves
    looks = itertools.cycle(itertools.product(DASHES, COLOURS))
    for i, (line, (dash, colour)) in enumerate(zip(lines, looks, strict=False)):
        fine = np.isfinite(line.middle) & np.isfinite(line.low) & np.isfinite(line.high)
        xs, middle, low, high = (np.asarray(part)[fine] for part in line[:4])
        round_trip = np.concatenate([xs, xs[::-1]]), np.concatenate([high, low[::-1]])
        parts.append(f'<polygon points="{points(*round_trip)}" fill="{colour}" opacity="0.25"/>')
        stroke = f'fill="none" stroke="{colour}" stroke-width="2"'
        stroke += f' stroke-dasharray="{dash}"' if dash else ""
        title = f"<title>{html.escape(line.name)}</title>"
        parts.append(f'<polyline points="{points(xs, middle)}" {stroke}>{title}</polyline>')
        if i < named:
            parts.append(words(WIDTH - 10, names_at + 14 * i, "end", line.name, colour))
    label = html.escape(f"{y} against {x}", quote=True)
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    narrow = 'style="max-width:100%;height:auto"'  # on a phone
    return f'<svg {size} {narrow} role="img" aria-label="{label}">{"".join(parts)}</svg>'
