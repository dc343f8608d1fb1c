"""The planner looks ahead: the law that joins short runs, and whether its advice keeps its word."""

import jax.numpy as jnp
import numpy as np
import pytest

from flexphase import (
    NLL,
    RBM,
    EnergyModel,
    Gibbs,
    Optimiser,
    Rows,
    Run,
    aol,
    bars_and_stripes,
    cd,
    grid,
    train,
)
from flexphase.cli import parser
from flexphase.cli.train import task_of, ticks_of
from flexphase.estimators import Baseline
from flexphase.phases import Fixed, Markov, Pauses, Phases
from flexphase.theory import ahead
from flexphase.theory.ahead import machine, plan_run
from flexphase.theory.ladder import RUNGS, Ladder, at_rate, climb, extrapolate, penalised
from flexphase.theory.mixing import Mixing
from flexphase.theory.plan import Memory, Plan, length_of, of_length, of_share
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


def planned(monkeypatch, run, asked_b, asked_tau, level_of, watched=900):
    """The advice where short runs are a table: with the present phases as `law` has it, with other
    ones `level_of(process)` at the end of the run with octave 4 of the rate, and more at others.
    """
    values = {k: {h: np.array([-0.01, 0, 0.01]) + law(k, h) for h in RUNGS} for k in range(-5, 6)}
    ladder, slow = Ladder(0.05, values), Mixing(1.0, 9.0, 1.0, 4.0)
    expected = {"gradient": 1.0, "variance": 2.0}
    memory, moments = Memory(slow, slow, watched), given(asked_b**2, (1 - asked_b) ** 2)
    advice = Plan(asked_b, asked_tau, 1.0, {}, expected, memory, None)

    def whole(other, metric, octaves, *_):
        if other.process is run.process:
            return {k: np.array([-0.1, 0, 0.1]) + law(k, 0) for k in octaves}
        level = level_of(other.process)
        return {k: np.array([-0.1, 0, 0.1]) + level + abs(k - 4) for k in octaves}

    monkeypatch.setattr(ahead, "agreed", lambda *_, **__: ladder)
    monkeypatch.setattr(ahead, "plan", lambda *_, **__: advice)
    monkeypatch.setattr(ahead, "watch", lambda *_, **__: memory)
    monkeypatch.setattr(ahead, "ends", whole)
    monkeypatch.setattr(ahead, "moments_at", lambda *_: moments)
    return plan_run(run, NLL(DATA), ticks=40)


@pytest.mark.parametrize("wins", [True, False])
def test_what_is_said_of_eta_is_said_of_the_tau_that_is_advised(monkeypatch, wins):
    """With phases of 20 ticks the best rate ends at 1, or at 9; with the present ones at 2.4."""
    found = planned(monkeypatch, TINY, 0.5, 20, lambda process: 1.0 if wins else 9.0)
    reason = found.reasons["eta"]
    assert (found.tau, found.eta) == ((20, 0.05 * 2**4) if wins else (5, 0.05 * 2**3))
    assert reason.startswith(f"{found.eta:.3g} ")
    # an octave around the present best, and around it for a quarter of the phases
    assert f"{5 if wins else 3} rates in whole runs" in reason
    assert f"phases of {found.tau} ticks" in reason and "phases of 20" in found.reasons["tau"]
    assert found.expected["metric"] == pytest.approx(1.0 if wins else law(3, 0))
    assert found.expected["metric_sd"] == pytest.approx(0.1)


def test_the_reason_names_the_tau_that_was_tried(monkeypatch):
    """The machine asks for 5000; more than 8 times the present length is not tried."""
    found = planned(monkeypatch, TINY, 0.5, 5000, lambda process: 1.0, watched=400)
    assert found.tau == 40 and "asks for tau = 5000; phases of 40: " in found.reasons["tau"]
    assert "at least 9 ticks" in found.reasons["tau"]  # 400 ticks are fewer than 50 times 9


def test_pauses_are_no_part_of_tau(monkeypatch):
    """Pauses of 5 ticks before phases of 5 are kept; phases of 20 are advised as 20 (their mean
    with the pauses is 12.5).
    """
    paused = TINY._replace(process=Pauses(TINY.process, 5))
    found = planned(monkeypatch, paused, 0.5, 20, lambda process: 1.0)
    assert found.tau == 20 and length_of(paused.process) == 5
    near = planned(monkeypatch, TINY._replace(process=Pauses(TINY.process, 1)), 0.5, 5, None)
    assert near.tau == 5 and "5 is near it" in near.reasons["tau"]


def test_a_process_that_diverges_loses(monkeypatch):
    """NaN counts as twice the worst of both sides, and where nothing is finite that is said."""
    found = planned(monkeypatch, TINY, 0.5, 20, lambda process: np.nan)
    assert found.tau == 5 and "stays" in found.reasons["tau"]
    with pytest.raises(ValueError, match="every network diverged"):
        penalised({0: np.array([np.nan, np.inf])})


def own_learner():
    """Its parameters are read without a record's description of it, which may not name `energy`."""

    def energy(theta, z, x):
        return -z @ theta @ z

    def start(key):
        return jnp.zeros((4, 4)), jnp.zeros(4)

    method = EnergyModel(energy, start, Gibbs(), jnp.ones(4, bool))
    return Run(method, *aol(0.5, 5), Rows(DATA), Optimiser(0.05))


@pytest.mark.parametrize("average", [None, 0.5])
def test_the_machine_of_a_learner_of_ones_own(average):
    """That of `train` itself, last or slow weights."""
    theta = machine(own_learner(), 20, average, 3)
    record = train(own_learner(), ticks=20, seed=3, records=1, average=average)
    kept = record.params if average is None else record.averaged_params
    np.testing.assert_array_equal(theta, kept["theta"][0])
    assert np.abs(theta).max() > 0


@pytest.mark.slow
def test_a_learner_of_ones_own_is_planned():
    advice = plan_run(own_learner(), lambda theta: jnp.sum(theta**2), 200, seeds=2, lanes=8)
    assert advice.eta > 0 and advice.moments is not None


@pytest.mark.parametrize("wins", [True, False])
def test_another_b_is_advised_where_it_wins(monkeypatch, wins):
    """b* = 0.2 from A = 0.2^2, C = 0.8^2 would save 32 % at b = 0.5 (A/b + C/(1-b) falls from 1.36
    to 1, less the square of the mean, 0).
    """
    found = planned(monkeypatch, TINY, 0.2, 5, lambda process: 1.0 if wins else 9.0)
    assert (found.b, found.eta) == pytest.approx((0.2, 0.8) if wins else (0.5, 0.4))
    assert ("it is taken" if wins else "stays") in found.reasons["b"]
    assert ("b = 0.200" in found.reasons["eta"]) == wins


def test_phases_that_have_no_b_keep_theirs(monkeypatch):
    """`train` refuses --b for alternating phases, so no other one is advised for them."""

    def never(process):
        raise AssertionError("nothing is to be tried")

    alternating = TINY._replace(process=cd(5)[0], estimator=cd(5)[1])
    found = planned(monkeypatch, alternating, 0.2, 5, never)
    assert found.b == 0.5 and "no b to choose" in found.reasons["b"]
    markov = TINY._replace(process=Phases(Markov(0.5, 0.5), Fixed(5)))
    found = planned(monkeypatch, markov, 0.2, 5, never)
    assert found.b == 0.5 and "cannot set the b" in found.reasons["b"]


LEARNERS = {  # three methods; the planner was developed on the RBMs alone
    "rbm aol": "rbm --rule aol --length 20 --phases 20000 --hidden 16 --no-visible-bias",
    "rbm isd": "rbm --rule isd --length 20 --phases 20000 --hidden 16 --average 0.5",
    "rbm random": "rbm --rule aol-random --length 50 --phases 20000 --hidden 16 --average 0.5",
    "rbm last": "rbm --rule aol-random --length 50 --phases 20000 --hidden 16 --average none",
    "forward-forward": "forward-forward --data digits --rule isd --updates 4000",
    "forward-forward pairs": "forward-forward --data digits --rule two-term --updates 2000",
    "equilibrium": "equilibrium-propagation --data digits --rule two-term --updates 2000",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_following_the_advice_ends_near_the_best_of_a_line_search(name):
    """Within 10 % of the improvement that the best of eleven rates makes, on other seeds."""
    asked = parser().parse_args(["train", *LEARNERS[name].split()])
    task = task_of(asked)
    metric, ticks = next(iter(task.metrics.values())), ticks_of(asked, task.run.process)
    how = {"ticks": ticks, "seeds": 8, "metrics": {"m": metric}, "records": 1}
    how |= {"average": asked.average, "seed": 1000}

    advice = plan_run(task.run, metric, ticks, average=asked.average)
    process = task.run.process
    if advice.tau != round(float(process.mean_length)):
        process = of_length(process, advice.tau)
    if advice.b != pytest.approx(float(process.b)):
        process = of_share(process, advice.b)
    ours = train(at_rate(task.run._replace(process=process), advice.eta), **how)
    eta = float(task.run.optimiser.eta)
    rates = grid(lambda eta: at_rate(task.run, eta), eta=[eta * 2.0**k for k in range(-5, 6)])
    search = train(rates, **how)

    averaged = asked.average is not None
    best = np.nanmin(search.final(averaged=averaged).mean("seed").values)
    untrained = float(search["m"].isel(record=0).mean())
    reached = float(ours.final(averaged=averaged).mean())
    assert untrained - reached >= 0.9 * (untrained - best)
