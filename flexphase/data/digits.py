"""The 8x8 handwritten digits that ship with scikit-learn: real data without a network."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .transforms import Images


def digits() -> Images:
    """1,797 images of 64 pixels in [0, 1] (17 grey levels) and their labels 0 to 9."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ValueError(
            "the 8x8 digits come with scikit-learn, which is not installed: pip install "
            "'flexphase[digits]'."
        )
    table = rows(Path(found.origin).parent)
    return Images((table[:, :-1] / 16).astype(np.float32), table[:, -1].astype(np.int32))


def rows(package: Path) -> np.ndarray:
    """The table of 64 pixels and a label. The file is read without importing scikit-learn, which
    takes longer than training a small network; where it lies elsewhere, scikit-learn is asked.
    """
    path = package / "datasets" / "data" / "digits.csv.gz"
    if path.is_file():
        return np.loadtxt(path, delimiter=",")
    from sklearn.datasets import load_digits

    images, labels = (np.asarray(part) for part in load_digits(return_X_y=True))
    return np.column_stack([images, labels])
