"""Advice for a run as a whole: what it reaches, not what holds at one checkpoint.

An untrained network mixes at once, so that advice measured there holds there only. Therefore short
runs come first (`ladder`); moments and mixing are those of machines that parts of the run have
trained. What they ask for is advised only if it wins when it is tried.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..core import Process, Run
from ..training import train
from .ladder import Ladder, Metric, at_rate, climb, lowest, rung
from .plan import Plan, of_length, of_share, plan, watch
from .variance import saving

SURE, MOST = 0.8, 16  # seeds are doubled, up to MOST, until so many resamples agree
WORTH = 0.1  # of the variance: what another b must save to be tried
OTHER = 1.5  # tau within this factor is the same
FARTHEST = 8  # times the present tau: how far a longer one is tried


class Rate(NamedTuple):
    """A learning rate, why it is advised, and what to expect of the metric with it."""

    eta: float
    why: str
    expected: dict[str, float]


class Choice(NamedTuple):
    """A process with its best rate, eta 2^octave on the ladder."""

    process: Process
    octave: int
    rate: Rate


def plan_run(
    run: Run,
    metric: Metric,
    ticks: int,
    *,
    average: float | None = None,
    bias: float = 0.1,
    seeds: int = 4,
    lanes: int = 32,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Advise b, tau and eta for a run of `ticks`, as its result will be read.

    eta is the best of a ladder of short runs (half the run at most; the work of about 20 networks
    where 4 seeds agree, of up to 140 where 16 are needed). Moments and mixing of the machine that
    half the run trains ask for tau and b; another one than the present is advised only if it wins
    in whole runs at its own best eta (as many networks again).

    Args:
        run: of one setting; its eta and tau are where the search begins.
        metric: of one lane's parameters, such as `NLL(data)`. It must fall as the network learns;
            of one that rises, such as an accuracy, give 1 minus it.
        ticks: the length of the run that is planned.
        average: the fraction from which slow weights are averaged, if they will be read.
        bias: the share of an update that its bias may have, for the tau that is tried.
        seeds: networks for each short run; more where they do not agree.
        lanes: chains for the moments.
        seed: of everything; the planned run should have others.
        say: called with a line of text at every step.

    Example: `plan_run(run, NLL(data), ticks=2_000_000, average=0.5)`
    """
    ladder = agreed(run, metric, ticks, average=average, seeds=seeds, seed=seed, say=say)
    rate = advised_rate(ladder)
    say("moments and mixing of machines that a quarter and half of the run train")
    best, averaged = at_rate(run, rate.eta), average is not None
    pilots = [
        train(best, ticks=max(1, ticks // n), seed=seed, records=1, average=average) for n in (4, 2)
    ]
    quarter, half = (pilot.parameters(averaged) for pilot in pilots)
    limits = (
        "no short run has seen the second half of the run; the metric is that of the "
        f"{'slow weights' if averaged else 'last iterate'}; seeds that fail now and then are not "
        "seen by so few"
    )
    try:
        there = plan(best, half, bias=bias, lanes=lanes, seed=seed)
    except ValueError as error:  # an estimator or a process that the theory does not know
        stay = {"b": f"not known, so it stays: {error}".rstrip("."), "tau": "not known either"}
        b, tau = float(run.process.b), round(float(run.process.mean_length))
        reasons = stay | {"eta": rate.why, "limits": limits}
        return Plan(b, tau, rate.eta, reasons, rate.expected, None, None)
    earlier = watch(best, quarter, lanes, seed).slowest

    def whole(process: Process, octaves: list[int]) -> dict[int, np.ndarray]:
        other: Any = run._replace(process=process)
        return rung(other, metric, octaves, ticks, average, ladder.seeds, seed)

    contest = Contest(whole, ladder.eta, say)
    present = Choice(run.process, ladder.best, rate)
    present, why_tau = advised_tau(present, there, earlier, contest)
    present, why_b = advised_b(present, there, contest)
    reasons = {"b": why_b, "tau": why_tau, "eta": present.rate.why, "limits": limits}
    expected = present.rate.expected | {n: there.expected[n] for n in ("gradient", "variance")}
    b, tau = float(present.process.b), round(float(present.process.mean_length))
    return there._replace(b=b, tau=tau, eta=present.rate.eta, reasons=reasons, expected=expected)


def agreed(
    run: Run,
    metric: Metric,
    ticks: int,
    *,
    average: float | None,
    seeds: int,
    seed: int,
    say: Callable[[str], None],
) -> Ladder:
    """A ladder with so many seeds that SURE of the resamples agree on eta, or MOST seeds."""
    while True:
        ladder = climb(run, metric, ticks, average=average, seeds=seeds, seed=seed, say=say)
        near, _ = ladder.sure()
        if near >= SURE or 2 * seeds > MOST:
            return ladder
        seeds *= 2
        say(f"only {near:.0%} of resamples agree: again with {seeds} seeds")


def advised_rate(ladder: Ladder) -> Rate:
    """The rate that should end lowest at the present tau."""
    near, spread = ladder.sure()
    eta = ladder.eta * 2.0**ladder.best
    why = (
        f"{eta:.3g} should end lowest of {len(ladder.values)} rates in runs of 1/8 to 1/2 of the "
        f"length ({ladder.seeds} seeds, the work of {ladder.work:.0f} networks); {near:.0%} of "
        "resamples stay within a factor of 2"
    )
    end = ladder.predicted()[ladder.best]
    return Rate(eta, why, {"metric": end, "metric_sd": spread, "sure": near})


class Contest(NamedTuple):
    """Whole runs with the present phases and with other ones.

    Args:
        whole: from a process and octaves of the rate to what the seeds of each end with.
        eta: the rate of octave 0.
        say: called with a line of text.
    """

    whole: Callable[[Process, list[int]], dict[int, np.ndarray]]
    eta: float
    say: Callable[[str], None]

    def __call__(
        self, present: Choice, process: Process, octaves: range, words: str
    ) -> tuple[Choice, str]:
        """The other process if its seeds end lower (Welch's t-test, 5 %, times its number of rates,
        because the lowest of them is tested), and why; `words` say what it is.
        """
        self.say(f"{words} against the present phases")
        ours = self.whole(present.process, [present.octave])[present.octave]
        theirs = self.whole(process, [*octaves])
        k = lowest({k: float(ends.mean()) for k, ends in theirs.items()})
        mean, sd = float(theirs[k].mean()), float(theirs[k].std(ddof=1))
        welch: Any = stats.ttest_ind(theirs[k], ours, equal_var=False, alternative="less")
        p = min(1.0, len(theirs) * float(welch.pvalue))
        tried = f"in whole runs it ends at {mean:.4g} against {ours.mean():.4g} (p = {p:.2g})"
        if not p < 0.05:
            return present, f"{tried}, so the present one stays"
        eta = self.eta * 2.0**k
        why = f"{eta:.3g} ended lowest of {len(theirs)} rates in whole runs with {words}"
        rate = Rate(eta, f"{why} ({len(ours)} seeds)", {"metric": mean, "metric_sd": sd})
        return Choice(process, k, rate), f"{tried}, so it is taken"


def advised_tau(
    present: Choice, there: Plan, earlier: float, contest: Contest
) -> tuple[Choice, str]:
    """The length that the trained machine asks for, if it wins, and why.

    Args:
        earlier: the ticks in which the machine of a quarter of the run forgets.
    """
    tau = float(present.process.mean_length)
    asked = int(np.clip(there.tau, max(1, tau / FARTHEST), tau * FARTHEST))
    assert there.memory is not None
    mixing = (
        f"the trained machine forgets in {there.memory.slowest:.0f} ticks ({earlier:.0f} after a "
        f"quarter of the run), which asks for tau = {there.tau}"
    )
    if tau / OTHER <= asked <= tau * OTHER:
        return present, f"{mixing}; {tau:g} is near it"
    # phases of other lengths are fewer or more: eta times their number, or eta itself, may stay
    low, high = sorted((0, round(np.log2(asked / tau))))
    octaves = range(present.octave + low - 1, present.octave + high + 2)
    process = of_length(present.process, asked)
    choice, words = contest(present, process, octaves, f"phases of {asked} ticks")
    return choice, f"{mixing}; {words}"


def advised_b(present: Choice, there: Plan, contest: Contest) -> tuple[Choice, str]:
    """The b of least variance in the trained machine, if it wins, and why."""
    assert there.moments is not None
    if present.process.alternates:
        return present, there.reasons["b"]
    here, saved = float(present.process.b), float(saving(there.moments, float(present.process.b)))
    gain = f"b = {there.b:.3f} has the least variance in the trained machine, {saved:.1%} less"
    if saved < WORTH:
        return present, f"{gain} than at {here:g}: that stays"
    if (process := of_share(present.process, there.b)) is None:
        return present, f"{gain} than at {here:g}, but these phases have no b to set"
    octaves = range(present.octave - 1, present.octave + 2)
    choice, words = contest(present, process, octaves, f"b = {there.b:.3f}")
    return choice, f"{gain} than at {here:g}; {words}"
