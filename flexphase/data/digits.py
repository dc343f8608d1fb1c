"""The 8x8 handwritten digits that ship with scikit-learn: real data without a network."""

import numpy as np

from .transforms import Images


def digits() -> Images:
    """1,797 images of 64 pixels in [0, 1] (17 grey levels) and their labels 0 to 9."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError(
            "the 8x8 digits come with scikit-learn, which is not installed: pip install "
            "'flexphase[digits]'."
        ) from None
    images, labels = (np.asarray(part) for part in load_digits(return_X_y=True))
    return Images((images / 16).astype(np.float32), labels.astype(np.int32))
