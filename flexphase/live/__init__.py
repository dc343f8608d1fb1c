"""The live page: two machines that learn in the browser, in one HTML file that needs no network.

The scripts beside this file are ES modules in plain JavaScript. `page` puts them into one file: the
modules of a machine, which run in a worker, and those of the view. No bundler is needed, because
every name is exported once and none is used twice.
"""

import re
from importlib.resources import files

from ..report.vendor import uplot_script, uplot_style

#: Modules in the order of their imports.
WORKER = ("noise", "lengths", "phases", "estimators", "model", "likelihood", "average", "worker")
VIEW = (
    "estimators",
    "model",
    "likelihood",
    "settings",
    "stories",
    "controls",
    "pictures",
    "chart",
    "machine",
    "main",
)


def bundled(modules: tuple[str, ...]) -> str:
    """Modules as one classic script: without imports and exports, in a block of their own each.

    A name that a module exports is seen by the modules after it; all others stay in its block.
    """
    return '"use strict";\n' + "\n".join(map(block, modules))


def block(module: str) -> str:
    text = files(__name__).joinpath(f"{module}.js").read_text("utf-8")
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
    names = re.findall(r"^export (?:const|class|function) (\w+)", text, flags=re.MULTILINE)
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    if not names:
        return f"// {module}.js\n{{\n{text}}}"
    return (
        f"// {module}.js\nconst {{ {', '.join(names)} }} = (() => {{\n{text}"
        f"return {{ {', '.join(names)} }};\n}})();"
    )


def page() -> str:
    """The whole page as HTML; write it to a file and open that in a browser."""
    here = files(__name__)
    parts = {
        "style": uplot_style() + here.joinpath("style.css").read_text("utf-8"),
        "uplot": uplot_script(),
        "worker": bundled(WORKER),
        "view": bundled(VIEW),
    }
    text = here.joinpath("page.html").read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text
