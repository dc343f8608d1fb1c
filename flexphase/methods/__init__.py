from .boltzmann import BoltzmannMachine
from .equilibrium_propagation import EquilibriumPropagation
from .forward_forward import ForwardForward
from .nce import NCE
from .rbm import RBM

__all__ = ["NCE", "RBM", "BoltzmannMachine", "EquilibriumPropagation", "ForwardForward"]
