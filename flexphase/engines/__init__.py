"""Engines: who moves the lanes. `train` is core.train with the engine chosen by name."""

from typing import Any

from .. import core
from ..record import Record


def pick(name: str, run: Any) -> core.Engine:
    """The engine of that name; `auto` takes the fastest one that fits the run."""
    if name in ("auto", "jax"):
        return core.JaxEngine()
    raise ValueError(f"there is no engine {name!r}; choose auto or jax.")


def train(run: Any, *, engine: str = "auto", **options: Any) -> Record:
    """`core.train` (see there for the options) on the engine of that name."""
    return core.train(run, engine=pick(engine, run), **options)
