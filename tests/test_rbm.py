"""RBM: formulas against enumeration and autodiff, samplers against enumerated distributions, CD-1
and ISD against exact expectations.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from flexphase import estimators
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Rows
from flexphase.likelihood import free_energy as any_free_energy
from flexphase.likelihood import log_z, states
from flexphase.methods.binary import sample
from flexphase.methods.rbm import RBM, Params, energy, free_energy, p_hidden, p_visible
from flexphase.phases import Bernoulli, Fixed, Phases
from flexphase.rules import cd

V, H = 3, 2
DATA = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]], np.float32)


@pytest.fixture(scope="module")
def params():
    k_w, k_a, k_c = jax.random.split(jax.random.key(3), 3)
    return Params(
        jax.random.normal(k_w, (V, H)),
        0.5 * jax.random.normal(k_a, (V,)),
        0.5 * jax.random.normal(k_c, (H,)),
    )


def joint(params):
    """p(v, h) as an array (2^V, 2^H), and the states."""
    v, h = np.asarray(states(V)), np.asarray(states(H))
    p = np.exp([[-float(energy(params, a, b)) for b in h] for a in v])
    return p / p.sum(), v, h


def test_free_energy_and_conditionals_are_sums_over_the_joint(params):
    p, v, h = joint(params)
    f = np.asarray(free_energy(params, jnp.asarray(v)))
    assert np.allclose(np.exp(-f - float(log_z(params))), p.sum(1), atol=1e-6)
    assert np.allclose(
        p_hidden(params, jnp.asarray(v)), (p @ h) / p.sum(1, keepdims=True), atol=1e-6
    )
    assert np.allclose(p_visible(params, jnp.asarray(h)), (p.T @ v) / p.sum(0)[:, None], atol=1e-6)
    assert np.allclose(p_hidden(params, jnp.asarray(v[3])), p_hidden(params, jnp.asarray(v))[3])


@pytest.mark.parametrize("visible_bias", [True, False])
def test_grad_is_autodiff_of_the_energy(params, visible_bias):
    rbm = RBM(V, H, visible_bias=visible_bias)
    z = rbm.init(jax.random.key(5))[1]._replace(
        v=jnp.array([1.0, 0.0, 1.0]), h=jnp.array([1.0, 0.0])
    )
    expected = jax.grad(energy)(params, z.v, z.h)
    for sign in (1.0, -1.0):
        g = rbm.grad(params, z, z.v, jnp.float32(sign))
        assert np.array_equal(g.W, expected.W) and np.array_equal(g.c, expected.c)
        assert np.array_equal(g.a, expected.a if visible_bias else 0 * expected.a)


def test_gibbs_samples_have_the_enumerated_distribution(params):
    """Chi-square over the 8 visible states, 8,000 independent chains of 60 sweeps: p > 1e-4."""
    v = np.asarray(sample(RBM(V, H), jax.random.key(0), params, rows=8000, steps=60))
    seen = np.bincount((v @ [1, 2, 4]).astype(int), minlength=8)
    assert stats.chisquare(seen, 8000 * joint(params)[0].sum(1)).pvalue > 1e-4


def test_partially_clamped_samples_have_the_conditional_distribution(params):
    """v_1 is held at 1: chi-square of (v_0, v_2) against p(v_0, v_2 | v_1 = 1), p > 1e-4."""
    x, held = jnp.array([0.0, 1.0, 0.0]), jnp.array([False, True, False])
    v = np.asarray(
        sample(RBM(V, H), jax.random.key(1), params, rows=8000, steps=60, x=x, clamped=held)
    )
    assert (v[:, 1] == 1).all()
    p, every, _ = joint(params)
    conditional = p.sum(1) * every[:, 1]
    seen = np.bincount((v @ [1, 2, 4]).astype(int), minlength=8)[every[:, 1] == 1]
    expected = conditional[every[:, 1] == 1] / conditional.sum()
    assert stats.chisquare(seen, 8000 * expected).pvalue > 1e-4
    rows = jnp.asarray(np.resize(DATA, (50, V)))
    all_held = sample(
        RBM(V, H), jax.random.key(1), params, rows=50, steps=3, x=rows, clamped=jnp.ones(V, bool)
    )
    assert np.array_equal(all_held, rows)


def after_cd1(rbm, params, lanes):
    """States after the positive and after the negative tick of CD-1, in many lanes, with a learning
    rate of 0.
    """
    run = Run(rbm, *cd(1), Rows(DATA), Optimiser(0.0))

    @jax.jit
    @jax.vmap
    def lane(key):
        positive = tick(run, init(run, key)._replace(params=params))
        return positive, tick(run, positive)

    return lane(jax.random.split(jax.random.key(7), lanes))


@pytest.mark.parametrize("start", ["carry", "data"])
def test_cd1_statistics_have_their_exact_expectation(params, start):
    """E[v h] after one clamped step and after one free step, summed over v0 -> h0 -> v1 -> h1.
    40,000 lanes, |z| < 4.5 for each entry.
    """
    lanes = 40_000
    positive, negative = after_cd1(RBM(V, H, negative_start=start), params, lanes)
    h_given = np.asarray(p_hidden(params, jnp.asarray(DATA)), float)
    plus = np.einsum("ri,rj->ij", DATA, h_given) / len(DATA)
    h0 = np.asarray(states(H), float)
    v1 = np.asarray(states(V), float)
    p_h0 = np.mean([np.prod(np.where(h0 == 1, p, 1 - p), axis=1) for p in h_given], axis=0)
    p_v = np.asarray(p_visible(params, jnp.asarray(h0, jnp.float32)), float)
    p_v1 = sum(
        weight * np.prod(np.where(v1 == 1, p, 1 - p), axis=1)
        for weight, p in zip(p_h0, p_v, strict=True)
    )
    minus = np.einsum(
        "s,si,sj->ij", p_v1, v1, np.asarray(p_hidden(params, jnp.asarray(v1, jnp.float32)), float)
    )
    for z, exact in ((positive.z, plus), (negative.z, minus)):
        mean = np.einsum("li,lj->ij", np.asarray(z.v, float), np.asarray(z.h, float)) / lanes
        assert np.all(np.abs(mean - exact) / np.sqrt(exact * (1 - exact) / lanes) < 4.5)


def test_negative_starts():
    """Where a negative phase begins: the carried state, the data, the end of the last negative
    phase, or noise.
    """
    x = jnp.array([1.0, 1.0, 0.0])
    key, minus, plus = jax.random.key(0), jnp.float32(-1), jnp.float32(1)
    for start in ("carry", "data", "persistent", "random"):
        rbm = RBM(V, H, negative_start=start)
        zero, z = rbm.init(key)
        z = z._replace(
            v=jnp.zeros(V),
            h=jnp.zeros(H),
            chain=(jnp.ones(V), jnp.ones(H)) if start == "persistent" else (),
        )
        begin = [rbm.enter(k, zero, z, x, minus) for k in jax.random.split(key, 20)]
        assert jax.tree.all(jax.tree.map(np.array_equal, rbm.enter(key, zero, z, x, plus), z))
        if start in ("carry", "persistent"):
            value = 0 if start == "carry" else 1
            assert all((b.v == value).all() and (b.h == value).all() for b in begin)
        else:
            assert len({tuple(np.asarray(b.h)) for b in begin}) == 4
        if start == "data":
            assert all((b.v == x).all() for b in begin)
    rbm = RBM(V, H, negative_start="persistent")
    params, z = rbm.init(key)
    after_plus = rbm.step(key, params, z, x, plus)
    assert jax.tree.all(jax.tree.map(np.array_equal, after_plus.chain, z.chain))
    after_minus = rbm.step(key, params, after_plus, x, minus)
    assert np.array_equal(after_minus.chain[0], after_minus.v) and np.array_equal(
        after_minus.chain[1], after_minus.h
    )


@pytest.mark.parametrize("b", [0.2, 0.5, 0.8])
def test_isd_is_unbiased_for_every_b(params, b):
    """Proposition 1: the mean of one ISD update against autodiff of the exact mean NLL, 20,000
    lanes, |z| < 4.5 for every parameter.

    A phase has 40 sweeps; the second eigenvalue of a sweep of this model is below 0.5, so that the
    chain's own bias is below 1e-12.
    """
    p = joint(params)[0]
    sweep = (
        (p / p.sum(1, keepdims=True))[:, :, None] * (p / p.sum(0))[None].transpose(0, 2, 1)
    ).sum(1)  # v -> h -> v'
    assert np.sort(np.abs(np.linalg.eigvals(sweep)))[-2] < 0.5

    def mean_nll(theta):
        return any_free_energy(theta, jnp.asarray(DATA)).mean() + log_z(theta)

    exact = jax.grad(mean_nll)(params)
    lanes, T = 20_000, 40
    run = Run(
        RBM(V, H, negative_start="random"),
        Phases(Bernoulli(b), Fixed(T)),
        estimators.isd,
        Rows(DATA),
        Optimiser(1.0),
    )

    @jax.jit
    @jax.vmap
    def update(key):
        s = jax.lax.fori_loop(
            0, T, lambda _, s: tick(run, s), init(run, key)._replace(params=params)
        )
        return jax.tree.map(lambda old, new: old - new, params, s.params), s.updates

    steps, updates = update(jax.random.split(jax.random.key(11), lanes))
    assert (updates == 1).all()
    for got, want in zip(steps, exact, strict=True):
        got = np.asarray(got, float).reshape(lanes, -1)
        z = (got.mean(0) - np.asarray(want, float).ravel()) / (got.std(0) / lanes**0.5)
        assert np.abs(z).max() < 4.5


def test_all_pairs_of_options_make_a_model():
    for bias, start in itertools.product((True, False), ("carry", "data", "persistent", "random")):
        params, z = RBM(4, 2, bias, start).init(jax.random.key(0))
        assert params.W.shape == (4, 2) and z.v.shape == (4,) and z.h.shape == (2,)
