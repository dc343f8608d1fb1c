"""Progress of a training run: a bar in a terminal or a notebook, silence elsewhere."""

import contextlib
import html
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, TextIO, cast, runtime_checkable

Progress = Callable[[int, int, dict[str, float]], None]
OFTEN = 0.2  # seconds between two pictures of the bar in a notebook


def say(text: str) -> None:
    """Print a message on standard error, because standard output is for results. Where that cannot
    be written to, the message is dropped and the command goes on.

    A control character, which a name in a file may hold, is shown and not sent to the terminal.
    """
    shown = "".join(repr(c)[1:-1] if is_control(c) and c not in "\n\t" else c for c in text)
    with contextlib.suppress(OSError, ValueError):
        print(shown, file=sys.stderr, flush=True)


def is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"


class Patient:
    """A stream that drops what it cannot write: a terminal may go away while a run goes on."""

    def __init__(self, stream: Any):
        self.stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def console() -> Any:
    """Standard error for rich, whose bars would otherwise end a run that has lost its terminal."""
    from rich.console import Console

    return Console(file=cast(TextIO, Patient(sys.stderr)))


@runtime_checkable
class Display(Protocol):
    """What `train` calls to show its progress."""

    def stage(self, words: str) -> None: ...  # what is done before and after the ticks
    def __call__(self, done: int, total: int, latest: dict[str, float]) -> None: ...


class Calls:
    """A function of the user, called as progress(ticks done, ticks in all, latest metrics)."""

    def __init__(self, progress: Progress | None):
        self.progress = progress

    def stage(self, words: str) -> None:
        """Nothing: the function is called with ticks only."""

    def __call__(self, done: int, total: int, latest: dict[str, float]) -> None:
        if self.progress:
            self.progress(done, total, latest)


class Terminal:
    """A bar of rich with rate, time left and the present metrics, on standard error."""

    def __init__(self, title: str, bar: Any):
        self.title, self.bar = title, bar
        self.task = bar.add_task(title, total=None, rate="", now="")

    def stage(self, words: str) -> None:
        self.bar.update(self.task, description=f"{self.title}: {words}")

    def __call__(self, done: int, total: int, latest: dict[str, float]) -> None:
        speed = self.bar.tasks[0].speed
        self.bar.update(
            self.task,
            description=self.title,
            completed=done,
            total=total,
            rate=f"{speed:,.0f} ticks/s" if speed else "",
            now=metrics_in_words(latest),
        )


class Notebook:
    """An HTML bar that is drawn anew in the cell's output. `show` draws; it gets HTML."""

    def __init__(self, title: str, show: Callable[[str], None]):
        self.title, self.show, self.began, self.drawn = title, show, time.monotonic(), 0.0

    def stage(self, words: str) -> None:
        self.show(f"<progress></progress> {html.escape(f'{self.title}: {words}')}")

    def __call__(self, done: int, total: int, latest: dict[str, float]) -> None:
        now = time.monotonic()
        if now - self.drawn < OFTEN and done < total:
            return
        self.drawn, spent = now, now - self.began
        left = f"{spent * (total - done) / done:.0f} s left" if 0 < done < total else ""
        words = f"{self.title} {done:,} of {total:,} ticks {left} {metrics_in_words(latest)}"
        bar = f'<progress max="{total}" value="{done}"></progress>'
        self.show(f"{bar} {html.escape(words)}")


def metrics_in_words(latest: dict[str, float]) -> str:
    """nll 120.3  test_error 0.07"""
    return "  ".join(f"{name} {value:.4g}" for name, value in latest.items())


def in_notebook() -> bool:
    """Does this run in a Jupyter kernel? IPython is asked only if it was imported already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config


@contextlib.contextmanager
def display(progress: Progress | Display | bool | None, title: str) -> Iterator[Display]:
    """What `train(progress=...)` draws on.

    Args:
        progress: True for a bar, in a terminal or a notebook; silent where there is neither. A
            function is called; None and False are silent. A display of one's own is also told what
            is done before the first tick and after the last.
        title: stands before the bar.
    """
    if isinstance(progress, Display):
        yield progress
    elif progress and progress is not True and not callable(progress):
        raise ValueError(
            "progress must be True, for a bar, or a function that is called as progress(ticks "
            f"done, ticks in all, latest metrics), not {progress!r}."
        )
    elif progress is not True:
        yield Calls(progress or None)
    elif in_notebook():
        yield notebook(title)
    elif sys.stderr.isatty():
        with terminal() as bar:
            yield Terminal(title, bar)
    else:
        yield Calls(None)


def notebook(title: str) -> Notebook:
    ipython = import_module("IPython.display")  # not a dependency: it is there in a notebook
    handle = ipython.display(ipython.HTML(""), display_id=True)
    return Notebook(title, lambda text: handle.update(ipython.HTML(text)))


def terminal() -> Any:
    """A bar of rich that leaves nothing behind when it ends."""
    from rich import progress as rich

    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[now]}"),
        console=console(),
        transient=True,
    )
