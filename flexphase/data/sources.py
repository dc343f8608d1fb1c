"""Where stimuli come from (eq. 5, line 2).

`source(key, sign, x)` is the stimulus of a phase that begins. For `Held`, which has a clock of its
own, a source also says `fresh(key, sign, x)`, a new stimulus as a phase of this sign shows it, and
`again(key, sign, x)`, the one that is there already.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import matrices, matrix, whole_labels
from ..core import Key, where
from .transforms import room_for_overlay


def random_row(key: Key, rows: int) -> Array:
    """A uniform row number."""
    return jnp.minimum((jax.random.uniform(key) * rows).astype(jnp.int32), rows - 1)


class Rows(eqx.Module):
    """A fresh random row of the data at each positive phase; a negative phase keeps the last one
    (free networks ignore it).

    Args:
        data: one (rows, features) array, or a tuple of arrays whose rows belong together, such as
            (inputs, targets).
    """

    data: Any = eqx.field(converter=matrices)

    @property
    def stimuli(self) -> Any:
        return self.data

    def init(self, key: Key) -> Any:
        row = random_row(key, len(jax.tree.leaves(self.data)[0]))
        return jax.tree.map(lambda array: array[row], self.data)

    def __call__(self, key: Key, sign: Array, x: Any) -> Any:
        return where(sign > 0, self.init(key), x)

    def fresh(self, key: Key, sign: Array, x: Any) -> Any:
        """A new stimulus, as a phase of this sign shows it."""
        return self.init(key)

    def again(self, key: Key, sign: Array, x: Any) -> Any:
        """The present one, as a phase of this sign shows it."""
        return x


class LabelledImage(NamedTuple):
    """An image with the label that it is shown with."""

    image: Array  # (pixels,)
    label: Array  # (classes,), one-hot
    row: Array  # which image of the data it is


class LabelContrast(eqx.Module):
    """Images with their true label in positive phases, with a wrong one (drawn afresh, never the
    true one) in negative phases.

    Positive phases draw a new image, phases without plasticity keep the one that is there, with its
    true label.

    Args:
        images: (rows, pixels).
        labels: whole numbers from 0, one for each row.
        classes: number of labels, at least 2 and fewer than pixels.
        paired: True: a negative phase keeps the image of the phase before it, so that the two terms
            of eq. 1 differ by the label alone. False: it draws an image of its own, so that nothing
            has to be remembered (eq. 2).
    """

    images: Array
    labels: Array
    classes: int = eqx.field(static=True)
    paired: bool = eqx.field(static=True)

    def __init__(self, images: Any, labels: Any, classes: int = 10, paired: bool = True):
        self.images, self.classes, self.paired = matrix(images), classes, paired
        room_for_overlay(self.images.shape[1], classes)
        self.labels = jnp.asarray(whole_labels(labels, len(self.images), classes))

    @property
    def stimuli(self) -> LabelledImage:
        return LabelledImage(
            self.images, jax.nn.one_hot(self.labels, self.classes), jnp.arange(len(self.images))
        )

    def next_row(self, key: Key, sign: Array, row: Array) -> tuple[Array, Array]:
        """The next (row, label number), given the row before."""
        return self.row(key, sign, row, ((sign < 0) & self.paired) | (sign == 0))

    def row(self, key: Key, sign: Array, row: Array, keep: Array) -> tuple[Array, Array]:
        """(row, label number) of a phase of this sign, the row kept or drawn."""
        k_row, k_label = jax.random.split(key)
        row = jnp.where(keep, row, random_row(k_row, len(self.images)))
        wrong = (self.labels[row] + 1 + random_row(k_label, self.classes - 1)) % self.classes
        return row, jnp.where(sign >= 0, self.labels[row], wrong)

    def show(self, row: Array, label: Array) -> LabelledImage:
        """The image of this row with this label."""
        return LabelledImage(self.images[row], jax.nn.one_hot(label, self.classes), row)

    def init(self, key: Key) -> LabelledImage:
        return self.show(*self.next_row(key, jnp.float32(1), jnp.int32(0)))

    def __call__(self, key: Key, sign: Array, x: LabelledImage) -> LabelledImage:
        return self.show(*self.next_row(key, sign, x.row))

    def fresh(self, key: Key, sign: Array, x: LabelledImage) -> LabelledImage:
        """A new stimulus, as a phase of this sign shows it."""
        return self.show(*self.row(key, sign, x.row, jnp.bool_(False)))

    def again(self, key: Key, sign: Array, x: LabelledImage) -> LabelledImage:
        """The present one, as a phase of this sign shows it."""
        return self.show(*self.row(key, sign, x.row, jnp.bool_(True)))
