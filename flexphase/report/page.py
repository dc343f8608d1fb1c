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


class Entry(NamedTuple):
    """A figure on the page."""

    name: str
    title: str
    findings: Findings
    light: bytes  # SVG
    dark: bytes
    settings: dict[str, Any]
    files: dict[str, Path]  # "CSV", "netCDF", "PNG", ... beside the page
    times: dict[str, str]  # in words


def uri(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


HOW = (
    "Drag a box to zoom, double-click to go back; click a name to hide its curve. After a click on "
    "the curves the wheel zooms."
)
KINDS = {"CSV": "text/csv", "netCDF": "application/x-netcdf"}


def numbers(values: Any) -> Any:
    """A list for JSON: not a number becomes null, six digits are enough to draw."""
    if values is None:
        return None
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def curves(findings: Findings) -> list[Any]:
    """The panels that the page's script draws; pictures are in the figure alone."""
    return [panel for panel in findings.panels if panel.samples is None]


def panel_json(panel: Any) -> dict[str, Any]:
    series = [
        s._asdict() | {"x": numbers(s.x), "y": numbers(s.y), "sd": numbers(s.sd)}
        for s in panel.series
    ]
    return panel._asdict() | {"series": series, "shade": list(panel.shade)}


def embedded(value: Any) -> str:
    """JSON that no string in it can end the script element of."""
    return json.dumps(value).replace("<", "\\u003c")


def claims_table(findings: Findings) -> str:
    rows = "".join(
        f'<tr><td>{escape(c.words)}</td><td>{escape(c.measured)}</td><td class="verdict '
        f'{c.verdict}">{c.verdict}</td>'
        f'<td class="test">{escape(c.test)}</td></tr>'
        for c in findings.claims
    )
    head = "<tr><th>The paper says<th>We measured<th>Verdict<th>Decided by"
    return f'<table class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def curve(i: int, j: int, title: str) -> str:
    tools = "".join(
        f'<button type="button" data-do="{do}"{pressed}>{label}</button>'
        for do, label, pressed in (
            ("in", "zoom in", ""),
            ("out", "zoom out", ""),
            ("reset", "reset", ""),
            ("x", "log x", ' aria-pressed="false"'),
            ("y", "log y", ' aria-pressed="false"'),
        )
    )
    return (
        f'<figure class="curve" data-panel="{i},{j}"><figcaption>{escape(title)}</figcaption>'
        f'<canvas role="img" aria-label="{escape(title)}"></canvas>'
        f'<div class="readout" aria-live="off"></div><div class="tools">{tools}</div><div '
        'class="legend"></div></figure>'
    )


def downloads(entry: Entry) -> str:
    """Data travel inside the page, pictures lie beside it."""
    links = []
    for label, path in entry.files.items():
        where = uri(path.read_bytes(), KINDS[label]) if label in KINDS else path.name
        links.append(f'<a href="{where}" download="{path.name}">{label}</a>')
    return f'<p class="downloads">Download: {"".join(links)}</p>'


def pairs(items: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in items.items()
    )
    return f"<table>{rows}</table>"


def section(i: int, entry: Entry) -> str:
    alt = escape(f"{entry.title}: {'; '.join(p.title for p in entry.findings.panels)}")
    light, dark = uri(entry.light, "image/svg+xml"), uri(entry.dark, "image/svg+xml")
    return f"""<section id="{entry.name}"><h2>{escape(entry.title)}</h2>
<div class="plot"><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" alt="{alt}"></picture></div>
{"".join(f"<p>{escape(remark)}</p>" for remark in entry.findings.remarks)}
<h3>Claims</h3>{claims_table(entry.findings)}
<h3>Curves</h3><p class="faint">{HOW}</p>
<div class="curves">{"".join(curve(i, j, p.title) for j, p in enumerate(curves(entry.findings)))}</div>
<details><summary>Settings and time</summary>{pairs(entry.settings | entry.times)}</details>
{downloads(entry)}</section>"""


def page(title: str, command: str, facts: dict[str, str], entries: Sequence[Entry]) -> str:
    here = files("flexphase.report")
    count = [c.verdict for e in entries for c in e.findings.claims]
    summary = ", ".join(f'<span class="{v}">{count.count(v)} {v}</span>' for v in VERDICTS)
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    )
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{here.joinpath("style.css").read_text()}</style></head><body>
<h1>{escape(title)}</h1><p>Claims of the paper: {summary}. A fail stays a fail.</p>
<nav>{"".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e in entries)}</nav>
<h3>Run it again</h3><pre>{escape(command)}</pre>
<details open><summary>This run</summary>{pairs(facts)}</details>
{"".join(section(i, e) for i, e in enumerate(entries))}
<script type="application/json" id="data">{embedded([[panel_json(p) for p in curves(e.findings)] for e in entries])}</script>
<script>{here.joinpath("curves.js").read_text()}</script></body></html>
"""
