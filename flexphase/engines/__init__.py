"""Engines advance all lanes: `tick` itself in JAX, and compiled ones for some methods."""

import functools
import logging
from typing import Protocol

from jax import config

from ..contract import runs_of
from ..core import Run
from ..engine import Engine
from ..kernels import MISSING
from ..lanes import Grid
from .boltzmann import BoltzmannEngine
from .forward_forward import ForwardForwardEngine
from .jax import JaxEngine, Observers
from .layered import LayeredEngine

NAMES = ("auto", "jax", "native")
DOUBLE = (
    "compiled engines compute in single precision, and JAX is asked for double (jax_enable_x64); "
    "turn that off, or use engine='jax' or 'auto'."
)


class Compiled(Engine, Protocol):
    """An engine that fits some runs only."""

    def refuses(self, run: Run) -> str | None: ...  # a sentence that says why, or None


def compiled(threads: int | None = None) -> list[Compiled]:
    """The compiled engines, in the order in which they are asked."""
    return [BoltzmannEngine(threads), ForwardForwardEngine(threads), LayeredEngine(threads)]


@functools.cache
def say_if_missing() -> None:
    """Say once that there are no compiled engines, where JAX takes their place."""
    if MISSING:
        logging.getLogger("flexphase").warning(MISSING)


def choose(
    name: str, run: Run | Grid, threads: int | None = None, observers: Observers | None = None
) -> Engine:
    """The engine of that name.

    Args:
        name: `auto` takes the first compiled engine that fits the run, and JAX where none does;
            `native` insists on a compiled one, `jax` on JAX.
        run: what is to be trained.
        threads: of the compiled engines (default: all cores).
        observers: see every tick, which only the JAX engine can show them.
    """
    if name not in NAMES:
        raise ValueError(f"there is no engine {name!r}; choose auto, jax or native.")
    if observers and name == "native":
        raise ValueError(
            "observers see every tick, which only the JAX engine can show them; use engine='jax'."
        )
    if name == "jax" or observers:
        return JaxEngine(observers)
    if MISSING:
        if name == "native":
            raise ValueError(MISSING)
        return JaxEngine()
    if config.jax_enable_x64:  # type: ignore[attr-defined]
        if name == "native":
            raise ValueError(DOUBLE)
        return JaxEngine()
    reasons = []
    for engine in compiled(threads):
        refusal = next(filter(None, map(engine.refuses, runs_of(run))), None)
        if refusal is None:
            return engine
        reasons.append(refusal)
    if name == "native":
        raise ValueError(" ".join(reasons) + " Use engine='jax' or 'auto'.")
    return JaxEngine()
