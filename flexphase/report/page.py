"""All figures of a run as one HTML page that needs no network and no other file.

What was found comes first: every claim with its verdict. Then each figure once: its panels as
charts that can be zoomed, or, without JavaScript and on paper, its picture.
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
from .findings import VERDICTS, Claim, Findings
from .panels import Panel
from .vendor import uplot_script, uplot_style

KINDS = {"CSV": "text/csv", "netCDF": "application/x-netcdf"}
HOW = "Drag to zoom, double-click to go back; press a name to hide its curve."
TOOLS = {"in": "zoom in", "out": "zoom out", "reset": "reset", "x": "log x", "y": "log y"}
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


def panel_json(panel: Panel) -> dict[str, Any]:
    """A panel as the page's script reads it; samples are pictures, which it does not draw."""
    series = [
        s._asdict() | {"x": numbers(s.x), "y": numbers(s.y), "sd": numbers(s.sd)}
        for s in panel.series
    ]
    return panel._asdict() | {"series": series, "shade": list(panel.shade), "samples": None}


def embedded(value: Any) -> str:
    """JSON to stand in a script element: no string in it can end that element."""
    return json.dumps(value).replace("<", "\\u003c")


def counted(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict."""
    verdicts = [claim.verdict for claim in claims]
    return ", ".join(
        f'<span class="{v}">{verdicts.count(v)} {v}</span>' for v in VERDICTS if v in verdicts
    )


def claims_of(entry: Entry) -> str:
    """The claims of a figure, as rows of the table of what was found."""
    claims = entry.findings.claims
    rows = "".join(
        f"<tr><td>{escape(c.words)}</td><td>{escape(c.measured)}</td>"
        f'<td class="verdict {c.verdict}">{c.verdict}</td>'
        f'<td class="test">{escape(c.test)}</td></tr>'
        for c in claims
    )
    title = f'<a href="#{entry.name}">{escape(entry.title)}</a>: {counted(claims)}'
    return f'<tbody><tr><th colspan="4" scope="rowgroup">{title}</th></tr>{rows}</tbody>'


def found(entries: Sequence[Entry]) -> str:
    """The first section: all claims of all figures with their verdicts."""
    every = [claim for entry in entries for claim in entry.findings.claims]
    names = ("Claim", "We measured", "Verdict", "Decided by")
    columns = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(claims_of(entry) for entry in entries if entry.findings.claims)
    return f"""<section id="found"><h2>What was found</h2>
<p>Claims: {counted(every)}. A fail stays a fail.</p>
<table class="claims"><thead><tr>{columns}</tr></thead>{rows}</table></section>"""


def image(light: bytes, dark: bytes, alt: str) -> str:
    """A picture (SVG) that follows the colours of the screen; on paper it is light."""
    light_uri, dark_uri = uri(light, "image/svg+xml"), uri(dark, "image/svg+xml")
    source = f'<source media="screen and (prefers-color-scheme: dark)" srcset="{dark_uri}">'
    return f'<picture>{source}<img src="{light_uri}" alt="{escape(alt)}"></picture>'


def tool(do: str, panel: Panel) -> str:
    """A button of a chart; those of log axes are switches."""
    pressed = {"x": panel.logx, "y": panel.logy}.get(do)
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return f'<button type="button" data-do="{do}"{state}>{TOOLS[do]}</button>'


def chart(i: int, j: int, panel: Panel) -> str:
    """Where the page's script draws panel j of figure i; samples are pictures anyway."""
    if panel.samples is not None:
        alone = Findings([panel], [], columns=1)
        light, dark = (picture(alone, "svg", style) for style in (LIGHT, DARK))
        return f'<figure class="pictures">{image(light, dark, panel.title)}</figure>'
    words = f"{panel.title}: {panel.y} against {panel.x}; the numbers are in the CSV file."
    return (
        f'<figure class="curve" data-panel="{i},{j}"><figcaption>{escape(panel.title)}</figcaption>'
        f'<div class="chart" role="img" aria-label="{escape(words)}"></div>'
        f'<div class="axis">{escape(panel.x)}</div>'
        '<div class="readout"></div><div class="legend"></div>'
        f'<div class="tools">{"".join(tool(do, panel) for do in TOOLS)}</div></figure>'
    )


def downloads(entry: Entry) -> str:
    """Links to what is inside the page: the data, and the figure (a script makes a file of it).
    Other pictures are only named: they lie beside the page, which may be sent alone.
    """
    links, beside = [], []
    for label, path in entry.files.items():
        if label in KINDS:
            where = uri(path.read_bytes(), KINDS[label])
            links.append(f'<a href="{where}" download="{path.name}">{label}</a>')
        elif label == "SVG":
            links.append(f'<a href="#{entry.name}" data-file="{path.name}">SVG</a>')
        else:
            beside.append(path.name)
    named = f"<span>beside this page: {', '.join(beside)}</span>" if beside else ""
    return f'<p class="downloads">Download: {"".join(links)}{named}</p>'


def pairs(items: dict[str, Any]) -> str:
    """Names and values as an HTML table."""
    rows = "".join(
        f'<tr><th scope="row">{escape(str(k))}</th><td>{escape(str(v))}</td></tr>'
        for k, v in items.items()
    )
    return f"<table>{rows}</table>"


def section(i: int, entry: Entry) -> str:
    """Figure number i of the page: its picture for paper, its charts for the screen."""
    findings = entry.findings
    alt = f"{entry.title}: {'; '.join(p.title for p in findings.panels)}"
    charts = "".join(chart(i, j, panel) for j, panel in enumerate(findings.panels))
    return f"""<section id="{entry.name}"><h2>{escape(entry.title)}</h2>
{"".join(f"<p>{escape(remark)}</p>" for remark in findings.remarks)}
<div class="static">{image(entry.light, entry.dark, alt)}</div>
<div class="live" style="--columns: {findings.columns}">{charts}</div>
<p class="faint how">{HOW}</p>
{downloads(entry)}
<details><summary>Settings and time</summary>{pairs(entry.settings | entry.times)}</details>
</section>"""


def head(title: str) -> str:
    """The head of the page. Its policy lets the page load nothing from elsewhere."""
    style = uplot_style() + files("flexphase.report").joinpath("style.css").read_text("utf-8")
    return (
        '<head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{style}</style></head>"
    )


def page(title: str, command: str, facts: dict[str, str], entries: Sequence[Entry]) -> str:
    """The whole page as HTML: what was found, a section per figure, and how to run it again."""
    script = files("flexphase.report").joinpath("charts.js").read_text("utf-8")
    links = "".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e in entries)
    data = embedded([[panel_json(p) for p in e.findings.panels] for e in entries])
    return f"""<!doctype html><html lang="en">{head(title)}<body>
<header><h1>{escape(title)}</h1><nav aria-label="Figures">{links}</nav></header>
<main>{found(entries)}
{"".join(section(i, e) for i, e in enumerate(entries))}
<section id="again"><h2>Run it again</h2><pre>{escape(command)}</pre>
<details open><summary>This run</summary>{pairs(facts)}</details></section></main>
<script type="application/json" id="data">{data}</script>
<script>{uplot_script()}</script><script>{script}</script></body></html>
"""
