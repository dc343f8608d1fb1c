"""flexphase train nce."""

import argparse
from typing import Any

from . import phases
from .arguments import number, positive
from .common import hidden_units, make_run, zeros_and_ones
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_units(group, 16)
    group.add_argument(
        "--nu",
        type=positive,
        help="noise samples for each datum in the loss (default: (1 - b) / b, so that data and "
        "noise are weighted alike)",
    )
    group.add_argument(
        "--binarise", type=number, metavar="THRESHOLD", help="pixels above it are on"
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    """An RBM with a parameter for its log Z, against coins that are on as often as the pixels. The
    metrics are the exact NLL and how far the log Z that was learned is off.
    """
    import numpy as np

    from ..data import Rows
    from ..likelihood import NLL, log_z
    from ..methods import NCE, RBM
    from ..methods.nce import CoinNoise, MachineStart, log_machine

    rows = zeros_and_ones(args, data).images
    visible = rows.shape[1]
    if min(visible, args.hidden) > 20:
        raise ValueError(
            f"the NLL is taken by enumerating the smaller layer, at most 20 units; {visible} "
            f"visible and {args.hidden} hidden ones are more. Take --hidden 20 or fewer."
        )
    noise = CoinNoise(np.clip(rows.mean(0), 0.05, 0.95))
    start = MachineStart(RBM(visible, args.hidden))
    b = float(phases.rule_of(args).process.b)
    method = NCE(log_machine, start, noise, args.nu or (1 - b) / b)
    nll = NLL(rows)
    metrics = {
        "nll": lambda params: nll(params.rbm),
        "log_z_error": lambda params: -params.c - log_z(params.rbm),
    }
    return Task(make_run(args, method, Rows(rows)), metrics)


METHOD = MethodEntry(
    name="nce",
    words="RBM with its normaliser by noise-contrastive estimation",
    label="NCE",
    kind="NCE",
    data="bas",
    rule="isd",
    length=1,
    lr=0.01,
    optimiser="adam",
    phases=100_000,
    options=options,
    build=build,
)
