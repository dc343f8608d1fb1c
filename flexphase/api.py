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
    Held,
    ImagePairs,
    LabelContrast,
    Rows,
    append_labels,
    bars_and_stripes,
    binarise,
    binarised_mnist,
    cifar10,
    digits,
    mnist,
    overlay,
)
from .estimators import Baseline, Differential, TwoTerm, Weighted, always_on, differential, two_term
from .lanes import Grid, grid
from .likelihood import NLL, log_z
from .log import AtEnd, OverLanes
from .methods import (
    CLAPP,
    NCE,
    RBM,
    BoltzmannMachine,
    EquilibriumPropagation,
    ForwardForward,
    HelmholtzMachine,
    Hopfield,
    PredictiveCoding,
    SelfContrastiveForwardForward,
)
from .methods.helmholtz import HelmholtzNLL
from .methods.hopfield import Recall, Stored
from .methods.nce import CoinNoise, GaussianNoise
from .methods.predictive_coding import Clamped
from .observers import PhaseStatistics, Trace
from .phases import (
    Alternating,
    Bernoulli,
    Blocks,
    Empirical,
    Fixed,
    Gamma,
    Geometric,
    Homeostatic,
    LogNormal,
    Markov,
    Matched,
    Pairs,
    Pauses,
    Phases,
    Recorded,
    Sinusoidal,
    Stretched,
    Weibull,
    schedule,
    tape,
)
from .probe import LinearProbe
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
    "cifar10",
    "binarised_mnist",
    "binarise",
    "overlay",
    "append_labels",
    "Rows",
    "LabelContrast",
    "ImagePairs",
    "Batches",
    "Held",
    # phases
    "Phases",
    "Alternating",
    "Bernoulli",
    "Markov",
    "Pairs",
    "Homeostatic",
    "Blocks",
    "Clamped",
    "Fixed",
    "Geometric",
    "Gamma",
    "LogNormal",
    "Weibull",
    "Empirical",
    "Matched",
    "Recorded",
    "Pauses",
    "Sinusoidal",
    "Stretched",
    "tape",
    "schedule",
    # methods
    "RBM",
    "BoltzmannMachine",
    "ForwardForward",
    "EquilibriumPropagation",
    "PredictiveCoding",
    "HelmholtzMachine",
    "Hopfield",
    "NCE",
    "GaussianNoise",
    "CoinNoise",
    "CLAPP",
    "SelfContrastiveForwardForward",
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
    "HelmholtzNLL",
    "LinearProbe",
    "Recall",
    "Stored",
    "AtEnd",
    "OverLanes",
    "Trace",
    "PhaseStatistics",
    "moments",
    "plan",
]
