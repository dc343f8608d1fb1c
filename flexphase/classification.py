"""How often is the label wrong? Errors of Forward-Forward and of RBMs whose last visible units are
the label; all are fractions.

A metric is built from images and their true labels and is a function of parameters, as
`train(metrics=...)` wants it.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .checks import matrix, whole_labels
from .core import Key
from .kernels import MISSING, forward_forward_scores
from .methods import forward_forward
from .methods.rbm import Params, bernoulli, biased, p_hidden, p_visible
from .metrics import OverLanes


class ForwardForwardError(OverLanes):
    """The label is the one whose overlay gives the highest goodness, summed over the layers. Exact,
    by the compiled kernel if there is one.

    Every label needs a product of its own in the second layer, so an image costs about 0.3 updates:
    draw curves on a fixed subset (60 points on 1,000 images cost about a sixth of 120,000 updates)
    and evaluate all images at the end.

    Args:
        images: (rows, pixels); the label is overlaid on the first `classes` pixels.
        labels: whole numbers from 0, one for each row.
        classes: number of labels.
    """

    images: Array
    labels: Array
    classes: int = eqx.field(static=True)

    def __init__(self, images: Any, labels: Any, classes: int = 10):
        self.images, self.classes = matrix(images), classes
        self.labels = jnp.asarray(whole_labels(labels, len(self.images), classes))

    def __call__(self, params: forward_forward.Params) -> np.ndarray:
        scores = scores_of(params, self.images, self.classes)
        wrong = np.argmax(scores, axis=-1) != np.asarray(self.labels)
        return np.where(np.isfinite(scores).all((1, 2)), wrong.mean(-1), np.nan)

    def fits(self, method: Any) -> None:
        """Refuse images and labels of another number of pixels or classes than the network's."""
        if not isinstance(method, forward_forward.ForwardForward):
            return
        own, pixels = (self.images.shape[1], self.classes), method.sizes[0]
        if own != (pixels, method.classes):
            raise ValueError(
                f"an error over {own[1]} classes on images of {own[0]} pixels is not that of a "
                f"network of {method.classes} classes and {pixels} pixels; write "
                f"ForwardForwardError(images, labels, classes={method.classes})."
            )


class Wrong(eqx.Module):
    """1 - accuracy, where `accuracy` is a metric such as `equilibrium_propagation.Accuracy`."""

    accuracy: Any

    def __call__(self, params: Any) -> Array:
        return 1 - self.accuracy(params)


def scores_of(params: forward_forward.Params, images: Array, classes: int) -> np.ndarray:
    """The goodness of every label on every image, (lanes, rows, classes)."""
    if MISSING:
        return np.asarray(jax_scores(params, images, classes))
    return forward_forward_scores(params, images, classes)


@eqx.filter_jit
def jax_scores(params: forward_forward.Params, images: Array, classes: int) -> Array:
    """`label_scores` lane by lane and in pieces, for (rows, classes, units) is large."""

    def one(lane: forward_forward.Params) -> Array:
        return jax.lax.map(
            lambda image: forward_forward.label_scores(lane, image[None], classes)[0],
            images,
            batch_size=256,
        )

    return jax.lax.map(one, params)


def label_free_energies(params: Params, images: Array, classes: int) -> Array:
    """F(image, label) for every label, (rows, classes), up to a constant of the image: its product
    with W is shared by all labels.
    """
    pixels = params.W.shape[0] - classes
    drive = biased(images @ params.W[:pixels], params.c)
    own = params.W[pixels:]  # (classes, hidden)
    per_label = jax.lax.map(lambda row: jax.nn.softplus(biased(drive, row)).sum(-1), own)
    return -biased(per_label.T, params.a[pixels:])


class FreeEnergyError(eqx.Module):
    """The label of least free energy: exact, p(label | image) is proportional to exp(-F(image,
    label)) over one-hot labels.

    Args:
        images: (rows, pixels), zeros and ones.
        labels: whole numbers from 0, one for each row.
        classes: number of labels, the last visible units of the machine.
        binary: False: pixels may be any numbers, for a `Harmonium` with Gaussian ones; what they
            contribute by themselves is the same for all labels.
    """

    images: Array
    labels: Array
    classes: int = eqx.field(static=True)

    def __init__(self, images: Any, labels: Any, classes: int = 10, binary: bool = True):
        self.images, self.classes = matrix(images, binary=binary), classes
        self.labels = jnp.asarray(whole_labels(labels, len(self.images), classes))

    def __call__(self, params: Params) -> Array:
        fits(params, self.images, self.classes)
        return (
            label_free_energies(params, self.images, self.classes).argmin(-1) != self.labels
        ).mean()


def label_activity(
    key: Key, params: Params, images: Array, classes: int, steps: int, burn_in: int
) -> Array:
    """Mean activity of the label units, (rows, classes), over `steps` Gibbs steps of the machine
    with its pixels clamped.
    """
    pixels = params.W.shape[0] - classes
    drive = biased(images @ params.W[:pixels], params.c)
    own, bias = params.W[pixels:], params.a[pixels:]
    shape = (len(images), classes)

    def step(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        label, total = carry
        k_h, k_l = jax.random.split(jax.random.fold_in(key, i))
        h = bernoulli(jax.random.uniform(k_h, drive.shape), jax.nn.sigmoid(drive + label @ own))
        label = bernoulli(jax.random.uniform(k_l, shape), jax.nn.sigmoid(biased(h @ own.T, bias)))
        return label, total + jnp.where(i >= burn_in, label, 0)

    start = bernoulli(
        jax.random.uniform(jax.random.fold_in(key, 2**32 - 1), shape), jnp.full(shape, 0.5)
    )
    return jax.lax.fori_loop(0, burn_in + steps, step, (start, jnp.zeros(shape)))[1] / steps


class SampledError(eqx.Module):
    """The label unit that is most often on while the pixels are clamped and the rest is sampled:
    how the paper reads the label.

    Args:
        images: (rows, pixels), zeros and ones.
        labels: whole numbers from 0, one for each row.
        classes: number of labels, the last visible units of the machine.
        steps: Gibbs steps over which the activity of the label units is averaged, at least 1.
        burn_in: Gibbs steps before these, from label units at random.
        seed: of the random numbers; they are the same at every call.
    """

    images: Array
    labels: Array
    classes: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    burn_in: int = eqx.field(static=True)
    key: Key

    def __init__(
        self,
        images: Any,
        labels: Any,
        classes: int = 10,
        steps: int = 100,
        burn_in: int = 20,
        seed: int = 0,
    ):
        self.images, self.classes = matrix(images, binary=True), classes
        self.labels = jnp.asarray(whole_labels(labels, len(self.images), classes))
        self.steps, self.burn_in, self.key = steps, burn_in, jax.random.key(seed)
        if steps < 1 or burn_in < 0:
            raise ValueError(
                "the label is read from at least 1 step after a burn-in of 0 or more, not "
                f"{steps!r} and {burn_in!r}."
            )

    def __call__(self, params: Params) -> Array:
        fits(params, self.images, self.classes)
        activity = label_activity(
            self.key, params, self.images, self.classes, self.steps, self.burn_in
        )
        return (activity.argmax(-1) != self.labels).mean()


def fits(params: Params, images: Array, classes: int) -> None:
    if params.W.shape[0] != images.shape[1] + classes:
        raise ValueError(
            f"an RBM of {params.W.shape[0]} visible units cannot label images of {images.shape[1]} "
            f"pixels with {classes} classes; "
            "train it on append_labels(images, labels, classes)."
        )


@partial(jax.jit, static_argnames=("classes", "each", "steps"))
def class_samples(
    key: Key, params: Params, classes: int = 10, each: int = 8, steps: int = 1000
) -> Array:
    """What the machine imagines of each label: (classes, each, pixels), P(pixel = 1) after Gibbs
    steps with the label units clamped.
    """
    pixels = params.W.shape[0] - classes
    label = jnp.repeat(jnp.eye(classes), each, axis=0)

    def step(i: Array, v: Array) -> Array:
        k_h, k_v = jax.random.split(jax.random.fold_in(key, i))
        p = p_hidden(
            params, jnp.concatenate([bernoulli(jax.random.uniform(k_v, v.shape), v), label], axis=1)
        )
        return p_visible(params, bernoulli(jax.random.uniform(k_h, p.shape), p))[:, :pixels]

    # Begin with random h, not with random pixels: these are far from any digit (half are on), and
    # chains that begin there may never leave.
    h = bernoulli(
        jax.random.uniform(jax.random.fold_in(key, 2**32 - 1), (classes * each, params.W.shape[1])),
        0.5,
    )
    v = jax.lax.fori_loop(0, steps, step, p_visible(params, h)[:, :pixels])
    return v.reshape(classes, each, pixels)
