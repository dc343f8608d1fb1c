"""One progress display for a whole run: figure, chunk, rate and time left.

Where there is no terminal, a line for each chunk that finishes.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

from ..progress import console, say
from ..sweep.cells import Chunk
from .machine import clock


class Display:
    """`watch` is what `execute` calls.

    `figures` says which figure a sweep belongs to (both by name), `finished` names the chunks of
    earlier runs. The wall clock is shared out among the figures whose chunks are running, and added
    to their seconds in `elapsed`.
    """

    def __init__(
        self,
        figures: Mapping[str, str],
        chunks: list[Chunk],
        finished: list[str],
        elapsed: dict[str, float],
    ):
        self.figures, self.elapsed = figures, elapsed
        self.chunks = {chunk.name: chunk for chunk in chunks}
        self.finished = set(finished)
        self.begun = self.last = time.monotonic()
        self.first: tuple[float, float] | None = None  # (cost, ticks) of an earlier run
        self.bar = _bar() if sys.stderr.isatty() else None

    def __enter__(self) -> "Display":
        if self.bar:
            self.bar.start()
            self.task = self.bar.add_task("starting", total=self.total, rate="", left="?")
        return self

    def __exit__(self, *_: Any) -> None:
        if self.bar:
            self.bar.stop()

    @staticmethod
    def _cost(chunk: Chunk) -> float:
        return chunk.work * chunk.sweep.cost

    @property
    def total(self) -> float:
        """The cost of all chunks."""
        return sum(map(self._cost, self.chunks.values()))

    def figure(self, chunk: str) -> str:
        """The figure that a chunk is for."""
        return self.figures[self.chunks[chunk].sweep.name]

    def watch(self, running: dict[str, int], finished: str | None) -> None:
        """Show progress: ticks done by each running chunk, and the chunk that has just finished."""
        now = time.monotonic()
        running = {name: ticks for name, ticks in running.items() if name in self.chunks}
        # where none has reported yet, the next in line is starting or compiling
        waiting = [name for name in self.chunks if name not in self.finished]
        busy = list(running) or waiting[:1]
        for figure in map(self.figure, busy):
            self.elapsed[figure] = self.elapsed.get(figure, 0.0) + (now - self.last) / len(busy)
        self.last = now
        if finished:
            self.finished.add(finished)
        parts = {
            name: ticks / self.chunks[name].ticks
            for name, ticks in running.items()
            if name not in self.finished
        }
        parts |= dict.fromkeys(self.finished, 1.0)
        done = sum(share * self._cost(self.chunks[name]) for name, share in parts.items())
        ticks = sum(share * self.chunks[name].work for name, share in parts.items())
        if self.first is None:
            self.first = done, ticks
        seconds = max(now - self.begun, 1e-9)
        rate, speed = (done - self.first[0]) / seconds, (ticks - self.first[1]) / seconds
        left = clock((self.total - done) / rate) if rate > 0 else "?"
        if self.bar:
            names = sorted(set(map(self.figure, busy))) or ["done"]
            text = f"{'+'.join(names)}  chunk {len(self.finished)}/{len(self.chunks)}"
            fast = f"{speed / 1e6:.2f} M ticks/s"
            self.bar.update(self.task, completed=done, description=text, rate=fast, left=left)
        elif finished:
            self._milestone(self.figure(finished), f"{clock(now - self.begun)} gone", left)

    def _milestone(self, figure: str, gone: str, left: str) -> None:
        mine = [name for name in self.chunks if self.figure(name) == figure]
        have = sum(name in self.finished for name in mine)
        whole = f"{len(self.finished)}/{len(self.chunks)} in all, {gone}, about {left} left"
        say(f"{figure}: chunk {have}/{len(mine)}  ({whole})")


def _bar() -> Any:
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]} left"),
        console=console(),
    )
