from .bars_and_stripes import bars_and_stripes
from .cifar10 import cifar10
from .digits import digits
from .held import Held
from .mnist import binarised_mnist, mnist
from .pairs import ImagePairs
from .planar import Planar, mixture, rings, two_moons
from .sources import LabelContrast, Rows
from .transforms import append_labels, binarise, overlay

__all__ = [
    "Held",
    "ImagePairs",
    "LabelContrast",
    "Planar",
    "Rows",
    "append_labels",
    "bars_and_stripes",
    "binarise",
    "binarised_mnist",
    "cifar10",
    "digits",
    "mixture",
    "mnist",
    "overlay",
    "rings",
    "two_moons",
]
