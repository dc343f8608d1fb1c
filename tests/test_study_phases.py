"""`flexphase study phases` and `study locality`: what they are made of, and toy runs."""

import json

import jax
import numpy as np
import pytest
from scipy import stats
from sweeping import Here
from test_studies import kept

from flexphase.cli import main
from flexphase.engines.boltzmann import BoltzmannEngine
from flexphase.engines.forward_forward import ForwardForwardEngine
from flexphase.engines.layered import LayeredEngine
from flexphase.experiments import FIGURES, STUDIES, figure, figures_in
from flexphase.kernels import MISSING
from flexphase.theory.exact import exact_moments
from flexphase.theory.variance import trace_isd
from flexphase.theory.zoo import learners


def test_all_means_every_study_or_every_figure():
    assert figures_in("studies") == [m for e in STUDIES.values() for m in e.modules]
    assert figures_in("all") == [m for e in FIGURES.values() for m in e.modules]


def test_every_process_of_the_study_of_phases_is_compiled_and_balanced():
    """Mean length T and b = 1/2, on the compiled engine."""
    study = figure("phases")
    engines = {"rbm": BoltzmannEngine, "forward-forward": ForwardForwardEngine}
    engines |= {"equilibrium": LayeredEngine}
    for method, learner in study.LEARNERS.items():
        for name, number in study.processes_of(method):
            run = study.build(method, name, number, 0.01)
            assert float(run.process.mean_length) == pytest.approx(learner.T, rel=0.03)
            assert float(run.process.b) == pytest.approx(0.5)
            assert MISSING or engines[method](1).refuses(run) is None


@pytest.mark.parametrize(
    "name, number, run, spread, imbalance",
    [
        ("alternating", 0.0, 20, 0, 0),
        ("blocks", 4.0, 80, 0, 0),
        ("bernoulli-fixed", 0.0, 40, 0.5**0.5, 1 / 8),
        ("markov", 0.9, 200, 0.9**0.5, None),
    ],
)
def test_statistics_of_phases(name, number, run, spread, imbalance):
    """A run of signs that stay with probability s is geometric: mean 1 / (1 - s), sd over mean
    sqrt(s). 64 fair signs have an sd of 8. 8192 phases: 5 % are four standard errors or more.
    """
    found = figure("phases").statistics(name, number, 20)
    assert found[0] == pytest.approx(run, rel=0.12)
    assert found[1] == pytest.approx(spread, rel=0.12, abs=1e-6)
    if imbalance is not None:
        assert found[2] == pytest.approx(imbalance, rel=0.25, abs=1e-6)


def test_slopes_are_those_of_the_numbers_that_made_the_losses():
    """Losses that are a known sum of levels of the methods and statistics, standardised within
    them. Mixing times a thousand times as long in one method, which are set by hand in two of
    them, leave the slopes as they are.
    """
    study, rng = figure("phases"), np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    x = (x.reshape(10, 3, 3) - x.reshape(10, 3, 3).mean(0)).reshape(30, 3)
    methods = [list(study.LEARNERS)[i % 3] for i in range(30)]
    levels = np.array([0.0, 1.0, 2.0] * 10)
    lost = x / x.std(0) @ [0.3, -0.2, 0.1] + levels
    shifted = x - np.outer(levels == 1, [np.log2(1000), 0, 0])
    for own in (x, shifted):
        points = study.Points(methods, [str(i // 3) for i in range(30)], own, {})
        np.testing.assert_allclose(study.slopes(points, lost), [0.3, -0.2, 0.1], atol=1e-9)
        np.testing.assert_allclose(study.ranges(points, lost).T, [[0.3, -0.2, 0.1]] * 2, atol=1e-9)


def test_a_slope_that_one_process_makes_is_seen_in_the_range():
    """Only the process "odd" has a long run and a loss; without it nothing depends on the run."""
    study = figure("phases")
    x = np.random.default_rng(0).normal(size=(8, 3))
    x[:, 0] = np.resize([-1, 1], 8)
    x[7, 0] = 9
    points = study.Points(["rbm"] * 8, [*"abcdefg", "odd"], x, {})
    lost = np.append(np.zeros(7), 1.0)
    low, high = study.ranges(points, lost)[0]
    assert abs(low) < 1e-9 and high > 0.2


def test_the_rank_correlation_is_that_of_scipy():
    study, rng = figure("locality"), np.random.default_rng(0)
    x, lost = ({name: rng.normal(size=6) for name in "ab"} for _ in range(2))
    rho = np.mean([stats.spearmanr(x[name], lost[name]).statistic for name in "ab"])
    assert f"{rho:.2f}" in study.ranks("", x, lost, "greater").measured
    same = {name: 2 * v for name, v in x.items()}
    assert study.ranks("", x, same, "greater").verdict == "pass"
    assert study.ranks("", x, same, "less").verdict == "fail"


def test_variance_by_tiny_steps_is_that_of_enumeration():
    """ISD on a small RBM whose phases mix: Tr cov of a phase by enumeration of all states, over the
    ticks of a phase. 512 lanes of 40 phases: a relative error of about sqrt(2 / 512 / d), below
    5 % even if one direction has it all; 8 % leave room for what a phase remembers.
    """
    small = learners()[0]
    exact = exact_moments(small.method, small.params, small.source.data)
    found = figure("locality").scatter(small.isd(0.5), small.params, 40 * small.T, lanes=512)
    assert found == pytest.approx(float(trace_isd(exact, 0.5)) / small.T, rel=0.08)


def test_every_rule_of_locality_builds_for_every_method():
    """They remember what they should: their memory, phases of the stated lengths, held pairs."""
    study = figure("locality")
    for name in study.SIZES["full"]["methods"]:
        s = study.SETTINGS[name]
        for rule in study.RULES:
            run = study.build(name, rule, 0.01)
            length = s.on if rule in ("aol", "pair") else s.T
            assert float(run.process.mean_length) == length
            memory = jax.eval_shape(
                lambda r: r.estimator.init(r.method.init(jax.random.key(0))[0]), run
            )
            assert bool(jax.tree.leaves(memory)) == (rule in ("tick", "mean", "phase"))


@pytest.mark.slow
def test_locality_from_end_to_end(monkeypatch, tmp_path):
    few = {rule: figure("locality").RULES[rule] for rule in ("isd", "aol", "phase")}
    monkeypatch.setattr(figure("locality"), "RULES", few)
    toy = {"methods": ["rbm"], "share": 0.01, "seeds": 2, "rates": [0.1, 1.0], "window": 5}
    monkeypatch.setitem(figure("locality").SIZES, "quick", toy)
    monkeypatch.setattr(figure("locality"), "PERMUTATIONS", 50)
    assert main(["study", "locality", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    dataset = kept(tmp_path / "run" / "locality.nc")
    assert len(json.loads(dataset.attrs["claims"])) == 5
    assert "a phase" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.slow
def test_phases_from_end_to_end(monkeypatch, tmp_path):
    study = figure("phases")
    monkeypatch.setattr(study, "LEARNERS", {"rbm": study.LEARNERS["rbm"]._replace(T=4)})
    monkeypatch.setattr(study, "RANDOM", [("recorded", 0.0)])
    monkeypatch.setattr(study, "FIXED", [("alternating", 0.0), ("blocks", 4.0), ("blocks", 9.0)])
    monkeypatch.setitem(study.SIZES, "quick", {"share": 0.002, "seeds": 2})
    monkeypatch.setattr("flexphase.sweep.Local", Here)
    assert main(["study", "phases", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    dataset = kept(tmp_path / "run" / "phases.nc")
    assert len(json.loads(dataset.attrs["claims"])) == 9
