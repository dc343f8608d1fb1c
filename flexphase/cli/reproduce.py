"""`flexphase reproduce`: the paper's figures, on this machine or on a Dask cluster."""

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..catalogue.arguments import legible, not_empty
from ..experiments import FIGURES, Experiment
from .program import draw_plainly


def add(subparsers: "argparse._SubParsersAction") -> None:
    """The options; figures and their help come from the descriptions in `experiments`."""
    p = subparsers.add_parser(
        "reproduce",
        help="the paper's figures",
        description="Reproduce the paper's figures, with a report.",
    )
    add_experiments(p, "figure", FIGURES)


def add_experiments(p: argparse.ArgumentParser, what: str, known: Mapping[str, Experiment]) -> None:
    """The options of a command that runs experiments: which one, its size, folder and executor."""
    words = "; ".join(f"{name}: {experiment.title}" for name, experiment in known.items())
    p.add_argument("experiment", choices=[*known, "all"], help=f"which {what} ({words})")
    size = p.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, minutes (the default)",
    )
    size.add_argument(
        "--full", action="store_true", help="the sizes of the paper, or of the page of the study"
    )
    p.add_argument(
        "--out",
        type=not_empty,
        metavar="DIR",
        help=f"the run folder (default: runs/COMMAND-{what.upper()}-SIZE)",
    )
    p.add_argument(
        "--resume", action="store_true", help="go on with the run in DIR, if there is one"
    )
    where = p.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=int, metavar="N", help="local processes (default: one per core)"
    )
    where.add_argument(
        "--dask",
        type=not_empty,
        metavar="ADDRESS",
        help="run on the Dask cluster whose scheduler listens there, such as tcp://host:8786",
    )
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    """Run the command, and print the path of the report."""
    size = "full" if args.full else "quick"
    out = Path(args.out or f"runs/{args.command}-{args.experiment}-{size}")
    said = shlex.quote(legible(out))
    command = f"flexphase {args.command} {args.experiment} --{size} --out {said}"
    from ..sweep import Dask, Local

    executor = Dask(args.dask) if args.dask is not None else Local(args.workers)
    draw_plainly()
    from ..experiments.reproduce import reproduce  # slow, so a wrong address is refused before

    try:
        every = (args.command, args.experiment) == ("study", "all")
        word = "studies" if every else args.experiment
        print(reproduce(word, size, out, args.resume, executor, command))
    finally:
        executor.close()
