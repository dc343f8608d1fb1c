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
from ..core import Key, where

#: Where the chain of a negative phase begins: `carry` goes on from the state that the last phase
#: left (eq. 5; after a positive phase that is the data), `data` clamps the last data row for one
#: step, `persistent` goes on from the end of the last negative phase, `random` forgets everything.
NegativeStart = Literal["carry", "data", "persistent", "random"]


class Units(NamedTuple):
    v: Array
    h: Array
    chain: Any = ()  # (v, h) at the end of the last negative phase, kept for `persistent` only


class Gibbs(Protocol):
    """One sweep: (key, params, v, h, x, clamped) -> (v, h), with visible units held at x where
    `clamped` (one flag, or one for each).
    """

    def __call__(
        self, key: Key, params: Any, v: Array, h: Array, x: Array, clamped: Array, /
    ) -> tuple[Array, Array]: ...


def bernoulli(u: Array, p: Any) -> Array:
    """1 with probability p, given a uniform u."""
    return (u < p).astype(u.dtype)


def init(key: Key, visible: int, hidden: int, start: NegativeStart) -> Units:
    """Every unit on with probability 1/2."""
    z = bernoulli(jax.random.uniform(key, (visible + hidden,)), 0.5)
    v, h = z[:visible], z[visible:]
    return Units(v, h, (v, h) if start == "persistent" else ())


def enter(
    start: NegativeStart,
    gibbs: Gibbs,
    key: Key,
    params: Any,
    z: Units,
    x: Array,
    sign: Array,
    fresh: Callable[[Key], tuple[Array, Array]] | None = None,
) -> Units:
    """Only the start of a free phase needs care (negative, or without plasticity): a positive one
    is clamped by every step. `fresh(key)` is a random (v, h); default: coins.
    """
    match start:
        case "carry":
            return z
        case "data":
            begin = gibbs(key, params, z.v, z.h, x, jnp.bool_(True))
        case "persistent":
            begin = z.chain
        case "random":
            begin = fresh(key) if fresh else init(key, len(z.v), len(z.h), start)[:2]
    v, h = where(sign <= 0, begin, z[:2])
    return Units(v, h, z.chain)


def step(gibbs: Gibbs, key: Key, params: Any, z: Units, x: Array, sign: Array) -> Units:
    """A sweep, clamped in a positive phase; the chain of `persistent` moves in free phases only."""
    v, h = gibbs(key, params, z.v, z.h, x, sign > 0)
    return Units(v, h, where(sign <= 0, (v, h), z.chain) if z.chain else ())


def sample(
    method: Any,
    key: Key,
    params: Any,
    rows: int = 100,
    steps: int = 1000,
    x: Any = None,
    clamped: Any = None,
) -> Array:
    """Visible units of `rows` independent chains, `steps` Gibbs sweeps after a random start: (rows,
    visible).

    Partially clamped: `clamped` is a mask of the visible units that are held at `x`, a (visible,)
    or (rows, visible) array.
    """
    rows, steps = count(rows, "rows"), count(steps, "steps")
    if (x is None) != (clamped is None):
        raise ValueError(
            "give x (the values) and clamped (the mask of visible units that are held there) "
            "together, or neither."
        )
    values = jnp.zeros(method.visible) if x is None else jnp.asarray(x, jnp.float32)
    mask = jnp.zeros(method.visible, bool) if clamped is None else jnp.asarray(clamped, bool)
    if values.shape not in ((method.visible,), (rows, method.visible)) or mask.shape != (
        method.visible,
    ):
        raise ValueError(
            f"x must have shape ({method.visible},) or ({rows}, {method.visible}) and clamped "
            f"({method.visible},)."
        )
    check_rows(jnp.atleast_2d(jnp.where(mask, values, 0)), method.visible)
    return _chains(
        method,
        params,
        jax.random.split(key, rows),
        jnp.broadcast_to(values, (rows, method.visible)),
        mask,
        jnp.int32(steps),
    )


@eqx.filter_jit
def _chains(method: Any, params: Any, keys: Key, x: Array, clamped: Array, steps: Array) -> Array:
    def chain(key: Key, x: Array) -> Array:
        k_start, key = jax.random.split(key)
        z = init(k_start, method.visible, method.hidden, "random")[:2]

        def sweep(t: Array, z: tuple[Array, Array]) -> tuple[Array, Array]:
            return method.gibbs(jax.random.fold_in(key, t), params, *z, x, clamped)

        return jax.lax.fori_loop(0, steps, sweep, z)[0]

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
