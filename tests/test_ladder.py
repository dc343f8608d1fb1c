"""The planner looks ahead: the law that joins short runs, and whether its advice keeps its word."""

import argparse

import numpy as np
import pytest

from flexphase import NLL, RBM, Optimiser, Rows, Run, aol, bars_and_stripes, cd, grid, train
from flexphase.cli import options
from flexphase.cli.train import METHODS, task_of, ticks_of
from flexphase.estimators import Baseline
from flexphase.theory import ahead
from flexphase.theory.ahead import plan_run
from flexphase.theory.ladder import RUNGS, Ladder, at_rate, climb, extrapolate
from flexphase.theory.mixing import Mixing
from flexphase.theory.plan import Memory, Plan, of_length
from flexphase.theory.variance import given


def law(k: int, h: int) -> float:
    """B(eta t) + N(eta) of SGD on a quadratic from 100: decay 100 exp(-2^(k+h)), noise 0.3 2^k."""
    return 100 * np.exp(-(2.0 ** (k + h))) + 0.3 * 2.0**k


def test_the_law_is_continued_exactly_where_it_holds():
    """From a noise-free table the whole run follows, for every rate whose eta t was seen, but for
    the small penalty on N.
    """
    seen = {(k, h): law(k, h) for k in range(-5, 6) for h in RUNGS}
    predicted = extrapolate(seen)
    for k in range(-5, 5):
        assert predicted[k] == pytest.approx(law(k, 0), rel=1e-3)
    assert min(predicted, key=predicted.__getitem__) == min(range(-5, 6), key=lambda k: law(k, 0))


def test_rates_that_end_low_later_are_not_judged_by_the_first_rung():
    """At 1/8 of the run the largest rate leads; the best one at the end is smaller."""
    first = {k: law(k, -3) for k in range(-5, 6)}
    assert min(first, key=first.__getitem__) == 5
    values = {k: {h: np.full(3, law(k, h)) for h in RUNGS} for k in first}
    assert Ladder(0.01, values).best == 3 == min(range(-5, 6), key=lambda k: law(k, 0))


def test_how_sure_is_asked_of_the_seeds():
    """Seeds that agree leave no doubt; seeds that differ by more than the rates do leave much."""
    rng = np.random.default_rng(0)
    rungs = {k: {h: np.full(4, law(k, h)) for h in RUNGS} for k in range(-5, 6)}
    noisy = {k: {h: v + rng.normal(0, 30, 4) for h, v in r.items()} for k, r in rungs.items()}
    assert Ladder(1.0, rungs).sure() == pytest.approx((1, 0), abs=1e-9)
    near, spread = Ladder(1.0, noisy).sure()
    assert near < 1 and spread > 3
    assert Ladder(1.0, rungs).work == pytest.approx(4 * 11 * sum(2.0**h for h in RUNGS))


DATA = bars_and_stripes(2)
TINY = Run(RBM(4, 3), *aol(0.5, 5), Rows(DATA), Optimiser(0.05))


@pytest.mark.slow
def test_the_search_moves_where_the_first_rates_end():
    """Begun 2048 times too low, the advice lies where that of a good beginning does, to within the
    octave that `Ladder.sure` counts as the same.
    """
    run = Run(RBM(4, 3), *cd(3), Rows(DATA), Optimiser(0.05))
    well, low = (climb(at_rate(run, eta), NLL(DATA), 60_000) for eta in (0.05, 0.05 / 2048))
    assert well.learns and low.learns
    rates = [ladder.eta * 2.0**ladder.best for ladder in (well, low)]
    assert 1 / 2 <= rates[0] / rates[1] <= 2


def test_an_estimator_with_a_memory_gets_its_rate_and_is_told_the_rest():
    advice = plan_run(TINY._replace(estimator=Baseline(0.1)), NLL(DATA), 2000, seeds=9)
    assert advice.moments is None and (advice.b, advice.tau) == (0.5, 5)
    assert "has a memory" in advice.reasons["b"] and advice.eta > 0
    assert "eta" in str(advice) and "table" in advice._repr_html_()


@pytest.mark.parametrize("wins", [True, False])
def test_what_is_said_of_eta_is_said_of_the_tau_that_is_advised(monkeypatch, wins):
    """Short runs as a table: with phases of 20 ticks the best rate ends at 1, or at 9, after half
    the run, and with the present 5 ticks as `law` has it.
    """
    values = {k: {h: np.array([-0.01, 0, 0.01]) + law(k, h) for h in RUNGS} for k in range(-5, 6)}
    ladder, slow = Ladder(0.05, values), Mixing(1.0, 9.0, 1.0, 4.0)
    advice = Plan(
        0.5, 20, 1.0, {}, {"gradient": 1.0, "variance": 2.0}, Memory(slow, slow, 900), given(1, 1)
    )
    level = 1.0 if wins else 9.0
    theirs = {k: np.array([-0.1, 0, 0.1]) + level + abs(k - 4) for k in (2, 3, 4)}
    monkeypatch.setattr(ahead, "agreed", lambda *_, **__: ladder)
    monkeypatch.setattr(ahead, "plan", lambda *_, **__: advice)
    monkeypatch.setattr(ahead, "rung", lambda *_: theirs)
    found = plan_run(TINY, NLL(DATA), ticks=40)
    reason = found.reasons["eta"]
    assert (found.tau, found.eta) == ((20, 0.05 * 2**4) if wins else (5, 0.05 * 2**3))
    assert reason.startswith(f"{found.eta:.3g} ")
    if wins:
        assert "3 rates" in reason and "20 ticks" in reason and "metric" not in found.expected
        assert found.expected["metric_at_half"] == pytest.approx(1.0)
        assert found.expected["metric_at_half_sd"] == pytest.approx(0.1)
    else:
        assert "11 rates" in reason and "metric_at_half" not in found.expected
        assert found.expected["metric"] == pytest.approx(law(3, 0), rel=1e-3)


LEARNERS = {  # three methods; the planner was developed on the RBMs alone
    "rbm aol": "rbm --rule aol --length 20 --phases 20000 --hidden 16 --no-visible-bias",
    "rbm isd": "rbm --rule isd --length 20 --phases 20000 --hidden 16 --average 0.5",
    "rbm random": "rbm --rule aol-random --length 50 --phases 20000 --hidden 16 --average 0.5",
    "forward-forward": "forward-forward --data digits --rule isd --updates 4000",
    "forward-forward pairs": "forward-forward --data digits --rule two-term --updates 2000",
    "equilibrium": "equilibrium-propagation --data digits --rule two-term --updates 2000",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_following_the_advice_ends_near_the_best_of_a_line_search(name):
    """Within 10 % of the improvement that the best of eleven rates makes, on other seeds."""
    method, *words = LEARNERS[name].split()
    parser = argparse.ArgumentParser()
    for group in (options.data_and_model, options.learning_rule, options.training):
        group(parser, METHODS[method])
    asked = parser.parse_args(words, argparse.Namespace(method=method))
    task = task_of(asked)
    metric, ticks = next(iter(task.metrics.values())), ticks_of(asked, task.run.process)
    how = {"ticks": ticks, "seeds": 8, "metrics": {"m": metric}, "records": 1}
    how |= {"average": asked.average, "seed": 1000}

    advice = plan_run(task.run, metric, ticks, average=asked.average)
    tau = task.run.process.mean_length
    process = task.run.process if advice.tau == tau else of_length(task.run.process, advice.tau)
    ours = train(at_rate(task.run._replace(process=process), advice.eta), **how)
    eta = float(task.run.optimiser.eta)
    rates = grid(lambda eta: at_rate(task.run, eta), eta=[eta * 2.0**k for k in range(-5, 6)])
    search = train(rates, **how)

    averaged = asked.average is not None
    best = np.nanmin(search.final(averaged=averaged).mean("seed").values)
    untrained = float(search["m"].isel(record=0).mean())
    reached = float(ours.final(averaged=averaged).mean())
    assert untrained - reached >= 0.9 * (untrained - best)
