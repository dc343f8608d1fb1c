"""The files of a figure: pictures (PNG, SVG, PDF), data drawn (CSV), data recorded (netCDF)."""

import json
from collections.abc import Hashable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..files import netcdf_bytes
from ..sweep import RunFolder
from .findings import Findings
from .panels import figure_of, table

LIGHT = {"svg.hashsalt": "flexphase", "svg.fonttype": "path"}
INK, GROUND = "#e4e8ec", "#14181c"
DARK = LIGHT | {
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def picture(findings: Findings, kind: str, style: dict[str, Any]) -> bytes:
    """The figure as a file of this kind ("png", "svg", "pdf"), in the style LIGHT or DARK."""
    import matplotlib

    buffer = BytesIO()
    with matplotlib.rc_context(style):  # type: ignore[arg-type]
        figure = figure_of(findings.panels, findings.columns)
        figure.savefig(buffer, format=kind, dpi=150, metadata=UNDATED.get(kind))
    return buffer.getvalue()


def pictures(name: str, findings: Findings, folder: RunFolder) -> dict[str, Path]:
    """Write NAME.png, NAME.svg and NAME.pdf; returns their paths by kind."""
    return {
        kind.upper(): folder.write(f"{name}.{kind}", picture(findings, kind, LIGHT))
        for kind in ("png", "svg", "pdf")
    }


def drawn(name: str, findings: Findings, folder: RunFolder) -> Path:
    """Write NAME.csv: every point that is drawn."""
    return folder.write(f"{name}.csv", table(findings.panels).to_csv(index=False))


def recorded(name: str, findings: Findings, data: dict[str, xr.Dataset], folder: RunFolder) -> Path:
    """Write NAME.nc: every curve of every lane where there was a sweep, else what is drawn.

    The first dataset is the file itself, others are groups in it; all carry the claims as JSON.
    """
    datasets = {key: d.drop_vars(filter(is_parameter, d)) for key, d in data.items()}
    datasets = datasets or {name: xr.Dataset.from_dataframe(_indexed(table(findings.panels)))}
    claims = {"claims": json.dumps([c._asdict() for c in findings.claims])}
    groups = {key: dataset.assign_attrs(claims) for key, dataset in datasets.items()}
    first = groups.pop(next(iter(groups)))
    return folder.write(f"{name}.nc", netcdf_bytes(first, groups, packed=True))


def is_parameter(variable: Hashable) -> bool:
    """Does this variable of a record hold trained parameters, last or slow?"""
    return str(variable).startswith(("params", "averaged.params"))


def _indexed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_index(np.arange(len(frame))).rename_axis("row")
