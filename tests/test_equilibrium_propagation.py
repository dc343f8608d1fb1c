"""Equilibrium propagation: dynamics against its energy, local terms against autodiff, the two-term
gradient against the true one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from some_digits import learned, pairs

from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Held, Rows
from flexphase.estimators import differential
from flexphase.methods.equilibrium_propagation import (
    Accuracy,
    EquilibriumPropagation,
    energy,
    hard_sigmoid,
    relax,
)
from flexphase.methods.nudging import Holomorphic, Nudged, RandomSign
from flexphase.phases import Alternating, Fixed, Pauses, Phases
from flexphase.rules import cd

SIZES = (3, 5, 4, 2)
#: G with G' = inverse of the activation, for each unit.
CONJUGATE = {
    jax.nn.sigmoid: lambda s: s * jnp.log(s) + (1 - s) * jnp.log(1 - s),
    hard_sigmoid: lambda s: 2 * s * s - 2 * s,
}


def problem(activation, centred=False, beta=0.5, seed=1):
    ep = EquilibriumPropagation(SIZES, beta=beta, activation=activation, centred=centred)
    params, s = ep.init(jax.random.key(seed))
    return ep, params, s, (jnp.array([0.9, 0.2, 0.6]), jnp.array([1.0, 0.0]))


def settle(params, s, x, target, beta, activation, steps=2000):
    return jax.lax.fori_loop(
        0, steps, lambda _, s: relax(params, s, x, target, beta, 0.5, activation), s
    )


@pytest.mark.parametrize("activation", [jax.nn.sigmoid, hard_sigmoid])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_dynamics_rest_where_the_energy_is_stationary(activation, beta):
    """Autodiff of F = E + beta/2 |s_L - target|^2: zero inside (0, 1); at a bound it points
    outwards.
    """
    _, params, s, (x, target) = problem(activation)
    if activation is hard_sigmoid:
        params = jax.tree.map(lambda p: 6 * p, params)  # so that some units reach a bound
    s = settle(params, s, x, target, beta, activation)

    def F(s):
        return (
            energy(params, s, x)
            + sum(CONJUGATE[activation](layer).sum() for layer in s)
            + beta / 2 * ((s[-1] - target) ** 2).sum()
        )

    slope, at = np.concatenate(jax.grad(F)(s)), np.concatenate(s)
    assert np.abs(slope[(at > 0) & (at < 1)]).max() < 1e-5
    assert (slope[at <= 0] >= 0).all() and (slope[at >= 1] <= 0).all()
    assert activation is jax.nn.sigmoid or ((at <= 0) | (at >= 1)).any()


@pytest.mark.parametrize("centred", [False, True])
def test_grad_is_autodiff_of_the_energy_over_beta(centred):
    ep, params, _, x = problem(jax.nn.sigmoid, centred)
    s = tuple(jax.random.uniform(jax.random.key(n), (n,)) for n in SIZES[1:])
    expected = jax.grad(energy)(params, s, x[0])
    scale = 2 * ep.beta if centred else ep.beta
    for sign in (1.0, -1.0):
        for g, e in zip(
            jax.tree.leaves(ep.grad(params, s, x, jnp.float32(sign))),
            jax.tree.leaves(expected),
            strict=True,
        ):
            assert np.allclose(g * scale, e, atol=1e-6)


@pytest.mark.parametrize("activation", [jax.nn.sigmoid, hard_sigmoid])
@pytest.mark.parametrize("centred, order", [(False, 1), (True, 2)])
def test_two_term_gradient_approaches_the_true_one_with_its_order_in_beta(
    activation, centred, order
):
    """True gradient: float64 autodiff through 2,000 unrolled steps of the free network. Slope of
    log error over log beta, 2^-4 to 2^-9.
    """
    with jax.enable_x64(True):
        _, params, s, (x, target) = problem(activation)
        params, s, x, target = in_double((params, s, x, target))

        def loss(params):
            def step(s, _):
                return relax(params, s, x, target, 0.0, 0.5, activation), None

            return 0.5 * ((jax.lax.scan(step, s, None, 2000)[0][-1] - target) ** 2).sum()

        true = np.concatenate([g.ravel() for g in jax.tree.leaves(jax.jit(jax.grad(loss))(params))])
        settled = jax.jit(lambda beta: settle(params, s, x, target, beta, activation))
        betas, errors = 2.0 ** -np.arange(4, 10), []
        for beta in betas:
            ep = EquilibriumPropagation(SIZES, beta=beta, activation=activation, centred=centred)
            plus = ep.grad(params, settled(beta), (x, target), jnp.float64(1))
            minus = ep.grad(
                params, settled(-beta if centred else 0.0), (x, target), jnp.float64(-1)
            )
            g = np.concatenate(
                [
                    (p - m).ravel()
                    for p, m in zip(jax.tree.leaves(plus), jax.tree.leaves(minus), strict=True)
                ]
            )
            errors.append(np.linalg.norm(g - true) / np.linalg.norm(true))
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.1)
    assert errors[-1] < 1e-2


def test_reset_forgets_the_last_phase():
    ep = EquilibriumPropagation(SIZES, reset=True)
    params, s = ep.init(jax.random.key(0))
    z = ep.enter(
        jax.random.key(0),
        params,
        jax.tree.map(jnp.ones_like, s),
        (jnp.zeros(3), jnp.zeros(2)),
        jnp.float32(1),
    )
    assert all((layer == 0).all() for layer in z)


def test_learns_handwritten_digits():
    """Two-term, phases of 20 steps: chance is 0.1, and 4,000 phases of batch 1 suffice for 0.8 on
    images that were not trained on.
    """
    ep = EquilibriumPropagation((64, 32, 10), beta=1.0)
    learned(Run(ep, *cd(20), Rows(pairs()), Optimiser(0.1)), 4000)


def flat(tree):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def in_double(tree):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), tree)


def phase_of(method, params, z, x, sign, ticks=300):
    """The state after a phase, without what `enter` draws."""

    def step(_, z):
        return method.step(jax.random.key(0), params, z, x, jnp.float64(sign))

    return jax.lax.fori_loop(0, ticks, step, z)


def test_a_phase_of_sign_0_is_free_whatever_the_nudge():
    _, params, s, (x, target) = problem(jax.nn.sigmoid)
    free = relax(params, s, x, target, 0.0, 0.5, jax.nn.sigmoid)
    for centred in (False, True):
        ep = problem(jax.nn.sigmoid, centred)[0]
        assert np.array_equal(
            flat(ep.step(jax.random.key(0), params, s, (x, target), jnp.float32(0))), flat(free)
        )
    ep = problem(jax.nn.sigmoid)[0]
    for method in (RandomSign(ep), Holomorphic(ep)):
        z = method.init(jax.random.key(1))[1]
        moved = method.step(jax.random.key(0), params, z, (x, target), jnp.float32(0))
        assert np.allclose(flat(moved.s), flat(free), atol=1e-7)


def test_nudges_of_random_sign_are_centred_on_average():
    """(1/2) sum over sigma of (1 / (sigma beta)) (dE(sigma beta) - dE(0)) = (1 / 2 beta) (dE(beta)
    - dE(-beta)), with the states of `EquilibriumPropagation`. Signs: 4,000 draws, |z| < 4.
    """
    with jax.enable_x64(True):
        ep, params, s, x = problem(jax.nn.sigmoid)
        method, pairs = RandomSign(ep), []
        params, s, x = in_double(params), in_double(s), in_double(x)
        for sigma in (1.0, -1.0):
            z = Nudged(s, jnp.float64(sigma), jnp.bool_(False))
            nudged, free = (phase_of(method, params, z, x, sign) for sign in (1, -1))
            assert free.turn == sigma
            plus, minus = (
                method.grad(params, z, x, jnp.float64(sign))
                for z, sign in ((nudged, 1), (free, -1))
            )
            pairs.append(flat(plus) - flat(minus))
        both = EquilibriumPropagation(SIZES, activation=jax.nn.sigmoid, centred=True)
        centred = [
            flat(both.grad(params, phase_of(both, params, s, x, sign), x, jnp.float64(sign)))
            for sign in (1, -1)
        ]
    assert np.allclose((pairs[0] + pairs[1]) / 2, centred[0] - centred[1], atol=1e-9)
    assert np.abs(pairs[0] - pairs[1]).max() > 1e-3  # each alone is off by O(beta)

    begin = method.init(jax.random.key(0))[1]._replace(turn=jnp.float32(7))
    enter = jax.vmap(lambda key, sign: method.enter(key, params, begin, x, sign).turn, (0, None))
    keys = jax.random.split(jax.random.key(2), 4000)
    assert (enter(keys, -1.0) == 7).all()
    for sign in (1.0, 0.0):  # a phase of sign 0 draws for the next one, which keeps it
        signs = np.asarray(enter(keys, sign))
        assert set(signs) == {-1, 1} and abs(signs.sum()) / np.sqrt(4000) < 4
    rested = method.enter(keys[0], params, begin, x, jnp.float32(0))
    turns = {float(method.enter(k, params, rested, x, jnp.float32(1)).turn) for k in keys[:20]}
    assert turns == {float(rested.turn)}


@pytest.mark.parametrize("points", [2, 4, 6])
def test_holomorphic_gradient_approaches_the_true_one_with_order_n(points):
    """True gradient: float64 autodiff through 2,000 unrolled steps of the free network. The mean
    over the points of a circle is off by O(beta^N): slope of log error over log beta; with 2 points
    it is the centred estimate itself.
    """
    with jax.enable_x64(True):
        _, params, s, (x, target) = problem(jax.nn.sigmoid)
        params, s, x, target = in_double((params, s, x, target))

        def loss(params):
            free = settle(params, s, x, target, 0.0, jax.nn.sigmoid, 400)
            return 0.5 * ((free[-1] - target) ** 2).sum()

        def forward(params):
            def step(s, _):
                return relax(params, s, x, target, 0.0, 0.5, jax.nn.sigmoid), None

            return 0.5 * ((jax.lax.scan(step, s, None, 400)[0][-1] - target) ** 2).sum()

        assert loss(params) == pytest.approx(forward(params))
        true = flat(jax.jit(jax.grad(forward))(params))
        betas, errors = 2.0 ** -np.arange(0, 4), []
        for beta in betas:
            ep = EquilibriumPropagation(SIZES, beta=beta, activation=jax.nn.sigmoid)
            method, total = Holomorphic(ep, points), 0.0
            phase = jax.jit(functools.partial(phase_of, method, params, x=(x, target)))
            for k in range(points // 2):
                z = Nudged(
                    tuple(layer + 0j for layer in s), jnp.complex128(method.direction(k)), False
                )
                plus, minus = (
                    method.grad(params, phase(z, sign=sign), (x, target), sign)
                    for sign in (1.0, -1.0)
                )
                total += (flat(plus) - flat(minus)) / (points // 2)
            if points == 2:
                both = EquilibriumPropagation(SIZES, beta, activation=jax.nn.sigmoid, centred=True)
                plus, minus = (
                    both.grad(params, phase_of(both, params, s, (x, target), sign), (x, 0), sign)
                    for sign in (1.0, -1.0)
                )
                assert np.allclose(total, flat(plus) - flat(minus), atol=1e-9)
            errors.append(np.linalg.norm(total - true) / np.linalg.norm(true))
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    assert slope == pytest.approx(points, abs=0.2)


def test_points_of_the_circle_are_drawn_evenly():
    """6 points, 3 in the first half: 6,000 draws, chi-square below 4 standard deviations."""
    method = Holomorphic(EquilibriumPropagation(SIZES, activation=jnp.tanh), 6)
    params, begin = method.init(jax.random.key(0))
    x = jnp.zeros(3), jnp.zeros(2)
    enter = jax.vmap(lambda key, sign: method.enter(key, params, begin, x, sign).turn, (0, None))
    keys = jax.random.split(jax.random.key(2), 6000)
    assert (enter(keys, -1.0) == 1).all()
    turns = np.asarray(enter(keys, 1.0))
    assert np.allclose(np.abs(turns), 1)
    counts = np.bincount(np.round(np.angle(turns) / (np.pi / 3)).astype(int), minlength=3)
    chi2 = ((counts - 2000) ** 2 / 2000).sum()
    assert counts.sum() == 6000 and (chi2 - 2) / 2 < 4


def continual(ep, data, eta, settle, learn):
    """Continual equilibrium propagation as five parts: a stimulus comes with a pause, in which the
    free network settles; then the nudge comes on, with either sign in turn, and every tick learns
    from the change of its term.
    """
    process = Pauses(Phases(Alternating(), Fixed(learn)), settle)
    return Run(ep, process, differential, Held(Rows(data), phases=2), Optimiser(eta))


@pytest.mark.parametrize("sign", [1, -1])
def test_continual_ep_adds_up_to_back_propagation_through_time(sign):
    """The run through the loop itself, in float64: after k nudged ticks, the parameters have moved
    by -eta times the gradient of the loss through the last k time steps (autodiff of k unrolled
    steps from the free equilibrium), in every layer, for k = 1 .. 15; eta << beta << 1.
    """
    eta, beta, K, T = 2.0**-32, 1e-4, 15, 400
    with jax.enable_x64(True):
        ep = EquilibriumPropagation(SIZES, beta=beta, activation=jax.nn.sigmoid, centred=True)
        run = continual(ep, (np.array([[0.9, 0.2, 0.6]]), np.array([[1.0, 0.0]])), eta, T, K)
        state = init(run, jax.random.key(1))
        state = state._replace(
            memory=state.memory._replace(term=in_double(state.memory.term)),
            x=in_double(state.x),
            z=in_double(state.z),
        )
        one = jax.jit(lambda s: tick(run, s))
        wait = T if sign > 0 else 2 * T + K  # the first nudged phase, or the second
        state = jax.lax.fori_loop(0, wait, lambda _, s: one(s), state)
        begun = 0 if sign > 0 else K
        assert state.updates == begun  # learning rests while the free network settles
        before, free = state.params, state.z

        def loss(params, k):
            s = free
            for _ in range(k):
                s = relax(params, s, *state.x, 0.0, 0.5, jax.nn.sigmoid)
            return 0.5 * ((s[-1] - state.x[1]) ** 2).sum()

        for k in range(1, K + 1):
            state = one(state)
            assert state.updates == begun + k and state.phase.sign == sign
            true = jax.grad(loss)(before, k)
            for new, old, g in zip(
                *map(jax.tree.leaves, (state.params, before, true)), strict=True
            ):
                moved, scale = np.asarray((old - new) / eta), np.abs(g).max()
                assert np.abs(moved - g).max() <= 1e-3 * scale + 1e-9, k


@pytest.mark.slow
def test_continual_ep_learns_handwritten_digits():
    """20 ticks to settle and 10 to learn; chance is 0.1, and 6,000 stimuli of batch 1 suffice for
    0.8 on images that were not trained on.
    """
    ep = EquilibriumPropagation((64, 32, 10), centred=True)
    learned(continual(ep, pairs(), 0.03, 20, 10), 12_000)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Holomorphic(EquilibriumPropagation((4, 2))), "jax.nn.sigmoid or jnp.tanh"),
        (lambda: Holomorphic(EquilibriumPropagation((4, 2), activation=jax.nn.relu)), "sigmoid"),
        (lambda: Holomorphic(EquilibriumPropagation((4, 2), activation=jnp.tanh), 3), "take 4"),
        (lambda: Holomorphic(EquilibriumPropagation((4, 2), activation=jnp.tanh), 0), "at least 2"),
        (lambda: RandomSign(EquilibriumPropagation((4, 2), centred=True)), "centred=False"),
    ],
)
def test_bad_nudges(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1], r"8 images need 8 labels.*not one of shape \(1,\)"),
        (np.zeros((8, 1), int), r"not one of shape \(8, 1\)"),
        ([1, 2] * 4, "whole numbers from 0 to 1"),
        ([-1] * 8, "whole numbers from 0 to 1"),
        ([0.5] * 8, "whole numbers from 0 to 1"),
        ([np.nan] * 8, "whole numbers from 0 to 1"),
        (list("01010101"), "whole numbers from 0 to 1"),
    ],
)
def test_labels_of_an_accuracy_are_the_numbers_of_outputs(labels, words):
    with pytest.raises(ValueError, match=words):
        Accuracy(EquilibriumPropagation(SIZES), np.zeros((8, 3)), labels)


class First:
    """It predicts the first output, and does not say how many it has."""

    def predict(self, params, inputs):
        return jnp.zeros((len(inputs), 3)).at[:, 0].set(1)


def test_an_accuracy_of_a_method_without_sizes():
    assert float(Accuracy(First(), np.zeros((4, 2)), [0, 1.0, 2, 0])(None)) == 0.5
    with pytest.raises(ValueError, match="labels must be whole numbers from 0"):
        Accuracy(First(), np.zeros((4, 2)), [0, 1, 2, -1])
