"""`flexphase study`: experiments beyond the paper, on this machine or on a Dask cluster."""

import argparse
import shlex
from pathlib import Path

from ..experiments import STUDIES
from . import reproduce


def add(subparsers: "argparse._SubParsersAction") -> None:
    p = subparsers.add_parser(
        "study",
        help="experiments beyond the paper",
        description="Run a study, with a report; without a name, list them.",
    )
    words = "; ".join(f"{name}: {study.title}" for name, study in STUDIES.items())
    p.add_argument("study", choices=[*STUDIES], nargs="?", help=f"which study ({words})")
    reproduce.sizes_and_places(p, "runs/study-STUDY-SIZE")
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    if args.study is None:
        print("\n".join(f"{name}: {study.title}" for name, study in STUDIES.items()))
        return
    size = "full" if args.full else "quick"
    out = args.out or Path("runs") / f"study-{args.study}-{size}"
    command = f"flexphase study {args.study} --{size} --out {shlex.quote(str(out))}"
    reproduce.work(args, args.study, size, out, command)
