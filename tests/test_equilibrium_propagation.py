"""Equilibrium propagation: dynamics against its energy, local terms against autodiff, the two-term
gradient against the true one.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_jax import train

from flexphase.core import Optimiser, Run
from flexphase.data import Rows, digits
from flexphase.methods.equilibrium_propagation import (
    Accuracy,
    EquilibriumPropagation,
    energy,
    hard_sigmoid,
    relax,
)
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
        double = lambda tree: jax.tree.map(lambda p: p.astype(jnp.float64), tree)  # noqa: E731
        params, s, x, target = double(params), double(s), double(x), double(target)

        def loss(params):
            step = lambda s, _: (relax(params, s, x, target, 0.0, 0.5, activation), None)  # noqa: E731
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
    images, labels = digits()
    order = np.random.default_rng(0).permutation(len(images))
    fit, test = order[:1400], order[1400:]
    ep = EquilibriumPropagation((64, 32, 10), beta=1.0)
    source = Rows((images[fit], np.eye(10, dtype=np.float32)[labels[fit]]))
    record = train(
        Run(ep, *cd(20), source, Optimiser(0.1)),
        phases=4000,
        seeds=2,
        records=2,
        metrics={"accuracy": Accuracy(ep, images[test], labels[test])},
    )
    assert (record["accuracy"].isel(record=0) < 0.4).all()
    assert (record.final("accuracy") > 0.8).all()
