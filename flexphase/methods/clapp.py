"""Local contrastive losses without labels: every layer by itself tells pairs that belong together
from pairs that do not.

A stimulus is a pair of images: twice the same one in a positive phase, two different ones in a
negative phase (`ImagePairs`).

CLAPP (Illing, Ventura, Bellec and Gerstner 2021): a layer answers the lower half of the image with
h = relu(y W), the upper half of the other one, its context, with k, and predicts one from the
other; the hinge losses are max(0, 1 - u) and max(0, 1 + u) of the score u = h P k. While a hinge is
active the update has three factors: the input, the prediction of the unit by the other half, and a
sign that is the same for all synapses:

    g_plus, g_minus = -[1 - sign u > 0] du/dtheta       du/dW = y (P k)' + y_context (P^T h)'

where the prime leaves out the units that are silent.

Self-contrastive Forward-Forward (Chen, Liu, Laydevant and Grollier 2025): a layer sees both images
through the same weights, that is their sum, and has a high goodness for the same and a low one for
different images; the two losses are those of Forward-Forward.
"""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, layer_sizes
from ..core import Key
from .forward_forward import Hidden, Params, answers, first_layers, layer_terms, normalise


class Paired(Protocol):
    """What these methods ask of a stimulus."""

    @property
    def image(self) -> Array: ...
    @property
    def context(self) -> Array: ...


class Block(NamedTuple):
    W: Array  # (inputs, units)
    P: Array  # (units, units): predicts the one half from the other


class Answers(NamedTuple):
    h: Array  # to the lower half
    k: Array  # to the context, the upper half


def halves(images: Array) -> tuple[Array, Array]:
    """The upper and the lower half of each row of pixels."""
    half = images.shape[-1] // 2
    return images[..., :half], images[..., half:]


class CLAPP(eqx.Module):
    """Every layer predicts its answer to one half of an image from its answer to the other half.

    One tick is one pass, so phases of one tick suffice.

    Args:
        sizes: half the number of pixels, then the units of each layer.
        scale: factor of the initial weights W, whose standard deviation is scale sqrt(2 / inputs).

    Example: `Run(CLAPP((32, 100)), *isd(0.5, 1), ImagePairs(images), Optimiser(0.01))` for images
    of 64 pixels.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple)
    scale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        layer_sizes(self.sizes)

    def check(self, x: Any) -> None:
        half = self.sizes[0]
        check_image_pairs(x, 2 * half, f"sizes={self.sizes} asks for halves of {half}")

    def init(self, key: Key) -> tuple[tuple[Block, ...], tuple[Answers, ...]]:
        """W: N(0, scale^2 2/inputs); P: N(0, 1/units^2)."""
        params = []
        for i, shape in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            k_w, k_p = jax.random.split(jax.random.fold_in(key, i))
            W = self.scale * (2 / shape[0]) ** 0.5 * jax.random.normal(k_w, shape)
            params.append(Block(W, jax.random.normal(k_p, (shape[1],) * 2) / shape[1]))
        silent = [jnp.zeros(units) for units in self.sizes[1:]]
        return tuple(params), tuple(Answers(s, s) for s in silent)

    def enter(self, key: Key, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        return z

    def step(self, key: Key, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        k, h = halves(x.context)[0], halves(x.image)[1]
        answers = []
        for block in params:
            h, k = jax.nn.relu(h @ block.W), jax.nn.relu(k @ block.W)
            answers.append(Answers(h, k))
        return tuple(answers)

    def grad(self, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        below = (Answers(halves(x.image)[1], halves(x.context)[0]), *z[:-1])
        return tuple(three_factors(*of, sign) for of in zip(params, below, z, strict=True))

    def features(self, params: Any, images: Array) -> Array:
        """What the last layer answers to both halves of each row."""
        upper, lower = halves(images)
        for block in params:
            upper, lower = jax.nn.relu(upper @ block.W), jax.nn.relu(lower @ block.W)
        return jnp.concatenate([upper, lower], axis=-1)


def three_factors(block: Block, y: Answers, z: Answers, sign: Array) -> Block:
    predicted, expected = block.P @ z.k, z.h @ block.P
    u = z.h @ predicted
    gate = -(1 - sign * u > 0).astype(u.dtype)
    W = jnp.outer(y.h, predicted * (z.h > 0)) + jnp.outer(y.k, expected * (z.k > 0))
    return Block(gate * W, gate * jnp.outer(z.h, z.k))


class SelfContrastiveForwardForward(eqx.Module):
    """Every layer learns a high goodness for the sum of two equal images, a low one for the sum of
    different ones.

    The goodness is mean_j h_j^2. One tick is one pass, so phases of one tick suffice.

    Args:
        sizes: the number of pixels, then the units of each layer.
        threshold: theta above 0; the losses are softplus(theta - goodness) for equal images and
            softplus(goodness - theta) for different ones.
        scale: standard deviation of the initial weights. The goodness begins near scale^2 / 2: with
            the defaults at the threshold.

    Example: `Run(SelfContrastiveForwardForward((64, 100)), *isd(0.5, 1), ImagePairs(images),
    Optimiser(0.01))`.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple)
    threshold: Array = eqx.field(
        converter=lambda theta: above_zero(theta, "the threshold of the goodness"), default=2.0
    )
    scale: float = eqx.field(static=True, default=2.0)

    def __check_init__(self):
        layer_sizes(self.sizes)

    def check(self, x: Any) -> None:
        check_image_pairs(x, self.sizes[0], f"sizes={self.sizes} asks for {self.sizes[0]}")

    def init(self, key: Key) -> tuple[Params, Hidden]:
        return first_layers(key, self.sizes, self.scale)

    def enter(self, key: Key, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        return z

    def step(self, key: Key, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        return answers(params, x.image + x.context)

    def grad(self, params: Any, z: Any, x: Paired, sign: Array) -> Any:
        return layer_terms(x.image + x.context, z, self.threshold, sign)

    def features(self, params: Any, images: Array) -> Array:
        """What all layers answer to each row alone, at unit length."""
        return jnp.concatenate([normalise(h) for h in answers(params, images)], axis=-1)


def check_image_pairs(x: Any, pixels: int, asked: str) -> None:
    if not {"image", "context"} <= {*getattr(x, "_fields", ())}:
        raise ValueError("this method learns from pairs of images; use ImagePairs(images).")
    if x.image.shape[1] != pixels:
        raise ValueError(f"images have {x.image.shape[1]} pixels, but {asked}; make them agree.")
