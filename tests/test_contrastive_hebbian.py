"""Contrastive Hebbian learning: rest states against a solver, terms against autodiff, its limits
against back-propagation and against equilibrium propagation.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from some_digits import learned, pairs

from flexphase.core import Optimiser, Run
from flexphase.data import Rows
from flexphase.methods.contrastive_hebbian import ContrastiveHebbian, RecurrentHebbian
from flexphase.methods.equilibrium_propagation import EquilibriumPropagation
from flexphase.rules import cd

SIZES = (3, 5, 4, 2)
X, TARGET = jnp.array([0.9, 0.2, 0.6]), jnp.array([0.8, 0.3])


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def flat(tree):
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


def rest(method, params, sign, z=None, ticks=400):
    """The state after a long phase."""
    z = method.init(jax.random.key(0))[1] if z is None else z

    def step(_, z):
        return method.step(jax.random.key(0), params, z, (X, TARGET), sign)

    return jax.jit(lambda z: jax.lax.fori_loop(0, ticks, step, z))(z)


def two_terms(method, params):
    """g_plus - g_minus at rest."""
    plus, minus = (
        method.grad(params, rest(method, params, sign), (X, TARGET), sign) for sign in (1.0, -1.0)
    )
    return jax.tree.map(jnp.subtract, plus, minus)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("feedback", [1.0, 0.2])
def test_layers_rest_where_scipy_finds_the_fixed_point(sign, feedback, linear):
    """scipy.optimize.root of s_l = rho(s_{l-1} W_l + c_l + gamma W_{l+1} s_{l+1})."""
    method = ContrastiveHebbian(SIZES, feedback, activation=jax.nn.sigmoid, linear_output=linear)
    params = jax.tree.map(lambda p: p + 0.1, method.init(jax.random.key(1))[0])
    (W1, c1), (W2, c2), (W3, c3) = [(np.asarray(p.W), np.asarray(p.c)) for p in params]

    def off(flat):
        s1, s2, s3 = np.split(flat, [5, 9])
        if sign > 0:
            s3 = np.asarray(TARGET)
        out = s2 @ W3 + c3
        return np.concatenate(
            [
                s1 - sigmoid(np.asarray(X) @ W1 + c1 + feedback * (W2 @ s2)),
                s2 - sigmoid(s1 @ W2 + c2 + feedback * (W3 @ s3)),
                flat[9:] - (s3 if sign > 0 else out if linear else sigmoid(out)),
            ]
        )

    found = optimize.root(off, np.full(11, 0.5), tol=1e-10)
    assert found.success
    assert np.allclose(flat(rest(method, params, sign)), found.x, atol=1e-5)


def test_all_joined_units_rest_where_scipy_finds_the_fixed_point():
    """scipy.optimize.root of s = rho(s W + c) over the units that are not clamped."""
    method = RecurrentHebbian(3, 4, 2, activation=jax.nn.sigmoid, scale=0.7)
    params = method.init(jax.random.key(1))[0]._replace(bias=jnp.linspace(-0.5, 0.5, 9))
    W, c = (np.asarray(p, np.float64) for p in params)
    for sign in (1.0, -1.0):
        moves = slice(3, 7 if sign > 0 else 9)

        def state(values, moves=moves):
            s = np.concatenate([X, np.zeros(4), TARGET]).astype(np.float64)
            s[moves] = values
            return s

        def off(values, moves=moves, state=state):
            return values - sigmoid(state(values) @ W + c)[moves]

        found = optimize.root(off, np.full(moves.stop - 3, 0.5), tol=1e-10)
        assert found.success
        assert np.allclose(rest(method, params, sign), state(found.x), atol=1e-5)


def layered_energy(params, s, x, gamma):
    """E without G, which no parameter changes: written out from the formula."""
    total, below = 0.0, (x, *s[:-1])
    for l, (layer, s0, s1) in enumerate(zip(params, below, s, strict=True), 1):  # noqa: E741
        total -= gamma ** (l - len(s)) * (s0 @ layer.W @ s1 + layer.c @ s1)
    return total


def test_terms_are_autodiff_of_the_energies():
    method = ContrastiveHebbian(SIZES, 0.3)
    params = method.init(jax.random.key(1))[0]
    s = tuple(jax.random.uniform(jax.random.key(n), (n,)) for n in SIZES[1:])
    expected = jax.grad(layered_energy)(params, s, X, 0.3)
    for sign in (1.0, -1.0):
        assert np.allclose(flat(method.grad(params, s, (X, TARGET), sign)), flat(expected), 1e-5)

    joined = RecurrentHebbian(3, 4, 2)
    params = joined.init(jax.random.key(2))[0]
    s = jax.random.uniform(jax.random.key(5), (9,))
    pairs = jax.grad(lambda W: -s @ jnp.triu(W, 1) @ s)(params.W)  # one weight for each pair
    g = joined.grad(params, s, (X, TARGET), 1.0)
    assert np.allclose(g.W, pairs + pairs.T, atol=1e-6)
    assert np.allclose(g.bias, np.where(np.arange(9) < 3, 0, -s), atol=1e-6)


def test_a_layered_network_is_a_mask_of_the_recurrent_one():
    """Same weights, feedback 1: same rest states and same terms."""
    layers = ContrastiveHebbian((3, 4, 2), activation=jnp.tanh)
    params = layers.init(jax.random.key(4))[0]
    mask, W = np.zeros((9, 9), bool), np.zeros((9, 9))
    mask[:3, 3:7] = mask[3:7, 7:] = True
    W[:3, 3:7], W[3:7, 7:] = params[0].W, params[1].W
    joined = RecurrentHebbian(3, 4, 2, mask | mask.T, activation=jnp.tanh)
    bias = jnp.concatenate([jnp.zeros(3), params[0].c, params[1].c])
    couplings = joined.init(jax.random.key(0))[0]._replace(W=jnp.asarray(W + W.T), bias=bias)
    for sign in (1.0, -1.0):
        s, z = rest(layers, params, sign), rest(joined, couplings, sign)
        assert np.allclose(z, np.concatenate([X, *s]), atol=1e-6)
        g, h = (
            m.grad(p, state, (X, TARGET), sign)
            for m, p, state in ((layers, params, s), (joined, couplings, z))
        )
        assert np.allclose(h.W[:3, 3:7], g[0].W, atol=1e-6)
        assert np.allclose(h.W[7:, 3:7].T, g[1].W, atol=1e-6)
        assert not h.W[~joined.mask].any()


@pytest.mark.parametrize("activation", [jax.nn.sigmoid, jnp.tanh])
def test_weak_feedback_and_linear_outputs_are_back_propagation(activation):
    """Cosine with the gradient of 1/2 |y - target|^2 of the feedforward network (autodiff), for
    each layer and for all: its distance from 1 falls as gamma^2 (slope of the logarithms), and the
    length of the update is that of the gradient.
    """
    with jax.enable_x64(True):
        sizes = (3, 6, 5, 2)
        params = ContrastiveHebbian(sizes).init(jax.random.key(3))[0]

        def loss(params):
            h = X
            for layer in params[:-1]:
                h = activation(h @ layer.W + layer.c)
            return 0.5 * ((h @ params[-1].W + params[-1].c - TARGET) ** 2).sum()

        true = jax.grad(loss)(params)
        gammas, distances = [0.04, 0.02, 0.01, 0.005], []
        for gamma in gammas:
            method = ContrastiveHebbian(sizes, gamma, activation=activation, linear_output=True)
            g = two_terms(method, params)
            cosines = [
                flat(a) @ flat(b) / np.linalg.norm(flat(a)) / np.linalg.norm(flat(b))
                for a, b in [(g, true), *zip(g, true, strict=True)]
            ]
            distances.append(1 - np.array(cosines))
        slopes = np.polyfit(np.log(gammas), np.log(np.array(distances)[:, :3]), 1)[0]
    assert np.allclose(slopes, 2, atol=0.2)
    assert distances[-1].max() < 1e-4
    assert np.linalg.norm(flat(g)) == pytest.approx(np.linalg.norm(flat(true)), rel=0.05)


def test_it_is_equilibrium_propagation_with_an_infinite_nudge():
    """beta (g_plus - g_minus) of EP, at the nudged fixed point that scipy.optimize.root finds in
    float64, approaches the contrastive Hebbian update as 1/beta.
    """
    method = ContrastiveHebbian(SIZES, activation=jax.nn.sigmoid)
    with jax.enable_x64(True):
        params = method.init(jax.random.key(1))[0]
        hebbian = flat(two_terms(method, params))
        free = rest(method, params, -1.0)
    (W1, c1), (W2, c2), (W3, c3) = [(np.asarray(p.W), np.asarray(p.c)) for p in params]
    betas, errors = 10.0 ** np.arange(1, 5), []
    for beta in betas:

        def off(u, beta=beta):
            """In terms of what units receive, u = rho^-1(s); the nudge divided by its size."""
            u1, u2, u3 = np.split(u, [5, 9])
            s1, s2, s3 = sigmoid(u1), sigmoid(u2), sigmoid(u3)
            return np.concatenate(
                [
                    u1 - (np.asarray(X) @ W1 + c1 + W2 @ s2),
                    u2 - (s1 @ W2 + c2 + W3 @ s3),
                    (s2 @ W3 + c3 - u3) / beta + np.asarray(TARGET) - s3,
                ]
            )

        found = optimize.root(off, np.zeros(11), tol=1e-12)
        assert found.success
        s = tuple(jnp.asarray(part) for part in np.split(sigmoid(found.x), [5, 9]))
        with jax.enable_x64(True):
            ep = EquilibriumPropagation(SIZES, beta, activation=jax.nn.sigmoid)
            plus, minus = (ep.grad(params, z, (X, TARGET), 1.0) for z in (s, free))
            errors.append(np.linalg.norm(beta * (flat(plus) - flat(minus)) - hebbian))
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1, abs=0.1)
    assert errors[-1] < 1e-3 * np.linalg.norm(hebbian)


def test_inputs_stay_and_reset_forgets():
    method = RecurrentHebbian(3, 4, 2)
    params, z = method.init(jax.random.key(0))
    z = method.enter(jax.random.key(0), params, z + 1, (X, TARGET), jnp.float32(1))
    assert np.array_equal(z[:3], X)
    layers = ContrastiveHebbian(SIZES, reset=True)
    params, s = layers.init(jax.random.key(0))
    ones = jax.tree.map(jnp.ones_like, s)
    assert not flat(layers.enter(jax.random.key(0), params, ones, (X, TARGET), 1.0)).any()


@pytest.mark.parametrize("kind", ["layered", pytest.param("recurrent", marks=pytest.mark.slow)])
def test_learns_handwritten_digits(kind):
    """Two-term, phases of 20 steps: chance is 0.1, and 4,000 phases of batch 1 suffice for 0.8 on
    images that were not trained on.
    """
    method = ContrastiveHebbian((64, 32, 10)) if kind == "layered" else RecurrentHebbian(64, 16, 10)
    learned(Run(method, *cd(20), Rows(pairs()), Optimiser(0.05)), 4000)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: ContrastiveHebbian((4,)), "at least one layer"),
        (lambda: ContrastiveHebbian((4, 0, 2)), "layer's size must be a whole number"),
        (lambda: ContrastiveHebbian((4, 2), feedback=0), "feedback.*above 0"),
        (lambda: ContrastiveHebbian((4, 2), feedback=2), "at most 1"),
        (lambda: ContrastiveHebbian((4, 2), dt=1.5), "at most 1"),
        (lambda: RecurrentHebbian(0, 2, 2), "inputs must be a whole number"),
        (lambda: RecurrentHebbian(2, -1, 2), "hidden must be a whole number"),
        (lambda: RecurrentHebbian(2, 1, 2, np.ones((4, 4))), r"\(5, 5\)"),
        (lambda: ContrastiveHebbian((4, 2)).check(np.zeros((3, 4))), r"Rows\(\(inputs, targets\)"),
        (
            lambda: ContrastiveHebbian((4, 2)).check((np.zeros((3, 4)), np.zeros((3, 3)))),
            "targets have 3 columns.*asks for 2",
        ),
        (
            lambda: RecurrentHebbian(3, 2, 2).check((np.zeros((3, 4)), np.zeros((3, 2)))),
            "inputs have 4 columns.*asks for 3",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()
