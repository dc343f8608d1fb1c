"""Forward-Forward: every layer learns by itself to answer true labels with a high, and wrong ones
with a low goodness.

Layer l sees y = x / |x| of the layer below, h = relu(y W + c) and has the goodness G = mean_j
h_j^2. The loss of a positive sample is softplus(theta - G), that of a negative one softplus(G -
theta), and nothing is propagated back from layer to layer.
"""

from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero
from ..core import Key


class Layer(NamedTuple):
    W: Array  # (inputs, units)
    c: Array


Params = tuple[Layer, ...]


class Labelled(Protocol):
    """What this method asks of a stimulus."""

    @property
    def image(self) -> Array: ...
    @property
    def label(self) -> Array: ...  # one-hot


def normalise(x: Array) -> Array:
    """Unit length, so that a layer cannot read the goodness of the one below; silence stays
    silence.
    """
    return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-4)


def respond(layer: Layer, y: Array) -> Array:
    drive = y @ layer.W
    return jax.nn.relu(drive + jnp.broadcast_to(layer.c, drive.shape))


def goodness(h: Array) -> Array:
    return (h * h).mean(-1)


def local_grad(y: Array, h: Array, theta: Array, sign: Array) -> Layer:
    """g_plus = grad softplus(theta - G) and g_minus = -grad softplus(G - theta) in one: with sigma
    the logistic function and n units, dG/dW = (2/n) y h^T, hence both are -sigma(sign (theta - G))
    (2/n) y h^T.
    """
    slope = -jax.nn.sigmoid(sign * (theta - goodness(h))) * 2 / len(h) * h
    return Layer(jnp.outer(y, slope), slope)


def label_scores(params: Params, images: Array, classes: int) -> Array:
    """Goodness summed over the layers, (rows, classes): what each label overlaid on each image
    would give.

    The overlay changes `classes` inputs only and the length of the input not at all, so all labels
    share the first layer's product.
    """
    first, *rest = params
    image = images.at[:, :classes].set(0)
    length = jnp.sqrt((image * image).sum(1) + 1) + 1e-4
    drive = (image @ first.W)[:, None] + first.W[None, :classes]
    h = jax.nn.relu(drive / length[:, None, None] + first.c[None, None])
    score = goodness(h)
    for layer in rest:
        h = respond(layer, normalise(h))
        score += goodness(h)
    return score


class ForwardForward(eqx.Module):
    """Layers of `sizes` units (the first is the image), the label overlaid one-hot on the first
    `classes` pixels; one tick is one pass.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(784, 500, 500))
    classes: int = eqx.field(static=True, default=10)
    threshold: Array = eqx.field(
        converter=lambda theta: above_zero(theta, "the threshold of the goodness"), default=2.0
    )
    scale: float = eqx.field(
        static=True, default=2.0
    )  # of the initial weights: G starts near scale^2 / 2, here at the threshold

    def __check_init__(self):
        if len(self.sizes) < 2 or min(self.sizes) < 1:
            raise ValueError(
                "sizes must name the image and at least one layer, such as (784, 500, 500), not "
                f"{self.sizes!r}."
            )
        if not 2 <= self.classes < self.sizes[0]:
            raise ValueError(
                f"an overlay of {self.classes} classes does not fit an image of {self.sizes[0]} "
                "pixels; at least 2, and fewer than pixels."
            )

    def check(self, x: Labelled) -> None:
        self.overlaid(jax.tree.map(lambda stacked: stacked[0], x))

    def init(self, key: Key) -> tuple[Params, tuple[Array, ...]]:
        shapes = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        keys = jax.random.split(key, len(shapes))
        params = tuple(
            Layer(self.scale * jax.random.normal(k, shape), jnp.zeros(shape[1]))
            for k, shape in zip(keys, shapes, strict=True)
        )
        return params, tuple(jnp.zeros(units) for units in self.sizes[1:])

    def overlaid(self, x: Labelled) -> Array:
        if x.image.shape != self.sizes[:1]:
            raise ValueError(
                f"the first layer has {self.sizes[0]} inputs, images have {x.image.size}; give "
                f"sizes={(x.image.size, *self.sizes[1:])}."
            )
        if x.label.shape != (self.classes,):
            raise ValueError(
                f"the network is built for {self.classes} classes, but the labels have "
                f"{x.label.size}; give both the same classes=."
            )
        return jnp.concatenate([x.label, x.image[self.classes :]])

    def enter(
        self, key: Key, params: Params, z: tuple[Array, ...], x: Labelled, sign: Array
    ) -> tuple[Array, ...]:
        return z

    def step(
        self, key: Key, params: Params, z: tuple[Array, ...], x: Labelled, sign: Array
    ) -> tuple[Array, ...]:
        """The response of all layers to the stimulus, whatever came before."""
        h, hs = self.overlaid(x), []
        for layer in params:
            h = respond(layer, normalise(h))
            hs.append(h)
        return tuple(hs)

    def grad(self, params: Params, z: tuple[Array, ...], x: Labelled, sign: Array) -> Params:
        below = (self.overlaid(x), *z[:-1])
        return tuple(
            local_grad(normalise(y), h, self.threshold, sign) for y, h in zip(below, z, strict=True)
        )
