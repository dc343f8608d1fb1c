"""The engine for every run: `tick` itself, vmapped over the lanes."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..core import Observer, Run, State, declares, init, tick
from ..engine import NONE, Visits, next_piece
from ..lanes import Lanes
from .sharding import spread, spread_run
from .tapes import check_signs

Observers = Mapping[str, Observer]


@eqx.filter_jit
def start(lanes: Lanes, params: Any = None, observers: Observers | None = None) -> State:
    """Every lane before its first tick; `params` has a leading lane axis."""

    def one(run: Run, key: Array, params: Any) -> State:
        state = init(run, key, params)
        return state._replace(seen={name: o.init(state) for name, o in (observers or {}).items()})

    return lanes.vmap(one, lanes.keys, params)


@eqx.filter_jit
def _loop(lanes: Lanes, observers: Observers, state: State, ticks: Array) -> State:
    def one(run: Run, state: State) -> State:
        new = tick(run, state)
        seen = {name: o.see(state.seen[name], new) for name, o in observers.items()}
        return new._replace(seen=seen)

    return jax.lax.fori_loop(0, ticks, lambda _, s: lanes.vmap(one, s), state)


class JaxEngine:
    """Advances in pieces of about a third of a second: progress shows, Ctrl-C is handled promptly.

    Where JAX has several devices, each gets an equal part of the lanes; see `sharding.py`.

    Args:
        observers: by name; each sees the state of every lane after every tick.
    """

    name = "jax"

    def __init__(self, observers: Observers | None = None):
        self.observers = dict(observers or {})

    def start(self, lanes: Lanes, params: Any = None) -> State:
        return start(spread_run(lanes), spread(lanes, params), self.observers)

    def advance(
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        visits: Visits = NONE,
    ) -> State:
        done, piece = 0, 1
        lanes, state = spread_run(lanes), spread(lanes, state)
        while done < ticks:
            began, n = time.perf_counter(), min(piece, visits.ahead(done, ticks))
            state = jax.block_until_ready(_loop(lanes, self.observers, state, jnp.int32(n)))
            if np.any(np.asarray(state.phase.left) < 0):
                raise ValueError(
                    f"the process {type(lanes.run.process).__name__} drew a phase of 0 ticks; a "
                    "phase must last at least one: return ticks of 1 or more in Phase(...)."
                )
            if not declares(lanes.run.process, "graded"):
                check_signs(state.phase.sign)
            done += n
            piece = next_piece(piece, n, began)
            visits.pay(done, state.params)
            report(n)
        return state
