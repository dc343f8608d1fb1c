from .boltzmann import BoltzmannMachine
from .contrastive_hebbian import ContrastiveHebbian, RecurrentHebbian
from .coupled import ResistorNetwork, conductances, layered_edges
from .deep_energy import GridNLL, deep_energy_model
from .deep_resistor import DeepResistor
from .energy import EnergyModel
from .equilibrium_propagation import Accuracy, EquilibriumPropagation
from .forward_forward import ForwardForward
from .nudging import Holomorphic, RandomSign
from .rbm import RBM
from .samplers import Descent, Gibbs, Langevin

__all__ = [
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
    "Holomorphic",
    "Langevin",
    "RandomSign",
    "RecurrentHebbian",
    "ResistorNetwork",
    "conductances",
    "deep_energy_model",
    "layered_edges",
]
