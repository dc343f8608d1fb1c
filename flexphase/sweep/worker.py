"""A local worker process: `python -m flexphase.sweep.worker` reads tasks as JSON lines and answers
with JSON lines.

No pickle crosses, no `__main__` is imported again, and when the parent dies the end of standard
input ends the worker.
"""

import json
import os
import queue
import sys
import threading
import traceback

from .. import exact_lanes


def listen(tasks: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        tasks.put(line)
    os._exit(1)  # the parent is gone or has closed the pipe: leave the rest to whoever resumes


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to standard error
    tasks: queue.Queue[str] = queue.Queue()
    threading.Thread(target=listen, args=(tasks,), daemon=True).start()
    exact_lanes()
    from .work import work  # slow to import, so the pipe is watched first

    while True:
        task = tasks.get()
        try:
            answer = {"done": work(task)}
        except Exception as error:
            if os.environ.get("FLEXPHASE_DEBUG") == "1":
                traceback.print_exc()
            answer = {
                "error": str(error)
                if isinstance(error, (ValueError, OSError))
                else f"{type(error).__name__}: {error}"
            }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
