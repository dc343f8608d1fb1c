"""Wake-sleep: terms against autodiff, samples against enumerated probabilities, the likelihood
against a sum over all states, and what importance weights are where two terms share no parameter.
"""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_jax import train
from scipy.stats import chi2

from flexphase.cli import main
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Rows, bars_and_stripes
from flexphase.estimators import Weighted
from flexphase.methods.binary import Units
from flexphase.methods.helmholtz import (
    Generative,
    HelmholtzMachine,
    HelmholtzNLL,
    Params,
    Recognition,
    log_joint,
    log_recognised,
)
from flexphase.phases import Bernoulli, Fixed, Phases
from flexphase.rules import cd, isd

SMALL = HelmholtzMachine(3, 2)
STATES = np.array(list(itertools.product([0, 1], repeat=5)), np.float32)  # v, then h


@pytest.fixture(scope="module")
def params():
    like, _ = SMALL.init(jax.random.key(0))
    leaves, tree = jax.tree.flatten(like)
    rng = np.random.default_rng(1)
    return jax.tree.unflatten(tree, [jnp.float32(rng.normal(size=a.shape)) for a in leaves])


def probability(drive, x):
    """Of zeros and ones x, unit by unit: in NumPy, apart from the code under test."""
    p = 1 / (1 + np.exp(-np.asarray(drive, float)))
    return np.prod(np.where(x == 1, p, 1 - p), axis=-1)


def joint(params, v, h):
    p = params.p
    return probability(np.broadcast_to(p.c, h.shape), h) * probability(
        h @ np.asarray(p.W) + np.asarray(p.a), v
    )


def test_terms_are_autodiff_of_the_two_log_probabilities(params):
    """And each leaves the other model's parameters alone."""
    for state in STATES[[0, 7, 13, 31]]:
        z = Units(jnp.asarray(state[:3]), jnp.asarray(state[3:]))
        plus, minus = (SMALL.grad(params, z, z.v, jnp.float32(sign)) for sign in (1, -1))
        wake = jax.grad(lambda p, z=z: -log_joint(p, z.v, z.h))(params.p)
        sleep = jax.grad(lambda q, z=z: log_recognised(q, z.v, z.h))(params.q)
        for ours, autodiff in zip([*plus.p, *minus.q], [*wake, *sleep], strict=True):
            np.testing.assert_allclose(ours, autodiff, atol=1e-6)
        assert all((leaf == 0).all() for leaf in [*plus.q, *minus.p])


def test_the_likelihood_is_the_sum_over_hidden_states(params):
    v, h = STATES[:, :3], STATES[:, 3:]
    p = joint(params, v, h)
    assert p.sum() == pytest.approx(1)
    rows = STATES[::4, :3]
    exact = -np.log([p[(v == row).all(1)].sum() for row in rows])
    assert len({*map(tuple, rows)}) == 8
    for row, value in zip(rows, exact, strict=True):
        assert float(HelmholtzNLL(row[None])(params)) == pytest.approx(value, rel=1e-5)
    assert float(HelmholtzNLL(rows)(params)) == pytest.approx(exact.sum(), rel=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_samples_against_enumerated_probabilities(params, sign):
    """40,000 ticks, chi-square at 1e-4: asleep p(v, h), awake q(h | v) with v at the datum."""
    datum = jnp.array([1.0, 0.0, 1.0])
    keys = jax.random.split(jax.random.key(2), 40_000)
    z = Units(jnp.zeros(3), jnp.zeros(2))
    z = jax.vmap(lambda k: SMALL.step(k, params, z, datum, jnp.float32(sign)))(keys)
    number = np.concatenate([z.v, z.h], axis=1) @ 2 ** np.arange(4, -1, -1)
    counts = np.bincount(number.astype(int), minlength=32)
    v, h = STATES[:, :3], STATES[:, 3:]
    if sign > 0:
        drive = v @ np.asarray(params.q.R) + np.asarray(params.q.r)
        p = probability(drive, h) * (v == np.asarray(datum)).all(1)
    else:
        p = joint(params, v, h)
    possible = p > 0
    assert counts[~possible].sum() == 0
    expected = 40_000 * p[possible]
    assert expected.min() > 5
    distance = ((counts[possible] - expected) ** 2 / expected).sum()
    assert distance < chi2.ppf(1 - 1e-4, possible.sum() - 1)


def two_rates(generative, recognition):
    """SGD with a learning rate for each model."""

    def make(eta):
        rates = {"p": optax.sgd(generative * eta), "q": optax.sgd(recognition * eta)}
        return optax.multi_transform(
            rates,
            Params(Generative(*"ppp"), Recognition(*"qq")),  # type: ignore[arg-type]
        )

    return make


def test_importance_weights_are_only_learning_rates():
    """The same random phases at b = 0.25: weights 1/b and 1/(1 - b), or none and the rates eta/b
    and eta/(1 - b). Powers of two and thirds: equal to rounding after 200 phases.
    """
    b, eta, data = 0.25, 0.05, Rows(bars_and_stripes(2))
    unweighted = Weighted(lambda phase: (phase.sign, phase.last))
    method, phases = HelmholtzMachine(4, 3), Phases(Bernoulli(b), Fixed(1))
    weighted = Run(method, *isd(b, 1), data, Optimiser(eta))
    rated = Run(method, phases, unweighted, data, Optimiser(eta, two_rates(1 / b, 1 / (1 - b))))

    def after(run):
        return jax.lax.fori_loop(0, 200, lambda _, s: tick(run, s), init(run, jax.random.key(4)))

    one, other = after(weighted), after(rated)
    assert 30 < 200 * b < 70 and int(one.updates) == int(other.updates) == 200
    for a, c in zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True):
        assert np.abs(np.asarray(a)).max() > 0.05
        np.testing.assert_allclose(a, c, atol=1e-6)


@pytest.mark.parametrize(("rule", "eta"), [(cd(1), 0.2), (isd(0.5, 1), 0.1)])
def test_it_learns_bars_and_stripes(rule, eta):
    """8 hidden units, 12,000 phases: the summed NLL of 4x4 Bars and Stripes falls from 356 to about
    155 (uniform 354.9, best possible 108.1). A single random phase at eta is a wake-sleep pair at 2
    eta, and learns as much.
    """
    data = bars_and_stripes(4)
    run = Run(HelmholtzMachine(16, 8), *rule, Rows(data), Optimiser(eta))
    record = train(run, phases=12_000, seeds=4, records=1, metrics={"nll": HelmholtzNLL(data)})
    assert np.abs(record["nll"].isel(record=0) - 356).max() < 4
    assert 108.131 < record.final().mean() < 165


def command(capsys, *words):
    """Exit code, the object on standard output, what was said on standard error."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_command_line_trains_and_dreams(capsys, tmp_path):
    folder = tmp_path / "r"
    small = ["--data", "bas:2", "--hidden", 2, "--phases", 20, "--records", 1, "--json"]
    code, told, _ = command(capsys, "train", "helmholtz", *small, "--out", folder)
    assert code == 0 and told["metric"] == "nll" and 0 < told["final"]["mean"] < 40
    assert command(capsys, "sample", folder, "--rows", 9)[0] == 0
    dreams = np.load(folder / "samples.npy")
    assert dreams.reshape(9, -1).shape == (9, 4) and set(np.unique(dreams)) <= {0, 1}
    assert "no pixel can be held" in command(capsys, "sample", folder, "--clamp", "top")[2]
    code, _, err = command(capsys, "train", "helmholtz", "--hidden", 30)
    assert code == 2 and "take 16 or fewer" in err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HelmholtzMachine(0, 3), "visible must be a whole number, at least 1"),
        (lambda: HelmholtzMachine(4, 2.5), "hidden must be a whole number"),
        (
            lambda: HelmholtzNLL(np.zeros((2, 4)))(
                HelmholtzMachine(4, 21).init(jax.random.key(0))[0]
            ),
            "21 hidden units have 2.21 states",
        ),
    ],
)
def test_bad_settings_get_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("data", "words"),
    [(bars_and_stripes(2), "visible=4"), (np.full((3, 16), 0.5), "zeros and ones")],
)
def test_stimuli_that_do_not_fit_get_a_sentence(data, words):
    run = Run(HelmholtzMachine(16, 8), *isd(0.5, 1), Rows(data), Optimiser(0.1))
    with pytest.raises(ValueError, match=words):
        train(run, ticks=2)
