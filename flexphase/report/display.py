"""One progress display for a whole run: figure, chunk, rate and time left; a line per milestone
where there is no terminal.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

from ..sweep.cells import Chunk
from .machine import clock


class Display:
    """`watch` is what `execute` calls. `elapsed` shares the wall clock out among the figures whose
    chunks are running.
    """

    def __init__(
        self,
        figures: Mapping[str, str],
        chunks: list[Chunk],
        finished: list[str],
        elapsed: dict[str, float],
    ):
        self.figures, self.elapsed = figures, elapsed  # figures: sweep name -> figure
        self.chunks = {chunk.name: chunk for chunk in chunks}
        self.finished = set(finished)
        self.begun = self.last = time.monotonic()
        self.first: float | None = None  # done in an earlier run: no evidence of today's rate
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
        return sum(map(self._cost, self.chunks.values()))

    def figure(self, chunk: str) -> str:
        return self.figures[self.chunks[chunk].sweep.name]

    def watch(self, running: dict[str, int], finished: str | None) -> None:
        now, running = (
            time.monotonic(),
            {name: ticks for name, ticks in running.items() if name in self.chunks},
        )
        busy = (
            list(running) or [name for name in self.chunks if name not in self.finished][:1]
        )  # starting or compiling: the next in line
        for name in busy:
            self.elapsed[self.figure(name)] = self.elapsed.get(self.figure(name), 0.0) + (
                now - self.last
            ) / len(busy)
        self.last = now
        if finished:
            self.finished.add(finished)
        parts = {
            name: ticks / self.chunks[name].ticks
            for name, ticks in running.items()
            if name not in self.finished
        }
        parts |= dict.fromkeys(self.finished, 1.0)
        done, ticks = (
            sum(share * f(self.chunks[n]) for n, share in parts.items())
            for f in (self._cost, lambda c: c.work)
        )
        if self.first is None:
            self.first = done
        rate = (done - self.first) / max(now - self.begun, 1e-9)
        left = clock((self.total - done) / rate) if rate > 0 else "?"
        names = sorted({self.figure(name) for name in busy}) or ["done"]
        text = f"{'+'.join(names)}  chunk {len(self.finished)}/{len(self.chunks)}"
        if self.bar:
            speed = f"{ticks / max(now - self.begun, 1e-9) / 1e6:.2f} M ticks/s"
            self.bar.update(self.task, completed=done, description=text, rate=speed, left=left)
        elif finished:
            figure = self.figure(finished)
            mine = [name for name in self.chunks if self.figure(name) == figure]
            have = sum(name in self.finished for name in mine)
            whole = (
                f"{len(self.finished)}/{len(self.chunks)} in all, {clock(now - self.begun)} gone, "
                f"about {left} left"
            )
            say(f"{figure}: chunk {have}/{len(mine)}  ({whole})")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]} left"),
        console=Console(stderr=True),
    )
