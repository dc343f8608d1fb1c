"""The public names, in data-flow order."""

from .ais import bracket
from .classification import ForwardForwardError, FreeEnergyError, SampledError
from .core import Estimator, Method, Optimiser, Phase, Process, Run, Source, State, tick
from .data import (
    LabelContrast,
    Rows,
    append_labels,
    bars_and_stripes,
    binarise,
    binarised_mnist,
    digits,
    mnist,
    overlay,
)
from .engines import train
from .estimators import always_on, two_term
from .lanes import Grid, grid
from .likelihood import NLL, log_z
from .methods import RBM, BoltzmannMachine, EquilibriumPropagation, ForwardForward
from .phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from .record import Record
from .rules import aol, aol_random, cd, isd
from .theory.moments import moments
from .theory.plan import plan

__all__ = [  # noqa: RUF022
    # data and stimuli
    "bars_and_stripes", "digits", "mnist", "binarised_mnist", "binarise", "overlay", "append_labels", "Rows", "LabelContrast",
    # phases
    "Alternating", "Bernoulli", "Fixed", "Geometric", "Phases", "tape",
    # methods
    "RBM", "BoltzmannMachine", "ForwardForward", "EquilibriumPropagation",
    # estimators, and the paper's algorithms
    "two_term", "always_on", "cd", "isd", "aol", "aol_random",
    # the loop
    "Phase", "Process", "Method", "Source", "Estimator", "Optimiser", "Run", "State", "tick", "grid", "Grid", "train",
    # what is measured
    "Record", "NLL", "log_z", "bracket", "ForwardForwardError", "FreeEnergyError", "SampledError", "moments", "plan",
]  # fmt: skip
