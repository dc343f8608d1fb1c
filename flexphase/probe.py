"""What does a representation know? A linear read-out of its features, trained in closed form."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import matrix, whole_labels


class LinearProbe(eqx.Module):
    """Share of test images whose label a linear read-out of the features misses: a metric.

    The read-out is ridge regression to one-hot labels, in closed form, on the training images.

    Args:
        method: has `features(params, images)`, one row of features for each image.
        images: training images, (rows, pixels).
        labels: of the training images: whole numbers from 0.
        test_images: (rows, pixels).
        test_labels: whole numbers from 0.
        classes: number of labels.
        ridge: strength of the ridge, as a share of the mean variance of a feature.
    """

    method: Any
    images: Array
    labels: Array
    test_images: Array
    test_labels: Array
    classes: int = eqx.field(static=True)
    ridge: float = eqx.field(static=True)

    def __init__(
        self,
        method: Any,
        images: Any,
        labels: Any,
        test_images: Any,
        test_labels: Any,
        classes: int = 10,
        ridge: float = 1e-3,
    ):
        self.method, self.classes, self.ridge = method, classes, ridge
        self.images, self.test_images = matrix(images), matrix(test_images)
        self.labels = jnp.asarray(whole_labels(labels, len(self.images), classes))
        self.test_labels = jnp.asarray(whole_labels(test_labels, len(self.test_images), classes))

    def __call__(self, params: Any) -> Array:
        f, g = (self.method.features(params, i) for i in (self.images, self.test_images))
        centre = f.mean(0, keepdims=True)
        f, g = f - jnp.broadcast_to(centre, f.shape), g - jnp.broadcast_to(centre, g.shape)
        cov = f.T @ f / len(f)
        ridge = self.ridge * jnp.trace(cov) / len(cov)
        target = jax.nn.one_hot(self.labels, self.classes)
        W = jnp.linalg.solve(cov + ridge * jnp.eye(len(cov)), f.T @ target / len(f))
        scores = g @ W + jnp.broadcast_to(target.mean(0), (len(g), self.classes))
        return (scores.argmax(1) != self.test_labels).mean()
