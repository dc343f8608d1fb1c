from .boltzmann import BoltzmannMachine
from .equilibrium_propagation import EquilibriumPropagation
from .forward_forward import ForwardForward
from .rbm import RBM

__all__ = ["RBM", "BoltzmannMachine", "EquilibriumPropagation", "ForwardForward"]
