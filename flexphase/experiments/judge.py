"""Do samples show the label they were asked for? Read by a classifier that is no contrastive
learner.

Ridge regression on random rectified features of binarised MNIST: phi(x) = relu(x A + a) with random
A, one-hot targets, weights in closed form. It knows nothing of the machines that it judges.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..data import binarised_mnist
from ..data.transforms import every

FEATURES, TRAINED_ON, RIDGE = 1000, 20_000, 10.0


class Judge(NamedTuple):
    """A classifier of rows of 784 pixels."""

    A: np.ndarray  # (pixels, features)
    a: np.ndarray
    W: np.ndarray  # (features, classes)

    def reads(self, images: Any) -> np.ndarray:
        """The label that it sees in each row."""
        return np.argmax(np.maximum(np.asarray(images) @ self.A + self.a, 0) @ self.W, axis=1)


@cache
def judge() -> Judge:
    """The judge, trained on 20,000 training images."""
    rng = np.random.default_rng(0)
    images, labels = every(TRAINED_ON, *binarised_mnist().train)
    A = rng.standard_normal((images.shape[1], FEATURES)) / 10
    a = rng.standard_normal(FEATURES)
    phi = np.maximum(images @ A + a, 0)
    gram = phi.T @ phi + RIDGE * np.eye(FEATURES)
    return Judge(A, a, np.linalg.solve(gram, phi.T @ np.eye(10)[labels]))


def accuracy() -> float:
    """Share of the real test images that it reads correctly."""
    test = binarised_mnist().test
    return float(np.mean(judge().reads(test.images) == test.labels))


def shows_label(samples: Any) -> float:
    """Share of samples, (classes, each, pixels), in which it reads the label that was clamped."""
    classes, each, pixels = np.shape(samples)
    seen = judge().reads(np.reshape(samples, (-1, pixels)))
    return float(np.mean(seen == np.repeat(np.arange(classes), each)))
