"""Noise-contrastive estimation: terms against autodiff of the loss, and n Var of its estimates
against numerical integration, simulation and the closed form.

The example throughout: exp(-lambda x^2 / 2 + c), truth lambda = 1, noise N(0, s^2). Maximum
likelihood has n Var(lambda) = 2.
"""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import z_score
from on_jax import train
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from flexphase.cli import main
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Rows
from flexphase.methods.nce import NCE, CoinNoise, GaussianNoise, Precision, log_normal
from flexphase.record import Record
from flexphase.rules import isd
from flexphase.theory.moments import moments
from flexphase.theory.variance import best_b

TRUTH = Precision(jnp.float32(1), jnp.float32(-0.5 * np.log(2 * np.pi)))
#: n Var(lambda) in the limit, at nu = 1, 10, 100.
LIMIT = {1.0: (4.0, 2.2, 2.02), 1.5: (2.978, 2.112, 2.011), 2.0: (2.995, 2.122, 2.013)}


def normal(start=TRUTH, s=1.5, nu=1.0):
    return NCE(log_normal, start, GaussianNoise(s), nu)


def density(x, s=1.0):
    return np.exp(-x * x / (2 * s * s)) / (s * np.sqrt(2 * np.pi))


def integrals(s, nu):
    """By quadrature: the Hessian of the loss at the truth, and mean and second moment of each term,
    from d log f / d(lambda, c) = (-x^2/2, 1).
    """

    def h(x):
        return density(x) / (density(x) + nu * density(x, s))

    def moment(weight, power, scale):
        """E[weight (-x^2/2)^power]: an entry of what follows."""
        return quad(
            lambda x: 2 * weight(x) * (-x * x / 2) ** power * density(x, scale),
            0,
            24,
            limit=400,
            epsabs=1e-12,
        )[0]

    def vector(weight, scale):
        return np.array([moment(weight, k, scale) for k in (1, 0)])

    def matrix(weight, scale):
        return np.array([[moment(weight, j + k, scale) for j in (1, 0)] for k in (1, 0)])

    def missed(x):
        return 1 - h(x)

    return (
        matrix(missed, 1),
        (-vector(missed, 1), matrix(lambda x: missed(x) ** 2, 1)),
        (-nu * vector(h, s), nu**2 * matrix(lambda x: h(x) ** 2, s)),
    )


def limit(s, nu):
    """n Var(lambda) as n -> infinity: H^-1 (cov g+ + cov g- / nu) H^-1, where g- is estimated by a
    mean over nu n noise samples.
    """
    H, (mu, A), (mu_n, C) = integrals(s, nu)
    cov = A - np.outer(mu, mu) + (C - np.outer(mu_n, mu_n)) / nu
    return (np.linalg.inv(H) @ cov @ np.linalg.inv(H))[0, 0]


@pytest.mark.parametrize("s", LIMIT)
def test_the_limit_of_n_var_by_integration(s):
    """The published three decimals; for s = 1 the closed form 2 (1 + 1/nu)."""
    for nu, published in zip((1, 10, 100), LIMIT[s], strict=True):
        assert limit(s, nu) == pytest.approx(published, abs=5.01e-4)
        if s == 1:
            assert limit(s, nu) == pytest.approx(2 * (1 + 1 / nu), rel=1e-8)


@eqx.filter_jit
def solve(method, data, noise):
    """(lambda, c) where the method's own two terms, averaged over the data and the noise of a
    replica, cancel: Newton's iterations with autodiff of those terms. And the slope that is left.
    """

    def gradient(theta, x, y):
        def term(z, sign):
            g = jax.vmap(method.grad, (None, 0, None, None))(Precision(*theta), z, None, sign)
            return jnp.stack([leaf.mean() for leaf in g])

        return term(x[:, None], jnp.float32(1)) - term(y[:, None], jnp.float32(-1))

    def replica(xy):
        def newton(_, theta):
            return theta - jnp.linalg.solve(jax.jacfwd(gradient)(theta, *xy), gradient(theta, *xy))

        theta = jax.lax.fori_loop(0, 5, newton, jnp.stack(TRUTH))
        return theta, gradient(theta, *xy)

    return jax.lax.map(replica, (data, noise))


@pytest.mark.parametrize(
    ("s", "nu", "n", "replicas"),
    [
        (1.0, 1, 1000, 800),
        (1.5, 1, 1000, 800),
        (2.0, 10, 1000, 400),
        pytest.param(1.5, 10, 2000, 2000, marks=pytest.mark.slow),
        pytest.param(1.0, 100, 1000, 1000, marks=pytest.mark.slow),
        pytest.param(2.0, 100, 1000, 1000, marks=pytest.mark.slow),
    ],
)
def test_the_limit_of_n_var_by_simulation(s, nu, n, replicas):
    """n Var over replicas, with its standard error of sqrt(2 / replicas), against the integral."""
    rng = np.random.default_rng(round(1000 * s + nu))
    data = rng.standard_normal((replicas, n), dtype=np.float32)
    noise = np.float32(s) * rng.standard_normal((replicas, n * nu), dtype=np.float32)
    theta, slope = solve(normal(s=s, nu=nu), data, noise)
    assert np.abs(slope).max() < 1e-5
    lam = np.asarray(theta, float)[:, 0]
    var = n * lam.var(ddof=1)
    assert z_score(var, limit(s, nu), limit(s, nu) * (2 / (replicas - 1)) ** 0.5) < 4
    assert abs(lam.mean() - 1) < 4 * lam.std() / replicas**0.5 + 10 / n  # the bias is O(1/n)


def test_terms_are_autodiff_of_the_classification_loss():
    """The log loss of telling data from noise, written with the two densities."""
    method, nu = normal(s=2.0, nu=3.0), 3.0
    params = Precision(jnp.float32(0.7), jnp.float32(-0.4))

    def loss(p, z, sign):
        f = jnp.exp(p.c - p.lam * z[0] ** 2 / 2)
        noise = nu * jnp.exp(-(z[0] ** 2) / 8) / jnp.sqrt(8 * jnp.pi)
        return jnp.where(sign > 0, -jnp.log(f / (f + noise)), nu * jnp.log(noise / (f + noise)))

    for z in (0.3, 1.7, -2.5):
        for sign in (1.0, -1.0):
            at = jnp.array([z])
            ours = method.grad(params, at, at, jnp.float32(sign))
            np.testing.assert_allclose(
                ours, jax.grad(loss)(params, at, jnp.float32(sign)), rtol=2e-5
            )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_positive_phase_shows_the_datum_and_a_negative_one_noise(sign):
    """10,000 samples of the noise against its mean and standard deviation, by z-score."""
    method = NCE(log_normal, TRUTH, GaussianNoise([0.5, 2.0], [1.0, -3.0]))
    keys, x = jax.random.split(jax.random.key(0), 10_000), jnp.array([9.0, 8.0])
    z = jax.vmap(lambda k: method.step(k, TRUTH, x, x, jnp.float32(sign)))(keys)
    if sign > 0:
        assert (z == x[None]).all()
    else:
        for column, mean, sd in zip(np.asarray(z, float).T, (1, -3), (0.5, 2), strict=True):
            assert z_score(column.mean(), mean, sd / 100) < 4
            assert z_score(column.var(), sd**2, sd**2 * (2 / 10_000) ** 0.5) < 4


def test_densities_of_the_noise():
    """Normal densities of scipy; coins by enumeration, and by counting 20,000 throws."""
    noise = GaussianNoise([0.5, 2.0], [1.0, -3.0])
    ours = noise.log_density(jnp.array([0.2, 0.4]))
    assert float(ours) == pytest.approx(norm.logpdf([0.2, 0.4], [1, -3], [0.5, 2]).sum(), rel=1e-5)
    coins = CoinNoise([0.2, 0.7])
    states = jnp.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    p = np.exp(jax.vmap(coins.log_density)(states))
    np.testing.assert_allclose(p, [0.24, 0.56, 0.06, 0.14], rtol=1e-5)
    thrown = jax.vmap(coins.sample)(jax.random.split(jax.random.key(1), 20_000))
    counts = np.bincount(np.asarray(thrown @ jnp.array([2.0, 1.0]), int), minlength=4)
    assert (z_score(counts / 20_000, p, np.sqrt(p * (1 - p) / 20_000)) < 4).all()


def test_at_b_of_nu_every_sample_is_a_step_of_logistic_regression():
    """b = 1/(1 + nu): data and noise are weighted alike, 1 + nu times the gradient of their own log
    loss.
    """
    nu, eta = 4.0, 0.01
    run = Run(normal(s=2.0, nu=nu), *isd(1 / (1 + nu), 1), Rows([[0.4], [1.3]]), Optimiser(eta))
    s, seen = init(run, jax.random.key(3)), set()
    for _ in range(12):
        new = tick(run, s)
        positive = bool(new.phase.sign > 0)

        def log_loss(p, z=new.z, positive=positive):
            odds = log_normal(p, z) - GaussianNoise(2.0).log_density(z) - jnp.log(nu)
            return jax.nn.softplus(-odds if positive else odds)

        g = jax.grad(log_loss)(s.params)
        for after, before, slope in zip(new.params, s.params, g, strict=True):
            np.testing.assert_allclose(after, before - eta * (1 + nu) * slope, rtol=1e-5)
        s, seen = new, seen | {positive}
    assert seen == {True, False}


def polyak(count):
    """Learning rates whose average iterate has the least variance that any estimate can have."""
    return 0.2 * (1 + count / 100) ** -0.6


def decaying(eta):
    return optax.sgd(lambda count: eta * polyak(count))


@pytest.mark.parametrize(
    "s, nu", [(1.5, 3.0), *(pytest.param(s, 1.0, marks=pytest.mark.slow) for s in (1.0, 2.0))]
)
def test_single_random_phases_reach_the_limit_too(s, nu):
    """ISD at b = 1/(1 + nu), one datum or one noise sample at a time: the mean of the iterates over
    N phases has b N Var(lambda) -> the limit (Polyak and Juditsky 1992), here within 4 errors of
    400 lanes. The bias is proportional to the learning rate and another matter.
    """
    data = norm.ppf((np.arange(50_000) + 0.5) / 50_000)[:, None]  # its own lambda is 1
    b, phases, lanes = 1 / (1 + nu), 10_000, 400
    run = Run(normal(s=s, nu=nu), *isd(b, 1), Rows(data), Optimiser(b, decaying))

    @jax.jit
    @jax.vmap
    def mean_iterate(key):
        def body(_, carry):
            s, total = carry
            s = tick(run, s)
            return s, total + s.params.lam - 1

        start = init(run, key)
        return jax.lax.fori_loop(0, phases, body, (start, jnp.float32(0)))[1] / phases

    lam = np.asarray(mean_iterate(jax.random.split(jax.random.key(7), lanes)), float)
    var = b * phases * lam.var()
    assert z_score(var, limit(s, nu), limit(s, nu) * (2 / lanes) ** 0.5) < 4


def shares(s):
    """For N samples in all, by integration: the share of data that makes N Var(lambda) = (1 + nu)
    n Var(lambda) least, with its nu and the least value; b* of the plain trace at that nu; and N
    Var(lambda) at that b*.
    """

    def total(log_nu):
        return (1 + np.exp(log_nu)) * limit(s, np.exp(log_nu))

    best = minimize_scalar(total, bounds=(-2, 2), method="bounded", options={"xatol": 1e-7})
    nu = np.exp(best.x)
    H, (_, A), (_, C) = integrals(s, nu)
    plain = np.sqrt(np.trace(A)) / (np.sqrt(np.trace(A)) + np.sqrt(np.trace(C)))
    row = np.linalg.inv(H)[0]  # what an error of the gradient does to lambda
    a, c = row @ A @ row, row @ C @ row
    assert np.sqrt(a) / (np.sqrt(a) + np.sqrt(c)) == pytest.approx(1 / (1 + nu), abs=1e-5)
    return 1 / (1 + nu), nu, best.fun, plain, a / plain + c / (1 - plain)


@pytest.mark.parametrize(
    ("s", "exact", "planned", "loss"),
    [(1.0, 0.5, 0.5, 0), (1.5, 0.624, 0.574, 0.011), (2.0, 0.641, 0.592, 0.010)],
)
def test_the_planner_against_the_exact_best_share(s, exact, planned, loss):
    """The exact best share of data is a fixed point: at its own nu, the b* that counts errors of
    lambda is that share (asserted in `shares`). The planner counts errors of lambda and c alike, so
    its b is another; it costs about 1 % of the variance. Its measured b is within 4 standard errors
    of the integral.
    """
    share, nu, least, plain, at_plain = shares(s)
    assert share == pytest.approx(exact, abs=5e-4) and plain == pytest.approx(planned, abs=5e-4)
    assert at_plain / least - 1 == pytest.approx(loss, abs=1e-3)
    data = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
    run = Run(normal(s=s, nu=nu), *isd(0.5, 1), Rows(data), Optimiser(0.01))
    m = moments(run, TRUTH, phases=2000, lanes=64)
    assert z_score(float(best_b(m)), plain, float(m.error(best_b))) < 4
    assert float(m.error(best_b)) < 0.005


def test_it_learns_a_precision_and_its_own_normaliser():
    """Data of standard deviation 2: lambda = 1/4, c = -log Z = -log(2 sqrt(2 pi)) = -1.612."""
    data = 2 * norm.ppf((np.arange(10_000) + 0.5) / 10_000)[:, None]
    start = Precision(jnp.float32(1), jnp.float32(0))
    run = Run(normal(start, s=3.0, nu=3.0), *isd(0.25, 1), Rows(data), Optimiser(0.05, decaying))
    metrics = {"lam": lambda p: p.lam, "c": lambda p: p.c}
    record = train(run, phases=10_000, seeds=4, records=1, metrics=metrics)
    assert np.abs(record.final("lam") - 0.25).max() < 0.05
    assert np.abs(record.final("c") + 1.612).max() < 0.15


def command(capsys, *words):
    """Exit code, the object on standard output, what was said on standard error."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_command_line_trains_a_machine_with_its_normaliser(capsys, tmp_path):
    """nu = (1 - b)/b unless it is given; log Z begins as that of a machine without weights."""
    small = ["--data", "bas:2", "--hidden", 2, "--phases", 20, "--records", 1, "--json"]
    code, told, _ = command(capsys, "train", "nce", *small, "--b", 0.2, "--out", tmp_path / "r")
    record = Record.load(tmp_path / "r" / "record.nc")
    assert (
        code == 0
        and told["metric"] == "nll"
        and record.config["run"]["method"]["nu"] == {"float32": 4.0}
    )
    assert float(record["log_z_error"][0, 0]) == pytest.approx(0, abs=0.02)
    code, _, err = command(capsys, "train", "nce", "--data", "digits", "--hidden", 30)
    assert code == 2 and "--hidden 20 or fewer" in err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: normal(nu=0.0), "nu, noise samples for each datum, must be above 0"),
        (lambda: GaussianNoise(-1.0), "standard deviation, must be above 0"),
        (
            lambda: GaussianNoise([1.0, 2.0], [0.0, 1.0, 2.0]),
            r"one number for each feature.*\(3,\)",
        ),
        (lambda: CoinNoise([0.2, 1.0]), "strictly between 0 and 1"),
    ],
)
def test_bad_settings_get_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def vector(params, x):
    return params.lam * x


def undefined(params, x):
    return jnp.log(x[0]) * params.lam


@pytest.mark.parametrize(
    ("method", "data", "words"),
    [
        (normal(), np.zeros((3, 2)), "2 columns and the noise 1"),
        (normal(), (np.zeros((3, 1)), np.zeros((3, 1))), r"use Rows\(data\)"),
        (NCE(vector, TRUTH, GaussianNoise(1.0)), np.ones((3, 1)), r"one number.*shape \(1,\)"),
        (NCE(undefined, TRUTH, GaussianNoise(1.0)), -np.ones((3, 1)), "not finite on some rows"),
    ],
)
def test_stimuli_that_do_not_fit_get_a_sentence(method, data, words):
    with pytest.raises(ValueError, match=words):
        train(Run(method, *isd(0.5, 1), Rows(data), Optimiser(0.01)), ticks=2)


def test_a_seed_of_the_command_line_is_the_same_network_alone(tmp_path):
    """The start depends on the lane's own key: seeds begin with other weights."""
    words = ["train", "nce", "--data", "bas:2", "--hidden", "3", "--ticks", "6", "--records", "1"]
    assert main([*words, "--seeds", "3", "--out", str(tmp_path / "all")]) == 0
    assert main([*words, "--seeds", "1", "--seed", "2", "--out", str(tmp_path / "one")]) == 0
    three, one = (Record.load(tmp_path / name / "record.nc") for name in ("all", "one"))
    for name, value in one.params.items():
        np.testing.assert_array_equal(three.params[name][2], value[0])
    assert len({*three["nll"].values[:, 0].tolist()}) == 3  # untrained
