"""flexphase train coupled: a circuit of resistors from the pixels to the classes."""

import argparse
from typing import TYPE_CHECKING, Any

from .arguments import positive, units
from .common import make_run, one_hot, wrong_answers
from .entries import Input, MethodEntry, Task

if TYPE_CHECKING:
    import numpy as np


def options(group: Any) -> None:
    group.add_argument(
        "--hidden",
        type=units,
        nargs="+",
        default=[],
        metavar="N",
        help="nodes of hidden layers between pixels and classes (default: none)",
    )
    group.add_argument(
        "--nudge", type=positive, default=0.5, help="share of the way to the target, at most 1"
    )
    group.add_argument("--volts", type=positive, default=4.0, help="of a pixel that is on")
    group.add_argument(
        "--apart",
        action="store_true",
        help="see one circuit in a phase, instead of both circuits at once",
    )


def make_conductances(args: argparse.Namespace) -> Any:
    """The optimiser of the options, with conductances that stop at 0: `make` of `make_run`."""
    from functools import partial

    import optax

    from ..optimisers import conductances

    if args.optimiser == "sgd":
        return conductances
    return partial(conductances, descend=getattr(optax, args.optimiser))


def build(args: argparse.Namespace, data: Input) -> Task:
    """Pixels come as voltages of both signs, and a reference of 1 volt; outputs are the classes."""
    import numpy as np

    from ..checks import above_zero
    from ..data import Rows
    from ..methods import ResistorNetwork, layered_edges

    above_zero(args.volts, "--volts", most=1e6)

    def sources(images: "np.ndarray") -> "np.ndarray":
        on = args.volts * images
        return np.hstack([on, -on, np.ones_like(images[:, :1])])

    source = Rows((sources(data.images), one_hot(data)))
    nodes = (2 * data.images.shape[1] + 1, *args.hidden, data.classes)
    outputs = range(sum(nodes) - data.classes, sum(nodes))
    method = ResistorNetwork(
        layered_edges(*nodes), range(nodes[0]), outputs, args.nudge, twins=not args.apart
    )
    metrics = wrong_answers(data, method, sources)
    return Task(make_run(args, method, source, make_conductances(args)), metrics)


METHOD = MethodEntry(
    name="coupled",
    words="circuit of resistors by coupled learning",
    label="coupled learning",
    kind="ResistorNetwork",
    data="digits",
    rule="two-term",
    length=4,
    lr=0.003,
    records=20,
    options=options,
    build=build,
)
