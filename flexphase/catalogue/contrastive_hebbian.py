"""flexphase train contrastive-hebbian."""

import argparse
from typing import Any

from .arguments import positive
from .common import hidden_layers, make_run, one_hot, wrong_answers
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [32])
    group.add_argument(
        "--feedback", type=positive, default=1.0, help="strength of the way down, at most 1"
    )
    group.add_argument(
        "--linear-output", action="store_true", help="output units without a non-linearity"
    )
    group.add_argument(
        "--recurrent",
        action="store_true",
        help="join every unit to every other, instead of neighbouring layers",
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    """Targets are one-hot labels; the most active output of the free network is the answer."""
    from ..data import Rows
    from ..methods import ContrastiveHebbian, RecurrentHebbian

    source, pixels = Rows((data.images, one_hot(data))), data.images.shape[1]
    if args.recurrent:
        if args.feedback != 1 or args.linear_output:
            raise ValueError(
                "--recurrent joins all units alike: leave out --feedback and --linear-output."
            )
        method = RecurrentHebbian(pixels, sum(args.hidden), data.classes)
    else:
        sizes = (pixels, *args.hidden, data.classes)
        method = ContrastiveHebbian(sizes, args.feedback, linear_output=args.linear_output)
    metrics = wrong_answers(data, method)
    return Task(make_run(args, method, source), metrics)


METHOD = MethodEntry(
    name="contrastive-hebbian",
    words="network by contrastive Hebbian learning",
    label="contrastive Hebbian",
    kind="ContrastiveHebbian",
    data="digits",
    rule="two-term",
    length=20,
    lr=0.03,
    records=20,
    options=options,
    build=build,
)
