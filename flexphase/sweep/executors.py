"""Executors run chunks: on local processes, or on a Dask cluster.

Both run the chunk of a worker that dies again.
"""

import asyncio
import contextlib
import json
import logging
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any, Protocol

from ..machine import cores

PATIENCE = 0.25  # seconds between looks at progress
CRASHES = 3  # crashes before a chunk is given up
LOST = "the Dask scheduler was lost"
#: A worker imports from where its parent does; with `-m` the current folder would come first.
WORKER = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
try:
    from flexphase.sweep.worker import main
except Exception as error:
    reason = f"a worker does not start ({type(error).__name__}: {error})"
    sys.exit(print(json.dumps({"error": reason}), flush=True))
main()
"""


class Executor(Protocol):
    """Runs tasks, each a chunk as JSON."""

    def run(self, tasks: Sequence[str]) -> Iterator[str | None]:
        """Yield the name of each chunk as it finishes, and None now and then in between.

        An error of a chunk is raised.
        """
        ...

    def close(self) -> None:
        """Give back what the executor holds."""
        ...


def pipes(process: subprocess.Popen) -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output of a worker."""
    assert process.stdin and process.stdout
    return process.stdin, process.stdout


class Local:
    """Processes of this machine, `workers` at most (default: one per core).

    Each gets its share of the cores for the threads of a compiled engine.
    """

    def __init__(self, workers: int | None = None):
        if workers is not None and workers < 1:
            raise ValueError(f"there must be at least 1 worker process, not {workers!r}.")
        self.most = workers or cores()
        self.processes: list[subprocess.Popen] = []

    def _start(self, share: int) -> subprocess.Popen:
        env = os.environ | {"FLEXPHASE_THREADS": str(share)}
        places = json.dumps([place for place in sys.path if isinstance(place, str)])
        return subprocess.Popen(
            [sys.executable, "-P", "-c", WORKER, places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )

    def run(self, tasks: Sequence[str]) -> Iterator[str | None]:
        """See `Executor`."""
        todo, crashes = list(reversed(tasks)), dict.fromkeys(tasks, 0)
        workers = min(self.most, len(tasks))
        selector, busy = selectors.DefaultSelector(), {}

        def start() -> None:
            process = self._start(max(1, cores() // workers))
            self.processes.append(process)
            selector.register(pipes(process)[1], selectors.EVENT_READ, process)
            give(process)

        def give(process: subprocess.Popen) -> None:
            busy[process] = task = todo.pop()
            with contextlib.suppress(BrokenPipeError):  # it has died, as the next read shows
                pipes(process)[0].write(task.encode() + b"\n")
                pipes(process)[0].flush()

        try:
            for _ in range(workers):
                start()
            while busy:
                for event, _ in selector.select(PATIENCE):
                    process = event.data
                    line, task = process.stdout.readline(), busy.pop(process, None)
                    if line.endswith(b"\n"):
                        answer = json.loads(line)
                        if "error" in answer:
                            raise ChunkError(answer["error"])
                        yield answer["done"]
                        if todo:
                            give(process)
                        continue
                    selector.unregister(process.stdout)
                    self._reap(process)
                    if task is not None:  # else it died idle: nothing is lost
                        crashes[task] += 1
                        if crashes[task] == CRASHES:
                            name = json.loads(task)["name"]
                            reason = f"a worker died {CRASHES} times at {name}"
                            raise ChunkError(f"{reason}; is there enough memory?")
                        todo.append(task)
                        start()
                yield None
        finally:
            selector.close()
            for process in list(self.processes):
                self._reap(process)

    def close(self) -> None:
        """Nothing to do: the workers of a run end with it."""

    def _reap(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):  # what it had not read yet
            pipes(process)[0].close()
        pipes(process)[1].close()
        self.processes.remove(process)


class ChunkError(ValueError):
    """A chunk could not be finished; the sentence says why, and how to go on."""

    def __init__(self, reason: str):
        super().__init__(f"{reason.rstrip('.')} (what was done is kept: --resume goes on from it).")


class Dask:
    """A Dask cluster whose workers see the run folder under the same path.

    `address` is that of its scheduler, such as `tcp://host:8786`; `timeout` in seconds.
    """

    def __init__(self, address: str, timeout: float = 5.0):
        try:
            import distributed
        except ImportError:
            raise ValueError(
                'running on Dask needs dask.distributed: pip install "flexphase[dask]".'
            ) from None
        try:
            asyncio.run(_knock(address, timeout))
            self.client = distributed.Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            raise ValueError(f"no Dask scheduler answers at {address} ({_line(error)}).") from None
        # The client would log the traceback of a lost scheduler; `run` says so in one line.
        self.log = logging.getLogger("distributed.client")
        self.log.disabled = True

    def run(self, tasks: Sequence[str]) -> Iterator[str | None]:
        """See `Executor`."""
        from distributed.client import ClosedClientError

        try:
            yield from self._run(tasks)
        except (OSError, ClosedClientError):
            raise ChunkError(LOST) from None

    def _run(self, tasks: Sequence[str]) -> Iterator[str | None]:
        from .work import work

        token = json.loads(tasks[0])["folder"] if tasks else ""
        # a worker that dies meanwhile is not asked: others take its chunks
        seen: Any = self.client.run(os.path.isdir, token, on_error="ignore")
        if blind := [worker for worker, sees in seen.items() if not sees]:
            advice = "the run folder must be on a file system that all workers share."
            raise ValueError(f"the Dask worker {blind[0]} does not see {token}; {advice}")
        futures: list[Any] = [self.client.submit(work, task, pure=False) for task in tasks]
        names = {f.key: json.loads(task)["name"] for f, task in zip(futures, tasks, strict=True)}
        try:
            while futures:
                time.sleep(PATIENCE)
                if self.client.status != "running":  # what is submitted now would wait for ever
                    raise ChunkError(LOST)
                for future in [f for f in futures if f.done()]:
                    if future.status == "cancelled":
                        raise ChunkError(LOST)
                    if error := future.exception():
                        raise ChunkError(_line(error))
                    futures.remove(future)
                    yield names[future.key]
                yield None
        finally:
            with contextlib.suppress(Exception):  # where there is no scheduler, nothing is left
                self.client.cancel(futures)

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self.client.close()
        self.log.disabled = False


async def _knock(address: str, timeout: float) -> None:
    """Raise unless a scheduler answers.

    A client of Dask would wait for ever at a port where something listens and never answers.
    """
    from distributed.comm.core import connect

    comm = await asyncio.wait_for(connect(address, timeout=timeout), timeout)
    await comm.close()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
