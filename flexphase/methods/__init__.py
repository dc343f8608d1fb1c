from .boltzmann import BoltzmannMachine
from .forward_forward import ForwardForward
from .rbm import RBM

__all__ = ["RBM", "BoltzmannMachine", "ForwardForward"]
