"""All figures of a run as one HTML page that needs no network and no other file."""

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .findings import VERDICTS, Findings
from .panels import Panel

KINDS = {"CSV": "text/csv", "netCDF": "application/x-netcdf"}
HOW = (
    "Drag a box to zoom, double-click to go back; click a name to hide its curve. "
    "After a click on the curves the wheel zooms."
)
TOOLS = (
    ("in", "zoom in", ""),
    ("out", "zoom out", ""),
    ("reset", "reset", ""),
    ("x", "log x", ' aria-pressed="false"'),
    ("y", "log y", ' aria-pressed="false"'),
)
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class Entry(NamedTuple):
    """A figure on the page."""

    name: str
    title: str
    findings: Findings
    light: bytes  # the picture as SVG, for light and for dark screens
    dark: bytes
    settings: dict[str, Any]
    files: dict[str, Path]  # "CSV", "netCDF", "PNG", ... beside the page
    times: dict[str, str]  # in words


def uri(data: bytes, kind: str) -> str:
    """The data itself as an address, for links and pictures that need no other file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def numbers(values: Any) -> Any:
    """A list of numbers for JSON: six digits are enough to draw, NaN and infinity become null."""
    if values is None:
        return None
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def curves(findings: Findings) -> list[Panel]:
    """The panels that the page's script draws; pictures are in the figure alone."""
    return [panel for panel in findings.panels if panel.samples is None]


def panel_json(panel: Panel) -> dict[str, Any]:
    """A panel as the page's script reads it."""
    series = [
        s._asdict() | {"x": numbers(s.x), "y": numbers(s.y), "sd": numbers(s.sd)}
        for s in panel.series
    ]
    return panel._asdict() | {"series": series, "shade": list(panel.shade)}


def embedded(value: Any) -> str:
    """JSON to stand in a script element: no string in it can end that element."""
    return json.dumps(value).replace("<", "\\u003c")


def claims_table(findings: Findings) -> str:
    """The claims as an HTML table."""
    rows = "".join(
        f"<tr><td>{escape(c.words)}</td><td>{escape(c.measured)}</td>"
        f'<td class="verdict {c.verdict}">{c.verdict}</td>'
        f'<td class="test">{escape(c.test)}</td></tr>'
        for c in findings.claims
    )
    head = "<tr><th>The paper says<th>We measured<th>Verdict<th>Decided by"
    return f'<table class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def curve(i: int, j: int, title: str) -> str:
    """Where the page's script draws panel j of figure i."""
    tools = "".join(
        f'<button type="button" data-do="{do}"{pressed}>{label}</button>'
        for do, label, pressed in TOOLS
    )
    return (
        f'<figure class="curve" data-panel="{i},{j}"><figcaption>{escape(title)}</figcaption>'
        f'<canvas role="img" aria-label="{escape(title)}"></canvas>'
        '<div class="readout" aria-live="off"></div>'
        f'<div class="tools">{tools}</div><div class="legend"></div></figure>'
    )


def downloads(entry: Entry) -> str:
    """Links: the data are inside the page, the pictures are files beside it."""
    links = []
    for label, path in entry.files.items():
        where = uri(path.read_bytes(), KINDS[label]) if label in KINDS else path.name
        links.append(f'<a href="{where}" download="{path.name}">{label}</a>')
    return f'<p class="downloads">Download: {"".join(links)}</p>'


def pairs(items: dict[str, Any]) -> str:
    """Names and values as an HTML table."""
    rows = "".join(
        f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in items.items()
    )
    return f"<table>{rows}</table>"


def section(i: int, entry: Entry) -> str:
    """Figure number i of the page."""
    findings = entry.findings
    alt = escape(f"{entry.title}: {'; '.join(p.title for p in findings.panels)}")
    light, dark = uri(entry.light, "image/svg+xml"), uri(entry.dark, "image/svg+xml")
    picture = (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{alt}"></picture>'
    )
    drawn = "".join(curve(i, j, panel.title) for j, panel in enumerate(curves(findings)))
    return f"""<section id="{entry.name}"><h2>{escape(entry.title)}</h2>
<div class="plot">{picture}</div>
{"".join(f"<p>{escape(remark)}</p>" for remark in findings.remarks)}
<h3>Claims</h3>{claims_table(findings)}
<h3>Curves</h3><p class="faint">{HOW}</p>
<div class="curves">{drawn}</div>
<details><summary>Settings and time</summary>{pairs(entry.settings | entry.times)}</details>
{downloads(entry)}</section>"""


def head(title: str) -> str:
    """The head of the page. Its policy lets the page load nothing from elsewhere."""
    style = files("flexphase.report").joinpath("style.css").read_text()
    return (
        '<head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{style}</style></head>"
    )


def page(title: str, command: str, facts: dict[str, str], entries: Sequence[Entry]) -> str:
    """The whole page as HTML: the command and the facts of the run, then a section per figure."""
    script = files("flexphase.report").joinpath("curves.js").read_text()
    found = [c.verdict for e in entries for c in e.findings.claims]
    summary = ", ".join(f'<span class="{v}">{found.count(v)} {v}</span>' for v in VERDICTS)
    data = embedded([[panel_json(p) for p in curves(e.findings)] for e in entries])
    return f"""<!doctype html><html lang="en">{head(title)}<body>
<h1>{escape(title)}</h1><p>Claims of the paper: {summary}. A fail stays a fail.</p>
<nav>{"".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e in entries)}</nav>
<h3>Run it again</h3><pre>{escape(command)}</pre>
<details open><summary>This run</summary>{pairs(facts)}</details>
{"".join(section(i, e) for i, e in enumerate(entries))}
<script type="application/json" id="data">{data}</script>
<script>{script}</script></body></html>
"""
