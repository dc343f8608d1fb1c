"""Every block of Python on every page runs as it stands, and links between pages lead somewhere.

Pages that take more than a moment are slow tests, and so is a page that is not named here.
"""

import ast
import builtins
import re
from importlib import import_module
from importlib.util import find_spec
from inspect import ismodule
from pkgutil import resolve_name
from textwrap import dedent

import matplotlib
import pytest
from pages import ROOT, blocks, run

import flexphase
from flexphase import api, estimators, phases
from flexphase.catalogue import METHODS
from flexphase.experiments import STUDIES

PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
QUICK = {"extending.md", "theory.md"} | {
    f"howto/{name}.md" for name in ("phases", "pytorch", "resume", "data", "inside", "trouble")
}
#: Blocks that are parsed only, with the reason.
PARSED = {
    "cluster.md": "needs SLURM and Kubernetes",
    "cli.md": "is a file of the package",
}

OWN = {
    "new_method.md": "has a test of its own below",
    "phases.md": "test_docs_phases.py",
    "schedule.md": "test_docs_phases.py, where torch may be missing",
}

#: Modules whose names pages import and the reference leaves out, with the reason.
LEFT_OUT = {"flexphase.experiments.bas": "words of a figure, which the skeleton of another borrows"}

TABLE = ROOT / "docs" / "methods" / "README.md"
#: Selections, durations and whole processes; `Phases` joins the first two and has phases.md.
PROCESSES = [
    name
    for name in api.__all__
    if isinstance(getattr(phases, name, None), type) and name != "Phases"
]


def name_of(page):
    return page.relative_to(ROOT / "docs").as_posix()


def cases():
    for page in PAGES:
        name = name_of(page)
        if blocks(page) and name not in PARSED | OWN:
            yield pytest.param(page, id=name, marks=[] if name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("page", list(cases()))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as a script finds the files beside it
    codes = blocks(page)
    for code in codes:
        if file := re.match(r"# (\S+\.py)\n", code):  # a file of the reader's
            (tmp_path / file[1]).parent.mkdir(exist_ok=True)
            (tmp_path / file[1]).write_text(code)
    torch = [number for number, code in enumerate(codes) if re.search(r"^import torch", code, re.M)]
    missing = torch if find_spec("torch") is None else []
    run(page, set(range(len(codes))) - set(missing))
    import matplotlib.pyplot as plt

    plt.close("all")
    if missing:
        pytest.skip(f"torch is not installed: all blocks but {missing} were run")


@pytest.mark.parametrize("name", PARSED)
def test_code_that_cannot_run_here_is_python(name):
    for code in blocks(ROOT / "docs" / name):
        compile(code, name, "exec")


def test_the_skeleton_of_a_method_learns_under_every_rule(capsys):
    """The loss before training is |w|^2 = 5.25 on average (closed form: inputs are standard
    normal).
    """
    run(ROOT / "docs" / "new_method.md")
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert float(said["two-term"]) < 1e-3
    assert float(said["isd"]) < 0.5 and float(said["always on"]) < 0.5


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_command_line_has_a_page(name):
    row = re.search(rf"^\| `{name}` \| \[.*?\]\((.*?)\)", TABLE.read_text(), re.MULTILINE)
    assert row, f"{TABLE} has no row for {name}"
    assert f"flexphase train {name}" in (TABLE.parent / row[1]).read_text()


def test_every_rule_has_a_page():
    """A name of `estimators`, on top of a page and linked from the table; classes with one object
    (`TwoTerm`, `two_term`) go by its name.
    """
    own = sorted(n for n, part in vars(api).items() if defined_in(part) == estimators.__name__)
    names = {name.replace("_", "").lower(): name for name in own}.values()  # a to z after A to Z
    pages = {page: page.read_text() for page in (ROOT / "docs" / "rules").glob("*.md")}
    table = (ROOT / "docs" / "rules.md").read_text()
    titled = {name: [p for p, text in pages.items() if f"`{name}" in text[:200]] for name in names}
    assert len(names) >= 6 and all(titled.values()), titled
    assert [page for page in pages if f"](rules/{page.name})" not in table] == []


def defined_in(part):
    """The module of a function or a class, or of the class of an object."""
    return getattr(part, "__module__", type(part).__module__)


def test_the_studies_count_their_claims():
    """The number of all claims, from which those expected by chance follow."""
    table = (ROOT / "docs" / "studies.md").read_text()
    rows = re.findall(r"\| (\d+) / (\d+) / (\d+) \| \d+ \|", table)
    total = sum(int(n) for row in rows for n in row)
    said = (ROOT / "docs" / "reproduce.md").read_text()
    assert len(rows) == len(STUDIES) and f"have {total} claims" in said


@pytest.mark.parametrize("kind", PROCESSES)
def test_every_public_phase_process_has_a_page(kind):
    """Its call is in the paragraph on top of exactly one page, which README.md links."""
    folder = ROOT / "docs" / "processes"
    tops = {page.name: page.read_text().split("\n\n")[1] for page in folder.glob("[a-z]*.md")}
    own = [name for name, top in tops.items() if f"`{kind}(" in top]
    assert len(own) == 1, own
    assert f"]({own[0]})" in (folder / "README.md").read_text()


def of_conf(name):
    """A list in docs/conf.py, which needs Sphinx to be imported."""
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text())
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(n.value) for n in assigned if ast.unparse(n.targets[0]) == name)


def imported(page):
    """Module and name of what the code of a page imports from flexphase."""
    nodes = (node for code in blocks(page) for node in ast.walk(ast.parse(code)))
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level)
    own = (node for node in found if node.module.split(".")[0] == "flexphase")
    return {(node.module, alias.name) for node in own for alias in node.names}


def test_the_reference_has_every_name_that_users_meet():
    """Those of `phases`, and all that a page or the README imports."""
    shown = [vars(api)[name] for name in api.__all__]
    shown += [resolve_name(f"flexphase.{name}") for name in of_conf("OTHER")]
    modules = {f"flexphase.{name}" for name in of_conf("MODULES")}

    def has(home, name):
        module = import_module(home)
        part = getattr(module, name)
        if home in modules:
            return name in getattr(module, "__all__", [name])
        return ismodule(part) or home in LEFT_OUT or any(part is one for one in shown)

    used = {("flexphase.phases", name) for name in phases.__all__}
    used = used.union(*map(imported, [ROOT / "README.md", *PAGES]))
    assert sorted(names for names in used if not has(*names)) == []


#: What the examples of docstrings take from elsewhere: other libraries, and names of the reader's.
GIVEN = """
    jax jnp np optax torch arviz make_pipeline MinMaxScaler StandardScaler LogisticRegression
    MyMethod X a b bouts_in_seconds data images inputs labels log_f method model params patterns
    rate record rows run sizes source targets term x y
"""


def examples(node):
    """The code in a docstring: what is indented after a colon (modules show formulas there), and
    `code` in a paragraph that begins with Example.
    """
    text = ast.get_docstring(node) or ""
    indented = re.findall(r":\n\n((?: {4}.*\n?|\n)+)", text)
    told = re.findall(r"^Example.*?(?=\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`(.*?)`", "".join(told), re.DOTALL)
    shown = [] if isinstance(node, ast.Module) else map(dedent, indented)
    return [*shown, *(" ".join(span.split()) for span in spans)]


def test_the_examples_of_docstrings_are_python_and_name_what_exists():
    """A name is public, of the same file, made in the example, Python's own, or one of GIVEN; what
    follows a public one and a dot is there.
    """
    modules = {name: getattr(flexphase, name) for name in ["estimators", *of_conf("MODULES")]}
    public = modules | {name: vars(api)[name] for name in api.__all__}
    inside = {name for module in modules.values() for name in getattr(module, "__all__", ())}
    seen, wrong = 0, []
    for path in sorted((ROOT / "flexphase").rglob("*.py")):
        tree = ast.parse(path.read_text())
        own = {getattr(node, "name", "") for node in tree.body}
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        for codes in (examples(node) for node in ast.walk(tree) if isinstance(node, kinds)):
            nodes = [n for code in codes for n in ast.walk(ast.parse(code, str(path)))]
            names = [n for n in nodes if isinstance(n, ast.Name)]
            made = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            made |= {n.arg for n in nodes if isinstance(n, ast.arg)}
            made |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
            known = {*GIVEN.split(), *public, *inside, *own, *made, *dir(builtins)}
            wrong += [f"{path.name}: {n.id}" for n in names if n.id not in known]
            dotted = {(ast.unparse(n.value), n.attr) for n in nodes if isinstance(n, ast.Attribute)}
            there = [(part, name) for part, name in dotted if part in public.keys() - made]
            wrong += [f"{path.name}: {p}.{n}" for p, n in there if not hasattr(public[p], n)]
            seen += len(codes)
    assert seen > 40 and wrong == []
