"""The paper's propositions, lemmas and theorems as rows of a table: what is predicted, what is
measured, pass or fail by a stated test.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.stats import norm

from ..core import Optimiser
from ..data import Rows, bars_and_stripes
from ..engines import train
from ..methods import RBM
from ..methods.rbm import Params
from ..phases import Alternating, Geometric, Phases, tape
from ..rules import aol
from . import lengths
from .exact import exact_moments
from .moments import moments
from .streams import deviation, fitted_b, second_differences, stream
from .variance import Moments, best_b, given, least_penalty, penalty, trace_isd, trace_two_term
from .zoo import Learner, learners

B = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FEW = norm.isf(
    0.005 / (8 * len(B))
)  # |z| that 8 directions x 5 values of b exceed by chance once in a hundred tables


class Prediction(NamedTuple):
    source: str  # where the paper says it
    learner: str
    statement: str
    predicted: str
    measured: float
    error: (
        float  # standard error, or half a 95 % interval where the test says so; 0 for exact numbers
    )
    test: str
    passed: bool
    note: str = ""


def table(progress: Callable[[str], None] = lambda _: None) -> list[Prediction]:
    """All claims. `progress` hears the name of each part."""
    from .claims_bias import bias_claims

    rows: list[Prediction] = []
    for learner in learners():
        progress(f"variance, {learner.name}")
        rows += variance_claims(learner)
    for name, part in {
        "Lemma 1": lemma_1,
        "trained RBM": trained_rbm,
        "phase lengths": length_claims,
        "bias": bias_claims,
    }.items():
        progress(name)
        rows += part()
    return rows


def variance_claims(learner: Learner, phases: int = 500, lanes: int = 512) -> Iterator[Prediction]:
    """Proposition 1, the appendix proposition and both lemmas, on streams of estimates that the
    learner really produces.
    """
    m = moments(learner.two_term(), learner.params, phases=phases, lanes=lanes, seed=1)
    pairs = stream(learner.two_term(), learner.params, phases=phases, lanes=lanes, seed=2)
    singles = [
        stream(learner.isd(b), learner.params, phases=phases, lanes=lanes, seed=3 + i)
        for i, b in enumerate(B)
    ]
    z = max(deviation(single.mean, pairs.mean) for single in singles)
    yield Prediction(
        "Proposition 1",
        learner.name,
        "ISD is unbiased, b = 0.05 to 0.95",
        "z = 0",
        z,
        1.0,
        f"largest |z| over b and 8 directions below {FEW:.2f}",
        bool(z < FEW),
    )
    trace, error = np.array([single.trace() for single in singles]).T
    off = trace / trace_isd(m, B) - 1
    worst = np.argmax(np.abs(off))
    yield Prediction(
        "App. proposition",
        learner.name,
        "Tr cov of ISD against b",
        "ratio 1",
        1 + off[worst],
        error[worst] / trace[worst],
        "worst of five b within 2 %",
        abs(off[worst]) < 0.02,
        f"worst at b = {B[worst]:g}",
    )
    two, two_error = pairs.trace()
    ratio = two / float(trace_two_term(m))
    yield Prediction(
        "App. A, eq. 1",
        learner.name,
        "Tr cov of the two-term estimate, with the cross term",
        "ratio 1",
        ratio,
        two_error / float(trace_two_term(m)),
        "within 2 %",
        abs(ratio - 1) < 0.02,
    )
    excess = (trace - two) / np.hypot(error, two_error)
    yield Prediction(
        "Lemma 1",
        learner.name,
        "ISD has the larger variance",
        "z > 0",
        excess.min(),
        1.0,
        "smallest z over b above 3",
        excess.min() > 3,
        f"mu+ . mu- = {m.means:.3g}",
    )
    bend = second_differences(B, trace, error)
    yield Prediction(
        "Lemma 2",
        learner.name,
        "Tr cov is convex in b",
        "z > 0",
        bend.min(),
        1.0,
        "second differences: smallest z above 3",
        bend.min() > 3,
    )
    fit, fit_error = fitted_b(B, trace, error)
    total = float(np.hypot(fit_error, m.error(best_b)))
    yield Prediction(
        "App. proposition",
        learner.name,
        "b*, minimum of the simulated traces",
        f"{best_b(m):.4f}",
        fit,
        total,
        "|z| below 3",
        abs(fit - best_b(m)) < 3 * total,
    )


def lemma_1() -> Iterator[Prediction]:
    """The example that breaks "strictly", and why nothing breaks more than that."""
    opposed = given(0, 0, [1.0], [-1.0])
    gap = float(penalty(opposed, 0.5))
    yield Prediction(
        "Lemma 1",
        "g+ = 1, g- = -1, b = 1/2",
        "without mu+ . mu- >= 0 it may fail",
        "excess <= 0",
        gap,
        0.0,
        "not above 0",
        gap <= 0,
        "equality: both estimates are always 2",
    )
    g = np.random.default_rng(5).normal(
        size=(2, 4000, 3, 2)
    )  # 4000 pairs of terms in R^3 with two equally likely joint values
    dot = lambda x, y: np.sum(x * y, 1)  # noqa: E731
    (p, q), (mu_p, mu_q) = g, g.mean(-1)
    second = (
        dot(p, p).mean(-1),
        dot(q, q).mean(-1),
        dot(mu_p, mu_p),
        dot(mu_q, mu_q),
        dot(mu_p, mu_q),
        dot(p, q).mean(-1),
    )
    least = float(np.min(least_penalty(Moments(*second))))
    yield Prediction(
        "Lemma 1",
        "4000 random pairs of terms",
        "ISD is never better, whatever the means and the dependence",
        "excess >= 0",
        least,
        0.0,
        "smallest excess at b* not below 0",
        least >= 0,
        "given both terms, the mean of eq. 2 is eq. 1",
    )


def trained_rbm() -> Iterator[Prediction]:
    """A real checkpoint: the RBM of the paper, trained a little on the fastest engine that fits,
    enumerated and measured.
    """
    data = bars_and_stripes(4)
    learner = Learner("trained RBM 16x16", RBM(16, 16, visible_bias=False), None, Rows(data), 100)
    run = learner.run(aol(0.5, 100))._replace(optimiser=Optimiser(0.01))
    record = train(run, phases=2000, records=1, engine="auto")
    params = Params(**{name: jax.numpy.asarray(value[0]) for name, value in record.params.items()})
    m = moments(learner.two_term(), params, phases=40, lanes=256)
    exact = exact_moments(run.method, params, data)
    z = np.max(np.abs((np.array(m[:6]) - np.array(exact[:6])) / np.array(m.se[:6])))
    yield Prediction(
        "Sec. 3.1",
        learner.name,
        "A, C and the means, measured against enumeration",
        "z = 0",
        float(z),
        1.0,
        "largest |z| of six below 4",
        bool(z < 4),
        f"trained by the {record.attrs['engine']} engine",
    )


def length_claims(tau: float = 3.0, s: int = 3, phases: int = 2_000_000) -> Iterator[Prediction]:
    """Moments of T: simulated phases of the library's own process, against the exact formulas and
    against the printed ones.
    """
    T = np.asarray(
        tape(Phases(Alternating(), Geometric(tau)), jax.random.key(0), phases).ticks, float
    )
    long = T[s <= T]
    rows: list[tuple[str, Any, float, str]] = [
        ("E[T]", T, lengths.moment(1, tau), ""),
        ("E[T^2]", T**2, lengths.moment(2, tau), ""),
        ("E[T^3]", T**3, lengths.moment(3, tau), "corrected: + tau"),
        ("E[T^3] as printed", T**3, 6 * tau**3 - 6 * tau**2 - tau, "a slip: - tau"),
        (f"E[T | T >= {s}]", long, lengths.moment_given(1, tau, s), "corrected: s - 1"),
        (f"E[T | T >= {s}] as printed", long, tau + s, "a slip: that is E[T | T > s]"),
        (f"E[T^2 | T >= {s}]", long**2, lengths.moment_given(2, tau, s), "corrected"),
        (
            f"E[T^2 | T >= {s}] as printed",
            long**2,
            tau**2 + 2 * tau * s + s**2,
            "a slip: E[T^2] is not tau^2",
        ),
        (f"P(T < {s})", s > T, lengths.shorter(tau, s), "corrected: exponent s - 1"),
        (f"P(T < {s}) as printed", s > T, 1 - (1 - 1 / tau) ** s, "a slip: that is P(T <= s)"),
    ]
    for what, sample, predicted, note in rows:
        mean, error = float(np.mean(sample)), float(np.std(sample) / np.sqrt(len(sample)))
        yield Prediction(
            "App., moments of T",
            f"geometric, tau = {tau:g}",
            what,
            f"{float(predicted):.5g}",
            mean,
            error,
            "|z| below 4",
            bool(abs(mean - predicted) < 4 * error),
            note,
        )


def markdown(rows: list[Prediction]) -> str:
    """The table for people."""
    head = (
        "| where | learner | claim | predicted | measured | test | "
        "|\n|---|---|---|---|---|---|---|\n"
    )
    lines = (
        f"| {r.source} | {r.learner} | {r.statement}{f' ({r.note})' if r.note else ''} | "
        f"{r.predicted} "
        f"| {r.measured:.4g}{f' +- {r.error:.2g}' if r.error else ' (exact)'} | {r.test} | "
        f"{'pass' if r.passed else 'FAIL'} |\n"
        for r in rows
    )
    return (head + "".join(lines)).replace("|z|", "abs z")
