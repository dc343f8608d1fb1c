"""From options to a run and its metrics, method by method."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optax

from ..core import Optimiser, Run
from ..data import Rows, binarise
from ..likelihood import NLL
from ..methods import RBM, BoltzmannMachine
from ..rules import Rule, aol, aol_random, cd, isd
from .inputs import Input

OPTIMISERS = {"sgd": optax.sgd, "adam": optax.adam}
STEPS_PER_PHASE = {"cd": 0.5, "two-term": 0.5, "isd": 1.0}  # parameter updates


class Task(NamedTuple):
    run: Run
    metrics: dict[str, Any]
    classes: int = 0  # label units among the visible ones


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


def ticks(args: argparse.Namespace, process: Any) -> int:
    """The length of training in ticks, from --ticks, --phases or --updates."""
    if args.ticks:
        return args.ticks
    if args.updates and args.rule in ("aol", "aol-random"):
        return args.updates
    phases = args.updates / STEPS_PER_PHASE[args.rule] if args.updates else args.phases or 20_000
    return round(phases * float(process.mean_length))


def zeros_and_ones(args: argparse.Namespace, images: np.ndarray) -> np.ndarray:
    """The pixels as a Bernoulli model needs them."""
    if args.binarise is None and args.data not in ("digits", "mnist"):
        if not np.isin(images, (0, 1)).all():
            raise ValueError("this model needs data of zeros and ones; give --binarise THRESHOLD, such as --binarise 0.5.")
        return images
    return binarise(images, 0.5 if args.binarise is None else args.binarise)


def bernoulli_model(make: Callable[..., Any]) -> Callable[[argparse.Namespace, Input], Task]:
    def task(args: argparse.Namespace, data: Input) -> Task:
        rows = Rows(zeros_and_ones(args, data.images))
        start = args.negative_start or ("data" if args.rule in ("cd", "two-term") else "carry")
        method = make(rows.data.shape[1], args.hidden, visible_bias=not args.no_visible_bias, negative_start=start)
        run = Run(method, *named_rule(args), rows, Optimiser(args.lr, OPTIMISERS[args.optimiser]))
        return Task(run, {"nll": NLL(rows.data)})

    return task


MAKE: dict[str, Callable[[argparse.Namespace, Input], Task]] = {
    "rbm": bernoulli_model(RBM),
    "boltzmann": bernoulli_model(BoltzmannMachine),
}
