"""Engines: who moves the lanes. `train` is core.train with the engine chosen by name."""

import logging
from typing import Any, Protocol

from .. import core
from ..lanes import Grid
from ..record import Record
from . import forward_forward, native
from .jax import JaxEngine


class Compiled(core.Engine, Protocol):
    """An engine that fits some runs only."""

    def refuses(self, run: Any) -> str | None: ...  # a sentence that says why, or None


def compiled(threads: int | None = None) -> list[Compiled]:
    """The compiled engines, in the order in which they are asked."""
    return [native.Boltzmann(threads), forward_forward.ForwardForward(threads)]


_told: list[str] = []


def _tell_once(line: str) -> None:
    if line not in _told:
        _told.append(line)
        logging.getLogger("flexphase").warning(line)


def pick(name: str, run: Any, threads: int | None = None) -> core.Engine:
    """The engine of that name: `auto` takes the first compiled one that fits the run, and JAX where
    none does.
    """
    if name not in ("auto", "jax", "native"):
        raise ValueError(f"there is no engine {name!r}; choose auto, jax or native.")
    if name == "jax":
        return JaxEngine()
    if native.MISSING:
        if name == "native":
            raise ValueError(native.MISSING)
        _tell_once(native.MISSING)
        return JaxEngine()
    runs = run.runs if isinstance(run, Grid) else [run]
    reasons = []
    for engine in compiled(threads):
        refusals = [reason for r in runs if (reason := engine.refuses(r))]
        if not refusals:
            return engine
        reasons.append(refusals[0])
    if name == "native":
        raise ValueError(" ".join(reasons) + " Use engine='jax' or 'auto'.")
    return JaxEngine()


def train(run: Any, *, engine: str = "auto", threads: int | None = None, **options: Any) -> Record:
    """`core.train` (see there for the options) on the engine of that name; `threads` is for the
    compiled ones (default: all cores).
    """
    return core.train(run, engine=pick(engine, run, threads), **options)
