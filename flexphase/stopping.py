"""How a command is stopped.

Ctrl-C, SIGTERM (a cluster ends the job) and SIGHUP (the terminal is closed) do the same. A
command that has nothing to keep ends at once with exit code 130, whatever library is computing.
Training ends at its next safe point, and what was recorded is written.

No exception is raised in the middle of a library: JAX may lose it, or crash.
"""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

#: Windows has SIGBREAK (its window is closed) in the place of SIGHUP.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
PATIENCE = 10.0  # seconds in which a safe point must come; the checkpoint has the rest


class Stopping:
    """How this process handles signals. Use the only instance, `STOPPING`: handlers are global."""

    def __init__(self):
        self.asked = threading.Event()
        self.watching = self.safe = self.writing = self.leaving = False
        self.begun: list[Callable[[], Any]] = []  # how to undo what is half done, oldest first

    def watch(self) -> None:
        """From now on signals end the process, from a thread of their own."""
        read, self.write = socket.socketpair()  # Windows can wait for sockets only
        self.write.setblocking(False)
        signal.set_wakeup_fd(self.write.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, background jobs of a shell
                signal.signal(number, _nothing)
        self.watching = True
        threading.Thread(target=self._listen, args=(read,), daemon=True).start()

    def _listen(self, read: socket.socket) -> None:
        while True:
            if read.recv(1)[0] not in SIGNALS:
                continue
            self.asked.set()
            deadline = time.monotonic() + PATIENCE
            while self.asked.is_set() and (self.safe or self.writing):
                again = bool(select.select([read], [], [], 0.05)[0])
                if not self.writing and (again or time.monotonic() > deadline):
                    break
            if self.asked.is_set():
                self.leave()

    def leave(self) -> None:
        """End the process now; the cursor, which a progress bar hides, comes back."""
        self.leaving = True
        self.undo()
        cursor = b"\x1b[?25h" if os.isatty(2) else b""
        with contextlib.suppress(OSError):
            os.write(2, cursor + b"flexphase: interrupted\n")
        os._exit(130)

    @contextlib.contextmanager
    def undone(self, undo: Callable[[], Any]) -> Iterator[None]:
        """If the process ends inside, `undo` is called first: to remove a temporary file or folder,
        or to end a child process.
        """
        self.begun.append(undo)
        try:
            yield
        finally:
            if self.leaving:  # this thread must do and print nothing more
                time.sleep(PATIENCE)
            self.begun.remove(undo)

    def undo(self) -> None:
        """Leave nothing behind that is half done; the process ends now."""
        for undo in reversed([*self.begun]):
            with contextlib.suppress(Exception):
                undo()

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Inside, `safe_point` is called now and then."""
        try:
            # Either the listening thread or the handler sets `asked`, not both: a signal that was
            # obeyed must not be seen again.
            with _handled(_nothing if self.watching else self._ask):
                yield
        finally:
            self.safe = False

    def _ask(self, *_: Any) -> None:
        self.asked.set()

    def safe_point(self) -> None:
        """Here the work may stop: raises KeyboardInterrupt if a signal came."""
        self.safe = True
        if self.asked.is_set():
            self.asked.clear()
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Signals are ignored: what was recorded is being written, and would be lost."""
        self.writing = True
        self.asked.clear()
        try:
            with _handled(signal.SIG_IGN):
                yield
        finally:
            self.writing = False


def _nothing(*_: Any) -> None:
    """Do nothing: the listening thread handles the signal."""


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[None]:
    """The signals go to this handler; those that were ignored stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, old in before.items():
        if old not in (signal.SIG_IGN, None):  # None was set in C, and cannot be given back
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            if old is not None:
                signal.signal(number, old)


STOPPING = Stopping()
