"""flexphase live: a page where phases run live, in one HTML file."""

import argparse
import os
from pathlib import Path
from typing import Any

from ..catalogue.arguments import not_empty
from .common import say, show


def add(subparsers: Any) -> None:
    live = subparsers.add_parser(
        "live",
        help="a page where two machines learn in the browser",
        description="Write one HTML file in which two Boltzmann machines learn Bars and Stripes "
        "while you change their phases. It needs a browser and no network.",
    )
    live.add_argument(
        "--out",
        type=not_empty,
        metavar="FILE",
        default="flexphase-live.html",
        help="the file, which must be new",
    )
    live.add_argument("--json", action="store_true", help="print one JSON object")
    live.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    from ..files import write
    from ..live import page

    path = Path(args.out)
    if os.path.lexists(path):
        raise ValueError(f"{path} exists and is not overwritten; give --out another file.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}; make it, or give --out another file.")
    write(path, page(), over=False)
    if args.json:
        show({"out": path})
    else:
        say(f"{path} is written; open it in a browser.")
