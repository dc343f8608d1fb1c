"""flexphase train predictive-coding."""

import argparse
from typing import Any

from . import phases
from .arguments import positive
from .common import hidden_layers, is_paired, make_run, one_hot, wrong_answers
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [32])
    group.add_argument("--dt", type=positive, default=0.5, help="step of the relaxation, up to 1")


def build(args: argparse.Namespace, data: Input) -> Task:
    """All phases are positive, so b plays no part: isd is predictive coding, aol is incremental.
    Pixels are standardised with the mean and the sd of the training images.
    """
    from ..data import Rows
    from ..methods import PredictiveCoding
    from ..phases import Clamped, Phases

    if is_paired(args):
        raise ValueError(
            "predictive coding has no negative term, so nothing comes in pairs; give --rule isd "
            "(an update after each inference), aol (at every step of it) or aol-random."
        )
    signs = [name for name in ("select", "recorded") if phases.given(args, name) is not None]
    signs += ["b"] if phases.says_b(args) else []
    if signs:
        raise ValueError(
            f"all phases of predictive coding are positive, so leave out --{signs[0]}; --length "
            "and --duration say how long they last."
        )
    targets, mean, sd = one_hot(data), data.images.mean(), data.images.std()
    if not sd:
        raise ValueError(f"all pixels of {data.name} are equal, so there is nothing to learn.")
    method: Any = PredictiveCoding((data.images.shape[1], *args.hidden, data.classes), args.dt)
    run = make_run(args, method, Rows(((data.images - mean) / sd, targets)))
    process: Any = run.process
    run = run._replace(process=Phases(Clamped(), process.positive))
    return Task(run, wrong_answers(data, method, lambda images: (images - mean) / sd))


METHOD = MethodEntry(
    name="predictive-coding",
    words="network by predictive coding",
    label="predictive coding",
    kind="PredictiveCoding",
    data="digits",
    rule="isd",
    length=5,
    lr=0.03,
    records=20,
    options=options,
    build=build,
)
