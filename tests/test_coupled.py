"""Resistor networks: voltages against Kirchhoff's equations, terms against autodiff and against the
derivative of the solved circuit, learning by phases and continually.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_jax import train
from scipy import optimize
from some_digits import learned, pairs

from flexphase import Device, OnDevice
from flexphase.core import Optimiser, Run
from flexphase.data import Rows
from flexphase.methods.coupled import (
    ResistorNetwork,
    Resistors,
    Twins,
    layered_edges,
    power,
)
from flexphase.methods.deep_resistor import DeepResistor, ResistorLayer
from flexphase.methods.deep_resistor import power as deep_power
from flexphase.optimisers import conductances
from flexphase.rules import aol, aol_random, cd, isd

EDGES = np.array([(0, 2), (1, 2), (0, 3), (2, 3), (1, 4), (3, 4), (2, 4), (4, 5), (3, 5)])
INPUTS, OUTPUTS = [0, 1], [3, 5]
VOLTS, TARGET = jnp.array([1.0, -0.5]), jnp.array([0.4, 0.3])


def network(nudge=0.5, dt=1.0):
    return ResistorNetwork(EDGES, INPUTS, OUTPUTS, nudge, dt)


def laplacian(k):
    L = np.zeros((6, 6))
    for g, (a, b) in zip(np.asarray(k, np.float64), EDGES, strict=True):
        L[[a, b], [a, b]] += g
        L[[a, b], [b, a]] -= g
    return L


def solved(k, held, values):
    """Kirchhoff's equations, with some nodes held: numpy.linalg.solve of the graph Laplacian."""
    L, free = laplacian(k), np.setdiff1d(np.arange(6), held)
    v = np.zeros(6)
    v[held] = values
    v[free] = np.linalg.solve(L[np.ix_(free, free)], -L[np.ix_(free, held)] @ v[held])
    return v


def settle(method, params, ticks=600):
    z = method.init(jax.random.key(0))[1]

    def step(_, z):
        return method.step(jax.random.key(0), params, z, (VOLTS, TARGET), 1.0)

    return jax.jit(lambda z: jax.lax.fori_loop(0, ticks, step, z))(z)


@pytest.mark.parametrize("dt", [1.0, 0.3])
def test_both_circuits_settle_where_kirchhoffs_equations_say(dt):
    method = network(0.3, dt)
    params = method.init(jax.random.key(2))[0]
    free = solved(params.k, INPUTS, VOLTS)
    pulled = free[OUTPUTS] + 0.3 * (np.asarray(TARGET) - free[OUTPUTS])
    nudged = solved(params.k, INPUTS + OUTPUTS, np.concatenate([VOLTS, pulled]))
    z = settle(method, params)
    assert np.allclose(z.free, free, atol=1e-5) and np.allclose(z.nudged, nudged, atol=1e-5)
    assert np.allclose(method.predict(params, VOLTS[None], 600)[0], free[OUTPUTS], atol=1e-5)


def test_voltages_dissipate_the_least_power():
    """Autodiff of the power is zero at every node that is not held."""
    method = network()
    params = method.init(jax.random.key(2))[0]
    z = settle(method, params)
    slope = jax.grad(lambda v: power(params, v, method.edges))
    assert np.abs(slope(z.free)[jnp.array([2, 3, 4, 5])]).max() < 1e-5
    assert np.abs(slope(z.nudged)[jnp.array([2, 4])]).max() < 1e-5


def test_terms_are_autodiff_of_the_power_over_the_nudge():
    z = Twins(*jax.random.normal(jax.random.key(3), (2, 6)))
    x = VOLTS, TARGET
    apart = ResistorNetwork(EDGES, INPUTS, OUTPUTS, 0.3, twins=False)
    params = apart.init(jax.random.key(2))[0]
    slopes = [jax.grad(power)(params, v, apart.edges).k / 0.3 for v in z]
    for sign, slope in ((1.0, slopes[1]), (-1.0, slopes[0])):
        assert np.allclose(apart.grad(params, z, x, sign).k, slope, atol=1e-5)
    both = network(0.3)
    assert np.allclose(both.grad(params, z, x, 1.0).k, slopes[1] - slopes[0], atol=1e-5)
    assert not both.grad(params, z, x, -1.0).k.any() and not both.grad(params, z, x, 0.0).k.any()


def test_small_nudges_give_the_gradient_in_the_metric_of_the_circuit():
    """(v - target) M dv/dk: dv/dk by finite differences of the solved circuit, M the Schur
    complement of its Laplacian (numpy); the error falls in proportion to the nudge.
    """
    k = np.linspace(0.6, 1.5, len(EDGES))
    L, inner = laplacian(k), [2, 4]
    M = L[np.ix_(OUTPUTS, OUTPUTS)] - L[np.ix_(OUTPUTS, inner)] @ np.linalg.solve(
        L[np.ix_(inner, inner)], L[np.ix_(inner, OUTPUTS)]
    )
    free = solved(k, INPUTS, VOLTS)
    h, rows = 1e-6, np.eye(len(k))
    dv = [
        (solved(k + h * e, INPUTS, VOLTS) - solved(k - h * e, INPUTS, VOLTS))[OUTPUTS] / (2 * h)
        for e in rows
    ]
    exact = np.array(dv) @ M @ (free[OUTPUTS] - np.asarray(TARGET))
    nudges, errors = [0.4, 0.2, 0.1, 0.05], []
    with jax.enable_x64(True):
        for nudge in nudges:
            method, params = network(nudge), Resistors(jnp.asarray(k))
            z = settle(method, params, 2000)
            plus, minus = (method.grad(params, z, (VOLTS, TARGET), s).k for s in (1.0, -1.0))
            errors.append(np.linalg.norm(plus - minus - exact) / np.linalg.norm(exact))
    assert np.polyfit(np.log(nudges), np.log(errors), 1)[0] == pytest.approx(1, abs=0.05)
    assert errors[-1] < 0.1


def regression(rows=200):
    """A target that a circuit can divide its inputs into: 0.2 x_0 + 0.5 x_1 + 0.3 reference."""
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 2)).astype(np.float32)
    inputs = np.concatenate([x, np.ones((rows, 1)), -np.ones((rows, 1))], 1).astype(np.float32)
    return inputs, (0.2 * x[:, :1] + 0.5 * x[:, 1:] + 0.15).astype(np.float32)


@pytest.mark.parametrize(
    "rule, twins, eta, most",
    [
        (cd(20), False, 0.5, 1e-6),
        (cd(20), True, 0.5, 1e-6),
        (isd(0.5, 20), True, 0.3, 1e-6),
        (aol(0.5, 20), True, 0.1, 5e-3),
        (aol(0.5, 80), True, 0.1, 5e-4),
        (aol_random(0.5, 20), True, 0.1, 5e-3),
    ],
)
def test_a_circuit_learns_to_divide_voltages(rule, twins, eta, most):
    """Mean squared error of the predicted voltage after 3,000 phases, the median of 3 circuits; the
    targets have a variance of 0.1. Always-on learning also learns while voltages still settle, so
    it ends higher, and lower with longer phases.
    """
    inputs, targets = regression()
    method = ResistorNetwork(layered_edges(4, 6, 1), range(4), [10], twins=twins)

    def error(params):
        return ((method.predict(params, jnp.asarray(inputs)) - targets) ** 2).mean()

    run = Run(method, *rule, Rows((inputs, targets)), Optimiser(eta, conductances))
    record = train(run, phases=3000, seeds=3, records=2, metrics={"error": error})
    assert (record["error"].isel(record=0) > 0.02).all()
    assert record.final("error").median() < most
    assert (record.parameters(lane=0).k >= 0).all()


# The deep resistive network.


def test_a_sweep_rests_where_scipy_finds_the_least_power():
    """scipy.optimize.minimize (L-BFGS-B) of F with the diodes as bounds, for each nudge."""
    method = DeepResistor((3, 6, 4, 2), beta=0.3, gain=2.0)
    params = tuple(
        ResistorLayer(layer.k + 0.05, 0.1 * jax.random.normal(jax.random.key(i), layer.c.shape))
        for i, layer in enumerate(method.init(jax.random.key(1))[0])
    )
    x, target = jnp.array([0.9, 0.2, 0.6]), jnp.array([0.8, -0.3])
    bounds = [(0, None)] * 3 + [(None, 0)] * 3 + [(0, None)] * 2 + [(None, 0)] * 2
    bounds += [(None, None)] * 2
    with jax.enable_x64(True):

        @jax.jit
        @jax.value_and_grad
        def F(flat, nudge):
            v = tuple(jnp.split(flat, [6, 10]))
            return (
                deep_power(params, v, method.sources(x)) + nudge / 2 * ((v[-1] - target) ** 2).sum()
            )

        def value_and_slope(flat, nudge):
            return tuple(map(np.asarray, F(jnp.asarray(flat), nudge)))

        for sign in (1.0, 0.0, -1.0):
            found = optimize.minimize(
                value_and_slope,
                np.zeros(12),
                (0.3 * sign,),
                jac=True,
                bounds=bounds,
                method="L-BFGS-B",
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000},
            )
            z = method.rest()
            for _ in range(200):
                z = method.step(jax.random.key(0), params, z, (x, target), sign)
            ours = np.concatenate(z)
            assert np.allclose(ours, found.x, atol=1e-4)
            assert (ours[:10] == 0).any() and (ours[:10] != 0).any()  # some diodes are shut
        assert np.allclose(ours, np.concatenate(method.sweep(params, z, x, -0.3, target)))


def test_terms_of_the_deep_network_are_autodiff_of_its_power():
    method = DeepResistor((3, 4, 2), beta=0.3)
    params = method.init(jax.random.key(1))[0]
    v = tuple(jax.random.normal(jax.random.key(n), (n,)) for n in (4, 2))
    x = jnp.array([0.9, 0.2, 0.6]), jnp.array([1.0, 0.0])
    expected = jax.grad(deep_power)(params, v, method.sources(x[0]))
    for sign in (1.0, -1.0):
        for g, e in zip(
            *map(jax.tree.leaves, (method.grad(params, v, x, sign), expected)), strict=True
        ):
            assert np.allclose(g, e / 0.6, rtol=1e-4, atol=1e-4)


def test_two_nudges_approach_the_gradient_of_the_loss():
    """Autodiff through 300 free sweeps, float64; the error falls as beta^2."""
    x, target = jnp.array([0.9, 0.2, 0.6]), jnp.array([0.8, -0.3])
    with jax.enable_x64(True):
        params = tuple(
            ResistorLayer(layer.k.astype(jnp.float64) + 0.05, layer.c + 0.1)
            for layer in DeepResistor((3, 6, 2)).init(jax.random.key(1))[0]
        )

        def settled(method, params, sign):
            def step(v, _):
                return method.step(None, params, v, (x, target), sign), None

            return jax.lax.scan(step, method.rest(), None, 300)[0]

        def loss(params):
            free = settled(DeepResistor((3, 6, 2), gain=2.0), params, 0.0)
            return 0.5 * ((free[-1] - target) ** 2).sum()

        true = np.concatenate([g.ravel() for g in jax.tree.leaves(jax.jit(jax.grad(loss))(params))])
        betas, errors = [0.1, 0.05, 0.025], []
        for beta in betas:
            method = DeepResistor((3, 6, 2), beta, gain=2.0)
            plus, minus = (
                method.grad(params, settled(method, params, sign), (x, target), sign)
                for sign in (1.0, -1.0)
            )
            g = jax.tree.leaves(jax.tree.map(jnp.subtract, plus, minus))
            g = np.concatenate([leaf.ravel() for leaf in g])
            errors.append(np.linalg.norm(g - true) / np.linalg.norm(true))
    assert np.polyfit(np.log(betas), np.log(errors), 1)[0] == pytest.approx(2, abs=0.1)
    assert errors[-1] < 1e-2


def test_conductances_stop_at_0_and_currents_do_not():
    """One step by hand: max(k - eta g, 0), and c - eta g."""
    params = (ResistorLayer(jnp.array([[0.1, 0.5]]), jnp.array([0.1, 0.5])),)
    make = conductances(1.0)
    ones = jax.tree.map(jnp.ones_like, params)
    updates, _ = make.update(ones, make.init(params), params)
    new = optax.apply_updates(params, jax.tree.map(lambda u: u, updates))
    assert np.allclose(new[0].k, 0) and np.allclose(new[0].c, [-0.9, -0.5])
    half, _ = make.update(jax.tree.map(lambda p: 0.3 * p, ones), make.init(params), params)
    assert np.allclose(optax.apply_updates(params, half)[0].k, [[0.0, 0.2]])


def test_the_deep_network_learns_handwritten_digits():
    """Two-term, phases of 4 sweeps: chance is 0.1, and 6,000 phases of batch 1 suffice for 0.8 on
    images that were not trained on.
    """
    method = DeepResistor((64, 32, 10), gain=30.0)
    run = Run(method, *cd(4), Rows(pairs()), Optimiser(0.003, conductances))
    record = learned(run, 6000)
    for layer in record.parameters(lane=0):
        assert (layer.k >= 0).all() and (layer.k == 0).any()


def test_layers_are_joined_node_by_node():
    expected = {*itertools.product(range(2), range(2, 5)), *itertools.product(range(2, 5), [5])}
    assert set(map(tuple, layered_edges(2, 3, 1).tolist())) == expected


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: ResistorNetwork([(0, 1, 2)], [0], [1]), r"shape \(edges, 2\)"),
        (lambda: ResistorNetwork([(0.0, 1.0)], [0], [1]), "numbers of the nodes"),
        (lambda: ResistorNetwork([(0, 0)], [0], [1]), "two different nodes"),
        (lambda: ResistorNetwork([(0, -1)], [0], [1]), "numbered from 0"),
        (lambda: ResistorNetwork(EDGES, [], [1]), "at least one node"),
        (lambda: ResistorNetwork(EDGES, [0], [9]), "between 0 and 5"),
        (lambda: ResistorNetwork(EDGES, [0, 0], [5]), "stands twice among the inputs"),
        (lambda: ResistorNetwork(EDGES, [0, 1], [1]), "an input and an output"),
        (lambda: ResistorNetwork([(0, 1), (2, 3)], [0], [1]), "node 2 is joined to no input"),
        (lambda: ResistorNetwork([(0, 1), (1, 4)], [0], [1]), "node 2 is joined to no input"),
        (lambda: network(0), "nudge.*above 0"),
        (lambda: network(1.5), "at most 1"),
        (lambda: network(dt=2), "at most 1"),
        (lambda: ResistorNetwork(EDGES, [0], [5], spread=1.0), "stay above 0"),
        (lambda: ResistorNetwork(EDGES, [0], [5], least=0.0), "stay above 0"),
        (lambda: network().check(np.zeros((3, 2))), r"Rows\(\(inputs, targets\)"),
        (lambda: network().check((np.zeros((3, 3)), np.zeros((3, 2)))), "inputs have 3 columns"),
        (lambda: DeepResistor((4,)), "at least one layer"),
        (lambda: DeepResistor((4, 0)), "whole number"),
        (lambda: DeepResistor((4, 2), beta=0), "beta.*above 0"),
        (lambda: DeepResistor((4, 2), gain=-1), "gain.*above 0"),
        (lambda: DeepResistor((4, 2), least=0.0), "least.*above 0"),
        (
            lambda: DeepResistor((4, 9, 2), 1.0).check((np.zeros((3, 4)), np.zeros((3, 2)))),
            "sum of about 0.75.*smaller beta",
        ),
        (
            lambda: DeepResistor((4, 2)).check((np.zeros((3, 4)), np.zeros((3, 3)))),
            "targets have 3 columns",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "device",
    [Device(noise=0.5), Device(stuck=0.3, range=1), Device.like("pcm")],
    ids=["noisy", "stuck", "pcm"],
)
def test_conductances_stay_at_0_or_above_on_a_device(device):
    """Whatever it writes; currents may be negative there, too."""
    method = DeepResistor((64, 8, 10))
    optimiser = OnDevice(Optimiser(0.3, conductances), device)
    run = Run(method, *cd(4), Rows(pairs()), optimiser)
    params = train(run, ticks=200, seeds=3).params
    assert all((w >= 0).all() for name, w in params.items() if name.endswith(".k"))
    assert any((w < 0).any() for name, w in params.items() if not name.endswith(".k"))
