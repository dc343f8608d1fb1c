"""`flexphase study b`: from end to end at toy size, and the statistics behind it."""

import json

import numpy as np
import pytest
from scipy import stats
from test_studies import kept

from flexphase.cli import main
from flexphase.experiments import figure, seeds
from flexphase.experiments.claims import leans
from flexphase.experiments.seeds import (
    own_best,
    resampled,
    seeds_needed,
    wants_larger,
    with_power,
)


@pytest.mark.slow
def test_b_from_end_to_end(monkeypatch, tmp_path):
    toys = {
        "b": {"bs": [0.3, 0.5, 0.7], "phases": 40, "seeds": 4, "machines": 1, "moments": 8},
        "b_own": {"phases": 40, "rates": [0.01, 0.04, 2], "seeds": 4, "machines": 1, "moments": 20},
        "b_few": {
            "phases": 40,
            "images": [8],
            "subsets": 2,
            "seeds": 2,
            "rates": [0.01, 0.02, 2],
        },
    }
    monkeypatch.setattr(seeds, "TRIED", [8])
    for name, toy in toys.items():
        monkeypatch.setitem(figure(name).SIZES, "quick", toy)
    assert main(["study", "b", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    counts = {"b": 2 * (4 + 2), "b_own": 7 + 6, "b_few": 2}
    for name, n in counts.items():
        claims = json.loads(kept(tmp_path / "run" / f"{name}.nc").attrs["claims"])
        assert len(claims) == n
    text = (tmp_path / "run" / "report.html").read_text()
    assert "seeds would decide it" in text and "images shown" in text


def test_no_half_of_the_seeds_chooses_its_own_rate():
    """Rate 0 suits even seeds, rate 1 odd ones: each half gets the rate that suits the other."""
    values = np.array([[0.0, 9.0, 1.0, 9.0], [5.0, 2.0, 6.0, 3.0]])
    np.testing.assert_array_equal(own_best(values), [5, 9, 6, 9])


@pytest.mark.parametrize(
    ("best", "other", "verdict"),
    [(2, 1, "pass"), (1, 2, "fail"), (1, 1, "unclear"), (2, 2, "unclear")],
)
def test_a_tie_of_the_best_rates_decides_nothing(best, other, verdict):
    """Not even at the largest rate (the last row), beyond which either may have its best one."""

    def errors(at):
        values = np.random.default_rng(at).normal(9, 0.1, (3, 8))
        values[at] -= 5
        return values

    claim = wants_larger("", [0.01, 0.02, 0.04], errors(best), errors(other))
    assert claim.verdict == verdict


def test_the_power_analysis_agrees_with_that_of_the_t_test(monkeypatch):
    """A mean of 0.5 sd needs 27 seeds for a power of 80 % in a one-sided t-test at 5 % (the power
    is an integral of the noncentral t distribution); 16 are too few, 32 are enough.
    """
    x = np.random.default_rng(1).normal(size=64)
    x = (x - x.mean()) / x.std() + 0.5

    def power(n):
        critical = stats.t.ppf(0.95, n - 1)
        return 1 - stats.nct.cdf(critical, n - 1, 0.5 * n**0.5)

    assert power(26) < 0.8 < power(27)
    monkeypatch.setattr(seeds, "DRAWS", 400)  # a standard error of 0.02; 32 seeds have 0.87

    def judge(errors):
        return [leans("", "below", [0.3, 0.7], errors["own"])]

    errors = {"own": [np.zeros(64), x]}
    assert seeds_needed(judge, errors) == [32]
    assert with_power(judge, errors)[0].verdict == "pass"
    few = {"own": [np.zeros(64), x - 0.4]}
    assert with_power(judge, few)[0].measured.endswith("seeds would decide it")


def test_seeds_are_drawn_together():
    a = np.arange(12.0).reshape(2, 6)
    for drawn, other in resampled(a, 10 * a)[:5]:
        np.testing.assert_array_equal(other, 10 * drawn)


@pytest.mark.slow
def test_b_on_mnist_from_end_to_end(monkeypatch, tmp_path):
    from mnist_files import raw_mnist

    raw_mnist()
    toy = {"phases": 4, "seeds": 2, "shown": 100, "sampled": 50}
    monkeypatch.setitem(figure("b_mnist").SIZES, "quick", toy)
    monkeypatch.setattr(seeds, "TRIED", [8])
    assert main(["study", "b-mnist", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    final = kept(tmp_path / "run" / "b_mnist.nc")["averaged.final.free_energy_error"]
    assert final.shape == (10, 2)
    claims = json.loads(kept(tmp_path / "run" / "b_mnist.nc").attrs["claims"])
    assert len(claims) == 2 * 3 + 2  # three by the exact error, one from samples, read both ways
