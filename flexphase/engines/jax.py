"""The engine for every run: `tick` itself, vmapped over the lanes."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import State, init, tick
from ..lanes import Lanes


@eqx.filter_jit
def start(lanes: Lanes) -> State:
    return lanes.vmap(init, lanes.keys)


@eqx.filter_jit
def _loop(lanes: Lanes, state: State, ticks: Array) -> State:
    return jax.lax.fori_loop(0, ticks, lambda _, s: lanes.vmap(tick, s), state)


class JaxEngine:
    """In pieces of about a third of a second, so that progress shows and Ctrl-C is heard."""

    name = "jax"

    def start(self, lanes: Lanes) -> State:
        return start(lanes)

    def advance(
        self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]
    ) -> State:
        piece = 1
        while ticks > 0:
            began, n = time.perf_counter(), min(piece, ticks)
            state = jax.block_until_ready(_loop(lanes, state, jnp.int32(n)))
            ticks -= n
            piece = int(min(max(piece * 0.3 / (time.perf_counter() - began), 1), 100 * piece))
            report(n)
        return state
