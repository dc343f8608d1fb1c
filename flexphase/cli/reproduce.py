"""`flexphase reproduce`: the paper's figures, on this machine or on a Dask cluster."""

import argparse
import shlex
from pathlib import Path

from ..experiments import FIGURES


def add(subparsers: "argparse._SubParsersAction") -> None:
    p = subparsers.add_parser(
        "reproduce",
        help="the paper's figures",
        description="Reproduce the paper's figures, with a report.",
    )
    words = "; ".join(f"{name}: {experiment.title}" for name, experiment in FIGURES.items())
    p.add_argument("figure", choices=[*FIGURES, "all"], help=f"which figure ({words})")
    sizes_and_places(p, "runs/reproduce-FIGURE-SIZE")
    p.set_defaults(func=run)


def sizes_and_places(p: argparse.ArgumentParser, folder: str) -> None:
    """How large an experiment is, and where it runs and leaves its files."""
    size = p.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, minutes (what is done when nothing is said)",
    )
    size.add_argument("--full", action="store_true", help="the paper's sizes")
    p.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"the run folder (default: {folder})",
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
        metavar="ADDRESS",
        help="run on the Dask cluster whose scheduler listens there, such as tcp://host:8786",
    )


def run(args: argparse.Namespace) -> None:
    size = "full" if args.full else "quick"
    out = args.out or Path("runs") / f"reproduce-{args.figure}-{size}"
    command = f"flexphase reproduce {args.figure} --{size} --out {shlex.quote(str(out))}"
    work(args, args.figure, size, out, command)


def work(args: argparse.Namespace, word: str, size: str, out: Path, command: str) -> None:
    """Train and report what the word stands for."""
    from ..sweep import Dask, Local

    executor = Dask(args.dask) if args.dask else Local(args.workers)
    from ..experiments.reproduce import reproduce  # slow: the network is asked first

    try:
        print(reproduce(word, size, out, args.resume, executor, command))
    finally:
        executor.close()
