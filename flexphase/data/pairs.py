"""Pairs of images that belong together, or not: stimuli for learning without labels."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import matrix
from ..core import Key
from .sources import random_row


class ImagePair(NamedTuple):
    """Two images that are shown together."""

    image: Array
    context: Array
    row: Array  # which image of the data the first one is


class ImagePairs(eqx.Module):
    """An image with itself in positive phases, with another one of the data in negative phases.

    A positive phase draws a new image, one without plasticity keeps the image that is there.

    Args:
        images: (rows, pixels), at least 2 rows.
        paired: True: a negative phase keeps the image of the phase before it, as the two terms of
            eq. 1 want it. False: it draws an image of its own (eq. 2).
    """

    images: Array = eqx.field(converter=matrix)
    paired: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if len(self.images) < 2:
            raise ValueError("pairs of different images need at least 2 images.")

    @property
    def stimuli(self) -> ImagePair:
        return ImagePair(self.images, self.images, jnp.arange(len(self.images)))

    def init(self, key: Key) -> ImagePair:
        row = random_row(key, len(self.images))
        return ImagePair(self.images[row], self.images[row], row)

    def __call__(self, key: Key, sign: Array, x: ImagePair) -> ImagePair:
        return self.pair(key, sign, x.row, ((sign < 0) & self.paired) | (sign == 0))

    def fresh(self, key: Key, sign: Array, x: ImagePair) -> ImagePair:
        """A new image, as a phase of this sign shows it: for `Held`."""
        return self.pair(key, sign, x.row, jnp.bool_(False))

    def again(self, key: Key, sign: Array, x: ImagePair) -> ImagePair:
        """The image that is there, with itself or with another one: for `Held`."""
        return self.pair(key, sign, x.row, jnp.bool_(True))

    def pair(self, key: Key, sign: Array, row: Array, keep: Array) -> ImagePair:
        """The image number `row`, kept or drawn, with itself if the sign is positive."""
        k_row, k_other = jax.random.split(key)
        rows = len(self.images)
        row = jnp.where(keep, row, random_row(k_row, rows))
        other = jnp.where(sign > 0, row, (row + 1 + random_row(k_other, rows - 1)) % rows)
        return ImagePair(self.images[row], self.images[other], row)
