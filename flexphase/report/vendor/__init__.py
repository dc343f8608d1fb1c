"""uPlot 1.6.32 (MIT, LICENSE.uPlot), the charting library of the pages: as npm delivers it.

It is kept here so that building the package needs no network; a test compares the SHA-256 of its
files with those of npm.

Another version: `npm pack uplot@VERSION`, and copy dist/uPlot.iife.min.js, dist/uPlot.min.css and
LICENSE (as LICENSE.uPlot) here.
"""

from importlib.resources import files


def uplot_script() -> str:
    """The library, which defines `uPlot`, with its licence on top."""
    here = files(__name__)
    licence = here.joinpath("LICENSE.uPlot").read_text("utf-8").strip()
    return f"/*!\nuPlot\n\n{licence}\n*/\n" + here.joinpath("uPlot.iife.min.js").read_text("utf-8")


def uplot_style() -> str:
    """Its style sheet."""
    return files(__name__).joinpath("uPlot.min.css").read_text("utf-8")
