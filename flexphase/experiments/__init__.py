"""One file per figure of the paper. Each has TITLE, SIZES (the settings of `quick` and `full`),
sweeps(size) and show(size, data).
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from ..report.panels import Panel
from .claims import Claim

#: The words of the command line, and the files that they stand for.
FIGURES = {
    "fig1": ["fig1"],
    "fig2": ["fig2_bas", "fig2_mnist"],
    "fig3": ["fig3"],
    "appendix": ["appendix"],
}


class Shown(NamedTuple):
    """What a figure shows: panels, the paper's claims with what was measured, remarks, and settings
    worth a line.
    """

    panels: Sequence[Panel]
    claims: Sequence[Claim]
    remarks: Sequence[str] = ()
    columns: int = 2


def figure(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def named(word: str) -> list[str]:
    """The figures that a word of the command line stands for."""
    if word == "all":
        return [name for names in FIGURES.values() for name in names]
    if word not in FIGURES:
        raise ValueError(f"there is no figure {word!r}; choose from {', '.join(FIGURES)} or all.")
    return FIGURES[word]
