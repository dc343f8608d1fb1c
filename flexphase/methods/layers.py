"""What layered networks that learn from pairs (input, target) share."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ..checks import layer_sizes, matrix

Pair = tuple[Array, Array]  # (input, target)
States = tuple[Array, ...]  # s_1, ..., s_L


def check_pairs(x: Any, inputs: int, outputs: int) -> None:
    """Stimuli are pairs (inputs, targets) with these numbers of columns."""
    if not isinstance(x, tuple) or len(x) != 2:
        raise ValueError(
            "this method learns from pairs of inputs and targets; use Rows((inputs, targets))."
        )
    for array, units, what in zip(x, (inputs, outputs), ("inputs", "targets"), strict=True):
        if matrix(array).shape[1] != units:
            raise ValueError(
                f"the {what} have {array.shape[1]} columns, but the network asks for {units}; make "
                "the two agree."
            )


class Layered(eqx.Module):
    """Layers of `sizes` units, the input first; the first and the last fit the stimulus."""

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self):
        layer_sizes(self.sizes)

    def check(self, x: Any) -> None:
        check_pairs(x, self.sizes[0], self.sizes[-1])

    def rest(self) -> States:
        """All units of layers 1, ..., L at 0."""
        return tuple(jnp.zeros(n) for n in self.sizes[1:])
