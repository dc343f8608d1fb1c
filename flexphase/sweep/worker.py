"""A local worker process, which `Local` starts.

It reads tasks as JSON lines and answers with JSON lines: {"done": name} or {"error": sentence}.
Nothing is pickled, and when the parent dies the end of standard input ends the worker.
"""

import json
import os
import queue
import sys
import threading
import traceback


def listen(tasks: "queue.Queue[str]") -> None:
    """Put the lines of standard input into the queue; end the process where they end."""
    for line in sys.stdin:
        tasks.put(line)
    os._exit(1)  # the parent is gone or has closed the pipe: `--resume` does the rest


def sentence(error: Exception) -> str:
    """An error as one sentence: ValueError and OSError are advice already, others are named."""
    advice = isinstance(error, (ValueError, OSError))
    return str(error) if advice else f"{type(error).__name__}: {error}"


def answer(task: str) -> dict[str, str]:
    """What has become of the task."""
    try:
        from .work import work  # slow to import, so the pipe is watched first

        return {"done": work(task)}
    except Exception as error:
        if os.environ.get("FLEXPHASE_DEBUG") == "1":
            traceback.print_exc()
        return {"error": sentence(error)}


def main() -> None:
    """Work until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to standard error
    tasks: queue.Queue[str] = queue.Queue()
    threading.Thread(target=listen, args=(tasks,), daemon=True).start()
    try:
        while True:
            answers.write(json.dumps(answer(tasks.get())) + "\n")
            answers.flush()
    except KeyboardInterrupt:
        os._exit(130)  # quietly: the parent gives the chunk to another worker
