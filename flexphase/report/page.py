"""All figures of a run as one HTML page that needs no network and no other file.

What was found comes first: every claim with its verdict. Then each figure once: its panels as charts
that can be zoomed, or, without JavaScript and on paper, its picture.
"""

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .files import DARK, LIGHT, picture
from .findings import VERDICTS, Findings
from .vendor import uplot_script, uplot_style


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


HOW = "Drag to zoom, double-click to go back; press a name to hide its curve."
TOOLS = {"in": "zoom in", "out": "zoom out", "reset": "reset", "x": "log x", "y": "log y"}
KINDS = {"CSV": "text/csv", "netCDF": "application/x-netcdf"}


def numbers(values: Any) -> Any:
    """A list for JSON: not a number becomes null, six digits are enough to draw."""
    if values is None:
        return None
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def panel_json(panel: Any) -> dict[str, Any]:
    series = [
        s._asdict() | {"x": numbers(s.x), "y": numbers(s.y), "sd": numbers(s.sd)}
        for s in panel.series
    ]
    return panel._asdict() | {"series": series, "shade": list(panel.shade), "samples": None}


def embedded(value: Any) -> str:
    """JSON that no string in it can end the script element of."""
    return json.dumps(value).replace("<", "\\u003c")


def counted(findings: Findings) -> str:
    """How many claims have which verdict."""
    verdicts = [claim.verdict for claim in findings.claims]
    return ", ".join(
        f'<span class="{v}">{verdicts.count(v)} {v}</span>' for v in VERDICTS if v in verdicts
    )


def found(entry: Entry) -> str:
    """The claims of a figure, as rows of the table of what was found."""
    rows = "".join(
        f'<tr><td>{escape(c.words)}</td><td>{escape(c.measured)}</td><td class="verdict '
        f'{c.verdict}">{c.verdict}</td><td class="test">{escape(c.test)}</td></tr>'
        for c in entry.findings.claims
    )
    title = f'<a href="#{entry.name}">{escape(entry.title)}</a>: {counted(entry.findings)}'
    return f'<tbody><tr><th colspan="4" scope="rowgroup">{title}</th></tr>{rows}</tbody>'


def findings_table(entries: Sequence[Entry]) -> str:
    names = ("The paper says", "We measured", "Verdict", "Decided by")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(found(entry) for entry in entries if entry.findings.claims)
    return f'<table class="claims"><thead><tr>{head}</tr></thead>{body}</table>'


def scheme(light: bytes, dark: bytes, alt: str) -> str:
    """A picture that follows the colours of the screen; paper is light."""
    light_uri, dark_uri = uri(light, "image/svg+xml"), uri(dark, "image/svg+xml")
    source = f'<source media="screen and (prefers-color-scheme: dark)" srcset="{dark_uri}">'
    return f'<picture>{source}<img src="{light_uri}" alt="{escape(alt)}"></picture>'


def chart(i: int, j: int, panel: Any) -> str:
    """A panel for the script to draw; samples are pictures anyway."""
    title = escape(panel.title)
    if panel.samples is not None:
        alone = Findings([panel], [], columns=1)
        light, dark = (picture(alone, "svg", style) for style in (LIGHT, DARK))
        return f'<figure class="pictures">{scheme(light, dark, panel.title)}</figure>'
    tools = "".join(
        f'<button type="button" data-do="{do}"'
        + (f' aria-pressed="{str(panel._asdict()["log" + do]).lower()}"' if do in "xy" else "")
        + f">{label}</button>"
        for do, label in TOOLS.items()
    )
    return (
        f'<figure class="curve" data-panel="{i},{j}"><figcaption>{title}</figcaption>'
        f'<div class="chart" role="img" aria-label="{title}: {escape(panel.y)} against '
        f'{escape(panel.x)}; the numbers are in the CSV file."></div>'
        f'<div class="readout"></div><div class="legend"></div><div class="tools">{tools}</div>'
        "</figure>"
    )


def downloads(entry: Entry) -> str:
    """Data travel inside the page; so does the SVG. Other pictures lie beside the page."""
    links = []
    for label, path in entry.files.items():
        where = uri(path.read_bytes(), KINDS[label]) if label in KINDS else path.name
        inside = f' data-static="{entry.name}"' if label == "SVG" else ""
        links.append(f'<a href="{where}" download="{path.name}"{inside}>{label}</a>')
    return f'<p class="downloads">Download: {"".join(links)}</p>'


def pairs(items: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(str(k))}</th><td>{escape(str(v))}</td></tr>'
        for k, v in items.items()
    )
    return f"<table>{rows}</table>"


def section(i: int, entry: Entry) -> str:
    panels = entry.findings.panels
    alt = f"{entry.title}: {'; '.join(p.title for p in panels)}"
    return f"""<section id="{entry.name}"><h2>{escape(entry.title)}</h2>
{"".join(f"<p>{escape(remark)}</p>" for remark in entry.findings.remarks)}
<div class="static">{scheme(entry.light, entry.dark, alt)}</div>
<div class="live" style="--columns: {entry.findings.columns}">{"".join(chart(i, j, panel) for j, panel in enumerate(panels))}</div>
<p class="faint how">{HOW}</p>
{downloads(entry)}
<details><summary>Settings and time</summary>{pairs(entry.settings | entry.times)}</details></section>"""


def page(title: str, command: str, facts: dict[str, str], entries: Sequence[Entry]) -> str:
    """The whole page: what was found, the figures, and how to run it again."""
    here = files("flexphase.report")
    every = Findings([], [claim for entry in entries for claim in entry.findings.claims])
    data = [[panel_json(panel) for panel in entry.findings.panels] for entry in entries]
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    )
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,"><title>{escape(title)}</title>
<style>{uplot_style()}{here.joinpath("style.css").read_text("utf-8")}</style></head><body>
<header><h1>{escape(title)}</h1><nav aria-label="Figures">{"".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e in entries)}</nav></header>
<main><section id="found"><h2>What was found</h2><p>Claims of the paper: {counted(every)}. A fail stays a fail.</p>
{findings_table(entries)}</section>
{"".join(section(i, e) for i, e in enumerate(entries))}
<section id="again"><h2>Run it again</h2><pre>{escape(command)}</pre>
<details open><summary>This run</summary>{pairs(facts)}</details></section></main>
<script type="application/json" id="data">{embedded(data)}</script>
<script>{uplot_script()}</script><script>{here.joinpath("charts.js").read_text("utf-8")}</script></body></html>
"""
