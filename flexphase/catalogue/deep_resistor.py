"""flexphase train deep-resistor: resistors, diodes and current sources in layers."""

import argparse
from typing import Any

from .arguments import positive
from .common import hidden_layers, make_run, one_hot, wrong_answers
from .coupled import make_conductances
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [64])
    group.add_argument(
        "--beta", type=positive, default=0.5, help="strength of the nudges, +beta and -beta"
    )
    group.add_argument("--gain", type=positive, default=60.0, help="volts of a pixel that is on")


def build(args: argparse.Namespace, data: Input) -> Task:
    """Targets are one-hot labels; the highest output of the free network is the answer."""
    from ..data import Rows
    from ..methods import DeepResistor

    source = Rows((data.images, one_hot(data)))
    sizes = (data.images.shape[1], *args.hidden, data.classes)
    method = DeepResistor(sizes, args.beta, args.gain)
    metrics = wrong_answers(data, method)
    return Task(make_run(args, method, source, make_conductances(args)), metrics)


METHOD = MethodEntry(
    name="deep-resistor",
    words="deep resistive network",
    label="deep resistive network",
    kind="DeepResistor",
    data="digits",
    rule="two-term",
    length=4,
    lr=0.003,
    records=20,
    options=options,
    build=build,
)
