"""One description per method, rule and dataset; the command line is derived from them.

A new method is its file in `flexphase/methods/` and a file here with a `MethodEntry`, which is
found by itself. A new rule is a case of `named` in `flexphase/rules.py` and an entry in `rules.py`
here, a new dataset an entry in `datasets.py`.

Importing the catalogue imports neither NumPy nor JAX: a file here imports them inside the functions
that need them.
"""

import pkgutil
from importlib import import_module

from .datasets import DATASETS
from .entries import DatasetEntry, Input, MethodEntry, RuleEntry, Task
from .rules import RULES

__all__ = [
    "DATASETS",
    "METHODS",
    "RULES",
    "DatasetEntry",
    "Input",
    "MethodEntry",
    "RuleEntry",
    "Task",
]


def discovered() -> dict[str, MethodEntry]:
    """The methods that the files of this package describe, by name."""
    modules = [import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    entries = [e for module in modules for e in vars(module).values() if isinstance(e, MethodEntry)]
    return {entry.name: entry for entry in entries}


METHODS = discovered()
