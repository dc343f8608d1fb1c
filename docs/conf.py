"""The documentation site: `make docs` builds it to docs/_build/html.

Pages are Markdown (MyST). Those under docs/notebooks/ are run at build. The reference is made here
from the public names of `flexphase/api.py` and their docstrings.
"""

import os
import re
from importlib import import_module
from inspect import getsource, isfunction
from pathlib import Path
from typing import Any

from sphinx.ext import autosummary
from sphinx.ext.napoleon import GoogleDocstring

import flexphase
from flexphase import api, live

HERE = Path(__file__).parent

project = "flexphase"
author = "The flexphase developers"
release = version = flexphase.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
default_role = "code"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 1800  # of a cell, on a busy machine
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
# Kernels have a profile of their own: neither the user's, nor a warning that their sockets, which
# no other machine can reach, are not encrypted.
os.environ["IPYTHONDIR"] = str(HERE / "_build" / "ipython")
profile = HERE / "_build" / "ipython" / "profile_default" / "ipython_kernel_config.py"
profile.parent.mkdir(parents=True, exist_ok=True)
profile.write_text('get_config().IPKernelApp.log_level = "ERROR"\n')

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autosummary_generate = False
# A summary is a first sentence, which `eq. 2` does not end.
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "Eq.", "eqs.", "Eqs.")
napoleon_numpy_docstring = False

html_theme = "sphinx_book_theme"
html_title = "flexphase"
toc_object_entries_show_parents = "hide"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses for files
html_theme_options = {
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_context = {"default_mode": "auto"}


#: Names for users that `api.py` does not have: hidden by others, rarely needed, or for extensions.
OTHER = [
    "exact_lanes",
    "averages.Average",
    "catalogue.entries.DatasetEntry",
    "catalogue.entries.Input",
    "catalogue.entries.MethodEntry",
    "catalogue.entries.Task",
    "core.Clocked",
    "core.init",
    "costs.ledger.table",
    "engine.Engine",
    "engine.NONE",
    "engine.Visits",
    "engines.Compiled",
    "estimators.isd",
    "estimators.weigh_always_on",
    "estimators.weigh_isd",
    "hardware.on_device.transformation",
    "hardware.precision.bits_needed",
    "likelihood.states",
    "methods.nce.Noise",
    "methods.nce.Precision",
    "methods.nce.log_normal",
    "methods.samplers.Sampler",
    "methods.units.VisibleUnits",
    "phase_figure.figure",
    "phase_figure.raster",
    "phases.Duration",
    "phases.Law",
    "phases.Schedule",
    "phases.Selection",
    "phases.Tick",
    "report.findings.Claim",
    "report.findings.Findings",
    "report.panels.Panel",
    "report.panels.Series",
    "report.panels.points",
]

#: Modules with a page each.
MODULES = ["export", "sklearn", "plot", "sweep", "theory"]


def groups() -> dict[str, list[str]]:
    """The public names under the comments that stand over them in `api.py`."""
    listed = Path(api.__file__).read_text().partition("__all__ = [")[2]
    parts = re.split(r"^    # (.*)\n", listed, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {title: re.findall(r'"(\w+)"', names) for title, names in pairs}


def explain(kind: type) -> None:
    """The comment behind a stub of a protocol, or behind a field, becomes its docstring."""
    for field in getattr(kind, "_fields", ()):
        vars(kind)[field].__doc__ = ""  # in place of "Alias for field number 0"
    line = re.compile(r"^    (?:def )?(\w+)\b.*  # (.*)$", flags=re.MULTILINE)
    for name, words in line.findall(getsource(kind)):
        member = vars(kind)[name]
        member.__doc__ = member.__doc__ or words


def members(kind: type) -> str:
    """Options that show the members of a class; fields only where its docstring has no `Args`."""
    fields = getattr(kind, "_fields", ())
    if fields and "Args:" in (kind.__doc__ or ""):
        return f"   :members:\n   :exclude-members: {', '.join(fields)}\n"
    protocol = getattr(kind, "_is_protocol", False)
    if fields or protocol:
        explain(kind)
    more = "   :undoc-members:\n   :special-members: __call__\n" if protocol else ""
    return f"   :members:\n{more}"


def entry(name: str, module: str) -> str:
    """The directive that shows a name's docstring."""
    home, _, last = f"{module}.{name}".rpartition(".")
    value = getattr(import_module(home), last)
    if isinstance(value, type):
        return f".. autoclass:: {module}.{name}\n{members(value)}"
    if isfunction(value):
        return f".. autofunction:: {module}.{name}\n"
    return f".. autodata:: {module}.{name}\n   :no-value:\n"


def page(title: str, names: list[str], module: str = "flexphase") -> str:
    """A table of the names, and below it the docstring of each."""
    rows = "\n".join(f"   {name}" for name in names)
    entries = "\n".join(entry(name, module) for name in names)
    head = f"{title}\n{'=' * len(title)}\n"
    return f"{head}\n.. currentmodule:: {module}\n\n.. autosummary::\n\n{rows}\n\n{entries}"


def write(path: Path, text: str) -> None:
    """Leaves a file alone that says this already, so that it is not built again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def reference(_: Any) -> None:
    """docs/reference/: a page for each group of names."""
    for number, (title, names) in enumerate(groups().items()):
        words = title[0].upper() + title[1:]
        write(HERE / "reference" / f"{number}_{title.split()[-1]}.rst", page(words, names))
    write(HERE / "reference" / "other.rst", page("Other names", OTHER))
    for name in MODULES:
        module = import_module(f"flexphase.{name}")
        own = getattr(module, "__all__", None) or [
            n
            for n, v in vars(module).items()
            if getattr(v, "__module__", "") == module.__name__ and not n.startswith("_")
        ]
        text = page(f"flexphase.{name}", sorted(own), module.__name__)
        write(HERE / "reference" / f"{name}.rst", text)


def plain_text(
    _app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text with `code` and indented examples: what reStructuredText would
    read into | * _ is not meant.
    """
    inside = None  # the indent of the line that an example follows
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line and inside is not None and indent <= inside:
            inside = None
        if inside is not None:
            continue
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [re.sub(r"([|*]|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts[::2]]
        lines[i] = "".join(parts)
        example = [*lines[i + 1 : i + 3], "", ""]
        if line.endswith(":") and not example[0] and example[1].startswith(" " * (indent + 4)):
            lines[i], inside = lines[i] + ":", indent


def left_out(_app: Any, _what: str, name: str, member: Any, *_: Any) -> bool | None:
    """Functions that are the default of a field, and scikit-learn's own."""
    home = getattr(member, "__module__", None) or "flexphase"
    foreign = callable(member) and not home.startswith("flexphase")
    default = isfunction(member) and "." not in member.__qualname__
    return True if foreign or default or re.fullmatch(r"set_\w+_request", name) else None


def no_arguments(
    _app: Any, _what: str, _name: str, member: Any, *_: Any
) -> tuple[str, None] | None:
    """A protocol is not called."""
    return ("", None) if getattr(member, "_is_protocol", False) else None


def more(_app: Any, name: str, source: list[str]) -> None:
    """Pages that the front page does not list yet, where it says MORE."""
    if name == "index":
        listed = re.findall(r"^\w+$", source[0], flags=re.MULTILINE)
        pages = {path.stem for path in HERE.glob("*.md")} - {"index", *listed}
        source[0] = re.sub("^MORE$", "\n".join(sorted(pages)), source[0], flags=re.MULTILINE)


def whole_numbers(_app: Any, _name: str, source: list[str]) -> None:
    """A number and its spread stay on one line of a table."""
    source[0] = re.sub(
        r"^\|.*", lambda row: re.sub(r" (±|\+-) ", "\u00a0\\1\u00a0", row[0]), source[0], flags=re.M
    )


def live_page(app: Any, error: Exception | None) -> None:
    """The page where phases run, as it is."""
    if error is None and app.builder.name == "html":
        (Path(app.outdir) / "live_page.html").write_text(live.page(), encoding="utf-8")


def whole(self: Any) -> tuple[str, list[str]]:
    """The docstring of a value such as `always_on`, which is that of its class: what stands before
    a colon is no type.
    """
    return "", GoogleDocstring(self._dedent(self._consume_to_end()), self._config).lines()


def setup(app: Any) -> None:
    GoogleDocstring._consume_inline_attribute = whole
    app.connect("builder-inited", reference)
    app.connect("source-read", more)
    app.connect("source-read", whole_numbers)
    app.connect("autodoc-process-docstring", plain_text, priority=400)
    app.connect("autodoc-skip-member", left_out)
    app.connect("autodoc-process-signature", no_arguments)
    app.connect("build-finished", live_page)
