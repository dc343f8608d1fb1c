"""The planner: what it measures against exact numbers, what it advises against brute force, and its
command.
"""

import csv
import errno
import json
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import z_score
from test_process_bias import A, C, Quadratic

from flexphase.api import NLL, bars_and_stripes, plan_run
from flexphase.cli import main
from flexphase.core import Optimiser, Run
from flexphase.data import Rows
from flexphase.estimators import Weighted, always_on, two_term
from flexphase.methods import RBM, ContrastiveHebbian, EquilibriumPropagation
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
from flexphase.theory.coupling import series
from flexphase.theory.frozen import learns_always, starts
from flexphase.theory.mixing import autocovariance, integrated, mixing
from flexphase.theory.plan import feedback, lengths_of, plan, watch
from flexphase.theory.variance import trace_isd
from flexphase.theory.zoo import learners

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


@pytest.mark.parametrize(
    "rule, after_positive",
    [(aol(0.5, 200), 0.5), ((Phases(Alternating(), Fixed(200)), always_on), 1.0)],
    ids=["random", "alternating"],
)
def test_mixing_of_a_slow_machine_against_its_transition_matrix(rule, after_positive):
    """Autocorrelation time within 10 % (a window of five of its own lengths biases it by about 1
    %); mean and transient with |z| < 4. A phase of 200 ticks follows a positive one, which leaves
    the data, with probability b, always where phases alternate, else equilibrium (relaxation time
    5).
    """
    chain = rbm(SLOW, b=1e-9)
    m = mixing(run(rule), SLOW, -1.0, lanes=256)
    assert m.autocorrelation == pytest.approx(exact_autocorrelation(chain), rel=0.1)
    assert z_score(m.mean, np.linalg.norm(bias.equilibrium(chain)), m.error.mean) < 4
    left = np.zeros(16)
    for v in DATA:
        h = 1 / (1 + np.exp(-(v @ np.asarray(SLOW.W) + np.asarray(SLOW.c))))
        for state in range(4):
            bits = np.array([state & 1, state >> 1])
            left[int(v @ [1, 2]) + 4 * state] += np.prod(np.where(bits > 0, h, 1 - h)) / len(DATA)
    exact = after_positive * np.linalg.norm(bias.transient_limit(chain, left))
    assert z_score(m.transient, exact, m.error.transient) < 4


def test_clamped_phases_of_an_rbm_have_no_memory():
    """h is drawn afresh given the clamped v."""
    m = mixing(run(aol(0.5, 20)), SLOW, 1.0)
    assert m.autocorrelation == pytest.approx(1, abs=0.1) and m.transient < 1e-6


class Diary(eqx.Module):
    """The state is what a phase leaves behind: its sign, and how many ticks it has lasted."""

    def check(self, x):
        pass

    def init(self, key):
        return jnp.float32(0), (jnp.float32(0), jnp.int32(0), jnp.bool_(True))

    def enter(self, key, params, z, x, sign):
        return (*z[:2], jnp.bool_(True))

    def step(self, key, params, z, x, sign):
        return sign, jnp.where(z[2], 1, z[1] + 1), jnp.bool_(False)

    def grad(self, params, z, x, sign):
        return sign


@pytest.mark.parametrize("duration", [Fixed(5), Geometric(5.0)], ids=["fixed", "geometric"])
def test_phases_begin_where_a_phase_of_the_other_sign_ended(duration):
    """Alternation: by definition the phase before had the other sign, and it was a whole one, with
    the mean length 5 and the variance tau^2 - tau = 20 of a geometric one (|z| < 4).
    """
    alternating = Run(
        Diary(), Phases(Alternating(), duration), always_on, Rows(DATA), Optimiser(0.1)
    )
    for sign in (1.0, -1.0):
        before, ticks, _ = starts(alternating, jnp.float32(0), sign, lanes=512).z
        assert (np.asarray(before) == -sign).all()
        T = np.asarray(ticks, float)
        if type(duration) is Fixed:
            assert (T == 5).all()
        else:
            assert z_score(T.mean(), 5, np.sqrt(20 / 512)) < 4
            assert z_score(T.var(), 20, ((T - 5) ** 2).std() / np.sqrt(512)) < 4


class Positive(Alternating):
    """A selection that says b = 1/2 and never chooses a negative phase."""

    def sign(self, u, n, state=()):
        return jnp.float32(1), ()


def test_phases_of_a_rare_sign_are_waited_for():
    """b = 0.02: 20 phases hold no positive one in two lanes of three (0.98^20). A sign that never
    comes is refused.
    """
    rare = Run(Diary(), *aol(0.02, 5), Rows(DATA), Optimiser(0.1))
    before, ticks, begins = starts(rare, jnp.float32(0), 1.0, lanes=256).z
    assert np.asarray(begins).all() and (np.asarray(ticks) == 5).all()
    # the phase before is positive with probability b, whatever follows
    share = (np.asarray(before) > 0).mean()
    assert z_score(share, 0.02, np.sqrt(0.02 * 0.98 / 256)) < 4
    only = rare._replace(process=Phases(Positive(), Fixed(5)))
    with pytest.raises(ValueError, match="no phase of sign -1"):
        starts(only, jnp.float32(0), -1.0, lanes=8)


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


class Relaxing(eqx.Module):
    """Deterministic: z += dt (x - z), with 1 - x in a negative phase, and both terms are z, which
    comes e times nearer every -1 / log(1 - dt) ticks.
    """

    dt: float = 0.05

    def check(self, x):
        pass

    def init(self, key):
        return jnp.zeros(2), jnp.zeros(2)

    def enter(self, key, params, z, x, sign):
        return z

    def step(self, key, params, z, x, sign):
        return z + self.dt * (jnp.where(sign > 0, x, 1 - x) - z)

    def grad(self, params, z, x, sign):
        return z


@pytest.mark.parametrize("dt", [0.05, 0.5])
def test_deterministic_phases_last_until_they_have_settled(dt):
    """Closed forms. With r = 1 - dt the squares of what is left fall as r^(2t), so that the time is
    1 + 2 sum_t r^(2t) = (1 + r^2) / (1 - r^2), -1 / log r but for short ones; after tau ticks
    r^tau is left, 10 % at most and not much less. Summed over the ticks, r / dt of the deviation
    with which a phase begins is left; products of different lanes give the length of its mean.
    """
    single = run(isd(0.5, 400), method=Relaxing(dt))
    params, r = jnp.zeros(2), 1 - dt
    advice = plan(single, params, bias=0.1)
    m = advice.memory.positive
    assert m.autocorrelation == 1
    assert m.settling == pytest.approx((1 + r**2) / (1 - r**2), rel=1e-3)
    assert 0.1 * r**2 < r**advice.tau <= 0.1
    assert "settle" in advice.reasons["tau"] and "transient_bias" not in advice.expected
    at = starts(single, params, 1.0, lanes=32)
    off = np.asarray(at.z, float) - np.asarray(at.x)
    apart = (off @ off.T)[~np.eye(32, dtype=bool)].mean()
    assert m.transient == pytest.approx(np.sqrt(apart) * r / dt, rel=5e-3)


@pytest.mark.parametrize(
    "method",
    [EquilibriumPropagation, pytest.param(ContrastiveHebbian, marks=pytest.mark.slow)],
)
def test_networks_that_relax_slowly_get_longer_phases(method):
    """What is left of the deviation of the term with which a phase begins, rms over 32 phases
    followed for 1024 ticks, is about 10 % at the advised tau, with steps of 0.5 as with 0.05.
    """
    rng = np.random.default_rng(0)
    pairs = Rows((rng.random((12, 6), np.float32), np.eye(3, dtype=np.float32)[np.arange(12) % 3]))
    taus = []
    for dt in (0.5, 0.05):
        learner = Run(method((6, 8, 3), dt=dt), *isd(0.5, 200), pairs, Optimiser(0.1))
        params, _ = learner.method.init(jax.random.key(1))
        advice, left = plan(learner, params, bias=0.1), []
        for sign in (1.0, -1.0):
            at = starts(learner, params, sign, lanes=32)
            g = series(learner.method, params, at, sign, 1024)
            off = np.sqrt(((g - g[-1]) ** 2).sum((1, 2)))
            left.append(off[advice.tau - 1] / off[0])
        assert 0.02 < max(left) < 0.15
        taus.append(advice.tau)
    assert taus[1] / taus[0] == pytest.approx(10, rel=0.3)


@pytest.mark.parametrize("b", [0.5, 0.2])
def test_feedback_has_the_weights_of_the_run(b):
    """A closed form: the term A theta - a of a learner without a state falls by 1 - r A at every
    tick, r = eta / (b T), so that the mean of T of them is short of the first by a known share.
    """
    T, eta = 10, 0.01
    learner = run(aol(b, T), eta, method=Quadratic())
    params = learner.method.init(jax.random.key(0))[0]

    def share(slope, weight):
        falls = 1 - eta * weight / T * slope
        return abs(1 - np.mean(falls ** np.arange(T))) / eta

    exact = max(share(A, 1 / b), share(C, -1 / (1 - b)))
    memory = watch(learner, params, 8, 0)
    assert feedback(learner, params, memory, b, 8, 0) == pytest.approx(exact, rel=1e-3)


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
    with pytest.raises(ValueError, match="loss must be above 0, not -1"):
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
    """The same run, put together in Python, gets the same advice."""
    code, out, err = command(capsys, "plan", *WORDS, *FEW)
    advice, data = json.loads(out), bars_and_stripes(2)
    ours = plan_run(
        Run(RBM(4, 3), *aol(0.5, 10), Rows(data), Optimiser(0.005)),
        NLL(data),
        300 * 10,
        average=0.5,
        seeds=2,
        lanes=8,
    )
    assert code == 0 and advice["reasons"] == ours.reasons
    assert (advice["b"], advice["tau"], advice["eta"]) == (ours.b, ours.tau, ours.eta)
    assert advice["expected"] == ours.expected
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


def test_what_theory_writes_is_whole_or_absent(tmp_path, capsys, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = command(capsys, "theory", "lengths", "--out", tmp_path / "lengths")
    assert code == 2 and "No space left" in err and not list((tmp_path / "lengths").iterdir())


def rows_in(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_theory_command_on_the_variance(tmp_path, capsys):
    """A row and a curve for each learner, and in the row the best b of its own A and C."""
    out = tmp_path / "out"
    assert command(capsys, "theory", "variance", "--out", out)[0] == 0
    assert {p.name for p in out.iterdir()} == {f"variance.{kind}" for kind in ("png", "svg", "csv")}
    rows = rows_in(out / "variance.csv")
    assert [row["learner"] for row in rows] == [learner.name for learner in learners()]
    for row in rows:
        plus, minus = np.sqrt(float(row["A"])), np.sqrt(float(row["C"]))
        assert float(row["best_b"]) == pytest.approx(plus / (plus + minus))


@pytest.mark.slow
def test_theory_command_on_the_bias(tmp_path, capsys):
    """Every claim passes: 5 chains have 5 rows and the 2 slow ones of more than 8 ticks one more, 3
    methods 2, Theorem 2 has 3, all for fixed and for geometric lengths.
    """
    out = tmp_path / "out"
    code, told, _ = command(capsys, "theory", "bias", "--out", out, "--json")
    assert {p.name for p in out.iterdir()} == {f"bias.{kind}" for kind in ("png", "svg", "csv")}
    rows = rows_in(out / "bias.csv")
    assert code == 0 and len(rows) == len(json.loads(told)["rows"])
    assert len(rows) == 2 * (5 * 5 + 2 + 3 * 2 + 3)
    assert [row["statement"] for row in rows if row["passed"] != "True"] == []


@pytest.mark.slow
def test_theory_command_on_all_claims(tmp_path, capsys):
    """Verdicts add up: those of --json, of the rows and of the Markdown table are the same, and the
    four moments that the paper printed with a slip fail, nothing else.
    """
    out = tmp_path / "out"
    code, told, err = command(capsys, "theory", "claims", "--out", out, "--json")
    assert code == 0 and {p.name for p in out.iterdir()} == {"claims.md", "claims.csv"}
    assert "this takes about two minutes" in err
    result, rows = json.loads(told), rows_in(out / "claims.csv")
    failed = [row["statement"] for row in rows if row["passed"] != "True"]
    assert len(failed) == 4 and all("as printed" in statement for statement in failed)
    assert result["failed"] == 4 and result["passed"] + result["failed"] == len(rows)
    lines = (out / "claims.md").read_text().splitlines()[2:]
    verdicts = [line.split("|")[-2].strip() for line in lines]
    assert (verdicts.count("pass"), verdicts.count("FAIL")) == (result["passed"], 4)
    assert len(verdicts) == len(rows) and f"{result['passed']} of {len(rows)} claims pass" in err
