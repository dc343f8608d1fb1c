"""What an engine is: it advances all lanes, in pieces, and lets others look at the parameters."""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from .core import PyTree, State
from .lanes import Lanes

PIECE = 0.3  # seconds between two reports


class Visits(NamedTuple):
    """Moments inside an `advance` at which the parameters of all lanes are looked at."""

    at: tuple[int, ...] = ()  # ticks from where the advance began, increasing
    see: Callable[[PyTree], None] = lambda params: None  # must not keep the arrays

    def ahead(self, done: int, ticks: int) -> int:
        """Ticks from `done` to the next visit, or to the end at `ticks`."""
        return next((t for t in self.at if t > done), ticks) - done

    def pay(self, done: int, params: PyTree) -> None:
        """Look at the parameters if a visit is due after `done` ticks."""
        if done in self.at:
            self.see(params)


#: No moments at which to look.
NONE = Visits()


class Engine(Protocol):
    """Advances all lanes; `report(n)` is called after every n ticks, and may raise to stop."""

    @property
    def name(self) -> str: ...  # for records
    def start(self, lanes: Lanes, params: PyTree = None) -> State: ...  # before the first tick
    def advance(
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        visits: Visits = NONE,
    ) -> State:
        """-> the state of all lanes, `ticks` ticks later."""
        ...


def next_piece(piece: int, n: int, began: float) -> int:
    """Ticks for the next piece, so that it takes about PIECE seconds.

    Args:
        piece: ticks that the present one was to have; the next has at most a hundred times as many.
        n: ticks that it had.
        began: when it began, by `time.perf_counter`.
    """
    spent = time.perf_counter() - began
    return int(min(max(n * PIECE / spent, 1), 100 * piece))
