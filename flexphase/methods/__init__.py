from .boltzmann import BoltzmannMachine
from .clapp import CLAPP, SelfContrastiveForwardForward
from .equilibrium_propagation import EquilibriumPropagation
from .forward_forward import ForwardForward
from .helmholtz import HelmholtzMachine
from .hopfield import Hopfield
from .nce import NCE
from .predictive_coding import PredictiveCoding
from .rbm import RBM

__all__ = [
    "CLAPP",
    "NCE",
    "RBM",
    "BoltzmannMachine",
    "EquilibriumPropagation",
    "ForwardForward",
    "HelmholtzMachine",
    "Hopfield",
    "PredictiveCoding",
    "SelfContrastiveForwardForward",
]
