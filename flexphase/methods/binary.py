"""What the Bernoulli models share: their state, the start of a negative phase, sampling, and the
data that they accept.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import count, matrix, one_of
from ..core import Key, PyTree, where

#: Where the chain of a negative phase begins: `carry` goes on from the state that the last phase
#: left (eq. 5; after a positive phase that is the data), `data` clamps the last data row for one
#: step, `persistent` goes on from the end of the last negative phase, `random` forgets everything.
NegativeStart = Literal["carry", "data", "persistent", "random"]


class Units(NamedTuple):
    v: Array
    h: Array
    chain: Any = ()  # (v, h) at the end of the last negative phase, kept for `persistent` only


class GibbsSweep(Protocol):
    """One sweep: (key, params, v, h, x, clamped) -> (v, h), with visible units held at x where
    `clamped` (one flag, or one for each).
    """

    def __call__(
        self, key: Key, params: Any, v: Array, h: Array, x: Array, clamped: Array, /
    ) -> tuple[Array, Array]: ...


def bernoulli(u: Array, p: Any) -> Array:
    """1 with probability p, given a uniform u."""
    return (u < p).astype(u.dtype)


def states(n: int, start: Any = 0, count: int | None = None) -> Array:
    """Binary states of n units from number `start` on, one a row."""
    numbers = start + jnp.arange(2**n if count is None else count, dtype=jnp.uint32)
    return ((numbers[:, None] >> jnp.arange(n, dtype=jnp.uint32)[None]) & 1).astype(jnp.float32)


def coins(key: Key, visible: int, hidden: int) -> tuple[Array, Array]:
    """(v, h) with every unit on with probability 1/2."""
    z = bernoulli(jax.random.uniform(key, (visible + hidden,)), 0.5)
    return z[:visible], z[visible:]


def first(v: Array, h: Array, start: NegativeStart) -> Units:
    """The state before training; the chain of `persistent` begins there too."""
    return Units(v, h, (v, h) if start == "persistent" else ())


class GibbsMachine(Protocol):
    """What `enter`, `step` and `sample` ask of a method."""

    @property
    def visible(self) -> int: ...
    @property
    def negative_start(self) -> NegativeStart: ...
    @property
    def gibbs(self) -> GibbsSweep: ...
    def check(self, x: Any) -> None: ...  # ValueError if visible units cannot take these rows
    def fresh(self, key: Key) -> tuple[Array, Array]: ...  # (v, h) that know no parameters


def begin(
    start: NegativeStart,
    sign: Array,
    now: PyTree,
    chain: PyTree,
    data: Callable[[], PyTree],
    fresh: Callable[[], PyTree],
) -> PyTree:
    """The state in which a phase begins: `now`, or in a free phase (negative, or without
    plasticity) what `start` says. A positive phase needs no care: every step clamps it.

    Args:
        start: which of the following.
        sign: of the phase that begins.
        now: the state that the last phase left.
        chain: the state at the end of the last free phase, for `persistent`.
        data: gives the state after one clamped step.
        fresh: gives a random state.
    """
    match start:
        case "carry":
            return now
        case "data":
            then = data()
        case "persistent":
            then = chain
        case "random":
            then = fresh()
    return where(sign <= 0, then, now)


def enter(machine: GibbsMachine, key: Key, params: Any, z: Units, x: Array, sign: Array) -> Units:
    v, h = begin(
        machine.negative_start,
        sign,
        z[:2],
        z.chain,
        lambda: machine.gibbs(key, params, z.v, z.h, x, jnp.bool_(True)),
        lambda: machine.fresh(key),
    )
    return Units(v, h, z.chain)


def step(machine: GibbsMachine, key: Key, params: Any, z: Units, x: Array, sign: Array) -> Units:
    """A sweep, clamped in a positive phase; the chain of `persistent` moves in free phases only."""
    v, h = machine.gibbs(key, params, z.v, z.h, x, sign > 0)
    return Units(v, h, where(sign <= 0, (v, h), z.chain) if z.chain else ())


def sample(
    method: GibbsMachine,
    key: Key,
    params: Any,
    rows: int = 100,
    steps: int = 1000,
    x: Any = None,
    clamped: Any = None,
) -> Array:
    """Visible units of `rows` independent chains of a Boltzmann machine, an RBM or a harmonium,
    `steps` Gibbs sweeps after a random start: (rows, visible).

    Partially clamped: `clamped` is a mask of the visible units that are held at `x`, a (visible,)
    or (rows, visible) array.
    """
    rows, steps = count(rows, "rows"), count(steps, "steps")
    if (x is None) != (clamped is None):
        raise ValueError(
            "give x (the values) and clamped (the mask of visible units that are held there) "
            "together, or neither."
        )
    visible = method.visible
    values = jnp.zeros(visible) if x is None else jnp.asarray(x, jnp.float32)
    mask = jnp.zeros(visible, bool) if clamped is None else jnp.asarray(clamped, bool)
    if values.shape not in ((visible,), (rows, visible)) or mask.shape != (visible,):
        raise ValueError(
            f"x must have shape ({visible},) or ({rows}, {visible}) and clamped ({visible},)."
        )
    values = jnp.broadcast_to(values, (rows, visible))
    possible = jnp.broadcast_to(method.fresh(key)[0], values.shape)
    method.check(jnp.where(mask[None], values, possible))
    return _chains(method, params, jax.random.split(key, rows), values, mask, jnp.int32(steps))


@eqx.filter_jit
def _chains(
    method: GibbsMachine, params: Any, keys: Key, x: Array, clamped: Array, steps: Array
) -> Array:
    def chain(key: Key, x: Array) -> Array:
        k_start, key = jax.random.split(key)

        def sweep(t: Array, z: tuple[Array, Array]) -> tuple[Array, Array]:
            return method.gibbs(jax.random.fold_in(key, t), params, *z, x, clamped)

        return jax.lax.fori_loop(0, steps, sweep, method.fresh(k_start))[0]

    return jax.vmap(chain)(keys, x)


def check_units(visible: Any, hidden: Any, fewest_hidden: int, start: Any) -> None:
    count(visible, "visible")
    count(hidden, "hidden", fewest_hidden)
    one_of(start, get_args(NegativeStart), "negative_start")


def check_rows(data: Any, visible: int) -> None:
    """Data for a Bernoulli model: zeros and ones, a column for each visible unit."""
    columns = matrix(data, binary=True).shape[1]
    if columns != visible:
        raise ValueError(
            f"the data has {columns} columns and the model {visible} visible units; make the model "
            f"with visible={columns}."
        )
