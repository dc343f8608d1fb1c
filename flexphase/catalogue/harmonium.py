"""flexphase train harmonium: an RBM with Gaussian or binary pixels and softmax labels."""

import argparse
from typing import Any

from .arguments import count, positive
from .common import (
    boltzmann_options,
    errors,
    gibbs,
    hidden_units,
    make_run,
    negative_start,
    zeros_and_ones,
)
from .entries import Input, MethodEntry, Task

#: Hidden units: beyond, enumerating their states takes longer than training.
EXACT = 12


def options(group: Any) -> None:
    hidden_units(group, None, "number of hidden units (default: 64 with labels, else 8)")
    group.add_argument(
        "--visible",
        choices=("gaussian", "binary"),
        default="gaussian",
        help="pixels: real numbers, standardised, or zeros and ones",
    )
    group.add_argument(
        "--sigma",
        type=positive,
        default=1.0,
        help="standard deviation of gaussian pixels given the hidden units",
    )
    group.add_argument(
        "--tempering",
        type=count,
        default=1,
        metavar="N",
        help="temperatures of parallel tempering in negative phases (default: 1, none)",
    )
    group.add_argument("--centred", action="store_true", help="follow the centred gradient")
    boltzmann_options(group)


def pixels(args: argparse.Namespace, data: Input) -> Input:
    """Binary ones, or each minus its mean over the training images, all over one sd: that of all
    their pixels, so that pixels which hardly vary stay small.
    """
    import numpy as np

    if args.visible == "binary":
        return zeros_and_ones(args, data)
    if args.binarise is not None:
        raise ValueError("--binarise is for --visible binary; leave it out for gaussian pixels.")
    mean, sd = data.images.mean(0), data.images.std()

    def standard(images: Any) -> Any:
        return ((images - mean) / max(float(sd), 1e-6)).astype(np.float32)

    test = data.test and (standard(data.test[0]), data.test[1])
    return data._replace(images=standard(data.images), test=test)


def build(args: argparse.Namespace, data: Input) -> Task:
    """Labels, where there are any, are one softmax group after the pixels, and the metric is the
    error by free energy; without labels it is the NLL in nats per row, of standardised pixels.
    """
    from ..classification import FreeEnergyError
    from ..data import Rows, append_labels
    from ..methods import (
        BinaryUnits,
        Centred,
        GaussianUnits,
        Harmonium,
        MixedUnits,
        SoftmaxUnits,
        Tempered,
    )
    from ..unit_likelihood import UnitNLL

    if args.no_visible_bias:
        raise ValueError("a harmonium has visible biases; take an rbm for --no-visible-bias.")
    if args.tempering > 1 and args.negative_start not in (None, "persistent"):
        raise ValueError(
            "the chains of --tempering go on from one negative phase to the next; leave out "
            "--negative-start."
        )
    data = pixels(args, data)
    rows, classes = data.images, data.classes
    units: Any = (
        BinaryUnits(rows.shape[1])
        if args.visible == "binary"
        else GaussianUnits(rows.shape[1], args.sigma)
    )
    if data.labels is not None:
        rows = append_labels(rows, data.labels, classes)
        units = MixedUnits((units, SoftmaxUnits(classes)))
    hidden = args.hidden or (8 if data.labels is None else 64)
    method: Any = Harmonium(units, hidden, negative_start(args))
    if args.tempering > 1:
        method = Tempered(method, args.tempering)
    if args.centred:
        method = Centred(method, rows)
    if data.labels is not None:
        metrics = errors(data, lambda x, y: FreeEnergyError(x, y, classes, binary=False))
    else:
        nll = UnitNLL(units, rows, annealed=hidden > EXACT)
        metrics = {"nll_per_row": lambda params: nll(params) / len(rows)}
    return Task(make_run(args, method, Rows(rows)), metrics, classes)


METHOD = MethodEntry(
    name="harmonium",
    words="RBM with Gaussian or binary pixels and softmax labels, tempered or centred",
    label="harmonium",
    kind="Harmonium",
    data="digits",
    rule="cd",
    length=1,
    lr=0.01,
    batch=10,
    records=10,
    phases=4000,
    options=options,
    build=build,
    sample=gibbs,
)
