"""log Z of an RBM beyond enumeration: annealed importance sampling (Neal 2001) from below, and its
reverse from above.

The path joins independent visible units of bias `base` to the model: log p*_t(v) = ((1 - t) base +
t a) v + sum_j softplus(t (c + v W)_j), so that log Z_0 = sum_i softplus(base_i) + hidden log 2 is
known. A chain that is annealed upwards from an exact sample of the base has a weight w with E[w] =
Z / Z_0; downwards from an exact sample of the MODEL, E[w] = Z_0 / Z. A logarithm of a mean is too
low on average (Jensen), so the first estimate of log Z is too low in expectation and the second one
too high.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import count, zeros_and_ones
from .core import Key
from .likelihood import ENUMERABLE, exact_samples, least_nll
from .methods.binary import bernoulli, check_rows, sample
from .methods.rbm import RBM, Params, free_energy


class Estimate(NamedTuple):
    """log Z, with its standard error by the delta method: to be trusted while `chains` is large.

    Args:
        log_z: the estimate.
        error: its standard error.
        chains: effective number of chains, (sum w)^2 / sum w^2.
    """

    log_z: Array
    error: Array
    chains: Array


class Bracket(NamedTuple):
    """lower <= log Z <= upper, each in expectation; the upper one only if its chains start from
    exact samples.
    """

    lower: Estimate
    upper: Estimate
    exact: bool  # False: samples of a long Gibbs chain; that it has mixed is an assumption

    def nll(self, params: Params, data: Array) -> tuple[Array, Array]:
        """The summed NLL of the data, from both ends of the bracket."""
        data = zeros_and_ones(data)
        free = free_energy(params, data).sum()
        return free + len(data) * self.lower.log_z, free + len(data) * self.upper.log_z


@eqx.filter_jit
def anneal(key: Key, params: Params, base: Array, v: Array, temperatures: Array) -> Array:
    """log w of each chain (row of v): the change of log p*_t(v) at every step of t, then a Gibbs
    sweep at the new t.
    """

    def body(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        v, log_w = carry
        old, new = temperatures[i], temperatures[i + 1]
        u = jax.random.uniform(
            jax.random.fold_in(key, i), (v.shape[0], v.shape[1] + params.c.shape[0])
        )
        drive = v @ params.W + params.c[None]
        hidden = jax.nn.softplus(new * drive) - jax.nn.softplus(old * drive)
        log_w += (new - old) * (v @ (params.a - base)) + hidden.sum(1)
        h = bernoulli(u[:, v.shape[1] :], jax.nn.sigmoid(new * drive))
        bias = (1 - new) * base + new * params.a
        p = jax.nn.sigmoid(new * (h @ params.W.T) + bias[None])
        return bernoulli(u[:, : v.shape[1]], p), log_w

    return jax.lax.fori_loop(0, len(temperatures) - 1, body, (v, jnp.zeros(len(v))))[1]


def log_mean(log_w: Array) -> Estimate:
    """log of the mean weight."""
    w = jnp.exp(log_w - log_w.max())
    return Estimate(
        log_w.max() + jnp.log(w.mean()),
        w.std(ddof=1) / w.mean() / len(w) ** 0.5,
        w.sum() ** 2 / (w * w).sum(),
    )


def log_z_base(params: Params, base: Array) -> Array:
    return jax.nn.softplus(base).sum() + params.c.shape[0] * jnp.log(2.0)


def ais(
    key: Key, params: Params, chains: int = 500, steps: int = 1000, base: Any = None
) -> Estimate:
    """log Z from below. `base` are the visible biases of the start, such as the log-odds of the
    data's means; default: the model's.
    """
    chains, steps = count(chains, "chains", 2), count(steps, "steps")
    base = params.a if base is None else jnp.asarray(base, jnp.float32)
    k_start, k_chain = jax.random.split(key)
    v = bernoulli(jax.random.uniform(k_start, (chains, len(base))), jax.nn.sigmoid(base)[None])
    up = log_mean(anneal(k_chain, params, base, v, jnp.linspace(0, 1, steps + 1)))
    return up._replace(log_z=up.log_z + log_z_base(params, base))


def reverse_ais(
    key: Key, params: Params, samples: Any, steps: int = 1000, base: Any = None
) -> Estimate:
    """log Z from above, given exact samples (rows of visible units) of the model: one chain from
    each.
    """
    steps = count(steps, "steps")
    check_rows(samples, len(params.a))
    base = params.a if base is None else jnp.asarray(base, jnp.float32)
    down = log_mean(
        anneal(key, params, base, jnp.asarray(samples, jnp.float32), jnp.linspace(1, 0, steps + 1))
    )
    return down._replace(log_z=log_z_base(params, base) - down.log_z)


def bracket(
    key: Key,
    params: Params,
    chains: int = 500,
    steps: int = 1000,
    base: Any = None,
    burn_in: int = 10_000,
) -> Bracket:
    """log Z of an RBM from below and from above, by annealed importance sampling and its reverse.

    Args:
        key: of the random numbers.
        params: of one RBM.
        chains: chains in each direction, at least 2.
        steps: temperatures through which each chain passes, at least 1.
        base: visible biases at the start of the path, such as the log-odds of the data's means
            (default: the model's).
        burn_in: the reverse chains begin with exact samples where a layer can be enumerated (at
            most 24 units); beyond, with the ends of Gibbs chains of `burn_in` sweeps.

    Returns: a `Bracket` of two estimates: `lower`, `upper`, and `exact` (are the samples exact?).
    """
    k_up, k_samples, k_down = jax.random.split(key, 3)
    exact = min(params.W.shape) <= ENUMERABLE
    visible, hidden = params.W.shape
    v = (
        exact_samples(k_samples, params, chains)
        if exact
        else sample(RBM(visible, hidden), k_samples, params, chains, burn_in)
    )
    return Bracket(
        ais(k_up, params, chains, steps, base), reverse_ais(k_down, params, v, steps, base), exact
    )


class AnnealedNLL(eqx.Module):
    """The NLL in nats, summed over the rows of the data, with log Z from annealed importance
    sampling: too low in expectation, by little if the chains are good. A metric for `train`.
    """

    data: Array = eqx.field(converter=zeros_and_ones)

    @property
    def optimum(self) -> float:
        """What a perfect model would score; see `likelihood.least_nll`."""
        return least_nll(self.data)

    def __call__(self, params: Params) -> Array:
        log_z = ais(jax.random.key(0), params, 100, 500).log_z
        return free_energy(params, self.data).sum() + len(self.data) * log_z
