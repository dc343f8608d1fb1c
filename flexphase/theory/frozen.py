"""The dynamics of a run with its parameters frozen, and what each tick would have contributed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from ..core import Key, Phase, Run, State, declares, init, phase_keys, tick, where
from ..estimators import PhaseChange, TwoTerm, Weighted

WAIT = 4096  # phases in which either sign must be seen


class Tick(NamedTuple):
    """What a tick would have contributed."""

    phase: Phase
    g: Array  # the local term, flat
    # what of it belongs to the term of the phase: 1 at the last tick (eqs. 1 and 2), 1/tau at each
    # (eqs. 4 and 5), or 1 at the last and -1 at the first (PhaseChange)
    share: Array


def answer(run: Run, phase: Phase) -> tuple[Array, Array]:
    """(weight, apply) of the run's estimator at this tick: the weight of the local term, and
    whether the optimiser steps now. Refuses an estimator whose step is no weighted sum of terms.
    """
    estimator: Any = run.estimator
    update = type(estimator).update
    if update not in (Weighted.update, TwoTerm.update):
        raise ValueError(
            f"the theory is for weighted terms, and {type(estimator).__name__} has a memory or "
            "an update of its own; measure the moments of the same run with the estimator isd or "
            "always_on."
        )
    weight, apply = estimator.weigh(phase)
    if update is Weighted.update:  # a term that is not used now is not used at all
        weight = jnp.where(apply, weight, 0)
    return weight, apply


def single(run: Run) -> bool:
    """Does a phase teach by itself, as in eq. 2? Then its term is weighed by 1 / P(its sign); the
    two-term rule (eq. 1) takes the difference of two phases instead.
    """
    return not isinstance(run.estimator, TwoTerm) or isinstance(run.estimator, PhaseChange)


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
    phase = new.during
    weight, _ = answer(run, phase)
    # neither the sign nor the importance weight is part of g+ and g-
    share = phase.sign * weight * (phase.prob if single(run) else 1.0)
    g, _ = ravel_pytree(run.method.grad(s.params, new.z, new.x, phase.sign))
    return new, Tick(phase, g, share)


def step_and_term(
    method: Any, key: Key, params: Any, z: Any, x: Any, sign: Array
) -> tuple[Any, Array]:
    """A tick of the network alone: the state after it, and its local term, flat."""
    z = method.step(key, params, z, x, sign)
    return z, ravel_pytree(method.grad(params, z, x, sign))[0]


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

    Each lane runs for some phases (4 to 20, about 2000 ticks), and the last one of this sign
    counts: what came before it has the order and the lengths of the run's own phases. A lane that
    has seen none in the second half of that time goes on until it has.
    """
    check_params(run, params)
    keys = jax.random.split(jax.random.key(seed), lanes)
    tau = float(run.process.mean_length)
    settle, most = (round(n * tau) for n in (min(20, max(4, 2000 // tau)), WAIT))
    at, seen = _starts(run, params, keys, jnp.float32(sign), jnp.int32(settle), jnp.int32(most))
    if not bool(seen.all()):
        raise ValueError(
            f"the process shows no phase of sign {sign:g} in {WAIT} phases; choose another b."
        )
    return at


@eqx.filter_jit
def _starts(
    run: Run, params: Any, keys: Key, sign: Array, settle: Array, most: Array
) -> tuple[Starts, Array]:
    """The beginnings, and whether there was one."""

    def on(carry: tuple[State, Starts, Array]) -> Array:
        s, _, seen = carry
        return (s.ticks < settle) | (~seen & (s.ticks < most))

    def one(carry: tuple[State, Starts, Array]) -> tuple[State, Starts, Array]:
        s, last, seen = carry
        new, tick = frozen_tick(run, s)
        k_enter = phase_keys(s.key, s.phases)[2]  # as `tick` enters a phase
        at = Starts(run.method.enter(k_enter, params, s.z, new.x, tick.phase.sign), new.x)
        begins = tick.phase.first & (tick.phase.sign * sign > 0) & (s.ticks >= settle // 2)
        return new, where(begins, at, last), seen | begins

    def lane(key: Key) -> tuple[Starts, Array]:
        s = begin(run, params, key)
        return jax.lax.while_loop(on, one, (s, Starts(s.z, s.x), jnp.bool_(False)))[1:]

    return jax.vmap(lane)(keys)
