"""flexphase train rbm."""

import argparse
from typing import Any

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

#: Units of the smaller layer: beyond, enumerating its states takes longer than training.
EXACT = 20


def options(group: Any) -> None:
    hidden_units(group, None, "number of hidden units (default: 128 for mnist, else 16)")
    boltzmann_options(group)


def build(args: argparse.Namespace, data: Input) -> Task:
    """Labels, where there are any, are visible units after the pixels, and the metric is the error
    by free energy; without labels it is the NLL.
    """
    from ..ais import AnnealedNLL
    from ..classification import FreeEnergyError
    from ..data import Rows, append_labels
    from ..likelihood import NLL
    from ..methods import RBM

    data = zeros_and_ones(args, data)
    classes, rows = data.classes, data.images
    if data.labels is not None:
        rows = append_labels(rows, data.labels, classes)
    visible, hidden = rows.shape[1], args.hidden or (128 if args.data == "mnist" else 16)
    method = RBM(
        visible,
        hidden,
        visible_bias=not args.no_visible_bias,
        negative_start=negative_start(args),
    )
    if data.labels is not None:
        metrics = errors(data, lambda images, labels: FreeEnergyError(images, labels, classes))
    elif min(visible, hidden) <= EXACT:
        metrics = {"nll": NLL(rows)}
    else:
        metrics = {"nll_ais": AnnealedNLL(rows)}
    return Task(make_run(args, method, Rows(rows)), metrics, classes)


METHOD = MethodEntry(
    name="rbm",
    words="restricted Boltzmann machine",
    label="RBM",
    kind="RBM",
    data="bas",
    rule="aol",
    length=20,
    lr=0.005,
    phases=100_000,
    seeds=4,
    average=0.5,
    options=options,
    build=build,
    sample=gibbs,
)
