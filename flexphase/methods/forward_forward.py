"""Forward-Forward: every layer learns by itself to answer true labels with a high, and wrong ones
with a low goodness.

Layer l sees y = x / |x| of the layer below, h = relu(y W + c) and has the goodness G = mean_j
h_j^2. The loss of a positive sample is softplus(theta - G), that of a negative one softplus(G -
theta), and nothing is propagated back from layer to layer.
"""

import itertools
from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, layer_sizes
from ..core import Key


class Layer(NamedTuple):
    W: Array  # (inputs, units)
    c: Array


Params = tuple[Layer, ...]
Hidden = tuple[Array, ...]  # the response of every layer


class Labelled(Protocol):
    """What this method asks of a stimulus."""

    @property
    def image(self) -> Array: ...
    @property
    def label(self) -> Array: ...  # one-hot


def normalise(x: Array) -> Array:
    """Unit length, so that a layer cannot read the goodness of the one below; zeros stay zeros."""
    return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-4)


def respond(layer: Layer, y: Array) -> Array:
    drive = y @ layer.W
    return jax.nn.relu(drive + jnp.broadcast_to(layer.c, drive.shape))


def first_layers(key: Key, sizes: tuple[int, ...], scale: float) -> tuple[Params, Hidden]:
    """Weights of sd `scale`, biases 0, and silent units."""
    shapes = list(itertools.pairwise(sizes))
    keys = jax.random.split(key, len(shapes))
    params = tuple(
        Layer(scale * jax.random.normal(k, shape), jnp.zeros(shape[1]))
        for k, shape in zip(keys, shapes, strict=True)
    )
    return params, tuple(jnp.zeros(units) for units in sizes[1:])


def answers(params: Params, h: Array) -> Hidden:
    """The response of all layers to an input."""
    hs = []
    for layer in params:
        h = respond(layer, normalise(h))
        hs.append(h)
    return tuple(hs)


def goodness(h: Array) -> Array:
    return (h * h).mean(-1)


def local_grad(y: Array, h: Array, theta: Array, sign: Array) -> Layer:
    """g_plus = grad softplus(theta - G) and g_minus = -grad softplus(G - theta) in one: with sigma
    the logistic function and n units, dG/dW = (2/n) y h^T, hence both are -sigma(sign (theta - G))
    (2/n) y h^T.
    """
    slope = -jax.nn.sigmoid(sign * (theta - goodness(h))) * 2 / len(h) * h
    return Layer(jnp.outer(y, slope), slope)


def layer_terms(x: Array, hs: Hidden, theta: Array, sign: Array) -> Params:
    """The local term of every layer, given the input and all responses."""
    below = (x, *hs[:-1])
    return tuple(local_grad(normalise(y), h, theta, sign) for y, h in zip(below, hs, strict=True))


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
    """Every layer learns a high goodness for true labels and a low one for wrong ones.

    The goodness is mean_j h_j^2. The stimulus is an image with a label, from `LabelContrast`. One
    tick is one pass, so phases of one tick suffice.

    Args:
        sizes: the number of pixels, then the units of each layer.
        classes: number of labels, at least 2; the label is overlaid one-hot on the first `classes`
            pixels.
        threshold: theta above 0; the losses are softplus(theta - goodness) for true labels and
            softplus(goodness - theta) for wrong ones.
        scale: standard deviation of the initial weights. The goodness begins near scale^2 / 2: with
            the defaults at the threshold.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(784, 500, 500))
    classes: int = eqx.field(static=True, default=10)
    threshold: Array = eqx.field(
        converter=lambda theta: above_zero(theta, "the threshold of the goodness"), default=2.0
    )
    scale: float = eqx.field(static=True, default=2.0)

    def __check_init__(self):
        layer_sizes(self.sizes)
        if not 2 <= self.classes < self.sizes[0]:
            raise ValueError(
                f"an overlay of {self.classes} classes does not fit an image of {self.sizes[0]} "
                "pixels; at least 2, and fewer than pixels."
            )

    def check(self, x: Labelled) -> None:
        self.overlaid(jax.tree.map(lambda stacked: stacked[0], x))

    def init(self, key: Key) -> tuple[Params, Hidden]:
        return first_layers(key, self.sizes, self.scale)

    def overlaid(self, x: Labelled) -> Array:
        """The image with its label on the first pixels; a ValueError where sizes do not fit."""
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

    def enter(self, key: Key, params: Params, z: Hidden, x: Labelled, sign: Array) -> Hidden:
        return z

    def step(self, key: Key, params: Params, z: Hidden, x: Labelled, sign: Array) -> Hidden:
        """The response of all layers to the stimulus, whatever came before."""
        return answers(params, self.overlaid(x))

    def grad(self, params: Params, z: Hidden, x: Labelled, sign: Array) -> Params:
        return layer_terms(self.overlaid(x), z, self.threshold, sign)
