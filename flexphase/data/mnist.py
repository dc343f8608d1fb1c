"""MNIST, and its binarised form. Where the bytes come from is the business of mnist_sources.py;
what they must be is written here.
"""

import struct
from pathlib import Path

import numpy as np

from ..machine import cache_folder
from .mnist_sources import Say, aloud, load
from .transforms import Images, Split, binarise


def parse_idx(raw: bytes) -> np.ndarray:
    """An idx file of unsigned bytes: two zeros, type 8, the number of dimensions, each dimension as
    a big-endian int, then the data.
    """
    zeros, kind, ndim = struct.unpack_from(">HBB", raw)
    shape = struct.unpack_from(f">{ndim}I", raw, 4)
    if (zeros, kind) != (0, 8) or len(raw) != 4 + 4 * ndim + int(np.prod(shape)):
        raise ValueError("this is not a whole idx file of unsigned bytes.")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def _images(raw: dict[str, bytes], part: str) -> Images:
    pixels = parse_idx(raw[f"{part}-images-idx3-ubyte"])
    labels = parse_idx(raw[f"{part}-labels-idx1-ubyte"])
    return Images(pixels.reshape(len(pixels), -1) / np.float32(255), labels.astype(np.int32))


def mnist() -> Split:
    """`(train_images, train_labels), (test_images, test_labels) = mnist()`: 60,000 and 10,000 rows
    of 784 pixels in [0, 1].
    """
    raw = load()
    return Split(_images(raw, "train"), _images(raw, "t10k"))


def binarised_mnist(threshold: float = 0.5) -> Split:
    """MNIST with the pixels above the threshold on, the others off, in train and test alike.

    Args:
        threshold: in [0, 1), the range of the pixels.
    """
    return Split(*(Images(binarise(part.images, threshold), part.labels) for part in mnist()))


def fetch_mnist(say: Say = aloud) -> Path:
    """Make sure that the cache holds MNIST; the folder. `say(text)` is called with what happens."""
    load(say, keep=True)
    return cache_folder("mnist")
