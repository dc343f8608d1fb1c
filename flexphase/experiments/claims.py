"""The paper's claims in words, decided by stated statistical tests at the 5 % level."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import stats

from ..report.findings import Claim, Verdict

Sample = Any  # one number per seed
LEVEL = 0.05
SLIGHT = 0.10  # of the improvement that the reference makes over the untrained model
DRASTIC = 0.20


def mean_sd(values: Sample) -> str:
    x = np.asarray(values, float)
    return f"{x.mean():.4g} ± {x.std(ddof=1):.2g}" if x.size > 1 else f"{x.mean():.4g}"


def decide(p: float) -> Verdict:
    """From a one-sided p-value: small supports the claim, large supports its opposite."""
    return "pass" if p < LEVEL else "fail" if p > 1 - LEVEL else "unclear"


def all_of(*verdicts: Verdict) -> Verdict:
    return "fail" if "fail" in verdicts else "unclear" if "unclear" in verdicts else "pass"


def worse(a: Sample, b: Sample) -> float:
    """One-sided p of Welch's t-test for "the mean error of a exceeds that of b"."""
    welch: Any = stats.ttest_ind(a, b, equal_var=False, alternative="greater")
    return float(welch.pvalue)


def more_spread(a: Sample, b: Sample) -> float:
    """One-sided p of the Brown-Forsythe test for "a varies more than b over seeds"."""
    p = float(stats.levene(a, b, center="median").pvalue)
    return p / 2 if np.std(a) > np.std(b) else 1 - p / 2


def gap(a: Sample, b: Sample) -> tuple[float, float]:
    """Two-sided 90 % confidence interval (each end one-sided 5 %) of mean(a) - mean(b), Welch."""
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(1 - 2 * LEVEL)
    return float(interval.low), float(interval.high)


def within(a: Sample, b: Sample, limit: float) -> Verdict:
    """Is a's mean error at most `limit` above b's? Decided by the confidence interval of the gap."""
    low, high = gap(a, b)
    return "pass" if high < limit else "fail" if low > limit else "unclear"


def is_worse(words: str, name_a: str, a: Sample, name_b: str, b: Sample) -> Claim:
    p = worse(a, b)
    return Claim(
        words,
        f"{name_a} {mean_sd(a)}, {name_b} {mean_sd(b)}, p = {p:.2g}",
        decide(p),
        "Welch t-test over seeds, one-sided",
    )


def improvement(reference: Sample, untrained: float) -> float | None:
    """What the reference has learned; None where that is too little (under 5 %) to measure shares
    of it.
    """
    learned = untrained - float(np.mean(reference))
    return learned if learned > 0.05 * untrained else None


def not_yet(words: str, name: str, reference: Sample) -> Claim:
    return Claim(
        words,
        f"{name} has hardly learned yet: {mean_sd(reference)}",
        "unclear",
        "needs a reference that has learned",
    )


def slightly_worse(
    words: str, name_a: str, a: Sample, name_b: str, b: Sample, untrained: float
) -> Claim:
    """Worse, and by less than SLIGHT of what b has learned."""
    learned = improvement(b, untrained)
    if learned is None:
        return not_yet(words, name_b, b)
    p, slight = worse(a, b), within(a, b, SLIGHT * learned)
    share = (float(np.mean(a)) - float(np.mean(b))) / learned
    measured = (
        f"{name_a} {mean_sd(a)}, {name_b} {mean_sd(b)}: a gap of {share:.1%} of the improvement, "
        f"p(worse) = {p:.2g}"
    )
    test = (
        f"Welch t-test, one-sided, for worse; 90 % interval of the gap below {SLIGHT:.0%} of the "
        "improvement for slightly"
    )
    return Claim(words, measured, all_of(decide(p), slight), test)


def varies_more(words: str, name_a: str, a: Sample, name_b: str, b: Sample) -> Claim:
    p = more_spread(a, b)
    measured = (
        f"sd over seeds: {name_a} {np.std(a, ddof=1):.3g}, {name_b} {np.std(b, ddof=1):.3g}, p = "
        f"{p:.2g}"
    )
    return Claim(words, measured, decide(p), "Brown-Forsythe test, one-sided")


def fails(words: str, name_a: str, a: Sample, name_b: str, b: Sample, untrained: float) -> Claim:
    """Misses more than DRASTIC of what b learns."""
    learned = improvement(b, untrained)
    if learned is None:
        return not_yet(words, name_b, b)
    low, high = gap(a, b)
    limit = DRASTIC * learned
    verdict: Verdict = "pass" if low > limit else "fail" if high < limit else "unclear"
    measured = (
        f"{name_a} {mean_sd(a)}, {name_b} {mean_sd(b)}: {(np.mean(a) - np.mean(b)) / learned:.0%} "
        "of the improvement is missing"
    )
    return Claim(
        words,
        measured,
        verdict,
        f"90 % interval of the gap above {DRASTIC:.0%} of the improvement (Welch)",
    )


def robust(
    words: str,
    bs: Sequence[float],
    errors: Sequence[Sample],
    untrained: float,
    low: float = 0.2,
    high: float = 0.8,
) -> Claim:
    """No b of the range loses more than DRASTIC of what the best b learns; errors[i] holds the
    seeds of bs[i].
    """
    means = [float(np.mean(e)) for e in errors]
    top = int(np.argmin(means))
    learned = improvement(errors[top], untrained)
    if learned is None:
        return not_yet(words, f"even b = {bs[top]:.2g}", errors[top])
    inside = [i for i, b in enumerate(bs) if low - 1e-6 <= b <= high + 1e-6 and i != top]
    verdicts: list[Verdict] = [within(errors[i], errors[top], DRASTIC * learned) for i in inside]
    worst = max(inside, key=lambda i: means[i])
    measured = (
        f"best at b = {bs[top]:.2g} with {mean_sd(errors[top])}; the worst of the range is b = "
        f"{bs[worst]:.2g} with "
        f"{mean_sd(errors[worst])}, {(means[worst] - means[top]) / learned:.1%} of the improvement "
        "lost"
    )
    test = (
        f"at each b from {low} to {high}: 90 % interval of the gap to the best below {DRASTIC:.0%} "
        "(Welch)"
    )
    return Claim(words, measured, all_of(*verdicts), test)


def beat(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """p for "one of ours has a lower mean than all of theirs". It must beat each of them, so the
    largest p counts; it is the best of len(ours), so that p is multiplied by their number
    (Bonferroni).
    """
    return min(1.0, len(ours) * min(max(worse(them, us) for them in theirs) for us in ours))


def best_is(
    words: str, side: Literal["below", "above"], bs: Sequence[float], errors: Sequence[Sample]
) -> Claim:
    """Does some b below (above) 0.5 beat 0.5 and every b beyond it? It fails where one of those
    beats every b of the side.
    """
    inside = [b < 0.5 - 1e-6 if side == "below" else b > 0.5 + 1e-6 for b in bs]
    ours, theirs = (
        [e for e, chosen in zip(errors, inside, strict=True) if chosen is wanted]
        for wanted in (True, False)
    )
    p, opposite = beat(ours, theirs), beat(theirs, ours)
    verdict: Verdict = "pass" if p < LEVEL else "fail" if opposite < LEVEL else "unclear"
    top = int(np.argmin([np.mean(e) for e in errors]))
    measured = (
        f"best at b = {bs[top]:.2g} with {mean_sd(errors[top])}; p({side} 0.5) = {p:.2g}, p(not "
        f"{side}) = {opposite:.2g}"
    )
    test = (
        "Welch t-tests over seeds, one-sided: one b of the side must beat all others; Bonferroni "
        "for the choice of that b"
    )
    return Claim(words, measured, verdict, test)


def leans(
    words: str, side: Literal["below", "above"], bs: Sequence[float], errors: Sequence[Sample]
) -> Claim:
    """Is b on this side of 0.5 better than its mirror image 1 - b, on average over all pairs?
    Paired over seeds.
    """
    at = {round(b, 6): np.asarray(e, float) for b, e in zip(bs, errors, strict=True)}
    pairs = [(at[b], at[round(1 - b, 6)]) for b in at if b < 0.5 and round(1 - b, 6) in at]
    excess = np.mean([low - high if side == "above" else high - low for low, high in pairs], axis=0)
    p = float(stats.ttest_rel(excess, np.zeros_like(excess), alternative="greater").pvalue)
    measured = (
        f"error at the mirror image is higher by {mean_sd(excess)} (mean and sd over seeds of "
        f"{len(pairs)} pairs), p = {p:.2g}"
    )
    return Claim(
        words,
        measured,
        decide(p),
        "paired t-test over seeds, one-sided, of the mean over pairs b and 1 - b",
    )


def shrinks(words: str, wide: Sample, narrow: Sample, what: str) -> Claim:
    """Paired over seeds: is the gap `narrow` smaller than the gap `wide`?"""
    p = float(stats.ttest_rel(wide, narrow, alternative="greater").pvalue)
    measured = (
        f"{what}: gap {mean_sd(wide)} over steps, {mean_sd(narrow)} over time steps, p = {p:.2g}"
    )
    return Claim(words, measured, decide(p), "paired t-test over seeds, one-sided")
