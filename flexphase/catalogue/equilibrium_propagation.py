"""flexphase train equilibrium-propagation."""

import argparse
from typing import Any

from .arguments import positive
from .common import hidden_layers, make_run, one_hot, wrong_answers
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [32])
    group.add_argument(
        "--beta", type=positive, default=0.5, help="strength of the nudge in positive phases"
    )
    group.add_argument(
        "--centred",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="nudge negative phases too, by -beta",
    )
    group.add_argument(
        "--upper-rate",
        type=positive,
        default=0.3,
        help="learning rate of the layers above the first one, over that of the first (sgd only)",
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    """Targets are one-hot labels; the most active output of the free network is the answer."""
    from ..data import Rows
    from ..methods import EquilibriumPropagation
    from ..optimisers import LayerRates

    source = Rows((data.images, one_hot(data)))
    sizes = (data.images.shape[1], *args.hidden, data.classes)
    method = EquilibriumPropagation(sizes, args.beta, centred=args.centred)
    metrics = wrong_answers(data, method)
    rates = LayerRates((1.0, *[args.upper_rate] * len(args.hidden)))
    make = rates if args.optimiser == "sgd" else None
    return Task(make_run(args, method, source, make), metrics)


METHOD = MethodEntry(
    name="equilibrium-propagation",
    words="network by equilibrium propagation",
    label="equilibrium propagation",
    kind="EquilibriumPropagation",
    data="digits",
    rule="two-term",
    length=20,
    lr=0.15,
    records=20,
    options=options,
    build=build,
)
