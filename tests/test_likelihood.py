"""log Z and NLL against brute force in NumPy (float64), AIS against enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexphase.ais import ais, bracket, reverse_ais
from flexphase.data import bars_and_stripes
from flexphase.likelihood import NLL, exact_samples, free_energy, log_z, states
from flexphase.methods.boltzmann import Couplings
from flexphase.methods.rbm import Params


def random_rbm(visible, hidden, scale=1.0, seed=0):
    k_w, k_a, k_c = jax.random.split(jax.random.key(seed), 3)
    W, a, c = (
        jax.random.normal(k_w, (visible, hidden)),
        jax.random.normal(k_a, (visible,)),
        jax.random.normal(k_c, (hidden,)),
    )
    return Params(scale * W, scale * a, scale * c)


def random_couplings(n, seed=0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)), 1)
    return Couplings(
        jnp.asarray(W + W.T, jnp.float32), jnp.asarray(rng.normal(size=n), jnp.float32)
    )


def all_states(n):
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def brute_log_z(params):
    """float64, every state of every unit, no closed form."""
    if isinstance(params, Couplings):
        z = all_states(len(params.bias))
        minus_e = 0.5 * np.einsum(
            "si,ij,sj->s", z, np.asarray(params.W, float), z
        ) + z @ np.asarray(params.bias, float)
    else:
        W, a, c = (np.asarray(p, float) for p in params)
        v, h = all_states(len(a)), all_states(len(c))
        minus_e = (v @ W @ h.T + (v @ a)[:, None] + (h @ c)[None]).ravel()
    return np.logaddexp.reduce(minus_e)


@pytest.mark.parametrize("visible, hidden", [(3, 5), (6, 2), (4, 4), (1, 1)])
def test_log_z_of_an_rbm_is_the_sum_over_all_states(visible, hidden):
    params = random_rbm(visible, hidden)
    assert abs(log_z(params) - brute_log_z(params)) < 1e-5
    assert abs(log_z(params, chunk=2) - brute_log_z(params)) < 1e-5


@pytest.mark.parametrize("n", [1, 2, 7])
def test_log_z_of_a_boltzmann_machine_is_the_sum_over_all_states(n):
    params = random_couplings(n)
    assert abs(log_z(params) - brute_log_z(params)) < 1e-5
    assert abs(log_z(params, chunk=2) - brute_log_z(params)) < 1e-5


def test_nll_of_a_boltzmann_machine_sums_out_the_hidden_units():
    params, data = random_couplings(7), all_states(4)[::3].astype(np.float32)
    z = all_states(7)
    minus_e = 0.5 * np.einsum("si,ij,sj->s", z, np.asarray(params.W, float), z) + z @ np.asarray(
        params.bias, float
    )
    log_p = [
        np.logaddexp.reduce(minus_e[(z[:, :4] == row).all(1)]) - np.logaddexp.reduce(minus_e)
        for row in data
    ]
    assert NLL(data)(params) == pytest.approx(-np.sum(log_p), abs=1e-4)


def test_an_rbm_written_as_a_boltzmann_machine_has_the_same_nll():
    rbm, data = random_rbm(4, 3), all_states(4).astype(np.float32)
    W = np.zeros((7, 7), np.float32)
    W[:4, 4:] = rbm.W
    params = Couplings(jnp.asarray(W + W.T), jnp.concatenate([rbm.a, rbm.c]))
    assert NLL(data)(params) == pytest.approx(float(NLL(data)(rbm)), rel=1e-6)
    assert np.allclose(
        free_energy(params, jnp.asarray(data)), free_energy(rbm, jnp.asarray(data)), atol=1e-5
    )


def test_bars_and_stripes_uniform_and_optimum():
    """A model of zero energy is uniform: 32 log 2^16 = 354.891. The optimum is the entropy of the
    32 rows, two patterns twice: 108.131.
    """
    rows = bars_and_stripes(4)
    zero = Params(jnp.zeros((16, 3)), jnp.zeros(16), jnp.zeros(3))
    assert NLL(rows)(zero) == pytest.approx(354.891, abs=1e-3)
    assert NLL(rows)(Couplings(jnp.zeros((19, 19)), jnp.zeros(19))) == pytest.approx(
        354.891, abs=1e-3
    )
    _, times = np.unique(rows, axis=0, return_counts=True)
    assert -np.sum(times * np.log(times / 32)) == pytest.approx(108.131, abs=1e-3)
    assert len(times) == 30


def test_states_are_all_different():
    assert len(np.unique(np.asarray(states(6)), axis=0)) == 64
    assert np.array_equal(states(6, 8, 4), states(6)[8:12])


@pytest.mark.parametrize("visible, hidden", [(4, 6), (5, 3), (13, 13)])
def test_exact_samples_have_the_enumerated_distribution(visible, hidden):
    """Means of the visible units of 4,000 samples against enumeration: |z| < 4.5 for each (13 x 13
    takes two chunks of states).
    """
    params, rows = random_rbm(visible, hidden, 0.7), 4000
    p = np.exp(-np.asarray(free_energy(params, states(visible)), float))
    p /= p.sum()
    exact = p @ np.asarray(states(visible))
    mean = np.asarray(exact_samples(jax.random.key(1), params, rows)).mean(0)
    assert np.all(np.abs(mean - exact) / np.sqrt(exact * (1 - exact) / rows) < 4.5)
    joint = p @ np.prod(np.asarray(states(visible))[:, :2], axis=1)
    pair = np.asarray(exact_samples(jax.random.key(2), params, rows))[:, :2].prod(1).mean()
    assert abs(pair - joint) / np.sqrt(joint * (1 - joint) / rows) < 4.5


@pytest.mark.parametrize("seed, base", [(0, None), (1, None), (2, 0.0)])
def test_ais_and_its_reverse_meet_the_enumerated_log_z(seed, base):
    """|z| < 4 for both, at standard errors below 0.1."""
    params = random_rbm(10, 8, 1.0, seed)
    start = None if base is None else jnp.full(10, base)
    both = bracket(jax.random.key(seed), params, chains=400, steps=300, base=start)
    assert both.exact
    for end in (both.lower, both.upper):
        assert end.error < 0.1
        assert abs(end.log_z - brute_log_z(params)) / end.error < 4


def test_hasty_annealing_brackets_log_z():
    """Few steps and few chains: the Jensen gap shows, from below and from above, averaged over 40
    repeats (z > 3 each).
    """
    params = random_rbm(8, 8, 2.0)
    exact = brute_log_z(params)
    keys = jax.random.split(jax.random.key(0), 40)
    lower = jax.vmap(lambda k: ais(k, params, chains=4, steps=3).log_z)(keys) - exact
    samples = exact_samples(jax.random.key(1), params, 4 * 40).reshape(40, 4, 8)
    upper = jax.vmap(lambda k, v: reverse_ais(k, params, v, steps=3).log_z)(keys, samples) - exact
    assert lower.mean() / (lower.std(ddof=1) / 40**0.5) < -3
    assert upper.mean() / (upper.std(ddof=1) / 40**0.5) > 3


def test_bracket_beyond_enumeration_says_that_its_samples_are_not_exact():
    """26 x 26 units with independent halves: a block-diagonal W makes log Z the sum of two
    enumerable ones.
    """
    parts = [random_rbm(13, 13, 0.5, seed) for seed in (1, 2)]
    W = np.zeros((26, 26), np.float32)
    W[:13, :13], W[13:, 13:] = parts[0].W, parts[1].W
    params = Params(
        jnp.asarray(W), jnp.concatenate([p.a for p in parts]), jnp.concatenate([p.c for p in parts])
    )
    exact = float(sum(log_z(p) for p in parts))
    both = bracket(jax.random.key(3), params, chains=300, steps=200, burn_in=300)
    assert not both.exact
    assert abs(both.lower.log_z - exact) / both.lower.error < 4
    assert abs(both.upper.log_z - exact) / both.upper.error < 4
    data = jnp.zeros((2, 26))
    low, high = both.nll(params, data)
    assert high - low == pytest.approx(2 * float(both.upper.log_z - both.lower.log_z), abs=1e-3)
    with pytest.raises(ValueError, match=r"too many to enumerate.*ais"):
        log_z(params)
    with pytest.raises(ValueError, match="too many to enumerate"):
        exact_samples(jax.random.key(0), params, 3)
