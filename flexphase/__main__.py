"""The command line as a process of its own: `flexphase`, or `python -m flexphase`."""

import contextlib
import os
import sys

from .stopping import STOPPING


def main() -> None:
    """Run one command and end the process with its exit code.

    Nothing of the libraries is taken down first: threads of JAX that still compile would crash.
    """
    STOPPING.watch()
    from . import cli

    code = cli.main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
