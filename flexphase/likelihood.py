"""How good is a Boltzmann machine? Exact log Z and NLL by enumeration in chunks; beyond that see
`ais.py`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .checks import count, zeros_and_ones
from .core import Key
from .kernels import MISSING, rbm_nll
from .methods import rbm
from .methods.binary import bernoulli, states
from .methods.boltzmann import BoltzmannMachine, Couplings
from .methods.harmonium import Harmonium
from .methods.rbm import Params, p_visible
from .methods.units import BinaryUnits
from .metrics import OverLanes, each_lane

ENUMERABLE = 24  # units: 2^24 states take seconds


def log_sum(n: int, f: Any, chunk: int) -> Array:
    """log of the sum over all states of n units of exp(f(states)), where f maps (chunk, n) states
    to (..., chunk).
    """
    if n > ENUMERABLE:
        raise ValueError(
            f"{n} units have 2^{n} states, too many to enumerate (at most {ENUMERABLE}); for an "
            "RBM use ais.bracket."
        )
    chunk = min(chunk, 2**n)

    def body(i: Array, total: Array) -> Array:
        return jnp.logaddexp(
            total, jax.nn.logsumexp(f(states(n, i.astype(jnp.uint32) * chunk, chunk)), axis=-1)
        )

    empty = jax.eval_shape(lambda: f(states(n, 0, chunk)).sum(-1))
    return jax.lax.fori_loop(0, 2**n // chunk, body, jnp.full(empty.shape, -jnp.inf, empty.dtype))


def free_energy(params: Params | Couplings, v: Array, chunk: int = 1024) -> Array:
    """F(v) = -log sum_h exp(-E(v, h)) for each row: in closed form for an RBM, over all hidden
    states of a general Boltzmann machine.
    """
    if isinstance(params, Params):
        return rbm.free_energy(params, v)
    d = v.shape[1]
    W, bias = params.W[d:, d:], params.bias[d:]
    alone = 0.5 * ((v @ params.W[:d, :d]) * v).sum(1) + v @ params.bias[:d]
    drive = v @ params.W[:d, d:] + bias[None]
    return -alone - log_sum(
        len(bias), lambda h: 0.5 * ((h @ W) * h).sum(1)[None] + drive @ h.T, chunk
    )


def log_z(params: Params | Couplings, chunk: int = 4096) -> Array:
    """log sum exp(-E) over all states. Of an RBM the smaller layer is enumerated and the larger one
    summed in closed form.

    Args:
        params: of an RBM or a Boltzmann machine, of one network.
        chunk: states that are held in memory at once, a power of two. At most 2^24 states can be
            enumerated.
    """
    if isinstance(params, Couplings):
        nothing = jnp.zeros((1, 0))  # is visible: all units are summed over
        return -free_energy(params, nothing, chunk)[0]
    small = smaller_first(params)
    return log_sum(small.W.shape[0], lambda v: -rbm.free_energy(small, v), chunk)


def smaller_first(params: Params) -> Params:
    """The same RBM with its smaller layer called visible."""
    return (
        params if params.W.shape[0] <= params.W.shape[1] else Params(params.W.T, params.c, params.a)
    )


@eqx.filter_jit
def exact_samples(key: Key, params: Params, rows: int) -> Array:
    """Independent exact samples of the visible units of an RBM: the smaller layer from its
    enumerated marginal, the other one given it.
    """
    rows, few = count(rows, "rows"), min(params.W.shape)
    if few > ENUMERABLE:
        raise ValueError(
            f"the smaller layer has {few} units, too many to enumerate (at most {ENUMERABLE})."
        )
    k_chunk, k_state, k_large = jax.random.split(key, 3)
    small = smaller_first(params)
    chunk = 2 ** (few // 2)

    def logits(i: Array) -> Array:
        return -rbm.free_energy(small, states(few, i * chunk, chunk))

    totals = jax.lax.map(
        lambda i: jax.nn.logsumexp(logits(i)), jnp.arange(2**few // chunk, dtype=jnp.uint32)
    )
    chunks = jax.random.categorical(k_chunk, totals, shape=(rows,)).astype(jnp.uint32)

    def draw(at: tuple[Array, Key]) -> Array:
        i, key = at
        inside = jax.random.categorical(key, logits(i)).astype(jnp.uint32)
        return states(few, i * chunk + inside, 1)[0]

    drawn = jax.lax.map(draw, (chunks, jax.random.split(k_state, rows)))
    if small is params:
        return drawn
    return bernoulli(jax.random.uniform(k_large, (rows, len(params.a))), p_visible(params, drawn))


def least_nll(data: Any) -> float:
    """The least NLL that any model can have on rows of zeros and ones, summed over the rows: that
    of their own frequencies, -sum_i log(n_i / N), where row i occurs n_i times among N.
    """
    packed = np.packbits(np.asarray(data) > 0.5, axis=1)
    times = np.unique(packed, axis=0, return_counts=True)[1]
    return float(-(times * np.log(times / times.sum())).sum())


def check_columns(data: Array, visible: int) -> None:
    """The rows of the data have a column for each visible unit."""
    if (columns := data.shape[1]) != visible:
        raise ValueError(
            f"an NLL of data with {columns} columns is not that of a machine with {visible} "
            f"visible units; give it rows of {visible} columns."
        )


def are_binary(units: Any) -> bool:
    """Are visible units 0 or 1, all independently of each other given the hidden ones?"""
    return all(isinstance(part, BinaryUnits) for part in getattr(units, "parts", (units,)))


class NLL(OverLanes):
    """Exact negative log-likelihood in nats, SUMMED over the rows of the data: sum_i F(v_i) + N log
    Z.

    Of one machine, or of all lanes at once (a leading axis on the parameters): RBMs then go to the
    compiled kernel if there is one.

    Args:
        data: (rows, visible) zeros and ones.
    """

    data: Array = eqx.field(converter=zeros_and_ones)

    @property
    def optimum(self) -> float:
        """What a perfect model would score; see `least_nll`."""
        return least_nll(self.data)

    def fits(self, method: Any) -> None:
        """Refuse a machine of another number of visible units, or whose units are not binary."""
        if isinstance(method, (rbm.RBM, Harmonium, BoltzmannMachine)):
            check_columns(self.data, method.visible)
        if isinstance(method, Harmonium) and not are_binary(method.units):
            raise ValueError(
                "NLL is that of binary visible units, and this machine has others; write "
                "UnitNLL(method.units, data)."
            )

    def __call__(self, params: Params | Couplings) -> Any:
        units, columns = params.W.shape[-2], self.data.shape[1]
        check_columns(self.data, units if isinstance(params, Params) else min(units, columns))
        if params.W.ndim == 2:
            return free_energy(params, self.data).sum() + len(self.data) * log_z(params)
        if isinstance(params, Params) and not MISSING and min(params.W.shape[1:]) <= ENUMERABLE:
            return rbm_nll(*params, self.data)
        return each_lane(self, params)
