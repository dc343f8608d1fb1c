"""uPlot 1.6.32 (MIT, LICENSE.uPlot), the charting library of the pages: as npm delivers it.

Another version: `npm pack uplot@VERSION`, and copy dist/uPlot.iife.min.js, dist/uPlot.min.css and
LICENSE here.
"""

from importlib.resources import files


def uplot_script() -> str:
    """The library; it defines `uPlot`."""
    return files(__name__).joinpath("uPlot.iife.min.js").read_text("utf-8")


def uplot_style() -> str:
    """Its style sheet."""
    return files(__name__).joinpath("uPlot.min.css").read_text("utf-8")
