"""The compiled Forward-Forward engine."""

from collections.abc import Callable
from typing import Any

from ..core import State
from ..lanes import Lanes


class ForwardForward:
    name = "native"

    def __init__(self, threads: int | None = None):
        self.threads = threads

    def refuses(self, run: Any) -> str | None:
        return "the native engine has no Forward-Forward yet."

    def advance(self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]) -> State:
        raise NotImplementedError
