from .rbm import RBM

__all__ = ["RBM"]
