from .bars_and_stripes import bars_and_stripes
from .cifar10 import cifar10
from .digits import digits
from .held import Held
from .mnist import binarised_mnist, mnist
from .pairs import ImagePairs
from .sources import LabelContrast, Rows
from .transforms import append_labels, binarise, overlay

__all__ = [
    "Held",
    "ImagePairs",
    "LabelContrast",
    "Rows",
    "append_labels",
    "bars_and_stripes",
    "binarise",
    "binarised_mnist",
    "cifar10",
    "digits",
    "mnist",
    "overlay",
]
