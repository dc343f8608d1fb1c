"""The tests behind the verdicts: pass, fail and unclear where each must come.

On made-up numbers with a known answer.
"""

import numpy as np
import pytest
from scipy import stats

from flexphase.experiments import claims as c
from flexphase.experiments.claims import Seeds

SPREAD = np.linspace(-1, 1, 10)


def test_a_sentence_has_mean_sd_median_and_number_of_seeds():
    """0, 0, 0 and 8: a mean of 2, an sd of 4, a median of 0."""
    assert c.mean_sd([0, 0, 0, 8]) == "2 ± 4 (median 0, n = 4)"
    assert c.mean_sd([3.0]) == "3"


@pytest.mark.parametrize(
    ("shift", "verdict"), [(5.0, "pass"), (0.0, "unclear"), (-5.0, "fail"), (60.0, "fail")]
)
def test_slightly_worse(shift, verdict):
    """Of an improvement of 100, a gap of 5 is slight and one of 60 is not; sd 0.67."""
    a, b = Seeds("a", 100 + shift + SPREAD), Seeds("b", 100 + SPREAD)
    assert c.slightly_worse("", a, b, untrained=200).verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(10, "pass"), (1, "unclear"), (0.1, "fail")])
def test_varies_more(factor, verdict):
    a, b = Seeds("a", factor * SPREAD), Seeds("b", SPREAD)
    assert c.varies_more("", a, b).verdict == verdict


def test_one_outlier_does_not_make_a_rule_vary_more():
    """Its sd is larger, 1.12 against 1.03; its mean distance from the median, which the test is
    about, is 0.35 against 1.
    """
    quiet = np.append(np.tile([0.1, -0.1], 10)[:-1], 5.0)
    loud = np.tile([1.0, -1.0], 10)
    assert np.std(quiet, ddof=1) > np.std(loud, ddof=1)
    assert c.varies_more("", Seeds("a", quiet), Seeds("b", loud)).verdict == "fail"


def test_seeds_that_agree_to_the_last_digit_are_decided_by_their_means():
    same = np.zeros(4)
    assert c.within(same, same, 0.1) == "pass" and c.within(same + 1, same, 0.1) == "fail"


@pytest.mark.parametrize(("gap", "verdict"), [(50.0, "pass"), (20.0, "unclear"), (5.0, "fail")])
def test_fails(gap, verdict):
    a, b = Seeds("a", 100 + gap + SPREAD), Seeds("b", 100 + SPREAD)
    assert c.fails("", a, b, untrained=200).verdict == verdict


def test_a_reference_that_has_not_learned_decides_nothing():
    a, b = Seeds("a", 199 + SPREAD), Seeds("b", 198 + SPREAD)
    for claim in (c.slightly_worse, c.fails):
        assert claim("", a, b, untrained=200).verdict == "unclear"


@pytest.mark.parametrize(("at_02", "verdict"), [(103, "pass"), (120, "unclear"), (170, "fail")])
def test_robust(at_02, verdict):
    """b = 0.1 lies outside of the range and may be as bad as it likes."""
    errors = [190 + SPREAD, at_02 + SPREAD, 100 + SPREAD, 102 + SPREAD]
    assert c.robust("", [0.1, 0.2, 0.5, 0.8], errors, untrained=200).verdict == verdict


@pytest.mark.parametrize(
    ("means", "verdict"),
    [((100, 105, 110), "pass"), ((110, 105, 100), "fail"), ((100, 100.1, 100), "unclear")],
)
def test_best_is_below(means, verdict):
    assert c.best_is("", "below", [0.3, 0.5, 0.7], [m + SPREAD for m in means]).verdict == verdict
    opposite = {"pass": "fail", "fail": "pass", "unclear": "unclear"}[verdict]
    assert c.best_is("", "above", [0.3, 0.5, 0.7], [m + SPREAD for m in means]).verdict == opposite


@pytest.mark.parametrize(
    ("means", "verdict"),
    [((100, 90, 105), "pass"), ((105, 90, 100), "fail"), ((100, 90, 100), "unclear")],
)
def test_leans_below(means, verdict):
    """The mirror image of 0.3 is 0.7; 0.5 has none, and plays no part."""
    noise = 0.1 * np.array([SPREAD, SPREAD, SPREAD[::-1]])
    errors = [m + s for m, s in zip(means, noise, strict=True)]
    assert c.leans("", "below", [0.3, 0.5, 0.7], errors).verdict == verdict


def test_shrinks_is_paired():
    noise = 100 * SPREAD  # the same in both: a paired test sees through it
    assert c.shrinks("", noise + 2 + 0.1 * SPREAD[::-1], noise, "").verdict == "pass"
    assert c.shrinks("", noise, noise + 2 + 0.1 * SPREAD[::-1], "").verdict == "fail"


def test_interval_of_the_gap_is_welchs():
    """Closed form: mean difference -+ t(0.95, nu) * standard error, with equal variances and n = 10
    each, nu = 18.
    """
    low, high = c.gap(3 + SPREAD, SPREAD)
    half = stats.t.ppf(0.95, 18) * np.sqrt(2 * SPREAD.var(ddof=1) / 10)
    np.testing.assert_allclose([low, high], [3 - half, 3 + half])
