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
        nargs="+",
        default=[0.3],
        metavar="RATE",
        help="learning rate of the layers above the first one, over that of the first: one for "
        "all, or one for each (sgd only)",
    )


def upper_rates(given: list[float] | float, layers: int) -> list[float]:
    """The rates of that many layers; records of earlier versions have one number."""
    rates = given if isinstance(given, list) else [float(given)]
    if len(rates) not in (1, layers):
        raise ValueError(
            f"--upper-rate has {len(rates)} numbers for {layers} layers above the first one; give "
            "one for all, or one for each."
        )
    return rates * layers if len(rates) == 1 else rates


def build(args: argparse.Namespace, data: Input) -> Task:
    """Targets are one-hot labels; the most active output of the free network is the answer."""
    from ..data import Rows
    from ..methods import EquilibriumPropagation
    from ..optimisers import LayerRates

    source = Rows((data.images, one_hot(data)))
    sizes = (data.images.shape[1], *args.hidden, data.classes)
    method = EquilibriumPropagation(sizes, args.beta, centred=args.centred)
    metrics = wrong_answers(data, method)
    rates = LayerRates((1.0, *upper_rates(args.upper_rate, len(args.hidden))))
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
