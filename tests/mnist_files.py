"""Real MNIST for the tests: from the folder ../shared/data next to the repository if there is one, else found by the library."""

import functools
import os
from pathlib import Path

from flexphase.data.mnist import mnist
from flexphase.data.mnist_sources import load
from flexphase.data.transforms import Split

NEARBY = Path(__file__).parents[2] / "shared" / "data"
if NEARBY.is_dir():
    os.environ.setdefault("FLEXPHASE_DATA", str(NEARBY))


@functools.cache
def raw_mnist() -> dict[str, bytes]:
    return load()


@functools.cache
def real_mnist() -> Split:
    return mnist()
