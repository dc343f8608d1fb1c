"""From options to a run and its metrics, method by method."""

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jax import Array

from ..ais import ais
from ..checks import matrix
from ..classification import ForwardForwardError, FreeEnergyError
from ..core import Optimiser, Run, init
from ..data import LabelContrast, Rows, append_labels, binarise
from ..data.transforms import every
from ..likelihood import ENUMERABLE, NLL
from ..log import AtEnd
from ..methods import RBM, BoltzmannMachine, EquilibriumPropagation, ForwardForward
from ..methods.equilibrium_propagation import Accuracy
from ..methods.rbm import Params, free_energy
from ..rules import Rule, aol, aol_random, cd, isd
from .inputs import Input

OPTIMISERS = {"sgd": optax.sgd, "adam": optax.adam}
TWO_TERM = ("cd", "two-term")
EXACT = 20  # units of the smaller layer: beyond, enumerating them takes longer than training
SHOWN = (
    500  # images, of each kind, on which the curves of the errors are taken: cheap beside training
)


class Task(NamedTuple):
    run: Run
    metrics: dict[str, Any]
    classes: int = 0  # label units among the visible ones


class AnnealedNLL(eqx.Module):
    """The summed NLL with log Z from annealed importance sampling: too low in expectation, by
    little if the chains are good.
    """

    data: Array = eqx.field(converter=matrix)

    def __call__(self, params: Params) -> Array:
        return (
            free_energy(params, self.data).sum()
            + len(self.data) * ais(jax.random.key(0), params, 100, 500).log_z
        )


class Wrong(eqx.Module):
    """The share that an accuracy leaves."""

    accuracy: Accuracy

    def __call__(self, params: Any) -> Array:
        return 1 - self.accuracy(params)


def named_rule(args: argparse.Namespace) -> Rule:
    match args.rule:
        case "cd" | "two-term":
            return cd(args.length)
        case "isd":
            return isd(args.b, args.length)
        case "aol":
            return aol(args.b, args.length)
        case _:
            return aol_random(args.b, args.length)


def optimiser(args: argparse.Namespace) -> Optimiser:
    return Optimiser(args.lr, OPTIMISERS[args.optimiser])


def ticks(args: argparse.Namespace, process: Any) -> int:
    """The length of training in ticks, from --ticks, --phases or --updates."""
    if args.ticks:
        return args.ticks
    if args.updates and args.rule in ("aol", "aol-random"):
        return args.updates
    phases = (
        args.updates * (2 if args.rule in TWO_TERM else 1)
        if args.updates
        else args.phases or 20_000
    )
    return round(phases * float(process.mean_length))


def fits_in_memory(run: Run, seeds: int, records: int) -> None:
    """Refuse what would bring the machine down; states are copied while they move, hence the
    factor.
    """
    state = jax.eval_shape(lambda key: init(run, key), jax.random.key(0))
    need = 4 * seeds * (3 * sum(leaf.size for leaf in jax.tree.leaves(state)) + 5 * records)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        raise ValueError(
            f"this needs about {need / 1e9:.3g} GB of memory and the machine has {have / 1e9:.3g}; "
            "take fewer seeds, units or records."
        )


def zeros_and_ones(args: argparse.Namespace, images: np.ndarray) -> np.ndarray:
    """The pixels as a Bernoulli model needs them."""
    if args.binarise is None and args.data not in ("digits", "mnist"):
        if not np.isin(images, (0, 1)).all():
            raise ValueError(
                "this model needs data of zeros and ones; give --binarise THRESHOLD, such as "
                "--binarise 0.5."
            )
        return images
    return binarise(images, 0.5 if args.binarise is None else args.binarise)


def labelled(data: Input) -> np.ndarray:
    if data.labels is None:
        raise ValueError(
            f"this method learns labels, and {data.name} has none; try digits, mnist, or an .npz "
            "file with images and labels."
        )
    return data.labels


def errors(data: Input, error: Callable[[np.ndarray, np.ndarray], Any]) -> dict[str, Any]:
    """Test error where there is a test set, and training error: along the way on some images, at
    the end on all test images.
    """
    train = {"train_error": error(*every(SHOWN, data.images, labelled(data)))}
    if not data.test:
        return train
    return {"test_error": AtEnd(error(*every(SHOWN, *data.test)), error(*data.test))} | train


def likelihood(rows: Rows, hidden: int) -> dict[str, Any]:
    return (
        {"nll": NLL(rows.data)}
        if min(rows.data.shape[1], hidden) <= EXACT
        else {"nll_ais": AnnealedNLL(rows.data)}
    )


def start(args: argparse.Namespace) -> Any:
    return args.negative_start or ("data" if args.rule in TWO_TERM else "carry")


def rbm(args: argparse.Namespace, data: Input) -> Task:
    """Labels, where there are any, are visible units after the pixels, and the metric is the error
    by free energy.
    """
    data = data._replace(
        images=zeros_and_ones(args, data.images),
        test=data.test and (zeros_and_ones(args, data.test[0]), data.test[1]),
    )
    rows = Rows(
        data.images
        if data.labels is None
        else append_labels(data.images, data.labels, data.classes)
    )
    hidden = args.hidden or (128 if args.data == "mnist" else 16)
    method = RBM(
        rows.data.shape[1],
        hidden,
        visible_bias=not args.no_visible_bias,
        negative_start=start(args),
    )
    run = Run(method, *named_rule(args), rows, optimiser(args))
    by_free_energy = lambda images, labels: FreeEnergyError(images, labels, data.classes)  # noqa: E731
    return Task(
        run,
        likelihood(rows, hidden) if data.labels is None else errors(data, by_free_energy),
        data.classes,
    )


def boltzmann(args: argparse.Namespace, data: Input) -> Task:
    rows = Rows(zeros_and_ones(args, data.images))
    visible = rows.data.shape[1]
    if visible + args.hidden > ENUMERABLE:
        raise ValueError(
            "the NLL of a Boltzmann machine is taken by enumerating its units, at most "
            f"{ENUMERABLE}; "
            f"{visible} visible and {args.hidden} hidden ones are more. Take fewer, or an rbm."
        )
    method = BoltzmannMachine(
        visible, args.hidden, visible_bias=not args.no_visible_bias, negative_start=start(args)
    )
    return Task(Run(method, *named_rule(args), rows, optimiser(args)), {"nll": NLL(rows.data)})


def forward_forward(args: argparse.Namespace, data: Input) -> Task:
    labels = labelled(data)
    method = ForwardForward((data.images.shape[1], *args.hidden), data.classes, args.threshold)
    source = LabelContrast(data.images, labels, data.classes, paired=args.rule in TWO_TERM)
    by_goodness = lambda images, labels: ForwardForwardError(images, labels, data.classes)  # noqa: E731
    return Task(Run(method, *named_rule(args), source, optimiser(args)), errors(data, by_goodness))


def equilibrium_propagation(args: argparse.Namespace, data: Input) -> Task:
    targets = np.eye(data.classes, dtype=np.float32)[labelled(data)]
    method = EquilibriumPropagation(
        (data.images.shape[1], *args.hidden, data.classes), args.beta, centred=args.centred
    )
    run = Run(method, *named_rule(args), Rows((data.images, targets)), optimiser(args))
    return Task(run, errors(data, lambda images, labels: Wrong(Accuracy(method, images, labels))))


MAKE: dict[str, Callable[[argparse.Namespace, Input], Task]] = {
    "rbm": rbm,
    "boltzmann": boltzmann,
    "forward-forward": forward_forward,
    "equilibrium-propagation": equilibrium_propagation,
}
