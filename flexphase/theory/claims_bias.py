"""Theorems 1 and 2, measured: exponents of both parts of the bias in eta and tau, and the open
question.

"Exact" rows come from transition matrices and have no sampling error; their interval is that of the
fitted line.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from . import bias
from .chains import relaxation_time
from .claims import Prediction
from .coupling import gap, horizon, series
from .exponents import Exponent, along, exponent
from .frozen import repeated
from .zoo import Learner, Walk, learners, walks

ETAS = np.array([0.01, 0.02, 0.04, 0.08])
NEAR = 0.15  # how close an exponent must be where the theorem is tight
KINDS = {"fixed T": False, "geometric T": True}


def bias_claims() -> Iterator[Prediction]:
    for walk in walks():
        for kind, geometric in KINDS.items():
            yield from exact_claims(walk, kind, geometric)
            if walk.method:
                yield from simulated_claims(walk, kind, geometric)
    for learner in learners():
        if learner.name.startswith("equilibrium"):
            for kind, geometric in KINDS.items():
                yield from theorem_2(learner, kind, geometric)


def row(
    source: str,
    name: str,
    what: str,
    predicted: float,
    fit: Exponent,
    bound: bool = False,
    note: str = "",
) -> Prediction:
    """An exponent against the theory's: near it where the theorem is tight, not above it where it
    is a bound.
    """
    passed = fit.low < predicted + NEAR if bound else abs(fit.slope - predicted) < NEAR
    test = (
        f"bound: not above {predicted:g} + {NEAR}" if bound else f"within {NEAR} of {predicted:g}"
    )
    return Prediction(
        source,
        name,
        what,
        f"{'at most ' if bound else ''}{predicted:g}",
        fit.slope,
        (fit.high - fit.low) / 2,
        test,
        bool(passed),
        note,
    )


def norms(f: Callable[[float], np.ndarray], values: Any) -> np.ndarray:
    return np.array([np.linalg.norm(f(v)) for v in values])


def long_phases(chain: Any) -> np.ndarray:
    """20 to 160 relaxation times."""
    return np.ceil(np.array([20, 40, 80, 160]) * max(relaxation_time(chain.P), 1.0))


def short_phases(chain: Any) -> np.ndarray:
    """Below the relaxation time, if there is room."""
    return np.unique(np.floor(np.geomspace(2, max(2, relaxation_time(chain.P) / 2), 4)))


def exact_claims(walk: Walk, kind: str, geometric: bool) -> Iterator[Prediction]:
    chain, start, name = walk.chain, walk.start, f"{walk.name}, {kind}"
    taus = long_phases(chain)
    memory = f"relaxation time {relaxation_time(chain.P):.1f} ticks"
    part = exponent(taus, norms(lambda tau: bias.transient(chain, start, tau, geometric), taus))
    yield row(
        "Theorem 1", name, "exponent of the transient bias in tau (exact)", -1, part, note=memory
    )
    back = norms(lambda tau: bias.feedback(chain, start, tau, geometric), taus)
    fit = exponent(taus, back)
    yield row(
        "Theorem 1",
        name,
        "exponent of the feedback bias in tau, tau above 20 relaxation times (exact)",
        1,
        fit,
        True,
        f"{memory}; the bound holds and is loose",
    )
    yield row(
        "Open question",
        name,
        "the feedback bias is eta^2, not eta^2 tau: exponent in tau (exact)",
        0,
        fit,
        note=memory,
    )
    limit = np.linalg.norm(bias.feedback_limit(chain, geometric))
    yield Prediction(
        "Open question",
        name,
        "its coefficient at the longest tau: (E[T^2] / 2 tau^2) (d gbar/dtheta) gbar",
        f"{limit:.4g}",
        back[-1],
        0.0,
        "within 5 %",
        bool(abs(back[-1] / limit - 1) < 0.05),
    )
    short = short_phases(chain)
    if len(short) > 2:
        grows = exponent(
            short, norms(lambda tau: bias.feedback(chain, start, tau, geometric), short)
        )
        note = f"tau = {short[0]:g} to {short[-1]:g}: below the mixing time it does grow"
        yield Prediction(
            "Open question",
            name,
            "below the relaxation time the feedback bias grows with tau (exact)",
            "above 0",
            grows.slope,
            (grows.high - grows.low) / 2,
            "exponent above 0.5",
            grows.slope > 0.5,
            note,
        )
    etas = np.array([1e-3, 2e-3, 5e-3, 1e-2]) / max(relaxation_time(chain.P), 1.0) ** 2
    along_remark = norms(
        lambda e: (
            e * bias.transient(chain, start, np.ceil(e**-0.5), geometric)
            + e**2 * bias.feedback(chain, start, np.ceil(e**-0.5), geometric)
        ),
        etas,
    )
    fit = exponent(etas, along_remark)
    yield Prediction(
        "Remark to Theorem 1",
        name,
        "exponent of the bias in eta along tau = 1/sqrt(eta) (exact)",
        "at least 1.25",
        fit.slope,
        (fit.high - fit.low) / 2,
        "above 1.25 - 0.15",
        fit.slope > 1.25 - NEAR,
    )


def simulated_claims(walk: Walk, kind: str, geometric: bool) -> Iterator[Prediction]:
    """The method itself, learning, coupled to itself, frozen."""
    name, tau = f"{walk.name}, {kind}", int(max(32, np.ceil(10 * relaxation_time(walk.chain.P))))
    lanes = min(2**14, 2**23 // horizon(tau, geometric))
    exact = bias.feedback(walk.chain, walk.start, tau, geometric)
    size = float(np.linalg.norm(exact))
    etas = ETAS * min(
        1.0, float(np.linalg.norm(bias.equilibrium(walk.chain))) / size
    )  # a feedback of at most 8 % of the update
    runs = [
        gap(
            walk.method,
            walk.params,
            walk.starts(lanes),
            -1.0,
            eta,
            tau,
            geometric=geometric,
            seed=i,
        )
        for i, eta in enumerate(etas)
    ]
    mean, error = np.array([along(run, exact) for run in runs]).T
    yield row(
        "Theorem 1",
        name,
        f"exponent of the feedback bias in eta, tau = {tau} (simulated)",
        2,
        exponent(etas, mean, error),
    )
    level, level_error = extrapolated(etas, mean / etas**2, error / etas**2)
    yield Prediction(
        "Theorem 1",
        name,
        f"coefficient of eta^2, tau = {tau}, simulated, extrapolated to eta = 0",
        f"{size:.4g}",
        level,
        level_error,
        "|z| below 4",
        abs(level - size) < 4 * level_error,
        "predicted by exact perturbation",
    )


def extrapolated(x: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The value at x = 0 of a weighted parabola through the points."""
    columns = np.stack([np.ones_like(x), x, x**2], 1) / error[:, None]
    covariance = np.linalg.inv(columns.T @ columns)
    return float((covariance @ columns.T @ (y / error))[0]), float(np.sqrt(covariance[0, 0]))


def theorem_2(learner: Learner, kind: str, geometric: bool) -> Iterator[Prediction]:
    """Deterministic dynamics: one lane, no noise. The free phase, from rest, of one stimulus."""
    name, z = f"{learner.name}, {kind}", learner.method.rest()
    x = learner.source.data[0][3], learner.source.data[1][3]
    at = repeated(z, tuple(map(jnp.asarray, x)), 1)
    taus = np.array([40, 80, 160, 320])

    def feedback(eta: float, tau: float) -> np.ndarray:
        return gap(learner.method, learner.params, at, -1.0, eta, float(tau), geometric=geometric)[
            0
        ]

    g = series(learner.method, learner.params, at, -1.0, 15 * taus[-1])[:, 0]
    ticks = np.arange(len(g))
    reach = (
        (lambda tau: (1 - 1 / tau) ** ticks)
        if geometric
        else (lambda tau: (ticks < tau).astype(float))
    )
    transient = norms(lambda tau: reach(tau) @ (g - g[-1]) / tau, taus)
    yield row(
        "Theorem 2", name, "exponent of the transient bias in tau", -1, exponent(taus, transient)
    )
    yield row(
        "Theorem 2",
        name,
        "exponent of the feedback bias in eta, tau = 80",
        2,
        exponent(ETAS, norms(lambda e: feedback(e, 80), ETAS)),
    )
    yield row(
        "Theorem 2",
        name,
        "exponent of the feedback bias in tau, eta = 0.02",
        0,
        exponent(taus, norms(lambda t: feedback(0.02, t), taus)),
    )
