"""`flexphase study`: experiments beyond the paper, run as `reproduce` runs its figures."""

import argparse

from ..experiments import STUDIES
from .reproduce import add_experiments


def add(subparsers: "argparse._SubParsersAction") -> None:
    """The options; studies and their help come from the descriptions in `experiments`."""
    p = subparsers.add_parser(
        "study",
        help="experiments beyond the paper",
        description="Run an experiment beyond the paper, with a report.",
    )
    add_experiments(p, "study", STUDIES)
