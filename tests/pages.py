"""The code of a page, as a reader sees it."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: A block of Python, a cell of a notebook, or what a page needs before without showing it.
CODE = re.compile(
    r"^```(?:python|\{code-cell\} python)\n(?P<shown>.*?)^```$"
    r"|^<!--python\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)


def blocks(page):
    """The Python of a page, in order; options of a cell (`:tags:`) are left out."""
    found = (match["shown"] or match["hidden"] for match in CODE.finditer(page.read_text()))
    return [re.sub(r"^:\w+:.*\n", "", code, flags=re.MULTILINE) for code in found]


def run(page, numbers=None):
    """Run the blocks of a page, or those of these numbers, in one namespace, as they stand;
    returns it.
    """
    names = {"__name__": page.stem}
    for number, code in enumerate(blocks(page)):
        if numbers is None or number in numbers:
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)
    return names
