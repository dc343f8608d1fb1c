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
    Updater,
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
from .devices.circuit import Circuit
from .devices.device import Device, OnDevice
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

__all__ = [  # noqa: RUF022
    # data and stimuli
    "bars_and_stripes",
    "digits",
    "mnist",
    "binarised_mnist",
    "binarise",
    "overlay",
    "append_labels",
    "Rows",
    "LabelContrast",
    "Batches",
    # phases
    "Alternating",
    "Bernoulli",
    "Fixed",
    "Geometric",
    "Phases",
    "tape",
    # methods
    "RBM",
    "BoltzmannMachine",
    "ForwardForward",
    "EquilibriumPropagation",
    "Replicas",
    # estimators, and the paper's algorithms
    "two_term",
    "always_on",
    "differential",
    "Weighted",
    "TwoTerm",
    "Baseline",
    "Differential",
    "cd",
    "isd",
    "aol",
    "aol_random",
    # the loop
    "Phase",
    "Process",
    "Method",
    "Source",
    "Estimator",
    "Observer",
    "Optimiser",
    "Updater",
    "Device",
    "OnDevice",
    "Circuit",
    "Run",
    "State",
    "tick",
    "grid",
    "Grid",
    "train",
    "Mean",
    "Exponential",
    # what is measured
    "Record",
    "NLL",
    "log_z",
    "bracket",
    "ForwardForwardError",
    "FreeEnergyError",
    "SampledError",
    "AtEnd",
    "OverLanes",
    "Trace",
    "PhaseStatistics",
    "moments",
    "plan",
]
