from .boltzmann import BoltzmannMachine
from .clapp import CLAPP, SelfContrastiveForwardForward
from .contrastive_hebbian import ContrastiveHebbian, RecurrentHebbian
from .coupled import ResistorNetwork, conductances, layered_edges
from .deep_energy import GridNLL, deep_energy_model
from .deep_resistor import DeepResistor
from .energy import EnergyModel
from .equilibrium_propagation import Accuracy, EquilibriumPropagation
from .forward_forward import ForwardForward
from .helmholtz import HelmholtzMachine
from .hopfield import Hopfield
from .nce import NCE
from .nudging import Holomorphic, RandomSign
from .predictive_coding import PredictiveCoding
from .rbm import RBM
from .samplers import Descent, Gibbs, Langevin

__all__ = [
    "CLAPP",
    "NCE",
    "RBM",
    "Accuracy",
    "BoltzmannMachine",
    "ContrastiveHebbian",
    "DeepResistor",
    "Descent",
    "EnergyModel",
    "EquilibriumPropagation",
    "ForwardForward",
    "Gibbs",
    "GridNLL",
    "HelmholtzMachine",
    "Holomorphic",
    "Hopfield",
    "Langevin",
    "PredictiveCoding",
    "RandomSign",
    "RecurrentHebbian",
    "ResistorNetwork",
    "SelfContrastiveForwardForward",
    "conductances",
    "deep_energy_model",
    "layered_edges",
]
