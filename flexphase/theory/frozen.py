"""The dynamics of a run with its parameters frozen, and what each tick would have contributed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from ..core import Key, Phase, Run, State, declares, init, phase_keys, tick
from ..estimators import TwoTerm, Weighted


class Tick(NamedTuple):
    """What a tick would have contributed."""

    phase: Phase
    g: Array  # the local term, flat
    # what of it belongs to the term of the phase: 1 at the last tick (eqs. 1 and 2), or 1/tau at
    # each (eqs. 4 and 5)
    share: Array


def answer(run: Run, phase: Phase) -> tuple[Array, Array]:
    """(weight, apply) of the run's estimator at this tick: the weight of the local term, and
    whether the optimiser steps now. Refuses an estimator with a memory.
    """
    if not isinstance(run.estimator, (Weighted, TwoTerm)):
        raise ValueError(
            f"the theory is for weighted terms, and {type(run.estimator).__name__} has a memory; "
            "measure the moments of the same run with the estimator isd or always_on."
        )
    return run.estimator.weigh(phase)


def local(run: Run) -> bool:
    """Is the run's estimator temporally local? Then it weighs a term by 1 / P(its sign), eq. 2."""
    return not isinstance(run.estimator, TwoTerm)


def learns_always(run: Run) -> bool:
    """Does the optimiser step at every tick? Tried at each tick of a phase of either sign."""
    half, three = jnp.float32(0.5), jnp.int32(3)
    phases = (
        Phase(jnp.float32(sign), half, jnp.float32(3), three, jnp.int32(left))
        for sign in (1, -1)
        for left in (3, 2, 1)
    )
    return all(bool(answer(run, phase)[1]) for phase in phases)


def begin(run: Run, params: Any, key: Key) -> State:
    """A lane before its first tick, with these parameters."""
    return init(run, key)._replace(params=params)


def frozen_tick(run: Run, s: State) -> tuple[State, Tick]:
    """Exactly `tick`, except that the parameters and the optimiser's state stay.

    Returns the state after the tick, and what the tick would have contributed.
    """
    new = tick(run, s)._replace(params=s.params, opt=s.opt)
    phase = new.phase._replace(left=new.phase.left + 1)
    weight, _ = answer(run, phase)
    # importance weights are not part of g+ and g-
    share = jnp.abs(weight) * (phase.prob if local(run) else 1.0)
    g, _ = ravel_pytree(run.method.grad(s.params, new.z, new.x, phase.sign))
    return new, Tick(phase, g, share)


def check_params(run: Run, params: Any) -> None:
    """Refuse parameters that do not fit this run's method, or are not finite, and graded phases."""
    if declares(run.process, "graded"):
        raise ValueError(
            "the theory is for phases of sign +1 and -1, and those of "
            f"{type(run.process).__name__} are graded; measure the same run with "
            "Phases(Alternating(), Fixed(T))."
        )
    like = jax.eval_shape(lambda: run.method.init(jax.random.key(0))[0])
    if jax.tree.structure(like) != jax.tree.structure(params) or any(
        a.shape != jnp.shape(b)
        for a, b in zip(jax.tree.leaves(like), jax.tree.leaves(params), strict=True)
    ):
        raise ValueError(
            f"these parameters do not fit {type(run.method).__name__}; "
            "give the params of a run with the same method and sizes."
        )
    if not all(
        bool(jnp.all(jnp.isfinite(leaf)))
        for leaf in jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array_like))
    ):
        raise ValueError(
            "the parameters are not finite: this lane diverged; "
            "take an earlier checkpoint, another seed or a smaller eta."
        )


class Starts(NamedTuple):
    """States and stimuli with which phases of one sign begin, a lane each."""

    z: Any
    x: Any


def repeated(z: Any, x: Any, lanes: int) -> Starts:
    """The same beginning in every lane."""
    return Starts(*jax.tree.map(lambda a: jnp.broadcast_to(a, (lanes, *jnp.shape(a))), (z, x)))


def starts(run: Run, params: Any, sign: float, *, lanes: int = 64, seed: int = 0) -> Starts:
    """Where phases of `sign` begin, `lanes` times, with the parameters frozen.

    Each lane runs for some phases first (4 to 20, about 2000 ticks).
    """
    check_params(run, params)
    keys = jax.random.split(jax.random.key(seed), lanes)
    tau = float(run.process.mean_length)
    settle = round(min(20, max(4, 2000 // tau)) * tau)
    return _starts(run, params, keys, jnp.float32(sign), jnp.int32(settle))


@eqx.filter_jit
def _starts(run: Run, params: Any, keys: Key, sign: Array, settle: Array) -> Starts:
    def lane(key: Key) -> Starts:
        s = jax.lax.fori_loop(
            0, settle, lambda _, s: frozen_tick(run, s)[0], begin(run, params, key)
        )
        _, k_source, k_enter = phase_keys(s.key, s.phases)
        x = run.source(k_source, sign, s.x)
        return Starts(run.method.enter(k_enter, params, s.z, x, sign), x)

    return jax.vmap(lane)(keys)
