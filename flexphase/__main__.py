"""The command line as a process of its own: `flexphase`, or `python -m flexphase`."""

import contextlib
import os
import sys

from .stopping import STOPPING


def main() -> None:
    """Run one command and end the process with its exit code.

    Libraries are not shut down first: threads of JAX that still compile would crash.
    """
    try:
        STOPPING.watch()
        from . import cli
    except (OSError, RuntimeError, ImportError, MemoryError) as error:
        refuse(error)
        raise
    code = cli.main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    STOPPING.undo()
    os._exit(code)


def refuse(error: Exception) -> None:
    """End the process with one line: limits on files, threads or memory are too low for a start."""
    if os.environ.get("FLEXPHASE_DEBUG") != "1":
        why = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "raise the limits of this process (ulimit -a), or install flexphase again"
        with contextlib.suppress(OSError):
            os.write(2, f"flexphase: it cannot start ({why}); {advice}.\n".encode())
        os._exit(2)


if __name__ == "__main__":
    main()
