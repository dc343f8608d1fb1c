"""The planner: what it measures against exact numbers, what it advises against brute force, and its
command.
"""

import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import z_score

from flexphase.cli import main
from flexphase.core import Optimiser, Run
from flexphase.data import Rows
from flexphase.estimators import Weighted, always_on, two_term
from flexphase.methods import RBM
from flexphase.methods.rbm import Params
from flexphase.phases import (
    Alternating,
    Bernoulli,
    Blocks,
    Fixed,
    Geometric,
    Homeostatic,
    Markov,
    Matched,
    Pairs,
    Phases,
    Recorded,
    tape,
)
from flexphase.rules import aol, aol_random, cd, isd
from flexphase.theory import bias
from flexphase.theory.chains import rbm, relaxation_time, stationary
from flexphase.theory.frozen import learns_always
from flexphase.theory.mixing import autocovariance, integrated, mixing
from flexphase.theory.plan import lengths_of, plan
from flexphase.theory.variance import trace_isd

SLOW = Params(3 * jnp.ones((2, 2)), -3 * jnp.ones(2), -3 * jnp.ones(2))
METHOD = RBM(2, 2)
DATA = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])


def run(rule, eta=0.05, method=METHOD, make=optax.sgd):
    return Run(method, *rule, Rows(DATA), Optimiser(eta, make))


def test_autocorrelation_of_known_processes():
    """White noise: 1. AR(1) with coefficient r: (1 + r) / (1 - r), within 10 % from 160,000 values.
    Constant: 1.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 8))
    assert integrated(autocovariance(x)) == pytest.approx(1, rel=0.1)
    for t in range(1, len(x)):
        x[t] += 0.9 * x[t - 1]
    assert integrated(autocovariance(x)) == pytest.approx(19, rel=0.1)
    assert integrated(autocovariance(np.zeros((64, 4)))) == 1


def exact_autocorrelation(chain):
    """1 + 2 sum_k rho_k of the whole gradient, from the fundamental matrix."""
    P, pi = chain.P, stationary(chain.P)
    far = chain.g - pi @ chain.g
    later = np.linalg.solve(np.eye(len(P)) - P + pi, far)  # sum_k P^k g, centred
    return float(2 * (pi @ (far * later).sum(1)) / (pi @ (far * far).sum(1)) - 1)


def test_mixing_of_a_slow_machine_against_its_transition_matrix():
    """Autocorrelation time within 10 % (a window of five of its own lengths biases it by about 1
    %); mean and transient with |z| < 4. A phase of 200 ticks follows a positive one, which leaves
    the data, with probability b, else equilibrium (relaxation time 5).
    """
    chain, b = rbm(SLOW, b=1e-9), 0.5
    m = mixing(run(aol(b, 200)), SLOW, -1.0)
    assert m.autocorrelation == pytest.approx(exact_autocorrelation(chain), rel=0.1)
    assert z_score(m.mean, np.linalg.norm(bias.equilibrium(chain)), m.error.mean) < 4
    left = np.zeros(16)
    for v in DATA:
        h = 1 / (1 + np.exp(-(v @ np.asarray(SLOW.W) + np.asarray(SLOW.c))))
        for state in range(4):
            bits = np.array([state & 1, state >> 1])
            left[int(v @ [1, 2]) + 4 * state] += np.prod(np.where(bits > 0, h, 1 - h)) / len(DATA)
    exact = b * np.linalg.norm(bias.transient_limit(chain, left))
    assert z_score(m.transient, exact, m.error.transient) < 4


def test_clamped_phases_of_an_rbm_have_no_memory():
    """h is drawn afresh given the clamped v."""
    m = mixing(run(aol(0.5, 20)), SLOW, 1.0)
    assert m.autocorrelation == pytest.approx(1, abs=0.1) and m.transient < 1e-6


def test_advice_for_always_on_learning():
    """b: minimum over a grid of the trace; tau: longer than the memory; eta: the tighter of its two
    limits; regime: said when left.
    """
    advice = plan(run(aol(0.5, 200)), SLOW, bias=0.1, loss=0.05)
    grid = np.linspace(0.01, 0.99, 981)
    assert advice.b == pytest.approx(grid[np.argmin(trace_isd(advice.moments, grid))], abs=2e-3)
    assert advice.tau >= relaxation_time(rbm(SLOW).P)
    assert (
        advice.expected["transient_bias"] <= 0.1 + 1e-9
        and advice.expected["feedback_bias"] <= 0.1 + 1e-9
    )
    assert advice.expected["excess_loss"] <= 0.05 + 1e-9
    assert max(
        advice.expected["feedback_bias"] / 0.1, advice.expected["excess_loss"] / 0.05
    ) == pytest.approx(1)
    assert "outside the regime" in advice.reasons["regime"]
    assert "4.5" in advice.reasons["regime"]  # 1/sqrt(0.05)
    assert all(word in str(advice) for word in ("b = ", "tau = ", "eta = ", "expected"))
    inside = plan(run(aol(0.5, 4)), SLOW)
    assert "inside the regime" in inside.reasons["regime"]


@pytest.mark.slow
def test_random_lengths_cost_variance():
    """E[T^2] = 2 tau^2 - tau: the square of an always-on term about doubles, so C - |mu-|^2 grows
    and so does the trace.
    """
    fixed, random = (plan(run(rule), SLOW) for rule in (aol(0.5, 100), aol_random(0.5, 100)))
    assert random.moments.C / random.moments.minus > 1.5 * fixed.moments.C / fixed.moments.minus


def test_advice_without_always_on_learning():
    advice = plan(run(isd(0.5, 50)), SLOW)
    assert advice.expected["feedback_bias"] == 0 and "no feedback bias" in advice.reasons["regime"]
    assert advice.tau >= 2 * relaxation_time(rbm(SLOW).P)


@pytest.mark.slow
def test_advice_for_other_rules_and_optimisers():
    assert "no b to choose" in plan(run(cd(50)), SLOW).reasons["b"]
    assert "adaptive optimiser" in plan(run(isd(0.5, 50), make=optax.adam), SLOW).reasons["eta"]


@pytest.mark.parametrize(
    "estimator, always",
    [
        (always_on, True),
        (Weighted(lambda p: (p.sign, jnp.bool_(True))), True),
        (isd().estimator, False),
        (two_term, False),
        (Weighted(lambda p: (p.sign, p.left % 2 == 1)), False),
        (Weighted(lambda p: (p.sign, p.sign > 0)), False),
    ],
)
def test_always_on_is_what_applies_at_every_tick(estimator, always):
    """By definition, whatever the estimator is called: not every second tick, not one sign only."""
    assert learns_always(run(aol(0.5, 10))._replace(estimator=estimator)) is always


class Asked(eqx.Module):
    """A process that says no more of itself than the interface asks for."""

    inner: Any

    alternates = property(lambda self: self.inner.alternates)
    b = property(lambda self: self.inner.b)
    mean_length = property(lambda self: self.inner.mean_length)

    def init(self, key):
        return self.inner.init(key)

    def step(self, key, n, state):
        return self.inner.step(key, n, state)

    def with_length(self, tau):
        return Asked(self.inner.with_length(tau))


@pytest.mark.slow
def test_the_planner_asks_a_process_for_its_interface_only():
    """The same phases give the same advice, word for word."""
    rule = aol_random(0.3, 8)
    known, asked = run(rule), run((Asked(rule.process), rule.estimator))
    assert str(plan(asked, SLOW, lanes=8)) == str(plan(known, SLOW, lanes=8))


TABLE = {"onset": [0, 20, 30, 60], "duration": [20, 10, 30, 5], "type": [1, -1, 1, -1]}
OTHERS = {
    "markov": Phases(Markov(0.8, 0.7), Geometric(10.0)),
    "pairs": Phases(Pairs(), Geometric(10.0)),
    "homeostatic": Phases(Homeostatic(0.5, 1.0), Fixed(10)),
    "blocks": Phases(Blocks(2, 3), Fixed(10)),
    "matched": Phases(Alternating(), Matched(Geometric(10.0))),
    "recorded": Recorded(TABLE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_any_process_is_planned_for(name):
    """What does not depend on the order of phases is that of Bernoulli phases: the mean of the
    positive term, whose units forget at once (z-score over lanes, |z| < 4).
    """
    advice, known = (
        plan(run((process, always_on)), SLOW, lanes=16)
        for process in (OTHERS[name], Phases(Bernoulli(0.5), Fixed(10)))
    )
    assert 0 < advice.b < 1 and advice.tau >= 1 and advice.eta > 0
    a, b = advice.memory.positive, known.memory.positive
    assert z_score(a.mean, b.mean, np.hypot(a.error.mean, b.error.mean)) < 4


def test_lengths_of_a_process():
    """`with_length` keeps the selection and the kind of the durations. P(T >= t) is 1 up to a fixed
    length, and (1 - 1/tau)^(t-1) of geometric ones (4096 phases, about 1230 positive: |z| < 4).
    """
    uneven = Phases(Bernoulli(0.3), Geometric(5.0), Fixed(7))
    tau, lives = lengths_of(uneven, -1.0)
    assert tau == 7 and np.array_equal(lives, np.ones(7))
    tau, lives = lengths_of(uneven, 1.0)
    exact = 0.8 ** np.arange(10)
    assert tau == 5 and lives[0] == 1
    assert (np.abs(lives[1:10] - exact[1:]) < 4 * np.sqrt(exact * (1 - exact) / 1200)[1:]).all()
    longer = uneven.with_length(20)
    assert float(longer.b) == float(uneven.b) == pytest.approx(0.3)
    assert float(longer.mean_length) == 20
    T = np.asarray(tape(longer, jax.random.key(0), 500).ticks)
    positive = np.asarray(tape(longer, jax.random.key(0), 500).sign) > 0
    assert set(T[~positive]) == {20} and len(set(T[positive])) > 20


def test_bad_input():
    with pytest.raises(ValueError, match="positive number"):
        plan(run(aol(0.5, 10)), SLOW, loss=-1)
    with pytest.raises(ValueError, match="not finite"):
        plan(run(aol(0.5, 10)), SLOW._replace(W=SLOW.W * jnp.nan))
    with pytest.raises(ValueError, match="do not fit"):
        plan(run(aol(0.5, 10)), RBM(3, 2).init(jax.random.key(0))[0])
    with pytest.raises(ValueError, match="at least 16 ticks"):
        mixing(run(aol(0.5, 10)), SLOW, 1.0, ticks=4)


def command(capsys, *words):
    code = main([str(w) for w in words])
    out = capsys.readouterr()
    return code, out.out, out.err


WORDS = ["rbm", "--data", "bas:2", "--hidden", 3, "--rule", "aol", "--length", 10, "--phases", 300]
FEW = ["--lanes", 8, "--pilots", 2, "--json"]


@pytest.mark.slow
def test_command_on_words(capsys):
    code, out, err = command(capsys, "plan", *WORDS, *FEW)
    advice = json.loads(out)
    assert code == 0 and 0 < advice["b"] < 1 and advice["tau"] >= 1 and advice["eta"] > 0
    assert set(advice["reasons"]) == {"b", "tau", "eta", "limits"} and "11 rates x 2 seeds" in err


@pytest.mark.slow
def test_command_on_a_run(tmp_path, capsys):
    """The folder of a run and the words that made it are the same learner, hence the same advice;
    at its checkpoint the advice is that of the frozen parameters.
    """
    assert command(capsys, "train", *WORDS, "--seeds", 2, "--out", tmp_path / "run")[0] == 0
    advice, again = (
        json.loads(command(capsys, "plan", *learner, *FEW)[1]) | {"learner": ""}
        for learner in ([tmp_path / "run"], WORDS)
    )
    assert advice == again
    code, out, err = command(
        capsys, "plan", tmp_path / "run", "--checkpoint", "--lane", 1, "--lanes", 8, "--json"
    )
    assert code == 0 and set(json.loads(out)["reasons"]) == {"b", "tau", "eta", "regime"}
    assert "autocorrelation time" in err
    code, out, err = command(capsys, "plan", tmp_path / "run", "--lane", 1)
    assert code == 2 and out == "" and "--lane" in err and "give --checkpoint as well" in err


@pytest.mark.parametrize(
    "words, why",
    [
        (["no-such-folder"], "no record"),
        (["rbm", "--b", "1"], "strictly between 0 and 1"),
        (["rbm", "--lanes", "0"], "at least 1"),
        (["rbm", "--checkpoint"], "give its folder"),
        (["rbm", "--pilots", "1"], "at least 2"),
        (["rbm", "--loss", "0.1"], "give --checkpoint as well"),
        (["rbm", "--lane", "0"], "give --checkpoint as well"),
        ([], "LEARNER"),
    ],
)
def test_command_refuses_in_one_line(words, why, capsys):
    code, out, err = command(capsys, "plan", *words)
    assert code == 2 and out == "" and why in err and len(err.strip().splitlines()) == 1


def test_theory_command(tmp_path, capsys):
    """The quickest part, whole: a figure, a table, and rows of which the printed slips fail and
    nothing else.
    """
    code, out, _ = command(capsys, "theory", "lengths", "--out", tmp_path / "lengths", "--json")
    rows = json.loads(out)["rows"]
    assert code == 0 and {p.name for p in (tmp_path / "lengths").iterdir()} == {
        "lengths.png",
        "lengths.svg",
        "lengths.csv",
    }
    assert (
        all(row["passed"] == ("as printed" not in row["statement"]) for row in rows)
        and len(rows) == 10
    )
    assert command(capsys, "theory", "lengths", "--out", tmp_path / "lengths")[0] == 2
