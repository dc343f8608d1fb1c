"""The compiled Boltzmann engine: the same phases and stimuli as `tick`, in C++ with many lanes to a vector register."""

from collections.abc import Callable
from typing import Any

from ..core import State
from ..lanes import Lanes

try:
    from .. import _native  # type: ignore[attr-defined]

    MISSING = ""
except ImportError:
    _native = None
    MISSING = "flexphase was installed without its compiled engines (no C++ compiler was found), so the JAX engine serves."


class Boltzmann:
    name = "native"

    def __init__(self, threads: int | None = None):
        self.threads = threads

    def refuses(self, run: Any) -> str | None:
        return "the native Boltzmann engine is not there yet."

    def advance(self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]) -> State:
        raise NotImplementedError
