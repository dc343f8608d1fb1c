"""flexphase train forward-forward."""

import argparse
from typing import Any

from .arguments import positive
from .common import errors, hidden_layers, is_paired, labels_of, make_run
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_layers(group, [500, 500])
    group.add_argument("--threshold", type=positive, default=2.0, help="of the goodness")


def build(args: argparse.Namespace, data: Input) -> Task:
    """A wrong label makes a negative stimulus; the label of highest goodness is the answer."""
    from ..classification import ForwardForwardError
    from ..data import LabelContrast
    from ..methods import ForwardForward

    labels, classes = labels_of(data), data.classes
    method = ForwardForward((data.images.shape[1], *args.hidden), classes, args.threshold)
    source = LabelContrast(data.images, labels, classes, paired=is_paired(args))
    metrics = errors(data, lambda images, labels: ForwardForwardError(images, labels, classes))
    return Task(make_run(args, method, source), metrics)


METHOD = MethodEntry(
    name="forward-forward",
    words="Forward-Forward network",
    label="Forward-Forward",
    kind="ForwardForward",
    data="digits",
    rule="isd",
    length=1,
    lr=0.01,
    optimiser="adam",
    records=20,
    options=options,
    build=build,
)
