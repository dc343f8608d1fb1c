"""The paper's propositions, lemmas and theorems as rows of a table.

Each says what is predicted, what is measured, and whether it passes a stated test.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from scipy.stats import norm

from ..core import Optimiser
from ..data import Rows, bars_and_stripes
from ..methods import RBM
from ..methods.rbm import Params
from ..phases import Alternating, Geometric, Phases, tape
from ..rules import aol
from ..training import train
from . import lengths
from .claims_bias import bias_claims
from .exact import exact_moments
from .moments import moments
from .prediction import Prediction
from .streams import Stream, deviation, fitted_b, second_differences, stream
from .variance import Moments, best_b, given, least_penalty, penalty, trace_isd, trace_two_term
from .zoo import Learner, learners

B = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
# |z| that 8 directions x 5 values of b exceed by chance once in a hundred tables
FEW = norm.isf(0.005 / (8 * len(B)))


def table(progress: Callable[[str], None] = lambda _: None) -> list[Prediction]:
    """All rows; this takes about two minutes. `progress(name)` is called before each part."""
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
    learner really produces: `lanes` of `phases` phases.
    """
    size = {"phases": phases, "lanes": lanes}
    m = moments(learner.two_term(), learner.params, seed=1, **size)
    pairs = stream(learner.two_term(), learner.params, seed=2, **size)
    singles = [stream(learner.isd(b), learner.params, seed=3 + i, **size) for i, b in enumerate(B)]
    trace, error = np.array([single.trace() for single in singles]).T
    yield unbiased(learner.name, singles, pairs)
    yield from predicted_traces(learner.name, m, trace, error, pairs)
    yield from lemmas(learner.name, m, trace, error, pairs)
    yield best_of_traces(learner.name, m, trace, error)


def unbiased(learner: str, singles: list[Stream], pairs: Stream) -> Prediction:
    """Proposition 1: eq. 2 has the mean of eq. 1 at every b."""
    z = max(deviation(single.mean, pairs.mean) for single in singles)
    return Prediction(
        source="Proposition 1",
        learner=learner,
        statement="ISD is unbiased, b = 0.05 to 0.95",
        predicted="z = 0",
        measured=z,
        error=1.0,
        test=f"largest |z| over b and 8 directions below {FEW:.2f}",
        passed=bool(z < FEW),
    )


def predicted_traces(
    learner: str, m: Moments, trace: np.ndarray, error: np.ndarray, pairs: Stream
) -> Iterator[Prediction]:
    """Tr cov of eq. 2 at each b, and of eq. 1, against what the moments predict."""
    off = trace / trace_isd(m, B) - 1
    worst = np.argmax(np.abs(off))
    yield Prediction(
        source="App. proposition",
        learner=learner,
        statement="Tr cov of ISD against b",
        predicted="ratio 1",
        measured=1 + off[worst],
        error=error[worst] / trace[worst],
        test="worst of five b within 2 %",
        passed=abs(off[worst]) < 0.02,
        note=f"worst at b = {B[worst]:g}",
    )
    (two, two_error), expected = pairs.trace(), float(trace_two_term(m))
    yield Prediction(
        source="App. A, eq. 1",
        learner=learner,
        statement="Tr cov of the two-term estimate, with the cross term",
        predicted="ratio 1",
        measured=two / expected,
        error=two_error / expected,
        test="within 2 %",
        passed=abs(two / expected - 1) < 0.02,
    )


def lemmas(
    learner: str, m: Moments, trace: np.ndarray, error: np.ndarray, pairs: Stream
) -> Iterator[Prediction]:
    """Tr cov of eq. 2 lies above that of eq. 1 (Lemma 1) and is convex in b (Lemma 2)."""
    two, two_error = pairs.trace()
    excess = (trace - two) / np.hypot(error, two_error)
    bend = second_differences(B, trace, error)
    for source, statement, z, test, note in (
        (
            "Lemma 1",
            "ISD has the larger variance",
            excess.min(),
            "smallest z over b above 3",
            f"mu+ . mu- = {m.means:.3g}",
        ),
        (
            "Lemma 2",
            "Tr cov is convex in b",
            bend.min(),
            "second differences: smallest z above 3",
            "",
        ),
    ):
        yield Prediction(source, learner, statement, "z > 0", z, 1.0, test, z > 3, note)


def best_of_traces(learner: str, m: Moments, trace: np.ndarray, error: np.ndarray) -> Prediction:
    """The b at which simulated traces are least, against b* from the moments."""
    fit, fit_error = fitted_b(B, trace, error)
    total = float(np.hypot(fit_error, m.error(best_b)))
    return Prediction(
        source="App. proposition",
        learner=learner,
        statement="b*, minimum of the simulated traces",
        predicted=f"{best_b(m):.4f}",
        measured=fit,
        error=total,
        test="|z| below 3",
        passed=abs(fit - best_b(m)) < 3 * total,
    )


def lemma_1() -> Iterator[Prediction]:
    """The example that breaks "strictly", and why nothing breaks more than that."""
    opposed = given(0, 0, [1.0], [-1.0])
    gap = float(penalty(opposed, 0.5))
    yield Prediction(
        source="Lemma 1",
        learner="g+ = 1, g- = -1, b = 1/2",
        statement="without mu+ . mu- >= 0 it may fail",
        predicted="excess <= 0",
        measured=gap,
        error=0.0,
        test="not above 0",
        passed=gap <= 0,
        note="equality: both estimates are always 2",
    )
    # 4000 pairs of terms in R^3 with two equally likely joint values
    g = np.random.default_rng(5).normal(size=(2, 4000, 3, 2))

    def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sum(x * y, 1)

    (p, q), (mu_p, mu_q) = g, g.mean(-1)
    squares = dot(p, p).mean(-1), dot(q, q).mean(-1)
    means = dot(mu_p, mu_p), dot(mu_q, mu_q), dot(mu_p, mu_q)
    least = float(np.min(least_penalty(Moments(*squares, *means, dot(p, q).mean(-1)))))
    yield Prediction(
        source="Lemma 1",
        learner="4000 random pairs of terms",
        statement="ISD is never better, whatever the means and the dependence",
        predicted="excess >= 0",
        measured=least,
        error=0.0,
        test="smallest excess at b* not below 0",
        passed=least >= 0,
        note="given both terms, the mean of eq. 2 is eq. 1",
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
        source="Sec. 3.1",
        learner=learner.name,
        statement="A, C and the means, measured against enumeration",
        predicted="z = 0",
        measured=float(z),
        error=1.0,
        test="largest |z| of six below 4",
        passed=bool(z < 4),
        note=f"trained by the {record.attrs['engine']} engine",
    )


def length_claims(tau: float = 3.0, s: int = 3, phases: int = 2_000_000) -> Iterator[Prediction]:
    """Moments of T: simulated phases of the library's own process, against the exact formulas and
    against the printed ones.
    """
    drawn = tape(Phases(Alternating(), Geometric(tau)), jax.random.key(0), phases)
    T = np.asarray(drawn.ticks, float)
    long = T[s <= T]
    first, second = f"E[T | T >= {s}]", f"E[T^2 | T >= {s}]"
    printed_second = tau**2 + 2 * tau * s + s**2
    rows: list[tuple[str, Any, float, str]] = [
        ("E[T]", T, lengths.moment(1, tau), ""),
        ("E[T^2]", T**2, lengths.moment(2, tau), ""),
        ("E[T^3]", T**3, lengths.moment(3, tau), "corrected: + tau"),
        ("E[T^3] as printed", T**3, 6 * tau**3 - 6 * tau**2 - tau, "a slip: - tau"),
        (first, long, lengths.moment_given(1, tau, s), "corrected: s - 1"),
        (f"{first} as printed", long, tau + s, "a slip: that is E[T | T > s]"),
        (second, long**2, lengths.moment_given(2, tau, s), "corrected"),
        (f"{second} as printed", long**2, printed_second, "a slip: E[T^2] is not tau^2"),
        (f"P(T < {s})", s > T, lengths.shorter(tau, s), "corrected: exponent s - 1"),
        (f"P(T < {s}) as printed", s > T, 1 - (1 - 1 / tau) ** s, "a slip: that is P(T <= s)"),
    ]
    for what, sample, predicted, note in rows:
        mean, error = float(np.mean(sample)), float(np.std(sample) / np.sqrt(len(sample)))
        yield Prediction(
            source="App., moments of T",
            learner=f"geometric, tau = {tau:g}",
            statement=what,
            predicted=f"{float(predicted):.5g}",
            measured=mean,
            error=error,
            test="|z| below 4",
            passed=bool(abs(mean - predicted) < 4 * error),
            note=note,
        )


def markdown(rows: list[Prediction]) -> str:
    """The rows as a Markdown table."""
    lines = ["| where | learner | claim | predicted | measured | test | |", f"{'|---' * 7}|"]
    for r in rows:
        claim = f"{r.statement} ({r.note})" if r.note else r.statement
        error = f" +- {r.error:.2g}" if r.error else " (exact)"
        measured, verdict = f"{r.measured:.4g}{error}", "pass" if r.passed else "FAIL"
        cells = (r.source, r.learner, claim, r.predicted, measured, r.test, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines).replace("|z|", "abs z")
