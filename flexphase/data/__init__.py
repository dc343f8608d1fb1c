from .bars_and_stripes import bars_and_stripes
from .digits import digits
from .held import Held
from .mnist import binarised_mnist, mnist
from .planar import Planar, mixture, rings, two_moons
from .sources import LabelContrast, Rows
from .transforms import append_labels, binarise, overlay

__all__ = [
    "Held",
    "LabelContrast",
    "Planar",
    "Rows",
    "append_labels",
    "bars_and_stripes",
    "binarise",
    "binarised_mnist",
    "digits",
    "mixture",
    "mnist",
    "overlay",
    "rings",
    "two_moons",
]
