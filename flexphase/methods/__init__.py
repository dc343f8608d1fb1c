from .boltzmann import BoltzmannMachine
from .centring import Centred
from .clapp import CLAPP, SelfContrastiveForwardForward
from .contrastive_hebbian import ContrastiveHebbian, RecurrentHebbian
from .coupled import ResistorNetwork, layered_edges
from .deep_energy import GridNLL, deep_energy_model
from .deep_resistor import DeepResistor
from .energy import EnergyModel
from .equilibrium_propagation import Accuracy, EquilibriumPropagation
from .forward_forward import ForwardForward
from .harmonium import Harmonium
from .helmholtz import HelmholtzMachine
from .hopfield import Hopfield
from .nce import NCE
from .nudging import Holomorphic, RandomSign
from .predictive_coding import PredictiveCoding
from .rbm import RBM
from .samplers import Descent, Gibbs, Langevin
from .tempering import Tempered
from .units import BinaryUnits, GaussianUnits, MixedUnits, SoftmaxUnits

__all__ = [
    "CLAPP",
    "NCE",
    "RBM",
    "Accuracy",
    "BinaryUnits",
    "BoltzmannMachine",
    "Centred",
    "ContrastiveHebbian",
    "DeepResistor",
    "Descent",
    "EnergyModel",
    "EquilibriumPropagation",
    "ForwardForward",
    "GaussianUnits",
    "Gibbs",
    "GridNLL",
    "Harmonium",
    "HelmholtzMachine",
    "Holomorphic",
    "Hopfield",
    "Langevin",
    "MixedUnits",
    "PredictiveCoding",
    "RandomSign",
    "RecurrentHebbian",
    "ResistorNetwork",
    "SelfContrastiveForwardForward",
    "SoftmaxUnits",
    "Tempered",
    "deep_energy_model",
    "layered_edges",
]
