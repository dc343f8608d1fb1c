"""Advice for a run as a whole: what it reaches, not what holds at one checkpoint.

An untrained network mixes at once, so that advice measured there holds there only. Therefore short
runs come first (`ladder`); moments and mixing are those of a machine that half the run has trained.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..core import Run
from ..training import train
from .ladder import Ladder, Metric, at_rate, climb, lowest, rung
from .plan import Plan, of_length, plan
from .variance import saving

SURE, MOST = 0.8, 16  # seeds are doubled, up to MOST, until so many resamples agree
WORTH = 0.1  # of the variance: what another b must save to be advised
OTHER = 1.5  # tau within this factor is the same
FARTHEST = 8  # times the present tau: how far a longer one is tried


class Rate(NamedTuple):
    """A learning rate, why it is advised, and what to expect of the metric with it."""

    eta: float
    why: str
    expected: dict[str, float]


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

    eta is the best of a ladder of short runs (half the run at most; the work of about 20 networks).
    b and tau come from moments and mixing of the machine that half the run trains; another tau is
    advised only if it wins in runs of half the length, each at its own best eta.

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
    say("moments and mixing of the machine that half the run trains")
    best = at_rate(run, rate.eta)
    trained = train(best, ticks=max(1, ticks // 2), seed=seed, records=1).parameters()
    read = "last iterate" if average is None else "slow weights"
    limits = (
        "no short run has seen the second half of the run; the metric is that of the "
        f"{read}; seeds that fail now and then are not seen by so few"
    )
    try:
        there = plan(best, trained, bias=bias, lanes=lanes, seed=seed)
    except ValueError as error:  # an estimator or a process that the theory does not know
        stay = {"b": f"not known, so it stays: {error}".rstrip("."), "tau": "not known either"}
        b, tau = float(run.process.b), round(float(run.process.mean_length))
        reasons = stay | {"eta": rate.why, "limits": limits}
        return Plan(b, tau, rate.eta, reasons, rate.expected, None, None)
    b, why_b = advised_b(best, there)
    tau, why_tau, rate = advised_tau(
        run, metric, ticks, ladder, there, rate, average=average, seed=seed, say=say
    )
    reasons = {"b": why_b, "tau": why_tau, "eta": rate.why, "limits": limits}
    expected = rate.expected | {name: there.expected[name] for name in ("gradient", "variance")}
    return there._replace(b=b, tau=tau, eta=rate.eta, reasons=reasons, expected=expected)


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


def rate_at_half(eta: float, ends: np.ndarray, tau: int, rates: int) -> Rate:
    """The rate that ended lowest in runs of half the length with phases of tau ticks, which nothing
    shorter joins to the whole run: what is expected is what those runs reached.
    """
    why = (
        f"{eta:.3g} ended lowest of {rates} rates in runs of half the length with phases of {tau} "
        f"ticks ({len(ends)} seeds)"
    )
    reached = {"metric_at_half": float(ends.mean()), "metric_at_half_sd": float(ends.std(ddof=1))}
    return Rate(eta, why, reached)


def advised_b(run: Run, there: Plan) -> tuple[float, str]:
    """The best b of the trained machine where it is worth a change, and why."""
    gain = f"b = {there.b:.3f} has the least variance in the trained machine"
    if run.process.alternates:
        return there.b, f"{gain}; alternating phases have no b to choose: it is what ISD would take"
    here, moments = float(run.process.b), there.moments
    assert moments is not None
    saved = float(saving(moments, here))
    if saved < WORTH:
        return here, f"{gain}, {saved:.1%} less than at {here:g}: that stays"
    return there.b, f"{gain}, {saved:.0%} less than at {here:g}"


def advised_tau(
    run: Run,
    metric: Metric,
    ticks: int,
    ladder: Ladder,
    there: Plan,
    rate: Rate,
    *,
    average: float | None,
    seed: int,
    say: Callable[[str], None],
) -> tuple[int, str, Rate]:
    """(tau, why, its rate): that of the trained machine, if it wins in runs of half the length;
    `rate` is that of the present tau.
    """
    tau = float(run.process.mean_length)
    asked = int(np.clip(there.tau, max(1, tau / FARTHEST), tau * FARTHEST))
    assert there.memory is not None
    mixing = (
        f"the trained machine forgets in {there.memory.slowest:.0f} ticks, "
        f"which asks for tau = {there.tau}"
    )
    if tau / OTHER <= asked <= tau * OTHER:
        return round(tau), f"{mixing}; {tau:g} is near it", rate
    say(f"phases of {asked} ticks against {tau:g}")
    half, around = ticks // 2, [ladder.best - 1, ladder.best, ladder.best + 1]
    other: Any = run._replace(process=of_length(run.process, asked))
    theirs = rung(other, metric, around, half, average, ladder.seeds, seed)
    ours = {k: rungs[-1] for k, rungs in ladder.values.items() if -1 in rungs}
    k, mine = (lowest({k: float(v.mean()) for k, v in each.items()}) for each in (theirs, ours))
    welch: Any = stats.ttest_ind(theirs[k], ours[mine], equal_var=False, alternative="less")
    p = float(welch.pvalue)
    against = (
        f"tried at {asked} for half the run: {theirs[k].mean():.4g} against "
        f"{ours[mine].mean():.4g} (p = {p:.2g})"
    )
    if p < 0.05:
        won = rate_at_half(ladder.eta * 2.0**k, theirs[k], asked, len(around))
        return asked, f"{mixing}; {against}, so it is taken", won
    return round(tau), f"{mixing}; {against}, so {tau:g} stays", rate
