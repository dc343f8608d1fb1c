"""What several methods share: options, the run from its parts, zeros and ones, labels, errors."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import devices, phases
from .arguments import number, units
from .datasets import DATASETS
from .entries import Input
from .rules import RULES

if TYPE_CHECKING:
    import numpy as np

    from ..core import Run
    from ..methods.binary import NegativeStart

OPTIMISERS = ("sgd", "adam")  # functions of optax
STARTS = ("carry", "data", "persistent", "random")
#: Images, of each kind, on which the curves of the errors are taken: cheap compared with training.
SHOWN = 500


def hidden_units(group: Any, default: int | None, words: str = "number of hidden units") -> None:
    """`--hidden N`: one hidden layer. If `default` is None, `words` name the default."""
    group.add_argument("--hidden", type=units, default=default, help=words)


def hidden_layers(group: Any, default: list[int]) -> None:
    """`--hidden N N ...`: the units of each hidden layer."""
    group.add_argument(
        "--hidden",
        type=units,
        nargs="+",
        default=default,
        metavar="N",
        help="units of each hidden layer",
    )


def boltzmann_options(group: Any) -> None:
    """`--binarise`, `--no-visible-bias` and `--negative-start`."""
    group.add_argument(
        "--binarise",
        type=number,
        metavar="THRESHOLD",
        help="pixels above it are on (default: 0.5 for "
        + " and ".join(name for name, entry in DATASETS.items() if entry.grey)
        + ")",
    )
    group.add_argument("--no-visible-bias", action="store_true", help="visible units have no bias")
    pairs = " and ".join(name for name, rule in RULES.items() if rule.update == "pair")
    group.add_argument(
        "--negative-start",
        choices=STARTS,
        help=f"where a negative phase begins (default: data for {pairs}, else carry)",
    )


def is_paired(args: argparse.Namespace) -> bool:
    """Does an update take a positive and a negative phase (cd, two-term)?"""
    return RULES[args.rule].update == "pair"


def negative_start(args: argparse.Namespace) -> "NegativeStart":
    return args.negative_start or ("data" if is_paired(args) else "carry")


def make_run(args: argparse.Namespace, method: Any, source: Any, make: Any = None) -> "Run":
    """The run of a method on a source, with what the shared options say: rule and phases, learning
    rate, optimiser (or `make`), device, batch size, and how long a stimulus is held.
    """
    import optax

    from ..core import Optimiser, Run
    from ..replicas import Batches, Replicas

    plain = Optimiser(args.lr, make or getattr(optax, args.optimiser))
    method, optimiser = devices.built(args.device, method, plain)
    if args.batch > 1:
        method, source = Replicas(method, args.batch), Batches(source, args.batch)
    return Run(method, *phases.rule_of(args), phases.held(args, source), optimiser)


def zeros_and_ones(args: argparse.Namespace, data: Input) -> Input:
    """The data with the pixels that a binary model needs, the test set included."""

    def binary(images: "np.ndarray") -> "np.ndarray":
        from ..data import binarise

        return binarise(images, 0.5 if args.binarise is None else args.binarise)

    if args.binarise is not None or data.grey:
        test = data.test and (binary(data.test[0]), data.test[1])
        return data._replace(images=binary(data.images), test=test)
    import numpy as np

    if not np.isin(data.images, (0, 1)).all():
        raise ValueError(
            "this model needs data of zeros and ones; give --binarise THRESHOLD, such as "
            "--binarise 0.5."
        )
    return data


def labels_of(data: Input) -> "np.ndarray":
    """The labels, one a row; a ValueError if there are none."""
    if data.labels is None:
        raise ValueError(
            f"this method learns labels, and {data.name} has none; try digits, mnist, or an .npz "
            "file with images and labels."
        )
    return data.labels


def one_hot(data: Input) -> "np.ndarray":
    """The labels as rows with a single one, (rows, classes)."""
    import numpy as np

    return np.eye(data.classes, dtype=np.float32)[labels_of(data)]


def errors(data: Input, error: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Metrics from `error(images, labels)`: the test error where there is a test set (on a part of
    it during training, on all of it at the end), and the training error on a part of the data.
    """
    from ..data.transforms import every
    from ..metrics import AtEnd

    train = {"train_error": error(*every(SHOWN, data.images, labels_of(data)))}
    if not data.test:
        return train
    return {"test_error": AtEnd(error(*every(SHOWN, *data.test)), error(*data.test))} | train


def wrong_answers(
    data: Input, method: Any, shown: Callable[[Any], Any] = lambda images: images
) -> dict[str, Any]:
    """The errors of a method whose most active output is its answer.

    Args:
        shown: from images to what the input layer is given.
    """
    from ..classification import Wrong
    from ..methods import Accuracy

    return errors(data, lambda x, labels: Wrong(Accuracy(method, shown(x), labels)))


def gibbs(method: Any, key: Any, params: Any, rows: int, steps: int, x: Any, mask: Any) -> Any:
    """Samples by Gibbs sampling; see `methods.binary.sample`."""
    from ..methods.binary import sample

    return sample(method, key, params, rows, steps, x, mask)
