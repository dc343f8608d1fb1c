"""flexphase train boltzmann."""

import argparse
from typing import Any

from .common import (
    boltzmann_options,
    gibbs,
    hidden_units,
    make_run,
    negative_start,
    zeros_and_ones,
)
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_units(group, 8)
    boltzmann_options(group)


def build(args: argparse.Namespace, data: Input) -> Task:
    """The metric is the exact NLL, so all units together must be few enough to enumerate."""
    from ..data import Rows
    from ..likelihood import ENUMERABLE, NLL
    from ..methods import BoltzmannMachine

    rows = zeros_and_ones(args, data).images
    visible = rows.shape[1]
    if visible + args.hidden > ENUMERABLE:
        raise ValueError(
            "the NLL of a Boltzmann machine is taken by enumerating its units, at most "
            f"{ENUMERABLE}; {visible} visible and {args.hidden} hidden ones are more. Take fewer, "
            "or an rbm."
        )
    method = BoltzmannMachine(
        visible,
        args.hidden,
        visible_bias=not args.no_visible_bias,
        negative_start=negative_start(args),
    )
    return Task(make_run(args, method, Rows(rows)), {"nll": NLL(rows)})


METHOD = MethodEntry(
    name="boltzmann",
    words="Boltzmann machine with lateral weights",
    label="Boltzmann machine",
    kind="BoltzmannMachine",
    data="bas:3",
    rule="aol",
    length=50,
    lr=0.005,
    options=options,
    build=build,
    sample=gibbs,
)
