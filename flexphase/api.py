"""The public names, in data-flow order."""

from .core import Estimator, Method, Optimiser, Phase, Process, Run, Source, State, tick
from .data import Rows, bars_and_stripes
from .engines import train
from .estimators import always_on, two_term
from .lanes import Grid, grid
from .likelihood import NLL, log_z
from .methods import RBM
from .phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from .record import Record
from .rules import aol, aol_random, cd, isd

__all__ = [
    "NLL", "RBM", "Alternating", "Bernoulli", "Estimator", "Fixed", "Geometric", "Grid", "Method", "Optimiser", "Phase", "Phases",
    "Process", "Record", "Rows", "Run", "Source", "State", "always_on", "aol", "aol_random", "bars_and_stripes", "cd", "grid", "isd",
    "log_z", "tape", "tick", "train", "two_term",
]  # fmt: skip
