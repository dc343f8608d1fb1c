"""What can be had from the seeds alone: a fair choice of the learning rate, and power.

Arrays have the seeds along their last axis.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..report.findings import Claim
from .claims import brief, verdict

RESAMPLES = 1000
SURE = 0.8  # share of the resamples in which a claim has to be decided
TRIED = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]  # numbers of seeds of the power analysis
DRAWS = 50  # resamples at each of them


def own_best(values: np.ndarray) -> np.ndarray:
    """(rates, seeds) -> (seeds,): each half of the seeds at the rate that is best for the other
    half, so that no rate is chosen by the numbers that are then shown.
    """
    found = np.empty(values.shape[1])
    even = np.arange(values.shape[1]) % 2 == 0
    for mine in (even, ~even):
        found[mine] = values[values[:, ~mine].mean(1).argmin()][mine]
    return found


def best_rate(values: np.ndarray, rates: list[float]) -> float:
    """The rate with the least mean over all seeds."""
    return rates[int(values.mean(1).argmin())]


def resampled(values: np.ndarray, *others: np.ndarray) -> list[list[np.ndarray]]:
    """The arrays with their seeds drawn again, RESAMPLES times, the same seeds in all of them."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, values.shape[-1], (RESAMPLES, values.shape[-1]))
    return [[array[..., some] for array in (values, *others)] for some in drawn]


def share_claim(words: str, measured: str, holds: list[bool]) -> Claim:
    """Does it hold in nearly all resamples of the seeds?"""
    share = float(np.mean(holds))
    return Claim(
        words,
        f"{measured} in {share:.1%} of resamples",
        verdict(share > 0.95, share < 0.05),
        f"bootstrap over seeds, {RESAMPLES} resamples: pass above 95 %, fail below 5 %",
    )


def wants_larger(words: str, rates: list[float], a: np.ndarray, b: np.ndarray) -> Claim:
    """Is the best rate of a larger than that of b? Both are (rates, seeds).

    Where both have the same best rate nothing is decided: they may differ between two rates of the
    grid, or beyond its end.
    """
    further = [x.mean(1).argmin() - y.mean(1).argmin() for x, y in resampled(a, b)]
    larger, smaller = (float(np.mean(np.multiply(side, further) > 0)) for side in (1, -1))
    return Claim(
        words,
        f"{best_rate(a, rates):.3g} against {best_rate(b, rates):.3g}; larger in {larger:.1%} of "
        f"resamples, smaller in {smaller:.1%}",
        verdict(larger > 0.95, smaller > 0.95),
        f"bootstrap over seeds, {RESAMPLES} resamples: pass if larger in more than 95 %, fail if "
        "smaller in more than 95 %",
    )


Errors = dict[Any, list[np.ndarray]]


def seeds_needed(
    judge: Callable[[Errors], list[Claim]], errors: Errors, more: bool = False
) -> list[int | None]:
    """For each claim the number of seeds with which it would be decided in 80 % of all studies, if
    the seeds that were seen are typical: they are drawn again, as many as that. None: more than
    2048. With `more`, only numbers above that of the seeds that were seen are tried.
    """
    rng, seen = np.random.default_rng(0), min(len(e) for each in errors.values() for e in each)
    needed: dict[int, int] = {}
    claims = len(judge(errors))
    for n in (n for n in TRIED if n > seen or not more):
        decided = np.zeros(claims)
        for _ in range(DRAWS):
            some = rng.integers(0, seen, n)
            drawn = {key: [e[some] for e in each] for key, each in errors.items()}
            decided += [claim.verdict != "unclear" for claim in judge(drawn)]
        for i in np.flatnonzero(decided >= SURE * DRAWS):
            needed.setdefault(int(i), n)
        if len(needed) == claims:
            break
    return [needed.get(i) for i in range(claims)]


def with_power(
    judge: Callable[[Errors], list[Claim]], errors: Errors, samples: str = "seeds"
) -> list[Claim]:
    """The claims; one that is unclear says how many samples would decide it."""
    claims = judge(errors)
    if all(claim.verdict != "unclear" for claim in claims):
        return claims
    told = []
    for claim, n in zip(claims, seeds_needed(judge, errors, more=True), strict=True):
        if claim.verdict == "unclear":
            many = f"more than {TRIED[-1]}" if n is None else f"about {n}"
            claim = claim._replace(measured=f"{claim.measured}; {many} {samples} would decide it")
        told.append(claim)
    return told


def in_words(values: dict[Any, np.ndarray]) -> str:
    """Mean ± sd (median) of every one."""
    return "; ".join(f"{name} {brief(v)}" for name, v in values.items())
