"""The command line. A sub-command is a file here with `add(subparsers)`, which sets `func(args) ->
int | None`.

Nothing heavy is imported before a command runs. A ValueError, which is advice, becomes one line on
standard error and exit code 2.
"""

import argparse
import importlib
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import EXACT, __version__, exact_lanes
from ..catalogue.arguments import did_you_mean
from .common import say
from .program import prepare

COMMANDS = (
    *("demo", "train", "phases", "sample", "plot", "data", "theory", "plan", "ledger"),
    *("reproduce", "study", "live"),
)
#: What `flexphase` alone says.
GREETING = """\
flexphase {version}: contrastive learning with flexible phases. Try

  flexphase demo                      three rules side by side, in seconds
  flexphase train rbm                 a restricted Boltzmann machine on Bars and Stripes
  flexphase train forward-forward     8x8 digits, one random phase at a time
  flexphase sample RUN                what the machine in the folder RUN has learned
  flexphase plan RUN                  which b, tau and eta it should take, and why
  flexphase live                      a page that shows phases and learning live
  flexphase reproduce all --quick     every figure of the paper, in minutes

flexphase COMMAND --help shows all options; in Python: import flexphase."""
#: Errors that a user can act on.
ADVICE = (ValueError, OSError, MemoryError, OverflowError, FloatingPointError, ImportError)
ADDRESSES = 2**31  # bytes that JAX reserves, most of which it never uses


class Help(argparse.HelpFormatter):
    """Shows the default of every option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        silent = (
            action.default is None or action.default is False or action.default == argparse.SUPPRESS
        )
        return action.help if silent else f"{action.help} (default: %(default)s)"


class Parser(argparse.ArgumentParser):
    """Errors in one line, with the nearest word for a typo; options in full."""

    def __init__(self, **options: Any):
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False} | options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, error.message + near) from None

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """As in argparse, except that each parser refuses unknown options itself, because only it
        can name the nearest one.
        """
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = (word.partition("=")[0] for word in unknown if word.startswith("-"))
            near = did_you_mean(next(options, ""), self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(2, one_line(f"{self.prog}: {message} (try {self.prog} --help)") + "\n")


def one_line(text: object) -> str:
    """The text with every run of white space, line ends included, as one space."""
    return " ".join(str(text).split())


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `add` of each module adds its own."""
    top = Parser(prog="flexphase", description="Contrastive learning with flexible phases.")
    top.add_argument("--version", action="version", version=f"flexphase {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    top.set_defaults(func=greet)
    for name in COMMANDS:
        importlib.import_module(f"{__name__}.{name}").add(commands)
    return top


def greet(_: argparse.Namespace) -> None:
    """What `flexphase` without a command prints."""
    print(GREETING.format(version=__version__))


def fail(error: BaseException, code: int) -> int:
    """Print the error as one line and return the exit code; with FLEXPHASE_DEBUG=1, raise it."""
    if os.environ.get("FLEXPHASE_DEBUG") == "1":
        raise error
    text = str(error) if isinstance(error, ADVICE) else ""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    say(f"flexphase: {one_line(text or f'{type(error).__name__}: {error}')}")
    return code


def address_space() -> float:
    """Bytes of memory that this process may reserve."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def jax_starts() -> None:
    """Refuse settings of the environment with which JAX would end the process.

    It aborts where it may not reserve enough memory. Flags are tried in a process of its own, and
    only where the environment asks for something unusual: it takes a second.
    """
    if address_space() < ADDRESSES:
        raise ValueError(
            f"JAX needs {ADDRESSES / 2**30:g} GiB of address space, and this process may have "
            f"{address_space() / 2**30:.2g}; raise the limit (ulimit -v)."
        )
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if flag != EXACT]
    unusual = {"XLA_FLAGS": " ".join(flags)}
    unusual |= {name: os.environ.get(name, "") for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")}
    unusual = {name: value for name, value in unusual.items() if value not in ("", "cpu")}
    if not unusual or "jax" in sys.modules:
        return
    words = [sys.executable, "-P", "-c", "import jax; jax.jit(lambda x: x + 1)(1.0)"]
    tried = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
        names = " and ".join(f"{name}={value!r}" for name, value in unusual.items())
        raise ValueError(f"JAX does not start with {names} ({said[:200]}); correct or unset it.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (closed streams: write nowhere)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        args = parser().parse_args(argv)
        args.words = list(sys.argv[1:] if argv is None else argv)
        if argv is None:
            prepare(args.words)
        if args.command not in ("live", "data"):
            jax_starts()
        exact_lanes()
        code = args.func(args) or 0
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse: --help, --version and errors
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:  # the reader has gone (| head): nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        say("flexphase: interrupted")
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
