"""flexphase train clapp and scff: representations without labels, read by a linear probe."""

import argparse
from typing import Any

from .arguments import positive
from .common import hidden_layers, is_paired, labels_of, make_run
from .entries import Input, MethodEntry, Task

#: Training images of the read-out while curves are drawn; all of them at the end.
PROBED = 5000


def options(group: Any) -> None:
    hidden_layers(group, [16])


def with_threshold(group: Any) -> None:
    hidden_layers(group, [32])
    group.add_argument("--threshold", type=positive, default=8.0, help="threshold of the goodness")


def probes(method: Any, data: Input) -> dict[str, Any]:
    """The error of the read-out: on test images, or on training images if there are no others."""
    from ..data.transforms import every
    from ..metrics import AtEnd
    from ..probe import LinearProbe

    fit = (data.images, labels_of(data))
    along = every(PROBED, *fit)
    if not data.test:
        return {"train_error": LinearProbe(method, *along, *along, data.classes)}
    final = LinearProbe(method, *fit, *data.test, data.classes)
    return {"test_error": AtEnd(LinearProbe(method, *along, *data.test, data.classes), final)}


def build_clapp(args: argparse.Namespace, data: Input) -> Task:
    from ..data import ImagePairs
    from ..methods import CLAPP

    method = CLAPP((data.images.shape[1] // 2, *args.hidden))
    run = make_run(args, method, ImagePairs(data.images, is_paired(args)))
    return Task(run, probes(method, data))


def build_scff(args: argparse.Namespace, data: Input) -> Task:
    from ..data import ImagePairs
    from ..methods import SelfContrastiveForwardForward

    method = SelfContrastiveForwardForward((data.images.shape[1], *args.hidden), args.threshold)
    run = make_run(args, method, ImagePairs(data.images, is_paired(args)))
    return Task(run, probes(method, data))


METHOD = MethodEntry(
    name="clapp",
    words="network by CLAPP, without labels",
    label="CLAPP",
    kind="CLAPP",
    data="digits",
    rule="isd",
    length=1,
    lr=0.0003,
    optimiser="adam",
    phases=40_000,
    records=20,
    options=options,
    build=build_clapp,
)

SELF_CONTRASTIVE = MethodEntry(
    name="scff",
    words="network by self-contrastive Forward-Forward, without labels",
    label="self-contrastive FF",
    kind="SelfContrastiveForwardForward",
    data="digits",
    rule="isd",
    length=1,
    lr=0.001,
    optimiser="adam",
    phases=40_000,
    records=20,
    options=with_threshold,
    build=build_scff,
)
