"""flexphase train hopfield."""

import argparse
from typing import Any

from .arguments import count, number, positive
from .common import make_run, zeros_and_ones
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    group.add_argument(
        "--patterns", type=count, default=16, help="how many rows of the data are stored"
    )
    group.add_argument(
        "--dream", type=positive, default=0.9, help="strength of unlearning against learning"
    )
    group.add_argument(
        "--binarise", type=number, metavar="THRESHOLD", help="pixels above it are +1, others -1"
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    """The first rows of the data are stored. Metrics: the share of them in which the network stays,
    and the mean overlap that it recalls after a tenth of the units was turned over.
    """
    from ..data import Rows
    from ..methods import Hopfield
    from ..methods.hopfield import Recall, Stored

    rows = 2 * zeros_and_ones(args, data).images[: args.patterns] - 1
    method = Hopfield(rows.shape[1], args.dream)
    metrics = {"stored": Stored(rows), "recall": Recall(rows)}
    return Task(make_run(args, method, Rows(rows)), metrics)


METHOD = MethodEntry(
    name="hopfield",
    words="Hopfield network that dreams",
    label="Hopfield",
    kind="Hopfield",
    data="digits",
    rule="isd",
    length=3,
    lr=0.05,
    phases=10_000,
    records=20,
    higher_is_better=True,
    options=options,
    build=build,
)
