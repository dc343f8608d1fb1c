"""How good is a harmonium? Exact log Z and NLL by enumerating the hidden units, where the visible
ones are summed (or integrated) in closed form; beyond that, annealed importance sampling.

    log Z = log sum_h exp(c h + log_sum(a + W h))

The annealing path is E_t = base(v) - a v - t (v W h + c h): at t = 0 the units are independent and
log Z_0 = log_sum(a) + hidden log 2.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer

from .ais import Estimate, log_mean
from .checks import count, matrix
from .core import Key
from .likelihood import are_binary, log_sum
from .methods.binary import bernoulli
from .methods.harmonium import Harmonium, free_energy
from .methods.rbm import RBM, Params, biased
from .methods.units import BinaryUnits, VisibleUnits


def log_z(units: VisibleUnits, params: Params, chunk: int = 1024) -> Array:
    """log of the sum of exp(-E) over all states, exact; at most 24 hidden units."""

    def log_p(h: Array) -> Array:
        return h @ params.c + units.log_sum(biased(h @ params.W.T, params.a))

    return log_sum(params.W.shape[1], log_p, chunk)


@eqx.filter_jit
def anneal(key: Key, units: VisibleUnits, params: Params, chains: int, steps: int) -> Array:
    """log w of each chain, from the independent units up to the machine."""
    ts = jnp.linspace(0, 1, steps + 1)
    k_start, key = jax.random.split(key)

    def body(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        v, log_w = carry
        k_v, k_h = jax.random.split(jax.random.fold_in(key, i))
        drive = biased(v @ params.W, params.c)
        gain = jax.nn.softplus(ts[i + 1] * drive) - jax.nn.softplus(ts[i] * drive)
        h = bernoulli(jax.random.uniform(k_h, drive.shape), jax.nn.sigmoid(ts[i + 1] * drive))
        v = units.draw(k_v, biased(ts[i + 1] * (h @ params.W.T), params.a))
        return v, log_w + gain.sum(1)

    v = units.draw(k_start, jnp.broadcast_to(params.a, (chains, units.n)))
    return jax.lax.fori_loop(0, steps, body, (v, jnp.zeros(chains)))[1]


def unit_ais(
    key: Key, units: VisibleUnits, params: Params, chains: int = 500, steps: int = 1000
) -> Estimate:
    """log Z of a harmonium by annealed importance sampling: too low in expectation, by little if
    chains are good.

    Args:
        key: of the random numbers.
        units: the visible units of the machine.
        params: of one machine.
        chains: number of chains, at least 2.
        steps: temperatures through which each chain passes, at least 1.

    Returns: log_z, its standard error, and the effective number of chains.
    """
    chains, steps = count(chains, "chains", 2), count(steps, "steps")
    up = log_mean(anneal(key, units, params, chains, steps))
    start = units.log_sum(params.a) + params.c.shape[0] * jnp.log(2.0)
    return up._replace(log_z=up.log_z + start)


class UnitNLL(eqx.Module):
    """The NLL of a harmonium in nats, SUMMED over the rows: sum_i F(v_i) + N log Z. A density for
    Gaussian units, so that it may be negative.

    Args:
        units: the visible units of the machine.
        data: the rows.
        annealed: log Z by annealed importance sampling (100 chains of 500 steps), for more hidden
            units than can be enumerated.
    """

    units: VisibleUnits
    data: Array = eqx.field(converter=matrix)
    annealed: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if not isinstance(self.data, Tracer):
            self.units.check(self.data)

    def fits(self, method: Any) -> None:
        """Refuse a machine whose visible units are of other kinds."""
        if isinstance(method, (RBM, Harmonium)):
            units = method.units if isinstance(method, Harmonium) else BinaryUnits(method.visible)
            alike = jax.tree.structure(units) == jax.tree.structure(self.units)
            both = are_binary(units) and are_binary(self.units) and units.n == self.units.n
            if not (alike or both):
                raise ValueError(
                    "this NLL is that of other visible units than the machine has; write "
                    "UnitNLL(method.units, data), with BinaryUnits(visible) for an RBM."
                )

    def __call__(self, params: Params) -> Any:
        if self.annealed:
            log_all = unit_ais(jax.random.key(0), self.units, params, 100, 500).log_z
        else:
            log_all = log_z(self.units, params)
        return free_energy(self.units, params, self.data).sum() + len(self.data) * log_all
