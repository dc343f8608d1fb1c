"""Feedback: how far learning moves what it measures.

Two copies of a network go through both phases of a stimulus with the same random numbers; one
learns and one does not. Where their hidden states end apart by as much as the two phases differ,
the second phase measures the update of the first one and not the nudge.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import Key, Run, State, tick
from ..theory.frozen import begin, check_params

SETTLE = 4  # phases without learning come first


class Feedback(NamedTuple):
    """Root mean square over stimuli of distances between hidden states."""

    moved: float  # by learning, |h'_2 - h_2| at the end of the second phase
    contrast: float  # what there is to learn, |h_2 - h_1| between the phases, without learning

    @property
    def share(self) -> float:
        return self.moved / self.contrast


def feedback(run: Run, params: Any, *, lanes: int = 32, seed: int = 0) -> Feedback:
    """The feedback of a run at `params`.

    Args:
        run: phases of one length, two for each stimulus; h is the first part of its state.
        params: with which both copies begin.
        lanes: number of stimuli.
        seed: of the lanes.
    """
    check_params(run, params)
    keys = jax.random.split(jax.random.key(seed), lanes)
    squares = _squares(run, params, keys, jnp.int32(round(float(run.process.mean_length))))
    return Feedback(*(float(jnp.sqrt(square.mean())) for square in squares))


@eqx.filter_jit
def _squares(run: Run, params: Any, keys: Key, T: Array) -> tuple[Array, Array]:
    """|h'_2 - h_2|^2 and |h_2 - h_1|^2 of every lane."""

    def learning(_: Array, s: State) -> State:
        return tick(run, s)

    def resting(_: Array, s: State) -> State:
        return tick(run, s)._replace(params=s.params, opt=s.opt)

    def lane(key: Key) -> tuple[Array, Array]:
        start = jax.lax.fori_loop(0, SETTLE * T, resting, begin(run, params, key))

        def ends(one: Any) -> tuple[Array, Array]:
            first = jax.lax.fori_loop(0, T, one, start)
            second = jax.lax.fori_loop(0, T, one, first)
            h1, h2 = (jax.tree.leaves(s.z)[0] for s in (first, second))
            return h1, h2

        (h1, h2), (_, moved) = ends(resting), ends(learning)
        return jnp.sum((moved - h2) ** 2), jnp.sum((h2 - h1) ** 2)

    return jax.vmap(lane)(keys)
