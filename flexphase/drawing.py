"""What all figures share: colours, axes without pyplot's global state, and the way to a file."""

from pathlib import Path
from typing import Any

from .files import replacing

FORMATS = ("png", "svg", "pdf")

#: Okabe and Ito's colours, told apart by the colour-blind; their yellow is left out, which is too
#: pale on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")


def verbatim(name: str) -> str:
    """A name that a file or a user gave, for a label: matplotlib would read $...$ as a formula."""
    return name.replace("$", r"\$")


def axes(ax: Any = None, width: float = 5.0, height: float = 3.5) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from .sheet import Sheet

    return Sheet(figsize=(width, height), layout="constrained").subplots()


def figure_format(path: str | Path) -> str:
    """png, svg or pdf, from the ending of the name; other formats need programs that may be
    missing.
    """
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(
            f"a figure cannot be written as {Path(path).name!r}; end the name in .png, .svg or "
            ".pdf."
        )
    return kind


def save(ax: Any, path: str | Path, over: bool = True) -> Path:
    """Write the figure that the axes belong to, whole or not at all; the ending chooses the format,
    the same data give the same bytes. Without `over`, a file that exists is kept: a ValueError.
    """
    import matplotlib

    path = Path(path)
    kind = figure_format(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with (
        matplotlib.rc_context({"svg.hashsalt": "flexphase"}),
        replacing(path, over=over) as part,
        open(part, "wb") as file,
    ):
        ax.figure.savefig(file, format=kind, dpi=150, metadata=metadata)
    return path
