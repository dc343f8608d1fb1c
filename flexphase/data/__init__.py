from .bars_and_stripes import bars_and_stripes
from .digits import digits
from .held import Held
from .mnist import binarised_mnist, mnist
from .sources import LabelContrast, Rows
from .transforms import append_labels, binarise, overlay

__all__ = [
    "Held",
    "LabelContrast",
    "Rows",
    "append_labels",
    "bars_and_stripes",
    "binarise",
    "binarised_mnist",
    "digits",
    "mnist",
    "overlay",
]
