"""The command line. A sub-command is a file here with `add(subparsers)`, which sets `func(args) ->
int | None`.

Nothing heavy is imported before a command runs. A ValueError, which is advice, becomes one line on
standard error and exit code 2.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__

COMMANDS = ("train", "sample", "plot", "data", "theory", "plan", "reproduce", "live")
ADVICE = (
    ValueError,
    OSError,
    MemoryError,
    OverflowError,
    ImportError,
)  # errors that a user can act on


class Help(argparse.HelpFormatter):
    """Shows the default of every option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        silent = (
            action.default is None or action.default is False or action.default == argparse.SUPPRESS
        )
        return action.help if silent else f"{action.help} (default: %(default)s)"


class Parser(argparse.ArgumentParser):
    """Errors in one line; options in full."""

    def __init__(self, **options: Any):
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False} | options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, one_line(f"{self.prog}: {message} (try {self.prog} --help)") + "\n")


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="flexphase", description="Contrastive learning with flexible phases.")
    top.add_argument("--version", action="version", version=f"flexphase {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"{__name__}.{name}").add(commands)
    return top


def fail(error: BaseException, code: int) -> int:
    if os.environ.get("FLEXPHASE_DEBUG") == "1":
        raise error
    text = str(error) if isinstance(error, ADVICE) else ""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    print(f"flexphase: {one_line(text or f'{type(error).__name__}: {error}')}", file=sys.stderr)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    sys.stdout, sys.stderr = (
        stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr)
    )
    try:
        args = parser().parse_args(argv)
        args.words = list(sys.argv[1:] if argv is None else argv)
        code = args.func(args) or 0
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse: --help, --version and errors
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:  # the reader has gone (| head): nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("flexphase: interrupted", file=sys.stderr)
        return 130
    except ADVICE as error:
        return fail(error, 2)
    except Exception as error:
        if "RESOURCE_EXHAUSTED" in str(error):  # what JAX says for MemoryError
            return fail(
                MemoryError("there is not enough memory; take fewer seeds, units, rows or lanes."),
                2,
            )
        return fail(error, 1)
