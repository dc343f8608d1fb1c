"""Theorems 1 and 2 and the open question: exponents of both parts of the bias in eta and tau.

"Exact" rows come from transition matrices and have no sampling error; their interval is that of the
fitted line.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from . import bias
from .chains import relaxation_time
from .coupling import gap, horizon, series
from .exponents import Exponent, along, exponent
from .frozen import repeated
from .prediction import Prediction
from .zoo import Learner, Walk, learners, walks

ETAS = np.array([0.01, 0.02, 0.04, 0.08])
NEAR = 0.15  # how close an exponent must be where the theorem is tight
KINDS = {"fixed T": False, "geometric T": True}


def bias_claims() -> Iterator[Prediction]:
    """All rows about the bias, for fixed and for geometric lengths."""
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
    """An exponent against the theory's: near it, or not above it where the theorem is a bound."""
    off = fit.slope - predicted
    passed = off < NEAR if bound else abs(off) < NEAR
    within = f"within {NEAR} of {predicted:g}"
    return Prediction(
        source=source,
        learner=name,
        statement=what,
        predicted=f"at most {predicted:g}" if bound else f"{predicted:g}",
        measured=fit.slope,
        error=(fit.high - fit.low) / 2,
        test=f"bound: not above {predicted:g} + {NEAR}" if bound else within,
        passed=bool(passed),
        note=note,
    )


def above(
    source: str,
    name: str,
    what: str,
    fit: Exponent,
    *,
    predicted: str,
    least: float,
    test: str,
    note: str = "",
) -> Prediction:
    """An exponent that must lie above `least`."""
    error, passed = (fit.high - fit.low) / 2, fit.slope > least
    return Prediction(source, name, what, predicted, fit.slope, error, test, passed, note)


def norms(f: Callable[[float], np.ndarray], values: Any) -> np.ndarray:
    """|f(v)| for each of the values."""
    return np.array([np.linalg.norm(f(v)) for v in values])


def long_phases(chain: Any) -> np.ndarray:
    """20 to 160 relaxation times."""
    return np.ceil(np.array([20, 40, 80, 160]) * max(relaxation_time(chain.P), 1.0))


def short_phases(chain: Any) -> np.ndarray:
    """Below the relaxation time, if there is room."""
    return np.unique(np.floor(np.geomspace(2, max(2, relaxation_time(chain.P) / 2), 4)))


def exact_claims(walk: Walk, kind: str, geometric: bool) -> Iterator[Prediction]:
    """Theorem 1, its remark and the open question on a chain, without sampling error."""
    chain, start, name = walk.chain, walk.start, f"{walk.name}, {kind}"

    def transient(tau: float) -> np.ndarray:
        return bias.transient(chain, start, tau, geometric)

    def feedback(tau: float) -> np.ndarray:
        return bias.feedback(chain, start, tau, geometric)

    def along_the_remark(eta: float) -> np.ndarray:
        tau = np.ceil(eta**-0.5)
        return eta * transient(tau) + eta**2 * feedback(tau)

    relaxation = relaxation_time(chain.P)
    memory = f"relaxation time {relaxation:.1f} ticks"
    taus = long_phases(chain)
    what = "exponent of the transient bias in tau (exact)"
    yield row("Theorem 1", name, what, -1, exponent(taus, norms(transient, taus)), note=memory)
    limit = float(np.linalg.norm(bias.feedback_limit(chain, geometric)))
    yield from long_feedback(name, taus, norms(feedback, taus), limit, memory)
    short = short_phases(chain)
    if len(short) > 2:
        yield above(
            "Open question",
            name,
            "below the relaxation time the feedback bias grows with tau (exact)",
            exponent(short, norms(feedback, short)),
            predicted="above 0",
            least=0.5,
            test="exponent above 0.5",
            note=f"tau = {short[0]:g} to {short[-1]:g}: below the mixing time it does grow",
        )
    etas = np.array([1e-3, 2e-3, 5e-3, 1e-2]) / max(relaxation, 1.0) ** 2
    yield above(
        "Remark to Theorem 1",
        name,
        "exponent of the bias in eta along tau = 1/sqrt(eta) (exact)",
        exponent(etas, norms(along_the_remark, etas)),
        predicted="at least 1.25",
        least=1.25 - NEAR,
        test="above 1.25 - 0.15",
    )


def long_feedback(
    name: str, taus: np.ndarray, sizes: np.ndarray, limit: float, memory: str
) -> Iterator[Prediction]:
    """The feedback bias over eta^2, `sizes`, in long phases: it stops growing at `limit`."""
    fit = exponent(taus, sizes)
    what = "exponent of the feedback bias in tau, tau above 20 relaxation times (exact)"
    loose = f"{memory}; the bound holds and is loose"
    yield row("Theorem 1", name, what, 1, fit, bound=True, note=loose)
    what = "the feedback bias is eta^2, not eta^2 tau: exponent in tau (exact)"
    yield row("Open question", name, what, 0, fit, note=memory)
    yield Prediction(
        source="Open question",
        learner=name,
        statement="its coefficient at the longest tau: (E[T^2] / 2 tau^2) (d gbar/dtheta) gbar",
        predicted=f"{limit:.4g}",
        measured=sizes[-1],
        error=0.0,
        test="within 5 %",
        passed=bool(abs(sizes[-1] / limit - 1) < 0.05),
    )


def simulated_claims(walk: Walk, kind: str, geometric: bool) -> Iterator[Prediction]:
    """Theorem 1 on the method itself: learning, and coupled to itself with frozen parameters."""
    name, tau = f"{walk.name}, {kind}", int(max(32, np.ceil(10 * relaxation_time(walk.chain.P))))
    lanes = min(2**14, 2**23 // horizon(tau, geometric))
    exact = bias.feedback(walk.chain, walk.start, tau, geometric)
    size = float(np.linalg.norm(exact))
    # a feedback of at most 8 % of the update
    etas = ETAS * min(1.0, float(np.linalg.norm(bias.equilibrium(walk.chain))) / size)
    at = walk.starts(lanes)
    runs = [
        gap(walk.method, walk.params, at, -1.0, eta, tau, geometric=geometric, seed=i)
        for i, eta in enumerate(etas)
    ]
    mean, error = np.array([along(run, exact) for run in runs]).T
    what = f"exponent of the feedback bias in eta, tau = {tau} (simulated)"
    yield row("Theorem 1", name, what, 2, exponent(etas, mean, error))
    level, level_error = extrapolated(etas, mean / etas**2, error / etas**2)
    yield Prediction(
        source="Theorem 1",
        learner=name,
        statement=f"coefficient of eta^2, tau = {tau}, simulated, extrapolated to eta = 0",
        predicted=f"{size:.4g}",
        measured=level,
        error=level_error,
        test="|z| below 4",
        passed=abs(level - size) < 4 * level_error,
        note="predicted by exact perturbation",
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
    g = series(learner.method, learner.params, at, -1.0, 15 * taus[-1])[:, 0]
    ticks = np.arange(len(g))

    def feedback(eta: float, tau: float) -> np.ndarray:
        samples = gap(
            learner.method, learner.params, at, -1.0, eta, float(tau), geometric=geometric
        )
        return samples[0]

    def transient(tau: float) -> np.ndarray:
        reached = (1 - 1 / tau) ** ticks if geometric else (ticks < tau).astype(float)
        return reached @ (g - g[-1]) / tau

    for what, predicted, values, part in (
        ("exponent of the transient bias in tau", -1, taus, transient),
        ("exponent of the feedback bias in eta, tau = 80", 2, ETAS, lambda e: feedback(e, 80)),
        ("exponent of the feedback bias in tau, eta = 0.02", 0, taus, lambda t: feedback(0.02, t)),
    ):
        yield row("Theorem 2", name, what, predicted, exponent(values, norms(part, values)))
