"""flexphase train energy: a deep energy-based model of points in the plane."""

import argparse
from typing import Any

from .arguments import positive
from .common import STARTS, hidden_layers, make_run
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [64, 64])
    group.add_argument("--step", type=positive, default=0.01, help="of Langevin sampling")
    group.add_argument(
        "--metropolis", action="store_true", help="accept or reject each step, so that it is exact"
    )
    group.add_argument(
        "--negative-start",
        choices=STARTS,
        default="persistent",
        help="where a negative phase begins",
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    """The metric is the exact NLL in nats per row, from a grid; so the data are points."""
    from ..data import Rows
    from ..methods import GridNLL, Langevin, deep_energy_model

    if data.images.shape[1] != 2:
        raise ValueError(
            "this model takes its likelihood from a grid, so its data are points in the plane, "
            f"with 2 columns, not {data.images.shape[1]}; try --data two-moons, rings or mixture."
        )
    sampler = Langevin(args.step, metropolis=args.metropolis)
    method = deep_energy_model((2, *args.hidden), sampler, args.negative_start)
    reach = max(8.0, 2 * float(abs(data.images).max()))
    metrics = {"nll_per_row": GridNLL(data.images, reach=reach)}
    return Task(make_run(args, method, Rows(data.images)), metrics)


METHOD = MethodEntry(
    name="energy",
    words="deep energy-based model of points",
    label="energy-based model",
    kind="EnergyModel",
    data="two-moons",
    rule="two-term",
    length=20,
    lr=0.003,
    optimiser="adam",
    batch=32,
    records=10,
    phases=4000,
    options=options,
    build=build,
)
