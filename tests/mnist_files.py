"""Real MNIST for the tests: from the folder ../shared/data next to the repository if there is one,
else found by the library.
"""

import functools
import os
from pathlib import Path

import pytest

from flexphase.data.mnist_sources import load

NEARBY = Path(__file__).parents[2] / "shared" / "data"
if NEARBY.is_dir():
    os.environ.setdefault("FLEXPHASE_DATA", str(NEARBY))


@functools.cache
def raw_mnist() -> dict[str, bytes]:
    try:
        return load()
    except ValueError as error:
        if "cannot be reached" not in str(error):
            raise
        pytest.skip("MNIST cannot be reached; name a folder that holds it in FLEXPHASE_DATA")
