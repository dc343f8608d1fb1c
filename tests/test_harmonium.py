"""RBMs with Gaussian and softmax units, parallel tempering and centred gradients, against
enumeration, closed forms, a grid, autodiff and the ordinary RBM.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from flexphase import (
    NLL,
    RBM,
    BinaryUnits,
    Centred,
    GaussianUnits,
    Harmonium,
    MixedUnits,
    Optimiser,
    Rows,
    Run,
    SoftmaxUnits,
    Tempered,
    UnitNLL,
    bars_and_stripes,
    cd,
    isd,
    log_z,
    train,
)
from flexphase.cli import main
from flexphase.engines import choose
from flexphase.methods import centring, harmonium, rbm
from flexphase.methods.binary import Units, sample
from flexphase.methods.rbm import Params
from flexphase.metrics import check_values
from flexphase.replicas import Replicas
from flexphase.unit_likelihood import log_z as unit_log_z
from flexphase.unit_likelihood import unit_ais

HIDDEN = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
LABELS = np.eye(3)
MIXED = MixedUnits((GaussianUnits(2, sigma=0.7), SoftmaxUnits(3)))


def params_of(visible, hidden=3, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (visible, hidden), (visible,), (hidden,)
    return Params(*(jnp.float32(size * rng.normal(size=shape)) for shape in shapes))


def by_hand(params, v, h, sigma):
    """E(v, h) in NumPy and double precision, for Gaussian units of this sigma."""
    W, a, c = (np.asarray(p, float) for p in params)
    return v @ v / (2 * sigma**2) - a @ v - c @ h - v @ W @ h


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_gaussian_log_z_is_the_integral_by_quadrature(sigma):
    """One Gaussian unit: scipy's adaptive quadrature over v of the sum over h of exp(-E)."""
    params = params_of(1)

    def density(v):
        return sum(np.exp(-by_hand(params, np.array([v]), h, sigma)) for h in HIDDEN)

    exact, error = integrate.quad(density, -np.inf, np.inf, epsabs=0, epsrel=1e-10)
    assert error < 1e-8 * exact
    got = float(unit_log_z(GaussianUnits(1, sigma), params))
    assert got == pytest.approx(np.log(exact), abs=2e-5)


def test_the_nll_of_two_gaussian_units_by_a_grid():
    """p(v) on a grid of 400 x 400 squares, whose sum is an integral to many digits for a smooth
    density that vanishes at the edges.
    """
    params, sigma = params_of(2), 0.8
    data = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)

    def log_p(rows):
        rest = rows @ np.asarray(params.W, float) + np.asarray(params.c, float)
        quadratic = (rows**2).sum(1) / (2 * sigma**2)
        return rows @ np.asarray(params.a, float) - quadratic + np.logaddexp(0, rest).sum(1)

    axis = np.linspace(-12, 12, 401)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    log_total = np.log(np.exp(log_p(grid)).sum() * (axis[1] - axis[0]) ** 2)
    want = -(log_p(data.astype(float)) - log_total).sum()
    assert float(UnitNLL(GaussianUnits(2, sigma), data)(params)) == pytest.approx(want, abs=1e-3)


def test_softmax_log_z_is_the_sum_over_labels_and_hidden_states():
    params = params_of(3)
    W, a, c = (np.asarray(p, float) for p in params)
    energies = [-(a @ v) - c @ h - v @ W @ h for v in LABELS for h in HIDDEN]
    want = np.log(np.exp(-np.array(energies)).sum())
    assert float(unit_log_z(SoftmaxUnits(3), params)) == pytest.approx(want, abs=1e-5)


def test_binary_units_are_the_rbm():
    """Energy, free energy, log Z and NLL of the Bernoulli RBM, which has its own code."""
    params, data = params_of(9, 3), bars_and_stripes(3)
    units = BinaryUnits(9)
    v, h = jnp.asarray(data[3]), jnp.asarray(HIDDEN[5], jnp.float32)
    np.testing.assert_allclose(
        harmonium.energy(units, params, v, h), rbm.energy(params, v, h), rtol=1e-5
    )
    np.testing.assert_allclose(
        harmonium.free_energy(units, params, data), rbm.free_energy(params, data), rtol=1e-5
    )
    assert float(unit_log_z(units, params)) == pytest.approx(float(log_z(params)), rel=1e-5)
    assert float(UnitNLL(units, data)(params)) == pytest.approx(float(NLL(data)(params)), rel=1e-5)


def test_the_nll_of_softmax_units_may_be_mapped_over_rows():
    params, rows = params_of(5, size=0.7), jnp.asarray([[0.4, -0.2, 0, 0, 1], [1, 0.5, 0, 1, 0]])
    each = jax.vmap(lambda row: UnitNLL(MIXED, row[None])(params))(rows)
    assert float(each.sum()) == pytest.approx(float(UnitNLL(MIXED, rows)(params)), rel=1e-5)


def test_terms_are_autodiff_of_the_energy():
    params, machine = params_of(5), Harmonium(MIXED, 3)
    v, h = jnp.asarray([0.3, -1.2, 0, 1, 0]), jnp.asarray([1.0, 0, 1])
    want = jax.grad(harmonium.energy, 1)(MIXED, params, v, h)
    got = machine.grad(params, Units(v, h), v, jnp.float32(1))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, want)


def test_the_gradient_of_the_nll_is_what_both_terms_say_on_average():
    """Autodiff of the exact NLL of mixed units, against -<v h> clamped + <v h> free, where the free
    average is over exact samples: a hidden state by its enumerated probability, then v given it.
    4,000 lanes, |z| below 5 for each of the 23 numbers.
    """
    params, n = params_of(5, size=0.7), 4000
    datum = jnp.asarray([0.4, -0.2, 0, 0, 1])
    want = jax.grad(lambda p: UnitNLL(MIXED, datum[None])(p))(params)
    machine = Harmonium(MIXED, 3)
    h = jnp.asarray(HIDDEN, jnp.float32)
    logits = h @ params.c + MIXED.log_sum(h @ params.W.T + params.a[None])

    def difference(key):
        k_h, k_v, k_plus, k_minus = jax.random.split(key, 4)
        free = h[jax.random.categorical(k_h, logits)]
        v = MIXED.draw(k_v, params.a + params.W @ free)
        z = Units(v, free)
        plus = machine.step(k_plus, params, z, datum, jnp.float32(1))
        minus = machine.step(k_minus, params, z, datum, jnp.float32(-1))
        terms = [machine.grad(params, s, datum, jnp.float32(0)) for s in (plus, minus)]
        return jax.tree.map(jnp.subtract, *terms)

    drawn = jax.vmap(difference)(jax.random.split(jax.random.key(0), n))
    for got, exact in zip(drawn, want, strict=True):
        z = (got.mean(0) - exact) / (got.std(0, ddof=1) / n**0.5)
        assert jnp.abs(z).max() < 5


def test_long_gibbs_chains_have_the_exact_moments_of_gaussian_units():
    """p(h) is enumerated; then E[v] = sigma^2 E[a + W h]. 20,000 chains, z below 4.5."""
    params, sigma = params_of(2, size=0.7, seed=3), 0.8
    machine = Harmonium(GaussianUnits(2, sigma), 3)
    rows = np.asarray(sample(machine, jax.random.key(1), params, 20_000, 30))
    W, a, c = (np.asarray(p, float) for p in params)
    field = a + HIDDEN @ W.T
    p = np.exp(HIDDEN @ c + 0.5 * sigma**2 * (field**2).sum(1))
    p /= p.sum()
    mean = sigma**2 * p @ field
    var = sigma**2 + p @ (sigma**2 * field - mean) ** 2
    z = (rows.mean(0) - mean) / np.sqrt(var / len(rows))
    assert np.abs(z).max() < 4.5
    assert np.abs(rows.var(0) / var - 1).max() < 0.05


def test_clamped_pixels_leave_the_label_its_conditional_law():
    """p(label | pixels) is proportional to exp(-F(pixels, label)): chi-square over 3 labels."""
    params = params_of(5, seed=4)
    machine, pixels = Harmonium(MIXED, 3), np.array([0.5, -0.5, 0, 0, 0], np.float32)
    mask = np.arange(5) < 2
    rows = sample(machine, jax.random.key(2), params, 8000, 30, pixels, mask)
    all_labels = np.hstack([np.tile(pixels[:2], (3, 1)), LABELS]).astype(np.float32)
    p = np.asarray(jax.nn.softmax(-harmonium.free_energy(MIXED, params, all_labels)))
    seen = np.asarray(rows)[:, 2:].sum(0)
    assert (np.asarray(rows)[:, :2] == pixels[:2]).all() and seen.sum() == 8000
    assert stats.chisquare(seen, 8000 * p).pvalue > 1e-4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"clamped": [True] * 5}, "together, or neither"),
        ({"x": np.zeros(5)}, "together, or neither"),
        ({"x": np.zeros(4), "clamped": [True] * 5}, r"x must have shape \(5,\) or \(3, 5\)"),
        ({"x": np.zeros(5), "clamped": [True]}, r"clamped \(5,\)"),
        ({"x": [np.nan, 0, 1, 0, 0], "clamped": [True] * 5}, "NaN"),
        ({"x": [0, 0, 1, 1, 0], "clamped": [False, False, True, True, True]}, "exactly one"),
        ({"rows": 0}, "rows must be"),
    ],
)
def test_samples_that_cannot_be_held_get_a_sentence(given, words):
    """The same checks as those of an RBM; what is not held may be anything."""
    machine, params = Harmonium(MIXED, 3), params_of(5)
    with pytest.raises(ValueError, match=words):
        sample(machine, jax.random.key(0), params, **({"rows": 3, "steps": 1} | given))
    pixels = {"x": [0.5, -0.5, np.nan, 7, 7], "clamped": [True, True, False, False, False]}
    rows = sample(machine, jax.random.key(0), params, 3, 1, **pixels)
    assert (np.asarray(rows)[:, 2:].sum(1) == 1).all()


@pytest.mark.parametrize("units", [GaussianUnits(4, 0.7), MIXED, SoftmaxUnits(4)])
def test_annealing_finds_the_enumerated_log_z(units):
    params = params_of(units.n, size=0.5, seed=5)
    found = unit_ais(jax.random.key(0), units, params, 400, 200)
    assert float(found.error) < 0.1
    assert abs(found.log_z - unit_log_z(units, params)) < 4 * found.error + 1e-4


def test_the_annealed_nll_is_the_exact_one():
    params = params_of(2, size=0.3, seed=5)
    data, units = np.random.default_rng(0).normal(size=(20, 2)), GaussianUnits(2)
    exact = float(UnitNLL(units, data)(params))
    assert float(UnitNLL(units, data, annealed=True)(params)) == pytest.approx(exact, abs=0.5)


# Parallel tempering

DEEP = Params(8 * jnp.ones((2, 2)), -8 * jnp.ones(2), -8 * jnp.ones(2))  # minima: all off, all on


def joint(params):
    """Exact probabilities of all states (v, h) of a machine with 2 + 2 binary units."""
    W, a, c = (np.asarray(p, float) for p in params)
    states = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    energies = [-(a @ s[:2]) - c @ s[2:] - s[:2] @ W @ s[2:] for s in states]
    p = np.exp(-np.array(energies))
    return states, p / p.sum()


def test_tempered_chains_sample_the_enumerated_distribution():
    """The coldest of 5 temperatures after 40 ticks, in 4,000 lanes: chi-square over 16 states."""
    params = params_of(2, 2, seed=6)
    machine = Tempered(RBM(2, 2), 5)

    def lane(key):
        _, z = machine.init(key)

        def tick(t, z):
            return machine.step(jax.random.fold_in(key, t), params, z, z.v, jnp.float32(-1))

        return jax.lax.fori_loop(0, 40, tick, z)

    z = jax.vmap(lane)(jax.random.split(jax.random.key(0), 4000))
    states, p = joint(params)
    drawn = np.concatenate([z.v, z.h], 1)
    seen = np.array([(drawn == s).all(1).sum() for s in states])
    assert stats.chisquare(seen, 4000 * p).pvalue > 1e-4


def test_every_temperature_keeps_its_own_distribution():
    """One sweep with exchanges from exact samples of each E_beta leaves each law as it is: z-scores
    of the mean of J = a v + c h + v W h at every temperature, 8,000 lanes, |z| below 4.5. An
    exchange that was accepted in the wrong direction would shift them.
    """
    params, machine, n = params_of(2, 2, seed=7), Tempered(RBM(2, 2), 4), 8000
    start, mean, var = [], [], []
    for i, beta in enumerate(np.linspace(0, 1, 4)):
        states, p = joint(Params(*(beta * part for part in params)))
        J = np.array([harmonium.interaction(params, s[:2], s[2:]) for s in states])
        start.append(states[np.random.default_rng(i).choice(16, n, p=p)])
        mean.append(p @ J)
        var.append(p @ (J - p @ J) ** 2)
    replicas = jnp.asarray(np.stack(start, 1), jnp.float32)  # lanes, temperatures, units
    keys = jax.random.split(jax.random.key(3), n)
    v, h = jax.vmap(machine.sweep, (0, None, 0))(
        keys, params, (replicas[..., :2], replicas[..., 2:])
    )
    J = jax.vmap(jax.vmap(harmonium.interaction, (None, 0, 0)), (None, 0, 0))(params, v, h)
    z = (np.asarray(J).mean(0) - np.array(mean)) / np.sqrt(np.array(var) / n)
    assert np.abs(z).max() < 4.5


def test_tempering_leaves_a_minimum_that_gibbs_sampling_does_not():
    """Two deep minima of equal weight, all off and all on (by symmetry). From all on, after 100
    ticks: a persistent Gibbs chain has hardly left, a tempered one is there in half of the lanes.
    """
    _, p = joint(DEEP)
    assert p[0] == pytest.approx(0.5, abs=0.01) and p[-1] == pytest.approx(0.5, abs=0.01)
    on = jnp.ones(2)

    def end(machine, z, key):
        def tick(t, z):
            return machine.step(jax.random.fold_in(key, t), DEEP, z, on, jnp.float32(-1))

        return jax.lax.fori_loop(0, 100, tick, z).v.mean()

    keys = jax.random.split(jax.random.key(0), 400)
    plain = RBM(2, 2, negative_start="persistent")
    still = jax.vmap(lambda k: end(plain, Units(on, on, (on, on)), k))(keys).mean()
    tempered = Tempered(RBM(2, 2), 8)
    z = tempered.init(keys[0])[1]._replace(replicas=(jnp.ones((8, 2)), jnp.ones((8, 2))))
    half = jax.vmap(lambda k: end(tempered, z, k))(keys).mean()
    assert still > 0.9
    assert abs(half - 0.5) < 4 * 0.5 / 400**0.5


def test_chains_rest_in_positive_phases_and_go_on_in_negative_ones():
    params, machine = params_of(2, 2), Tempered(RBM(2, 2), 3)
    _, z = machine.init(jax.random.key(0))
    x = jnp.asarray([1.0, 0.0])
    plus = machine.step(jax.random.key(1), params, z, x, jnp.float32(1))
    assert (plus.v == x).all()
    jax.tree.map(np.testing.assert_array_equal, plus.replicas, z.replicas)
    begun = machine.enter(jax.random.key(2), params, plus, x, jnp.float32(-1))
    np.testing.assert_array_equal(begun.v, z.replicas[0][-1])


# Centred gradients


def test_the_centred_gradient_is_the_gradient_of_the_centred_machine():
    """E = -(v - mu) W (h - lam) - a' (v - mu) - c' (h - lam) is the same machine with a = a' - W
    lam and c = c' - mu W. Steepest descent in (W, a', c'), by autodiff, moves (W, a, c) by what
    `centred` says, to first order; the mean over exact probabilities of both phases.
    """
    params = params_of(2, 2, seed=8)
    mu, lam = jnp.asarray([0.3, 0.6]), jnp.asarray([0.2, 0.7])
    v = jnp.asarray([1.0, 0.0])

    def ordinary(W, a, c):
        return Params(W, a - W @ lam, c - mu @ W)

    def loss(W, a, c):
        p = ordinary(W, a, c)
        return rbm.free_energy(p, v) + log_z(p)

    there = (params.W, params.a + params.W @ lam, params.c + mu @ params.W)
    g = jax.grad(loss, (0, 1, 2))(*there)
    want = jax.jvp(ordinary, there, g)[1]

    def mean_term(machine, clamped):
        states, p = joint(machine)
        p = p * ((states[:, :2] == np.asarray(v)).all(1) if clamped else 1)
        p = jnp.asarray(p / p.sum(), jnp.float32)
        term = jax.vmap(lambda s: centring.centred(s[:2], s[2:], mu, lam))
        terms = term(jnp.asarray(states, jnp.float32))
        return jax.tree.map(lambda t: jnp.tensordot(p, t, 1), terms)

    got = jax.tree.map(jnp.subtract, mean_term(params, True), mean_term(params, False))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), got, want)


def test_offsets_are_the_means_of_data_and_hidden_units():
    """mu from NumPy; lam after many positive ticks with frozen parameters is the mean of P(h | v)
    over the data, up to its own noise of about sqrt(rate / 2).
    """
    data = bars_and_stripes(2)
    machine = Centred(RBM(4, 3), data, rate=0.002)
    np.testing.assert_allclose(machine.mu, data.mean(0))
    params = params_of(4, 3)
    _, z = machine.init(jax.random.key(0))

    def tick(t, z):
        key = jax.random.fold_in(jax.random.key(1), t)
        x = jnp.asarray(data)[t % len(data)]
        return machine.step(key, params, z, x, jnp.float32(1))

    z = jax.lax.fori_loop(0, 6000, tick, z)
    want = rbm.p_hidden(params, jnp.asarray(data)).mean(0)
    np.testing.assert_allclose(z.lam, want, atol=0.02)
    free = machine.step(jax.random.key(2), params, z, z.z.v, jnp.float32(-1))
    np.testing.assert_array_equal(free.lam, z.lam)


# Learning, and the command line


def learned(method, rule, eta, data, metric, phases):
    run = Run(method, *rule, Rows(data), Optimiser(eta))
    record = train(run, phases=phases, seeds=2, metrics={"nll": metric}, records=1, average=0.5)
    return record.final(averaged=True).mean().item()


@pytest.mark.slow
def test_centred_and_tempered_machines_learn_bars_and_stripes():
    """From the NLL of a uniform model, 16 * 9 log 2 = 99.8, towards the optimum of 41.6."""
    data = bars_and_stripes(3)
    both = Centred(Tempered(RBM(9, 6), 5), data)
    assert learned(both, cd(1), 0.1, data, NLL(data), 6000) < 60
    assert learned(Centred(RBM(9, 6), data), isd(0.5, 5), 0.05, data, NLL(data), 6000) < 60


def test_a_gaussian_machine_learns_two_clusters():
    """Clusters at +-(3, 3) with sd 1: the entropy is log 2 + log(2 pi e) = 3.53 nats a row, where
    they do not overlap; a single Gaussian of the same covariance has 4.31.
    """
    rng = np.random.default_rng(0)
    data = 3 * rng.choice([-1.0, 1.0], (500, 1)) + rng.normal(size=(500, 2))
    machine = Harmonium(GaussianUnits(2), 3, "data")
    nll = learned(machine, cd(5), 0.02, data, UnitNLL(machine.units, data), 4000) / 500
    assert 3.4 < nll < 3.75


@pytest.mark.parametrize(
    "method", [Harmonium(BinaryUnits(4), 3), Tempered(RBM(4, 3)), Centred(RBM(4, 3), np.eye(4))]
)
def test_what_the_compiled_engine_cannot_do_goes_to_jax(method):
    run = Run(method, *cd(1), Rows(np.eye(4, dtype=np.float32)), Optimiser(0.1))
    assert choose("auto", run).name == "jax"
    with pytest.raises(ValueError, match="knows RBM and BoltzmannMachine"):
        choose("native", run)


def test_the_command_line_trains_and_samples_a_labelled_machine(capsys, tmp_path):
    words = ["--tempering", "3", "--centred", "--hidden", "12", "--phases", "40", "--batch", "2"]
    out = str(tmp_path / "run")
    assert main(["train", "harmonium", *words, "--rule", "cd", "--out", out]) == 0
    assert "test_error" in capsys.readouterr().err
    assert main(["sample", out, "--label", "all", "--rows", "20", "--steps", "5"]) == 0
    rows = np.load(tmp_path / "run" / "samples.npy")
    assert rows.shape == (20, 74) and rows.dtype == np.float32
    np.testing.assert_array_equal(rows[:, 64:], np.repeat(np.eye(10), 2, 0))


def test_the_command_line_takes_the_nll_where_there_are_no_labels(capsys, tmp_path):
    words = [
        "--data",
        "mixture:200",
        "--sigma",
        "0.4",
        "--phases",
        "50",
        "--out",
        str(tmp_path / "a"),
    ]
    assert main(["train", "harmonium", *words, "--out", str(tmp_path / "a")]) == 0
    assert "nll_per_row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BinaryUnits(0), "number of binary units must be a whole number"),
        (lambda: SoftmaxUnits(1), "number of softmax units must be a whole number, at least 2"),
        (lambda: GaussianUnits(2, 0), "sigma, the standard deviation of Gaussian units, must be"),
        (lambda: MixedUnits(()), "at least one part"),
        (lambda: Harmonium(BinaryUnits(2), 0), "hidden must be a whole number"),
        (lambda: Harmonium(BinaryUnits(2), 2, "coldly"), "negative_start must be one of"),
        (lambda: Tempered(RBM(2, 2), 1), "number of temperatures must be a whole number, at least"),
        (lambda: Tempered(Tempered(RBM(2, 2))), "for an RBM or a Harmonium, not Tempered"),
        (lambda: Centred(RBM(2, 2, visible_bias=False), np.eye(2)), "make the machine with"),
        (lambda: Centred(RBM(2, 2), np.eye(3)), "have 3 columns and the machine 2"),
        (lambda: Centred(RBM(2, 2), np.eye(2), rate=2), "rate, of the running mean, must be"),
        (lambda: Centred(MIXED, np.eye(2)), "not MixedUnits"),
    ],
)
def test_bad_settings_get_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("units", "data", "words"),
    [
        (GaussianUnits(2), np.zeros((3, 4)), "4 columns for 2 Gaussian units"),
        (SoftmaxUnits(3), np.ones((2, 3)), "exactly one of them is 1"),
        (SoftmaxUnits(3), np.eye(2), "2 columns"),
        (BinaryUnits(2), np.full((2, 2), 0.5), "zeros and ones"),
        (MIXED, np.zeros((2, 4)), "4 columns and the machine 5 visible units, 2 and 3"),
    ],
)
def test_stimuli_that_do_not_fit_get_a_sentence(units, data, words):
    run = Run(Harmonium(units, 2), *cd(1), Rows(data), Optimiser(1))
    with pytest.raises(ValueError, match=words):
        train(run, ticks=2)


BITS = bars_and_stripes(2)
GAUSSIAN = Harmonium(GaussianUnits(4), 3)
TWO_AND_TWO = MixedUnits((BinaryUnits(2), BinaryUnits(2)))


def checked(method, metric):
    """What `train` asks before the first tick."""
    params = jax.vmap(lambda key: method.init(key)[0])(jax.random.split(jax.random.key(0), 2))
    check_values({"nll": metric}, params, method)


@pytest.mark.parametrize(
    ("method", "metric", "words"),
    [
        (GAUSSIAN, NLL(BITS), r"binary visible units.*UnitNLL\("),
        (Tempered(GAUSSIAN, 3), NLL(BITS), r"UnitNLL\("),
        (Replicas(GAUSSIAN, 2), NLL(BITS), r"UnitNLL\("),
        (Harmonium(SoftmaxUnits(4), 3), NLL(BITS), r"UnitNLL\("),
        (GAUSSIAN, UnitNLL(BinaryUnits(4), BITS), "other visible units"),
        (RBM(4, 3), UnitNLL(GaussianUnits(4), BITS), "other visible units"),
        (RBM(4, 3), NLL(bars_and_stripes(3)), "9 columns.*4 visible units"),
    ],
)
def test_the_nll_of_other_units_is_refused(method, metric, words):
    """It would be a number, and a wrong one: 22.4 in the place of 36.0 nats."""
    with pytest.raises(ValueError, match=words):
        checked(method, metric)


@pytest.mark.parametrize(
    ("method", "metric"),
    [
        (GAUSSIAN, UnitNLL(GaussianUnits(4, sigma=1.0), BITS)),
        (Harmonium(BinaryUnits(4), 3), NLL(BITS)),
        (Harmonium(TWO_AND_TWO, 3), NLL(BITS)),
        (Harmonium(TWO_AND_TWO, 3), UnitNLL(BinaryUnits(4), BITS)),
        (RBM(4, 3), UnitNLL(BinaryUnits(4), BITS)),
        (Centred(RBM(4, 3), BITS), NLL(BITS)),
    ],
)
def test_the_nll_of_a_machines_own_units_is_taken(method, metric):
    checked(method, metric)
