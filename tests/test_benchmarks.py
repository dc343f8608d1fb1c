"""Benchmarks take too long for a test; that what they import is still there is asked here."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("tools/*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_names_that_a_script_imports_exist(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("flexphase"):
            continue
        module = import_module(str(node.module))
        missing = [each.name for each in node.names if not hasattr(module, each.name)]
        assert not missing, f"{node.module} has no {missing}"
