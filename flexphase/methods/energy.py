"""Your own energy: one function E(theta, z, x) gives both terms and the dynamics.

    g_plus  = dE/dtheta at a state that was sampled with the stimulus clamped
    g_minus = dE/dtheta at a state that was sampled freely

For p(z) proportional to exp(-E) with a sampler at equilibrium, g_plus - g_minus is the gradient of
the negative log-likelihood of what is clamped (given x, where the energy depends on it).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from ..checks import count, one_of
from ..core import Key, PyTree, where
from .binary import NegativeStart, begin
from .samplers import Descent, Sampler

TRIAL = 100  # ticks of each sign that `check` tries before a training begins


class Roaming(NamedTuple):
    z: PyTree
    chain: PyTree = ()  # z at the end of the last negative phase, kept for `persistent` only


def hold(units: Array, z: Array, x: Array) -> Array:
    """z with these units at the values x, in their order."""
    return z.at[units].set(x)


def as_clamp(clamped: Any) -> Partial:
    """A mask of units, or a function (z, x) -> z, as one kind of thing."""
    if isinstance(clamped, functools.partial):
        return Partial(clamped.func, *clamped.args, **clamped.keywords)
    if callable(clamped):
        return Partial(clamped)
    mask = np.asarray(clamped)
    if mask.ndim != 1 or mask.dtype != bool or not mask.any():
        raise ValueError(
            "clamped must be a function (z, x) -> z, or a one-dimensional array of booleans that "
            "is True for at least one unit."
        )
    return Partial(hold, jnp.flatnonzero(jnp.asarray(mask)))


class EnergyModel(eqx.Module):
    """A two-term learner from one function.

    Args:
        energy: energy(params, z, x) returns one number.
        start: start(key) returns the first `(params, z)`, arrays or trees of arrays.
        sampler: `Gibbs()` for units 0 and 1, `Langevin(step)` or `Langevin(step, metropolis=True)`
            for continuous ones, `Descent(step)` for deterministic ones.
        clamped: what a positive phase holds fixed: a mask of units (z is then one array, and x
            their values), or a function (z, x) -> z that sets some units and leaves the others as
            they are.
        negative_start: where a negative phase begins: `carry` goes on from the state that the last
            phase left, `data` makes one step clamped to the stimulus, `persistent` goes on from the
            end of the last negative phase, `random` takes the z of a new start(key).

    Example, a Boltzmann machine of 4 visible and 2 hidden units:

        def energy(params, z, x):
            return -z @ jnp.triu(params, 1) @ z

        def start(key):
            return jnp.zeros((6, 6)), jnp.zeros(6)

        EnergyModel(energy, start, Gibbs(), clamped=np.arange(6) < 4)
    """

    energy: Callable[[PyTree, PyTree, PyTree], Array] = eqx.field(static=True)
    start: Callable[[Key], tuple[PyTree, PyTree]] = eqx.field(static=True)
    sampler: Sampler
    clamped: Any = eqx.field(converter=as_clamp)
    negative_start: NegativeStart = eqx.field(static=True, default="carry")

    def __check_init__(self):
        one_of(self.negative_start, get_args(NegativeStart), "negative_start")

    def init(self, key: Key) -> tuple[PyTree, Roaming]:
        params, z = self.start(key)
        return params, Roaming(z, z if self.negative_start == "persistent" else ())

    def move(self, key: Key, params: PyTree, z: PyTree, x: PyTree, clamped: Array) -> PyTree:
        """One step of the sampler, with the stimulus clamped where `clamped` is true."""
        z = where(clamped, self.clamped(z, x), z)
        # The derivative of a clamp tells which units it leaves as they are.
        ones = jax.tree.map(jnp.ones_like, z)
        left = jax.jvp(lambda z: self.clamped(z, x), (z,), (ones,))[1]
        return self.wander(key, params, z, x, where(clamped, left, ones))

    def wander(self, key: Key, params: PyTree, z: PyTree, x: PyTree, free: PyTree) -> PyTree:
        """One step of the sampler, for the units that are free."""
        flat, shaped = ravel_pytree(z)

        def energy(z: Array) -> Array:
            return self.energy(params, shaped(z), x)

        return shaped(self.sampler(key, energy, flat, ravel_pytree(free)[0]))

    def enter(self, key: Key, params: PyTree, z: Roaming, x: PyTree, sign: Array) -> Roaming:
        now = begin(
            self.negative_start,
            sign,
            z.z,
            z.chain,
            lambda: self.move(key, params, z.z, x, jnp.bool_(True)),
            lambda: self.start(key)[1],
        )
        return Roaming(now, z.chain)

    def step(self, key: Key, params: PyTree, z: Roaming, x: PyTree, sign: Array) -> Roaming:
        new = self.move(key, params, z.z, x, sign > 0)
        persistent = self.negative_start == "persistent"
        return Roaming(new, where(sign <= 0, new, z.chain) if persistent else ())

    def grad(self, params: PyTree, z: Roaming, x: PyTree, sign: Array) -> PyTree:
        """dE/dtheta, the same function in both phases."""
        return jax.grad(self.energy)(params, z.z, x)

    def check(self, x: PyTree) -> None:
        first = jax.tree.map(lambda stacked: jnp.asarray(stacked)[0], x)
        params, z = self.start(jax.random.key(0))
        for state in (z, check_clamp(self.clamped, z, first)):
            check_value(self.energy, params, state, first)
        if self.sampler.binary:
            held = jax.vmap(self.clamped, (None, 0))(z, x)
            if not all(jnp.isin(leaf, jnp.arange(2)).all() for leaf in jax.tree.leaves((z, held))):
                raise ValueError(
                    "Gibbs sampling is for units that are 0 or 1, in the data and in what start() "
                    "returns; binarise them, or take Langevin."
                )
        self.check_sampler(params, z, first)

    def check_sampler(self, params: PyTree, z: PyTree, x: PyTree) -> None:
        """Refuse a step that leaves all bounds at the very first parameters."""
        for clamped in (jnp.bool_(True), jnp.bool_(False)):
            z = where(clamped, self.clamped(z, x), z)
            end = trial(self, params, z, x, clamped)
            before, after = self.energy(params, z, x), self.energy(params, end, x)
            rises = isinstance(self.sampler, Descent) and after > before + 1e-3 * abs(before)
            if rises or not jnp.isfinite(ravel_pytree((after, end))[0]).all():
                raise ValueError(
                    f"the sampler diverges: within {TRIAL} ticks at the first parameters the "
                    f"energy goes from {before:.3g} to {after:.3g}; take a smaller step."
                )

    @eqx.filter_jit
    def sample(
        self, key: Key, params: PyTree, rows: int = 100, steps: int = 1000, x: PyTree = None
    ) -> PyTree:
        """States of `rows` independent free chains, `steps` after the states that `start` gives;
        `x` is the stimulus that the energy sees, if it needs one.
        """
        rows, steps = count(rows, "rows"), count(steps, "steps")

        def chain(key: Key) -> PyTree:
            k_start, key = jax.random.split(key)
            z = self.start(k_start)[1]
            free = jax.tree.map(jnp.ones_like, z)

            def body(t: Array, z: PyTree) -> PyTree:
                return self.wander(jax.random.fold_in(key, t), params, z, x, free)

            return jax.lax.fori_loop(0, steps, body, z)

        return jax.vmap(chain)(jax.random.split(key, rows))


@eqx.filter_jit
def trial(model: EnergyModel, params: PyTree, z: PyTree, x: PyTree, clamped: Array) -> PyTree:
    """The state after TRIAL ticks."""

    def body(t: Array, z: PyTree) -> PyTree:
        return model.move(jax.random.fold_in(jax.random.key(0), t), params, z, x, clamped)

    return jax.lax.fori_loop(0, TRIAL, body, z)


def check_clamp(clamp: Partial, z: PyTree, x: PyTree) -> PyTree:
    """The clamped state, with the shapes of the free one."""
    if clamp.func is hold:
        units = np.asarray(clamp.args[0])
        shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (z, x)]
        state, stimulus = (tree[0] if len(tree) == 1 else () for tree in shapes)
        if len(state) != 1 or state[0] <= units.max() or stimulus != units.shape:
            raise ValueError(
                f"a mask that clamps {len(units)} units, the last of them number {units.max()}, "
                f"needs a state of one axis and data of {len(units)} columns, not shapes "
                f"{shapes[0]} and {shapes[1]}."
            )
    try:
        held = clamp(z, x)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"clamped(z, x) cannot take such a state and stimulus ({error}); it sets units of z to "
            "values of x."
        ) from None
    shapes = [
        (jax.tree.structure(t), [(a.shape, a.dtype) for a in map(jnp.asarray, jax.tree.leaves(t))])
        for t in (z, held)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "clamped(z, x) must return a state like z, with the same shapes and types: "
            f"{shapes[0][1]}, not {shapes[1][1]}."
        )
    return held


def check_value(energy: Callable, params: PyTree, z: PyTree, x: PyTree) -> None:
    """The energy of a state is one finite number."""
    try:
        value = jnp.asarray(energy(params, z, x))
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"energy(params, z, x) cannot take such a state and stimulus ({error}); make the "
            "shapes of start() and of the data agree."
        ) from None
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(
            "energy(params, z, x) must return one real number, not an array of shape "
            f"{value.shape} and type {value.dtype}; sum over the units."
        )
    if not jnp.isfinite(value):
        raise ValueError(
            f"the energy is {value} at the first state; look for a logarithm of 0, a division by 0 "
            "or an overflow in energy(params, z, x)."
        )
