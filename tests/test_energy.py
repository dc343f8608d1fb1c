"""Energies of one's own: samplers against enumeration, closed forms and grids; both terms against
the exact gradient; the deep model's NLL against quadrature.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import z_score
from on_jax import train
from scipy import integrate, optimize

from flexphase.core import Optimiser, Run
from flexphase.data import Rows
from flexphase.data.planar import mixture, two_moons
from flexphase.likelihood import states
from flexphase.methods import BoltzmannMachine
from flexphase.methods.boltzmann import energy as boltzmann_energy
from flexphase.methods.deep_energy import GridNLL, deep_energy, deep_energy_model
from flexphase.methods.energy import EnergyModel
from flexphase.methods.samplers import Descent, Gibbs, Langevin
from flexphase.rules import cd

PLUS, MINUS = jnp.float32(1), jnp.float32(-1)
NOTHING = jnp.zeros(1)  # a stimulus that a free network does not see


def chains(model, params, n, steps, x=NOTHING, sign=MINUS, seed=0):
    """The states of n independent chains after `steps` ticks of one phase."""

    def chain(key):
        k_start, key = jax.random.split(key)
        z = model.init(k_start)[1]

        def body(t, z):
            return model.step(jax.random.fold_in(key, t), params, z, x, sign)

        return jax.lax.fori_loop(0, steps, body, z).z

    return jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(seed), n))


# Binary units: a cubic energy of 5 units, so that no pairwise formula can help.
CUBIC = jnp.asarray(np.random.default_rng(1).normal(size=(5, 5, 5)) / 2, jnp.float32)


def cubic(params, z, x):
    return jnp.einsum("ijk,i,j,k->", params, z, z, z)


def five(key):
    return CUBIC, jax.random.bernoulli(key, 0.5, (5,)).astype(jnp.float32)


MASK = np.array([False, True, False, False, True])


def clamp_by_function(z, x):
    return z.at[jnp.array([1, 4])].set(x)


@pytest.mark.parametrize("clamped", [MASK, clamp_by_function])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gibbs_samples_the_enumerated_distribution(clamped, sign):
    """10,000 independent chains, 25 sweeps each. Chi-square over the possible states: |z| < 4."""
    model = EnergyModel(cubic, five, Gibbs(), clamped)
    x = jnp.array([1.0, 0.0])
    every = np.asarray(states(5))
    p = np.exp(-np.asarray(jax.vmap(lambda z: cubic(CUBIC, z, x))(jnp.asarray(every))))
    if sign > 0:
        p *= (every[:, [1, 4]] == np.asarray(x)).all(1)
    p /= p.sum()
    drawn = np.asarray(chains(model, CUBIC, 10_000, 25, x, jnp.float32(sign)))
    counts = np.bincount((drawn @ 2 ** np.arange(5)).astype(int), minlength=32)
    assert (counts[p == 0] == 0).all()
    expected = p[p > 0] * len(drawn)
    chi2, free = ((counts[p > 0] - expected) ** 2 / expected).sum(), (p > 0).sum() - 1
    assert abs(chi2 - free) / np.sqrt(2 * free) < 4


def test_a_boltzmann_machine_as_an_energy_goes_through_the_same_states():
    """Same keys, same energy: `BoltzmannMachine` with its sequential sweep, 60 ticks a sign."""
    machine = BoltzmannMachine(4, 2, scale=1.0)
    params, units = machine.init(jax.random.key(3))
    start = jnp.concatenate([units.v, units.h])
    model = EnergyModel(
        lambda params, z, x: boltzmann_energy(params, z),
        lambda key: (params, start),
        Gibbs(),
        np.arange(6) < 4,
    )
    x = jnp.array([1.0, 0.0, 0.0, 1.0])

    def both(carry, t):
        units, z = carry
        key, sign = jax.random.fold_in(jax.random.key(5), t), jnp.where(t % 20 < 10, 1.0, -1.0)
        units = machine.step(key, params, units, x, sign)
        z = model.step(key, params, z, x, sign)
        gs = machine.grad(params, units, x, sign).W, model.grad(params, z, x, sign).W
        return (units, z), (jnp.concatenate([units.v, units.h]), z.z, *gs)

    begin = units, model.init(jax.random.key(0))[1]
    theirs, ours, pairs, places = jax.lax.scan(both, begin, jnp.arange(120))[1]
    assert np.array_equal(ours, theirs) and ours.any(1).mean() > 0.5
    # Autodiff sees both places of a weight, the machine one weight for each pair.
    assert np.allclose(2 * places * machine.mask[None], pairs)


def test_the_mean_of_both_terms_is_the_gradient_of_the_likelihood():
    """Autodiff of the enumerated -log p(x), x on units 1 and 4; 10,000 chains for each term. Every
    component within 5 standard errors, and at least 90 % within 2.
    """
    model, x = EnergyModel(cubic, five, Gibbs(), MASK), jnp.array([1.0, 0.0])
    every = states(5)

    def nll(params):
        minus = -jax.vmap(lambda z: cubic(params, z, x))(every)
        fits = (every[:, 1] == x[0]) & (every[:, 4] == x[1])
        return jax.nn.logsumexp(minus) - jax.nn.logsumexp(jnp.where(fits, minus, -jnp.inf))

    exact = np.asarray(jax.grad(nll)(CUBIC)).ravel()
    terms = []
    roaming = model.init(jax.random.key(0))[1]

    def grad(z, sign):
        return model.grad(CUBIC, roaming._replace(z=z), x, sign)

    for sign in (PLUS, MINUS):
        z = chains(model, CUBIC, 10_000, 25, x, sign, seed=5)
        g = jax.vmap(grad, in_axes=(0, None))(z, sign)
        terms.append(np.asarray(g).reshape(len(z), -1))
    mean = terms[0].mean(0) - terms[1].mean(0)
    error = np.sqrt((terms[0].var(0) + terms[1].var(0)) / len(terms[0])) + 1e-7
    z = np.abs(mean - exact) / error
    assert z.max() < 5 and (z < 2).mean() > 0.9


# Continuous units.
A = jnp.array([[2.0, 0.8, 0.0], [0.8, 1.5, -0.5], [0.0, -0.5, 1.0]])


def quadratic(params, z, x):
    return 0.5 * z @ params @ z


def gaussian(key):
    return A, jax.random.normal(key, (3,))


def test_langevin_without_correction_has_the_variance_of_its_closed_form():
    """z' = (1 - step A) z + sqrt(2 step) noise has the stationary covariance (A - step A^2 / 2)^-1:
    20,000 chains; each entry within 4 standard errors, and on the diagonal 8 away from A^-1.
    """
    step = 0.3
    model = EnergyModel(quadratic, gaussian, Langevin(step), np.array([True, False, False]))
    z = np.asarray(chains(model, A, 20_000, 200), np.float64)
    a = np.asarray(A, np.float64)
    exact = np.linalg.inv(a - step / 2 * a @ a)
    products = z[:, :, None] * z[:, None, :]
    error = products.std(0) / np.sqrt(len(z))
    assert z_score(products.mean(0), exact, error).max() < 4
    assert z_score(products.mean(0), np.linalg.inv(a), error).diagonal().min() > 8


@pytest.mark.parametrize("metropolis", [False, True])
def test_langevin_samples_the_conditional_law_where_units_are_clamped(metropolis):
    """Units 1, 2 given unit 0 = 1.5: mean -C^-1 a 1.5 and covariance C^-1, C = A[1:, 1:]; with the
    closed form (C - step C^2 / 2)^-1 where steps are not corrected. |z| < 4.
    """
    step = 0.4
    sampler = Langevin(step, metropolis=metropolis)
    model = EnergyModel(quadratic, gaussian, sampler, np.array([True, False, False]))
    z = np.asarray(chains(model, A, 20_000, 200, jnp.array([1.5]), PLUS), np.float64)
    assert (z[:, 0] == 1.5).all()
    c, a = np.asarray(A[1:, 1:], np.float64), np.asarray(A[1:, 0], np.float64)
    mean = -np.linalg.solve(c, 1.5 * a)
    cov = np.linalg.inv(c if metropolis else c - step / 2 * c @ c)
    y = z[:, 1:] - mean
    assert z_score(y.mean(0), 0, y.std(0) / np.sqrt(len(y))).max() < 4
    products = y[:, :, None] * y[:, None, :]
    assert z_score(products.mean(0), cov, products.std(0) / np.sqrt(len(y))).max() < 4


def double_well(params, z, x):
    return (params * (z**2 - 1) ** 2 + 0.5 * z).sum()


def one(key):
    return jnp.float32(2), jax.random.normal(key, (1,))


def test_corrected_langevin_samples_a_double_well_exactly():
    """At a step at which uncorrected Langevin is far off: 20,000 chains of 400 steps in 30 bins
    whose shares come from quadrature. Chi-square |z| < 4 with the correction, > 20 without.
    """
    edges = np.linspace(-2, 2, 31)

    def density(z):
        return np.exp(-(2 * (z**2 - 1) ** 2 + 0.5 * z))

    shares = np.array([integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges)])
    shares /= integrate.quad(density, -5, 5)[0]

    def score(metropolis):
        sampler = Langevin(0.08, metropolis=metropolis)
        model = EnergyModel(double_well, one, sampler, np.array([True]))
        z = np.asarray(chains(model, jnp.float32(2), 20_000, 400))[:, 0]
        counts = np.histogram(z, edges)[0]
        often = shares * len(z) >= 5
        expected = shares[often] * len(z)
        chi2, n = ((counts[often] - expected) ** 2 / expected).sum(), often.sum()
        return (chi2 - n) / np.sqrt(2 * n)

    assert abs(score(True)) < 4 and score(False) > 20


def hopfield(params, z, x):
    """A tree of two layers: outputs z["y"] are pulled towards hidden units z["h"]."""
    drive = jnp.tanh(z["h"]) @ params["W"] + x[0] @ params["V"]
    return (
        0.5 * (z["h"] ** 2).sum()
        + 0.5 * (z["y"] ** 2).sum()
        - drive @ z["y"]
        - x[0] @ params["U"] @ jnp.tanh(z["h"])
    )


def two_layers(key):
    k_u, k_v, k_w = jax.random.split(key, 3)
    normal = jax.random.normal
    params = {"U": normal(k_u, (3, 4)), "V": normal(k_v, (3, 2)), "W": normal(k_w, (4, 2)) / 2}
    return params, {"h": jnp.zeros(4), "y": jnp.zeros(2)}


def clamp_outputs(z, x):
    return z | {"y": x[1]}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_descent_rests_where_scipy_finds_the_minimum(sign):
    """States are a tree of arrays, stimuli a pair; outputs are clamped by a function."""
    model = EnergyModel(hopfield, two_layers, Descent(0.1), clamp_outputs)
    params, z = model.init(jax.random.key(2))
    x = (jnp.array([0.5, -1.0, 0.3]), jnp.array([0.7, -0.2]))
    model.check(jax.tree.map(lambda a: a[None], x))
    step = jax.jit(lambda z: model.step(jax.random.key(0), params, z, x, jnp.float32(sign)))
    for _ in range(500):
        z = step(z)

    def energy(flat):
        h, y = np.split(flat, [4])
        z = {"h": jnp.asarray(h), "y": jnp.asarray(y) if sign < 0 else x[1]}
        return float(hopfield(params, z, x))

    found = optimize.minimize(energy, np.zeros(6), method="BFGS", options={"eps": 1e-3})
    flat = np.concatenate([z.z["h"], z.z["y"]])
    known = np.arange(6) < (4 if sign > 0 else 6)
    assert np.allclose(flat[known], found.x[known], atol=2e-3)
    assert sign < 0 or np.array_equal(z.z["y"], x[1])


def test_where_a_negative_phase_begins():
    x = jnp.array([1.0, 0.0])
    key = jax.random.key(8)

    def entered(start, sign):
        model = EnergyModel(cubic, five, Gibbs(), MASK, negative_start=start)
        params, z = model.init(jax.random.key(0))
        z = z._replace(z=1 - z.z)  # the phase before left it elsewhere
        return model, z, model.enter(key, params, z, x, sign)

    for start in ("carry", "data", "persistent", "random"):
        _, z, entering = entered(start, PLUS)
        assert np.array_equal(entering.z, z.z)
    _, z, entering = entered("carry", MINUS)
    assert np.array_equal(entering.z, z.z)
    model, z, entering = entered("persistent", MINUS)
    assert np.array_equal(entering.z, z.chain)
    after = model.step(key, CUBIC, entering, x, MINUS)
    assert np.array_equal(after.chain, after.z)
    assert np.array_equal(model.step(key, CUBIC, after, x, PLUS).chain, after.z)
    assert np.array_equal(entered("data", MINUS)[2].z[MASK], x)
    assert np.array_equal(entered("random", MINUS)[2].z, five(key)[1])


@pytest.mark.parametrize("start", ["carry", "data", "persistent", "random"])
def test_a_phase_without_plasticity_is_free(start):
    """It begins, runs and leaves its chain as a negative phase does, and as that of a Boltzmann
    machine does: `BoltzmannMachine` with the same start says the same of its own states.
    """
    x, key, zero = jnp.array([1.0, 0.0]), jax.random.key(9), jnp.float32(0)
    model = EnergyModel(cubic, five, Gibbs(), MASK, negative_start=start)
    machine = BoltzmannMachine(2, 3, negative_start=start)
    for method, moved in (
        (model, lambda z: z._replace(z=1 - z.z)),
        (machine, lambda z: z._replace(v=1 - z.v, h=1 - z.h)),
    ):
        params, z = method.init(jax.random.key(0))
        z = moved(z)  # the phase before left it elsewhere
        states = []
        for sign in (zero, MINUS):
            entering = method.enter(key, params, z, x, sign)
            states.append((entering, method.step(key, params, entering, x, sign)))
        assert jax.tree.all(jax.tree.map(np.array_equal, *states))


def test_the_grid_gives_the_nll_of_closed_forms():
    """A network of zeros is a Gaussian of width 2; minus the log density of a mixture is an energy
    with Z = 1.
    """
    rows = mixture().draw(300)
    params = deep_energy_model((2, 8)).init(jax.random.key(0))[0]
    exact = np.log(2 * np.pi * 4) + (rows**2).sum(1).mean() / 8
    assert float(GridNLL(rows, reach=14.0)(params)) == pytest.approx(exact, abs=1e-3)

    d = mixture(5, 1.5, 0.3)
    centres = jnp.asarray(d.centres, jnp.float32)

    def energy(params, z, x):
        return -jax.nn.logsumexp(-((z[None] - centres) ** 2).sum(1) / (2 * 0.3**2)) + params

    shift = jnp.float32(3)  # an energy may have any zero
    ours = float(GridNLL(d.draw(300), energy, reach=4.0)(shift))
    assert ours == pytest.approx(-d.log_density(d.draw(300)).mean(), abs=1e-3)


def test_the_grid_agrees_with_adaptive_quadrature_on_a_deep_model():
    """scipy.integrate.dblquad of exp(-E) for random weights."""
    params = deep_energy_model((2, 6, 5)).init(jax.random.key(1))[0]
    last = params[-1]._replace(W=jax.random.normal(jax.random.key(2), params[-1].W.shape))
    params, data = (*params[:-1], last), two_moons().draw(50)
    value = jax.jit(lambda y, x: jnp.exp(-deep_energy(params, jnp.stack([x, y]), None)))
    z = integrate.dblquad(value, -7, 7, -7, 7, epsabs=1e-4, epsrel=1e-4)[0]
    mean = np.mean([deep_energy(params, row, None) for row in jnp.asarray(data)])
    assert float(GridNLL(data)(params)) == pytest.approx(mean + np.log(z), abs=2e-3)


def test_samples_of_a_free_model_follow_its_energy():
    """`sample` on the Gaussian: covariance A^-1 by corrected Langevin, |z| < 4."""
    sampler = Langevin(0.3, metropolis=True)
    model = EnergyModel(quadratic, gaussian, sampler, np.array([True, False, False]))
    z = np.asarray(model.sample(jax.random.key(4), A, rows=5000, steps=100), np.float64)
    products = z[:, :, None] * z[:, None, :]
    error = products.std(0) / np.sqrt(len(z))
    assert z_score(products.mean(0), np.linalg.inv(np.asarray(A, np.float64)), error).max() < 4


def vector(params, z, x):
    return z**2


def not_a_number(params, z, x):
    return jnp.log(-1 - z @ z)


def mixed_up(params, z, x):
    return z @ params @ x


def forgets_a_unit(z, x):
    return z[1:]


def steep(params, z, x):
    return 50 * (z @ z)


def of_tuple(key):
    return A, (jnp.zeros(3), jnp.zeros(2))


BITS = np.eye(3, dtype=np.float32)
FIRST = np.array([True, False, False])
DATA = np.ones((4, 1), np.float32)
REFUSED = {
    "a vector": (vector, gaussian, Langevin(), FIRST, DATA, r"one real number.*\(3,\).*sum"),
    "NaN": (not_a_number, gaussian, Langevin(), FIRST, DATA, "energy is nan.*logarithm of 0"),
    "shapes of the energy": (mixed_up, gaussian, Langevin(), FIRST, DATA, "make the shapes"),
    "no boolean mask": (quadratic, gaussian, Langevin(), [1, 0, 0], DATA, "array of booleans"),
    "nothing is clamped": (quadratic, gaussian, Langevin(), ~(FIRST | True), DATA, "at least one"),
    "a mask that is too long": (quadratic, gaussian, Langevin(), np.eye(5)[4] > 0, DATA, "last"),
    "too many columns": (quadratic, gaussian, Langevin(), FIRST, BITS, "data of 1 columns"),
    "a mask for a tree": (quadratic, of_tuple, Langevin(), FIRST, DATA, "state of one axis"),
    "another shape": (quadratic, gaussian, Langevin(), forgets_a_unit, DATA, "like z"),
    "a clamp that fails": (quadratic, gaussian, Langevin(), clamp_by_function, BITS, "cannot take"),
    "grey data": (cubic, five, Gibbs(), np.arange(5) < 1, DATA / 2, "0 or 1.*Langevin"),
    "units that are not binary": (quadratic, gaussian, Gibbs(), FIRST, DATA, "0 or 1"),
    "descent too fast": (steep, gaussian, Descent(0.1), FIRST, DATA, "diverges.*smaller step"),
    "langevin too fast": (steep, gaussian, Langevin(0.5), FIRST, DATA, "diverges.*smaller step"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_energies_are_refused_before_training(name):
    energy, start, sampler, clamped, data, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        model = EnergyModel(energy, start, sampler, clamped)
        train(Run(model, *cd(2), Rows(data), Optimiser(0.1)), ticks=4)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Langevin(0), "step.*above 0"),
        (lambda: Descent("fast"), "must be a number"),
        (lambda: EnergyModel(cubic, five, Gibbs(), MASK, negative_start="cd"), "carry, data"),
        (lambda: deep_energy_model((2,)), "at least one hidden layer"),
        (lambda: deep_energy_model((2, 0)), "whole number"),
        (lambda: GridNLL(np.zeros((4, 3))), "2 columns, not 3"),
        (lambda: GridNLL(np.zeros((4, 2)), reach=-1), "reach must be above 0"),
        (lambda: GridNLL(np.zeros((4, 2)), points=1), "points must be a whole number"),
    ],
)
def test_bad_options(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_corrected_sampler_does_not_diverge():
    """Steps so large that every one is rejected leave the state where it is."""
    model = EnergyModel(steep, gaussian, Langevin(50.0, metropolis=True), FIRST)
    model.check(DATA)
    z = chains(model, A, 10, 50)
    assert np.abs(z).max() < 10


def test_a_record_leads_back_to_the_run():
    """The method of a record draws the same samples; functions of one's own have to be allowed."""
    model = EnergyModel(cubic, five, Gibbs(), MASK, negative_start="persistent")
    data = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    record = train(Run(model, *cd(2), Rows(data), Optimiser(0.1)), ticks=8, records=1)
    with pytest.raises(ValueError, match="allow"):
        record.run()
    again = record.run(allow=[cubic, five]).method
    params = record.parameters(allow=[cubic, five])
    key = jax.random.key(0)
    samples = [m.sample(key, params, rows=8, steps=5) for m in (model, again)]
    assert np.array_equal(*samples)
    z = model.init(key)[1]
    steps = [m.step(key, params, z, jnp.asarray(data[0]), PLUS).z for m in (model, again)]
    assert np.array_equal(*steps)
    deep = deep_energy_model((2, 4))
    rows = two_moons().draw(20)
    record = train(Run(deep, *cd(2), Rows(rows), Optimiser(0.1)), ticks=8, records=1)
    ours, theirs = (m.sample(key, record.parameters(), 5, 5) for m in (deep, record.run().method))
    assert np.array_equal(ours, theirs)
