"""Advice for a run as a whole: what it reaches, not what holds at one checkpoint.

An untrained network mixes at once, so that advice measured there holds there only. Therefore short
runs come first (`ladder`); moments and mixing are those of machines that parts of the run have
trained. What they ask for is advised only if it wins when it is tried.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..checks import above_zero, count
from ..contract import complete
from ..core import Process, Run
from ..export import from_numpy
from ..record import Record
from ..training import train
from .ladder import RUNGS, Ladder, Metric, at_rate, climb, ends, lowest, penalised
from .plan import (
    Memory,
    Plan,
    advise_b,
    expected_of,
    length_of,
    moments_at,
    of_length,
    of_share,
    plan,
    watch,
)
from .variance import Moments, best_b, saving

SURE, MOST = 0.8, 16  # seeds are doubled, up to MOST, until this share of resamples agrees
WORTH = 0.1  # of the variance: what another b must save to be tried
OTHER = 1.5  # tau within this factor is the same
FARTHEST = 8  # times the present tau: how far a longer one is tried


class Rate(NamedTuple):
    """A learning rate, why it is advised, and what to expect of the metric with it."""

    eta: float
    why: str
    expected: dict[str, float]


class Choice(NamedTuple):
    """A process with phases of tau ticks, its best rate, eta 2^octave on the ladder, and what whole
    runs with rates around it ended with, where there were any.
    """

    process: Process
    tau: float
    octave: int
    rate: Rate
    ends: dict[int, np.ndarray]


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
    in whole runs, each side at its own best eta (up to 12 networks more for each seed).

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

    Returns: a `Plan`, as `plan` does; `expected` has the metric at the end as well.

    Example: `plan_run(run, NLL(data), ticks=2_000_000, average=0.5)`
    """
    complete(run)
    count(ticks, "ticks")
    # now, because a ValueError of `plan` below is taken for a run that the theory does not know
    above_zero(bias, "bias")
    count(lanes, "lanes")
    ladder = agreed(run, metric, ticks, average=average, seeds=seeds, seed=seed, say=say)
    rate = advised_rate(ladder)
    say("moments and mixing of machines that a quarter and half of the run train")
    best = at_rate(run, rate.eta)
    quarter, half = (machine(best, max(1, ticks // n), average, seed) for n in (4, 2))
    limits = (
        "no short run has seen the second half of the run; the metric is that of the "
        f"{'last iterate' if average is None else 'slow weights'}; seeds that fail now and then "
        "are not seen by so few"
    )
    try:
        there = plan(best, half, bias=bias, lanes=lanes, seed=seed)
        earlier = watch(best, quarter, lanes, seed)
    except ValueError as error:  # an estimator or a process that the theory does not know
        stay = {"b": f"not known, so it stays: {error}".rstrip("."), "tau": "not known either"}
        b, tau = float(run.process.b), round(length_of(run.process))
        reasons = stay | {"eta": rate.why, "limits": limits}
        return Plan(b, tau, rate.eta, reasons, rate.expected, None, None)

    def whole(process: Process, octaves: list[int]) -> dict[int, np.ndarray]:
        other: Any = run._replace(process=process)
        return ends(other, metric, octaves, ticks, average, ladder.seeds, seed)

    contest = Contest(whole, ladder.eta, say)
    present = Choice(run.process, length_of(run.process), ladder.best, rate, {})
    present, why_tau = advised_tau(present, there, earlier, contest)
    m = moments_at(best._replace(process=present.process), half, present.tau, lanes, seed)
    present, why_b = advised_b(present, best, m, contest)
    b, tau = float(present.process.b), round(present.tau)
    reasons = {"b": why_b, "tau": why_tau, "eta": present.rate.why, "limits": limits}
    expected = present.rate.expected | expected_of(best, m, b)
    return there._replace(
        b=b, tau=tau, eta=present.rate.eta, reasons=reasons, expected=expected, moments=m
    )


def most_lanes(seeds: int) -> int:
    """Networks side by side in a rung, where seeds are doubled as long as they disagree."""
    while 2 * seeds <= MOST:
        seeds *= 2
    return max(RUNGS.values()) * seeds


def machine(run: Run, ticks: int, average: float | None, seed: int) -> Any:
    """The parameters that one network learns; the slow ones where these will be read."""
    record = train(run, ticks=ticks, seed=seed, records=1, average=average)
    one = Record(record.dataset.isel(seed=0))
    return from_numpy(run.method, one.params if average is None else one.averaged_params)


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

    def __call__(self, present: Choice, process: Process, tau: float) -> tuple[Choice, str]:
        """The one whose seeds end lower, and why: the other process only if Welch's t-test (5 %,
        times its number of rates, because the lowest of them is tested) says so.
        """
        k = present.octave
        # phases of other lengths are fewer or more: eta times their number, or eta itself, may stay
        low, high = sorted((0, round(np.log2(tau / present.tau))))
        ours, theirs = penalised(
            present.ends or self.whole(present.process, [k - 1, k, k + 1]),
            self.whole(process, [*range(k + low - 1, k + high + 2)]),
        )
        stays = self.chosen(present.process, present.tau, ours)
        other = self.chosen(process, tau, theirs)
        (b, sd_b, n), (a, sd_a, _) = (statistics(c.ends[c.octave]) for c in (other, stays))
        welch: Any = stats.ttest_ind_from_stats(
            b, sd_b, n, a, sd_a, n, equal_var=False, alternative="less"
        )
        p = min(1.0, len(theirs) * float(welch.pvalue))
        tried = f"in whole runs it ends at {b:.4g} against {a:.4g} (p = {p:.2g})"
        if p < 0.05:
            return other, f"{tried}, so it is taken"
        return stays, f"{tried}, so the present one stays"

    def chosen(self, process: Process, tau: float, each: dict[int, np.ndarray]) -> Choice:
        """A process at the rate that ended lowest in whole runs."""
        k = lowest({k: float(values.mean()) for k, values in each.items()})
        eta = self.eta * 2.0**k
        mean, sd, seeds = statistics(each[k])
        why = (
            f"{eta:.3g} ended lowest of {len(each)} rates in whole runs with b = "
            f"{float(process.b):.3f} and phases of {tau:g} ticks ({seeds} seeds)"
        )
        return Choice(process, tau, k, Rate(eta, why, {"metric": mean, "metric_sd": sd}), each)


def statistics(values: np.ndarray) -> tuple[float, float, int]:
    """Mean, standard deviation and number."""
    return float(values.mean()), float(values.std(ddof=1)), len(values)


def advised_tau(
    present: Choice, there: Plan, earlier: Memory, contest: Contest
) -> tuple[Choice, str]:
    """The length that the trained machine asks for, if it wins, and why.

    Args:
        earlier: how fast the machine of a quarter of the run forgets.
    """
    tau = present.tau
    asked = int(np.clip(there.tau, max(1, tau / FARTHEST), tau * FARTHEST))
    assert there.memory is not None
    mixing = (
        f"the trained machine forgets in {forgets(there.memory)} ticks ({forgets(earlier)} after a "
        f"quarter of the run), which asks for tau = {there.tau}"
    )
    if tau / OTHER <= asked <= tau * OTHER:
        return present, f"{mixing}; {tau:g} is near it"
    contest.say(f"phases of {asked} ticks against those of {tau:g}")
    choice, words = contest(present, of_length(present.process, asked), asked)
    return choice, f"{mixing}; phases of {asked}: {words}"


def forgets(memory: Memory) -> str:
    """How long, in words that say so where that is longer than could be watched."""
    return f"{'' if memory.resolved else 'at least '}{memory.slowest:.0f}"


def advised_b(present: Choice, run: Run, m: Moments, contest: Contest) -> tuple[Choice, str]:
    """The b of least variance in the trained machine, if it wins, and why.

    Args:
        run: whose phases are in the order that `present` keeps.
        m: moments with the phases of `present`.
    """
    if present.process.alternates:
        return present, advise_b(run, m, round(present.tau))[1]
    b, here = float(best_b(m)), float(present.process.b)
    saved = float(saving(m, here))
    gain = f"b = {b:.3f} has the least variance in the trained machine, {saved:.1%} less"
    if saved < WORTH:
        return present, f"{gain} than at {here:g}: that stays"
    if (process := of_share(present.process, b)) is None:
        return present, f"{gain} than at {here:g}, but the planner cannot set the b of these phases"
    contest.say(f"b = {b:.3f} against {here:g}")
    choice, words = contest(present, process, present.tau)
    return choice, f"{gain} than at {here:g}; {words}"
