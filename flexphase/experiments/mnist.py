"""What Fig. 2 A/C and the appendix train on MNIST.

A Forward-Forward network, and an RBM whose last visible units are the label. `shown` is a setting
of the metrics alone: on about how many images errors are taken during training.
"""

from functools import cache
from typing import Any

import optax

from ..classification import ForwardForwardError, FreeEnergyError, SampledError
from ..core import Optimiser, Run
from ..data import LabelContrast, Rows, append_labels, binarised_mnist, mnist
from ..data.transforms import every
from ..methods import RBM, ForwardForward
from ..metrics import AtEnd
from ..rules import cd, isd, named

LAYERS = (784, 500, 500)
VISIBLE, HIDDEN = 794, 128
NETWORK = (f"{__name__}:build_network", f"{__name__}:network_errors")
MACHINE = (f"{__name__}:build_rbm", f"{__name__}:rbm_errors")
ERROR, EXACT_ERROR = "free_energy_error", f"{__name__}:exact_error"


def build_network(name: str, eta: float, b: float = 0.5, shown: int = 0) -> Run:
    """The run of a cell; name is "standard" or "ISD".

    One tick is one pass: the standard rule takes two to an update, ISD one.
    """
    standard = name == "standard"
    phases = cd(1) if standard else isd(b, 1)
    return Run(ForwardForward(LAYERS), *phases, contrast(standard), Optimiser(eta, optax.adam))


def network_errors(shown: int, **_: Any) -> dict[str, Any]:
    """Errors on about `shown` training and test images; at the end on all test images."""
    train, test = mnist()
    return {
        "train_error": ForwardForwardError(*every(shown, *train)),
        "test_error": AtEnd(ForwardForwardError(*every(shown, *test)), ForwardForwardError(*test)),
    }


@cache
def contrast(paired: bool) -> LabelContrast:
    """One object for all cells, so that lanes share its data."""
    return LabelContrast(*mnist().train, paired=paired)


def build_rbm(eta: float, length: int, b: float = 0.5, name: str = "aol", shown: int = 0) -> Run:
    """The run of a cell: the rule's `name`, as `rules.named` has it."""
    machine = RBM(VISIBLE, HIDDEN, visible_bias=False)
    return Run(machine, *named(name, b, length), rows(), Optimiser(eta))


def rbm_errors(shown: int, **_: Any) -> dict[str, Any]:
    """Errors on about `shown` test images during training, on all of them at the end.

    By free energy, which is exact, and from samples of the label units, as the paper does.
    """
    test = binarised_mnist().test
    kinds = {ERROR: FreeEnergyError, "sampled_error": SampledError}
    return {name: AtEnd(error(*every(shown, *test)), error(*test)) for name, error in kinds.items()}


def exact_error(shown: int, **_: Any) -> dict[str, Any]:
    """The error by free energy alone, which costs less."""
    return {ERROR: rbm_errors(shown)[ERROR]}


@cache
def rows() -> Rows:
    """One object for all cells, so that lanes share its data."""
    return Rows(append_labels(*binarised_mnist().train))
