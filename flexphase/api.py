"""The public names, in data-flow order."""

from .ais import bracket
from .averages import Exponential, Mean
from .classification import ForwardForwardError, FreeEnergyError, SampledError
from .core import (
    Estimator,
    Method,
    Observer,
    Optimiser,
    Phase,
    Process,
    Run,
    Source,
    State,
    tick,
)
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
from .estimators import Baseline, Differential, TwoTerm, Weighted, always_on, differential, two_term
from .lanes import Grid, grid
from .likelihood import NLL, log_z
from .log import AtEnd, OverLanes
from .methods import RBM, BoltzmannMachine, EquilibriumPropagation, ForwardForward
from .observers import PhaseStatistics, Trace
from .phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from .record import Record
from .replicas import Batches, Replicas
from .rules import aol, aol_random, cd, isd
from .theory.moments import moments
from .theory.plan import plan
from .training import train

DATA = [
    *["bars_and_stripes", "digits", "mnist", "binarised_mnist", "binarise", "overlay"],
    *["append_labels", "Rows", "LabelContrast", "Batches"],
]
PHASES = ["Alternating", "Bernoulli", "Fixed", "Geometric", "Phases", "tape"]
METHODS = ["RBM", "BoltzmannMachine", "ForwardForward", "EquilibriumPropagation", "Replicas"]
ESTIMATORS = [
    *["two_term", "always_on", "differential"],
    *["Weighted", "TwoTerm", "Baseline", "Differential"],
]
RULES = ["cd", "isd", "aol", "aol_random"]
LOOP = [
    *["Phase", "Process", "Method", "Source", "Estimator", "Observer", "Optimiser", "Run"],
    *["State", "tick", "grid", "Grid", "train", "Mean", "Exponential"],
]
MEASURED = [
    *["Record", "NLL", "log_z", "bracket", "ForwardForwardError", "FreeEnergyError"],
    *["SampledError", "AtEnd", "OverLanes", "Trace", "PhaseStatistics", "moments", "plan"],
]

__all__ = [*DATA, *PHASES, *METHODS, *ESTIMATORS, *RULES, *LOOP, *MEASURED]  # pyright: ignore
