"""Boltzmann machine: gradient against autodiff, both sweeps against enumeration, and against the
RBM that it contains.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_jax import train
from scipy import stats

from flexphase.core import Optimiser, Run
from flexphase.data import Rows, bars_and_stripes
from flexphase.likelihood import NLL, states
from flexphase.methods.binary import sample
from flexphase.methods.boltzmann import BoltzmannMachine, Couplings, energy, lattice, two_colours
from flexphase.methods.rbm import RBM
from flexphase.rules import aol, cd

PLUS, MINUS = jnp.float32(1), jnp.float32(-1)


def random_params(mask, seed=0):
    rng = np.random.default_rng(seed)
    n = len(mask)
    upper = np.triu(rng.normal(size=(n, n)), 1) * mask
    return Couplings(
        jnp.asarray(upper + upper.T, jnp.float32),
        jnp.asarray(0.5 * rng.normal(size=n), jnp.float32),
    )


def machines():
    return {
        "sequential": BoltzmannMachine(3, 2),
        "sequential, masked": BoltzmannMachine(3, 3, lattice(2, 3)),
        "chequerboard": BoltzmannMachine(3, 3, lattice(2, 3), "chequerboard"),
    }


def test_energy_counts_every_pair_once():
    params, z = random_params(~np.eye(4, dtype=bool)), np.array([1.0, 0.0, 1.0, 1.0], np.float32)
    W, bias = np.asarray(params.W), np.asarray(params.bias)
    assert energy(params, jnp.asarray(z)) == pytest.approx(
        -(W[0, 2] + W[0, 3] + W[2, 3]) - bias[[0, 2, 3]].sum(), abs=1e-6
    )


@pytest.mark.parametrize("name", machines())
@pytest.mark.parametrize("visible_bias", [True, False])
def test_grad_is_autodiff_by_the_one_weight_of_each_pair_written_to_both_places(name, visible_bias):
    made = machines()[name]
    machine = BoltzmannMachine(made.visible, made.hidden, made.mask, made.sweep, visible_bias)
    params, z = random_params(np.asarray(made.mask)), machine.init(jax.random.key(2))[1]
    z = z._replace(v=jnp.ones_like(z.v))
    both = jnp.concatenate([z.v, z.h])

    def of_upper(upper, bias):
        return energy(Couplings(upper + upper.T, bias), both)

    by_pair, by_bias = jax.grad(of_upper, argnums=(0, 1))(jnp.triu(params.W, 1), params.bias)
    by_pair = np.triu(np.asarray(by_pair), 1) * np.asarray(made.mask)
    g = machine.grad(params, z, z.v, PLUS)
    assert np.array_equal(g.W, by_pair + by_pair.T)
    assert np.array_equal(g.bias, by_bias.at[: made.visible].multiply(visible_bias))


@pytest.mark.parametrize("name", machines())
def test_free_sweeps_have_the_enumerated_distribution(name):
    """Chi-square over the 8 visible states, 6,000 independent chains of 60 sweeps: p > 1e-4."""
    machine = machines()[name]
    params = random_params(np.asarray(machine.mask), 4)
    z = np.asarray(states(machine.n))
    p = np.exp(-np.asarray(energy(params, states(machine.n)), float))
    number = (z[:, :3] @ [1, 2, 4]).astype(int)
    expected = np.bincount(number, p / p.sum(), minlength=8)
    v = np.asarray(sample(machine, jax.random.key(0), params, rows=6000, steps=60))
    assert (
        stats.chisquare(
            np.bincount((v @ [1, 2, 4]).astype(int), minlength=8), 6000 * expected
        ).pvalue
        > 1e-4
    )


@pytest.mark.parametrize("name", machines())
def test_clamped_sweeps_have_the_conditional_distribution(name):
    """Hidden states of 6,000 clamped chains of 40 sweeps against p(h | v = x): chi-square, p >
    1e-4.
    """
    machine, x = machines()[name], jnp.array([1.0, 0.0, 1.0])
    params = random_params(np.asarray(machine.mask), 4)
    h = np.asarray(states(machine.hidden))
    p = np.exp(
        -np.asarray(energy(params, jnp.asarray(np.hstack([np.tile(x, (len(h), 1)), h]))), float)
    )

    @jax.jit
    @jax.vmap
    def chain(key):
        z = machine.init(key)[1]
        return jax.lax.fori_loop(
            0, 40, lambda t, z: machine.step(jax.random.fold_in(key, t), params, z, x, PLUS), z
        )

    z = chain(jax.random.split(jax.random.key(3), 6000))
    assert (z.v == x[None]).all()
    seen = np.bincount(
        (np.asarray(z.h) @ 2 ** np.arange(machine.hidden)).astype(int), minlength=len(h)
    )
    assert stats.chisquare(seen, 6000 * p / p.sum()).pvalue > 1e-4


def test_a_chequerboard_on_the_mask_of_an_rbm_is_that_rbm():
    """Same uniforms, same states, tick by tick, in both phases."""
    mask = np.zeros((7, 7), bool)
    mask[:4, 4:] = mask[4:, :4] = True
    machine, rbm = BoltzmannMachine(4, 3, mask, "chequerboard"), RBM(4, 3)
    assert np.array_equal(machine.colour, [0, 0, 0, 0, 1, 1, 1])
    theta = rbm.init(jax.random.key(0))[0]
    theta = theta._replace(W=jax.random.normal(jax.random.key(1), (4, 3)))
    W = jnp.zeros((7, 7)).at[:4, 4:].set(theta.W)
    params, x = Couplings(W + W.T, jnp.zeros(7)), jnp.array([1.0, 0.0, 1.0, 1.0])
    one = two = rbm.init(jax.random.key(2))[1]
    steps = jax.jit(
        lambda k, a, b, s: (rbm.step(k, theta, a, x, s), machine.step(k, params, b, x, s))
    )
    for t in range(100):
        one, two = steps(jax.random.key(t), one, two, PLUS if t % 20 < 10 else MINUS)
        assert np.array_equal(one.v, two.v) and np.array_equal(one.h, two.h)


def test_colours():
    assert np.array_equal(two_colours(lattice(3, 3)), np.arange(9) % 2)
    assert lattice(3, 4).sum() == 2 * (3 * 3 + 2 * 4)
    with pytest.raises(ValueError, match=r"odd cycle.*sequential"):
        BoltzmannMachine(3, 0, sweep="chequerboard")


@pytest.mark.parametrize("start", ["carry", "data", "persistent", "random"])
def test_learning_keeps_the_weights_symmetric_and_masked(start):
    mask = lattice(3, 3)
    machine = BoltzmannMachine(4, 5, mask, "chequerboard", negative_start=start)
    W = train(
        Run(machine, *aol(0.5, 3), Rows(bars_and_stripes(2)), Optimiser(0.05)), ticks=500, seeds=2
    ).params["W"]
    assert (
        np.array_equal(W, W.swapaxes(1, 2))
        and (W[:, ~mask] == 0).all()
        and (np.abs(W[:, mask]) > 0).all()
    )


def test_lateral_weights_learn_bars_and_stripes():
    """2x2: a uniform model scores 8 log 16, the optimum is 8 log 8 - 4 log 2 (closed forms, summed
    over 8 rows). 85 % of the way.
    """
    rows = bars_and_stripes(2)
    run = Run(BoltzmannMachine(4, 3), *cd(10), Rows(rows), Optimiser(0.1))
    nll = train(run, phases=16000, seeds=2, metrics={"nll": NLL(rows)}, records=1)["nll"]
    uniform, optimum = 8 * np.log(16), 8 * np.log(8) - 4 * np.log(2)
    assert np.allclose(nll.isel(record=0), uniform, atol=0.1)
    assert (
        (nll.isel(record=-1) > optimum)
        & (nll.isel(record=-1) < optimum + 0.15 * (uniform - optimum))
    ).all()
