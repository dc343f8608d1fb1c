"""The paper's claims in words, decided by stated statistical tests at the 5 % level.

Each function takes the paper's sentence and errors over seeds (lower is better), and returns a
`Claim`: what was measured, pass, fail or unclear, and the test behind it.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from ..report.findings import Claim, Verdict

Sample = Any  # one number per seed
Side = Literal["below", "above"]
#: How the parameters of a run may be read, and whether that is the average.
READ = {"last iterate": False, "slow weights": True}
LEVEL = 0.05
SLIGHT = 0.10  # of the improvement that the reference makes over the untrained model
DRASTIC = 0.20
WELCH: dict[str, Any] = {"equal_var": False, "alternative": "greater"}


class Seeds(NamedTuple):
    """The errors of one rule, one number per seed, and what the report calls it."""

    name: str
    values: Sample

    def __str__(self) -> str:
        return f"{self.name} {mean_sd(self.values)}"


def mean_sd(values: Sample) -> str:
    """Mean ± sd, median and number of the seeds; the mean alone where there is one seed."""
    if np.size(values) == 1:
        return brief(values)
    return f"{plus_minus(values)} (median {np.median(values):.4g}, n = {np.size(values)})"


def brief(values: Sample) -> str:
    """Mean ± sd (median), for lists that say so at their head."""
    if np.size(values) == 1:
        return f"{np.mean(values):.4g}"
    return f"{plus_minus(values)} ({np.median(values):.4g})"


def plus_minus(values: Sample) -> str:
    return f"{np.mean(values):.4g} ± {np.std(values, ddof=1):.2g}"


def verdict(passes: bool, fails: bool) -> Verdict:
    """Pass and fail are both significant; everything else is unclear."""
    if passes:
        return "pass"
    return "fail" if fails else "unclear"


def decide(p: float) -> Verdict:
    """From a one-sided p-value: small supports the claim, large supports its opposite."""
    return verdict(p < LEVEL, p > 1 - LEVEL)


def all_of(*verdicts: Verdict) -> Verdict:
    """Fail if one fails, else unclear if one is unclear."""
    return verdict(all(v == "pass" for v in verdicts), "fail" in verdicts)


def tested(test: Callable[..., Any], *samples: Sample, **options: Any) -> Any:
    """What a test of scipy says; NaN, which decides nothing, where samples do not vary at all."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return test(*samples, **options)


def p_value(test: Callable[..., Any], *samples: Sample, **options: Any) -> float:
    """The p-value of a test of scipy."""
    return float(tested(test, *samples, **options).pvalue)


def worse(a: Sample, b: Sample) -> float:
    """One-sided p of Welch's t-test for "the mean error of a exceeds that of b"."""
    return p_value(stats.ttest_ind, a, b, **WELCH)


def more_spread(a: Sample, b: Sample) -> float:
    """One-sided p of the Brown-Forsythe test for "a varies more than b over seeds".

    What it compares is the mean distance from the median, which one outlier does not decide.
    """
    p = p_value(stats.levene, a, b, center="median")
    far = [np.mean(np.abs(np.asarray(x) - np.median(x))) for x in (a, b)]
    return p / 2 if far[0] > far[1] else 1 - p / 2


def gap(a: Sample, b: Sample) -> tuple[float, float]:
    """Two-sided 90 % confidence interval (each end one-sided 5 %) of mean(a) - mean(b), Welch."""
    interval = tested(stats.ttest_ind, a, b, equal_var=False).confidence_interval(1 - 2 * LEVEL)
    return float(interval.low), float(interval.high)


def within(a: Sample, b: Sample, limit: float) -> Verdict:
    """Is a's mean error at most `limit` above b's? Decided by the interval of the gap; by the means
    alone where all seeds agree to the last digit.
    """
    low, high = gap(a, b)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        low = high = float(np.mean(a) - np.mean(b))
    return verdict(high < limit, low > limit)


def is_worse(words: str, a: Seeds, b: Seeds) -> Claim:
    """Is the mean error of a above that of b?"""
    p = worse(a.values, b.values)
    return Claim(words, f"{a}, {b}, p = {p:.2g}", decide(p), "Welch t-test over seeds, one-sided")


def improvement(reference: Sample, untrained: float) -> float | None:
    """How far the reference's mean error is below that of an untrained model; None where that is
    too little (under 5 %) to measure shares of it.
    """
    learned = untrained - float(np.mean(reference))
    return learned if learned > 0.05 * untrained else None


def not_yet(words: str, reference: Seeds) -> Claim:
    """The claim cannot be decided: the reference has not learned."""
    measured = f"{reference.name} has hardly learned yet: {mean_sd(reference.values)}"
    return Claim(words, measured, "unclear", "needs a reference that has learned")


def slightly_worse(words: str, a: Seeds, b: Seeds, untrained: float) -> Claim:
    """Is a worse than b, and by less than SLIGHT of what b has learned?"""
    learned = improvement(b.values, untrained)
    if learned is None:
        return not_yet(words, b)
    p, slight = worse(a.values, b.values), within(a.values, b.values, SLIGHT * learned)
    share = (float(np.mean(a.values)) - float(np.mean(b.values))) / learned
    measured = f"{a}, {b}: a gap of {share:.1%} of the improvement, p(worse) = {p:.2g}"
    test = (
        "Welch t-test, one-sided, for worse; "
        f"90 % interval of the gap below {SLIGHT:.0%} of the improvement for slightly"
    )
    return Claim(words, measured, all_of(decide(p), slight), test)


def varies_more(words: str, a: Seeds, b: Seeds) -> Claim:
    """Does a vary more over seeds than b?"""
    p = more_spread(a.values, b.values)
    spread = ", ".join(f"{s.name} {np.std(s.values, ddof=1):.3g}" for s in (a, b))
    measured = f"sd over seeds: {spread}, p = {p:.2g}"
    return Claim(words, measured, decide(p), "Brown-Forsythe test, one-sided")


def fails(words: str, a: Seeds, b: Seeds, untrained: float) -> Claim:
    """Does a miss more than DRASTIC of what b learns?"""
    learned = improvement(b.values, untrained)
    if learned is None:
        return not_yet(words, b)
    low, high = gap(a.values, b.values)
    limit = DRASTIC * learned
    missing = (np.mean(a.values) - np.mean(b.values)) / learned
    measured = f"{a}, {b}: {missing:.0%} of the improvement is missing"
    test = f"90 % interval of the gap above {DRASTIC:.0%} of the improvement (Welch)"
    return Claim(words, measured, verdict(low > limit, high < limit), test)


def robust(
    words: str,
    bs: Sequence[float],
    errors: Sequence[Sample],
    untrained: float,
    low: float = 0.2,
    high: float = 0.8,
) -> Claim:
    """Does no b from `low` to `high` lose more than DRASTIC of what the best b learns?

    errors[i] holds the seeds of bs[i].
    """
    means = [float(np.mean(e)) for e in errors]
    top = int(np.argmin(means))
    learned = improvement(errors[top], untrained)
    if learned is None:
        return not_yet(words, Seeds(f"even b = {bs[top]:.2g}", errors[top]))
    inside = [i for i, b in enumerate(bs) if low - 1e-6 <= b <= high + 1e-6 and i != top]
    verdicts: list[Verdict] = [within(errors[i], errors[top], DRASTIC * learned) for i in inside]
    worst = max(inside, key=lambda i: means[i])
    measured = (
        f"best at b = {bs[top]:.2g} with {mean_sd(errors[top])}; "
        f"the worst of the range is b = {bs[worst]:.2g} with {mean_sd(errors[worst])}, "
        f"{(means[worst] - means[top]) / learned:.1%} of the improvement lost"
    )
    test = (
        f"at each b from {low} to {high}: "
        f"90 % interval of the gap to the best below {DRASTIC:.0%} (Welch)"
    )
    return Claim(words, measured, all_of(*verdicts), test)


def beat(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """p for "one of ours has a lower mean than all of theirs".

    It must beat each of them, so the largest p counts; it is the best of len(ours), so that p is
    multiplied by their number (Bonferroni).
    """
    us, them = np.stack(ours)[:, None], np.stack(theirs)[None]
    p = np.nan_to_num(tested(stats.ttest_ind, them, us, axis=-1, **WELCH).pvalue, nan=1.0)
    return min(1.0, len(ours) * float(p.max(1).min()))


def best_is(words: str, side: Side, bs: Sequence[float], errors: Sequence[Sample]) -> Claim:
    """Does some b below (above) 0.5 beat 0.5 and every b beyond it?

    It fails where one of those beats every b of the side. errors[i] holds the seeds of bs[i].
    """
    inside = [b < 0.5 - 1e-6 if side == "below" else b > 0.5 + 1e-6 for b in bs]
    ours, theirs = (
        [e for e, chosen in zip(errors, inside, strict=True) if chosen is wanted]
        for wanted in (True, False)
    )
    p, opposite = beat(ours, theirs), beat(theirs, ours)
    top = int(np.argmin([np.mean(e) for e in errors]))
    measured = (
        f"best at b = {bs[top]:.2g} with {mean_sd(errors[top])}; "
        f"p({side} 0.5) = {p:.2g}, p(not {side}) = {opposite:.2g}"
    )
    test = (
        "Welch t-tests over seeds, one-sided: one b of the side must beat all others; "
        "Bonferroni for the choice of that b"
    )
    return Claim(words, measured, verdict(p < LEVEL, opposite < LEVEL), test)


def leans(words: str, side: Side, bs: Sequence[float], errors: Sequence[Sample]) -> Claim:
    """Is b on this side of 0.5 better than its mirror image 1 - b, on average over all pairs?

    Paired over seeds; errors[i] holds the seeds of bs[i].
    """
    at = {round(b, 6): np.asarray(e, float) for b, e in zip(bs, errors, strict=True)}
    pairs = [(at[b], at[round(1 - b, 6)]) for b in at if b < 0.5 and round(1 - b, 6) in at]
    excess = np.mean([low - high if side == "above" else high - low for low, high in pairs], axis=0)
    p = p_value(stats.ttest_rel, excess, np.zeros_like(excess), alternative="greater")
    measured = (
        f"error at the mirror image is higher by {mean_sd(excess)}, mean of {len(pairs)} pairs, "
        f"p = {p:.2g}"
    )
    test = "paired t-test over seeds, one-sided, of the mean over pairs b and 1 - b"
    return Claim(words, measured, decide(p), test)


def shrinks(words: str, wide: Sample, narrow: Sample, what: str) -> Claim:
    """Is the gap `narrow` smaller than the gap `wide`? Paired over seeds."""
    p = p_value(stats.ttest_rel, wide, narrow, alternative="greater")
    gaps = f"gap {mean_sd(wide)} over steps, {mean_sd(narrow)} over time steps"
    return Claim(
        words, f"{what}: {gaps}, p = {p:.2g}", decide(p), "paired t-test over seeds, one-sided"
    )


def matters_less(words: str, what: str, before: Sequence[Sample], after: Sequence[Sample]) -> Claim:
    """Do the settings differ less with slow weights? before[i] and after[i] hold the seeds of
    setting i, last iterate and slow weights; `what` names the settings.
    """
    spread = [np.std(each, axis=0, ddof=1) for each in (before, after)]
    p = p_value(stats.ttest_rel, *spread, alternative="greater")
    ranges = [np.ptp([np.median(values) for values in each]) for each in (before, after)]
    return Claim(
        words,
        f"best and worst median differ by {ranges[0]:.3g}, with slow weights by {ranges[1]:.3g}; "
        f"p = {p:.2g}",
        decide(p),
        f"paired t-test over seeds, one-sided, of the sd over {what}",
    )
