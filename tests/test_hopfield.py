"""Hopfield networks that dream: sweeps and minima against enumeration, terms against autodiff of
the energy, Hebb's rule and the projector in closed form, and capacity against load.
"""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_jax import train

from flexphase.cli import main, parser, plan
from flexphase.cli.train import task_of
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Rows, bars_and_stripes
from flexphase.estimators import Weighted
from flexphase.methods.hopfield import (
    Hopfield,
    Recall,
    Stored,
    Weights,
    energy,
    hebb,
    projector,
    sweep,
)
from flexphase.phases import Bernoulli, Fixed, Phases
from flexphase.rules import isd


def patterns(rows, units, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (rows, units)).astype(np.float32)


@pytest.fixture(scope="module")
def weights():
    W = np.random.default_rng(2).normal(size=(9, 9)).astype(np.float32)
    return Weights(jnp.asarray((W + W.T) * (1 - np.eye(9, dtype=np.float32))))


def test_a_sweep_rests_exactly_in_the_minima_of_the_energy(weights):
    """All 512 states: a sweep leaves those alone from which no single turn lowers E, counted by
    hand, lowers E of every other one, and ends in one of them.
    """
    states = np.array(list(itertools.product([-1, 1], repeat=9)), np.float32)
    E = -0.5 * np.einsum("si,ij,sj->s", states, np.asarray(weights.W), states)
    turned = states[:, None] * (1 - 2 * np.eye(9, dtype=np.float32))[None]
    E_turned = -0.5 * np.einsum("sni,ij,snj->sn", turned, np.asarray(weights.W), turned)
    minimum = (E[:, None] < E_turned).all(1)
    after = jax.vmap(lambda s: sweep(weights, s))(jnp.asarray(states))
    E_after = jax.vmap(lambda s: energy(weights, s))(after)
    assert 2 <= minimum.sum() < 40
    assert np.array_equal((np.asarray(after) == states).all(1), minimum)
    assert (np.asarray(E_after)[~minimum] < E[~minimum]).all()
    for _ in range(20):
        after = jax.vmap(lambda s: sweep(weights, s))(after)
    rests = {tuple(s) for s in np.asarray(after).tolist()}
    assert rests == {tuple(s) for s in states[minimum].tolist()}


def test_terms_are_autodiff_of_the_energy(weights):
    """dE/dW of a symmetric W without diagonal: a pair of units has one weight, in two places, so
    each place gets the sum of both derivatives; over N, and `dream` times in a negative phase.
    """
    s = jnp.asarray(patterns(1, 9)[0])
    g = jax.grad(energy)(weights, s).W
    exact = (g + g.T) * (1 - jnp.eye(9)) / 9
    method = Hopfield(9, dream=0.7)
    np.testing.assert_allclose(method.grad(weights, s, s, jnp.float32(1)).W, exact, atol=1e-6)
    np.testing.assert_allclose(
        method.grad(weights, s, s, jnp.float32(-1)).W, 0.7 * exact, atol=1e-6
    )


def test_a_positive_phase_holds_the_pattern_and_a_negative_one_falls(weights):
    method, x, key = Hopfield(9), jnp.asarray(patterns(1, 9)[0]), jax.random.key(0)
    z = method.enter(key, weights, -x, x, jnp.float32(1))
    assert np.array_equal(method.step(key, weights, z, x, jnp.float32(1)), x)
    keys = jax.random.split(key, 400)
    begun = jax.vmap(lambda k: method.enter(k, weights, x, x, jnp.float32(-1)))(keys)
    assert np.abs(np.asarray(begun).mean(0)).max() < 4 / 400**0.5  # any state, whatever came before
    fallen = jax.vmap(lambda s: method.step(key, weights, s, x, jnp.float32(-1)))(begun)
    np.testing.assert_array_equal(fallen, jax.vmap(lambda s: sweep(weights, s))(begun))


def test_hebb_and_projector():
    """Hebb's rule is each pattern learned once at eta = 1. The projector P has P x = x for every
    pattern and P P = P, before its diagonal is left out.
    """
    x = patterns(4, 12)
    method, W = Hopfield(12), jnp.zeros((12, 12))
    for row in x:
        W -= method.grad(Weights(W), jnp.asarray(row), jnp.asarray(row), jnp.float32(1)).W
    np.testing.assert_allclose(hebb(x).W, W, atol=1e-6)
    P = x.T @ np.linalg.inv(x @ x.T) @ x
    np.testing.assert_allclose(projector(x).W, P - np.diag(np.diag(P)), atol=1e-5)
    assert float(Stored(x)(projector(x))) == 1


def weigh_alike(phase):
    return phase.sign * phase.last, phase.last


def test_without_importance_weights_b_is_the_ratio(weights):
    """Phases weighted alike at (b, eta) are ISD with dream = (1 - b)/b at b eta: the same phases,
    the same weights after 80 of them. (They start at random weights, where no field is 0.)
    """
    b, eta, data = 0.6, 0.3, Rows(patterns(3, 9))
    alike = Run(
        Hopfield(9), Phases(Bernoulli(b), Fixed(2)), Weighted(weigh_alike), data, Optimiser(eta)
    )
    weighted = Run(Hopfield(9, (1 - b) / b), *isd(b, 2), data, Optimiser(b * eta))

    def after(run):
        start = init(run, jax.random.key(1))._replace(params=weights)
        return jax.lax.fori_loop(0, 160, lambda _, s: tick(run, s), start)

    one, other = after(alike).params.W, after(weighted).params.W
    assert np.abs(one - weights.W).max() > 0.1
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.slow
def test_dreams_take_capacity_towards_the_projector():
    """32 patterns in 64 units, more than three times what Hebb's rule can store. Dreams at 0.9 of
    the learning store nearly all of them, and the weights approach the projector's. Two seeds.
    """
    x = patterns(32, 64)
    best = projector(x).W

    def cosine(params):
        return (params.W * best).sum() / jnp.linalg.norm(params.W) / jnp.linalg.norm(best)

    run = Run(Hopfield(64, dream=0.9), *isd(0.5, 4), Rows(x), Optimiser(0.05))
    record = train(
        run, phases=4000, seeds=2, records=1, metrics={"stored": Stored(x), "cosine": cosine}
    )
    assert float(Stored(x)(hebb(x))) == 0 and float(cosine(hebb(x))) < 0.75
    assert record.final("stored").mean() > 0.8 and record.final("cosine").mean() > 0.9
    assert float(Recall(x)(hebb(x))) < 0.5
    assert float(Recall(x, flipped=0.0)(projector(x))) == 1
    assert float(Recall(x)(Weights(jnp.zeros((64, 64))))) == pytest.approx(1 - 12 / 64)


def command(capsys, *words):
    """Exit code, the object on standard output, what was said on standard error."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_command_line_stores_digits(capsys, tmp_path):
    words = ["--patterns", 3, "--phases", 2000, "--records", 1, "--json", "--out", tmp_path / "r"]
    code, told, _ = command(capsys, "train", "hopfield", *words)
    assert code == 0 and told["metric"] == "stored" and told["final"]["mean"] == 1


def test_the_planner_looks_for_the_rate_that_stores_most(monkeypatch):
    """What it is given to lower is 0 for the projector, which stores all patterns, and 1 for a
    network without weights, which stores none.
    """
    asked = []
    monkeypatch.setattr("flexphase.theory.ahead.plan_run", lambda *given, **_: asked.append(given))
    words, options = (parser().parse_args([name, "hopfield"]) for name in ("train", "plan"))
    words.patterns = 5
    plan.for_task(task_of(words), words, options)
    ((run, metric, _),) = asked
    rows = run.source.data
    assert float(metric(projector(rows))) == 0
    assert float(metric(Weights(jnp.zeros((64, 64))))) == 1


def test_a_field_of_zero_stores_nothing():
    """A network without weights stays where it is, and remembers nothing."""
    x = patterns(3, 8)
    still = Weights(jnp.zeros((8, 8)))
    assert np.array_equal(sweep(still, jnp.asarray(x[0])), x[0]) and float(Stored(x)(still)) == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hopfield(1), "units must be a whole number, at least 2"),
        (lambda: Hopfield(4, dream=-1.0), "dream, the strength of unlearning, must be above 0"),
        (lambda: hebb(bars_and_stripes(2)), "2 . data - 1"),
        (lambda: Recall(patterns(2, 4), flipped=2.0), "share from 0 to 1"),
    ],
)
def test_bad_settings_get_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (patterns(3, 5), "units=5"),
        (bars_and_stripes(2), "-1 and .1"),
        ((patterns(3, 4), patterns(3, 4)), r"use Rows\(patterns\)"),
    ],
)
def test_stimuli_that_do_not_fit_get_a_sentence(data, words):
    with pytest.raises(ValueError, match=words):
        train(Run(Hopfield(4), *isd(0.5, 2), Rows(data), Optimiser(0.1)), ticks=2)
