"""Which eta for a run of this length? Short runs, and the law that joins them.

Steps that are small matter by their sum: a rate of eta for t ticks learns what eta/2 learns in 2t.
What is left to learn falls with eta t, and what the noise of the steps costs rises with eta:

    L(eta, t) = B(eta t) + N(eta)

Rates a factor of two apart, in runs whose lengths are a factor of two apart, show B and N on one
grid; so half the run's length is enough to predict all of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from scipy.optimize import nnls

from ..checks import count
from ..core import Run
from ..lanes import grid
from ..training import train

#: Rungs: lengths of 1/8, 1/4 and 1/2 of the run, and how many rates are tried at each.
RUNGS = {-3: 11, -2: 6, -1: 4}
OCTAVES = 5  # rates from eta / 2^5 to eta 2^5, and again from the edge where the best lies there
WIDEST = 15  # octaves
SHRINKS = 0.5  # beyond what was seen, what an octave more of eta t still gains halves every time
RESAMPLES = 200
LITTLE = 0.02  # of the metric: a smaller difference is not taken for learning

Metric = Callable[[Any], Any]


class Ladder(NamedTuple):
    """What short runs showed: values[k][h] are the seeds of the rate eta 2^k after 2^h of the run.

    Lower is better.
    """

    eta: float
    values: dict[int, dict[int, np.ndarray]]

    @property
    def seeds(self) -> int:
        """Networks for each rate."""
        return len(next(iter(next(iter(self.values.values())).values())))

    @property
    def work(self) -> float:
        """Networks that could have been trained to the end instead."""
        rungs = (item for rates in self.values.values() for item in rates.items())
        return sum(len(seeds) * 2.0**h for h, seeds in rungs)

    def predicted(self, resample: np.random.Generator | None = None) -> dict[int, float]:
        """Octave k -> the median at the end of the run, B(eta 2^k t) + N(eta 2^k), both from least
        squares with B falling and N rising.

        Args:
            resample: draw as many seeds again, for the error.
        """

        def middle(seeds: np.ndarray) -> float:
            drawn = seeds if resample is None else resample.choice(seeds, len(seeds))
            return float(np.median(drawn))  # tails are heavy

        rates = self.values.items()
        return extrapolate({(k, h): middle(v) for k, rungs in rates for h, v in rungs.items()})

    @property
    def best(self) -> int:
        """The octave that should end lowest."""
        return lowest(self.predicted())

    @property
    def learns(self) -> bool:
        """Does the best rate end at least LITTLE below the smallest one, which hardly moves?"""
        ends = self.predicted()
        still = ends[min(ends)]
        return still - min(ends.values()) > LITTLE * abs(still)

    def sure(self, seed: int = 0) -> tuple[float, float]:
        """(share of resamples whose best rate is within a factor of 2 of the best, sd of what is
        predicted there).
        """
        rng, best = np.random.default_rng(seed), self.best
        drawn = [self.predicted(rng) for _ in range(RESAMPLES)]
        near = np.mean([abs(lowest(each) - best) <= 1 for each in drawn])
        return float(near), float(np.std([each[best] for each in drawn]))


def lowest(values: dict[int, float]) -> int:
    """The first key of the lowest value."""
    return min(sorted(values), key=values.__getitem__)


def extrapolate(seen: dict[tuple[int, int], float]) -> dict[int, float]:
    """From means at (octave k of the rate, octave h of the length) to those at h = 0."""
    rates = sorted({k for k, _ in seen})
    reach = {k + h for k, h in seen}  # octaves of eta t
    near, far = min(reach), max(reach)
    floor = min(seen.values())
    scale = float(np.median(list(seen.values()))) - floor or 1.0

    def row(k: int, s: int) -> np.ndarray:
        """B(s) + N(k) as a sum of unknowns that are not negative: the end of B (as the difference
        of two), what B still falls from s on, and what N has risen up to k.
        """
        falls = [float(s <= at) for at in range(near, far)]
        rises = [float(at <= k) for at in rates[1:]]
        return np.array([1.0, -1.0, *falls, *rises])

    places = list(seen)
    # far from the floor the law is coarse, and what matters is near
    weights = np.array([1 / (1 + (seen[place] - floor) / scale) for place in places])
    rows = np.stack([row(k, k + h) for k, h in places])
    values = np.array([seen[place] - floor for place in places])
    # a weak pull of the rises of N to 0: without data on a rise there is none
    pull = 1e-2 * np.eye(rows.shape[1])[2 + far - near :]
    x, _ = nnls(
        np.concatenate([weights[:, None] * rows, pull]),
        np.concatenate([weights * values, np.zeros(len(pull))]),
    )
    recent = x[2 : 2 + far - near][-2:]
    gain = float(recent.mean()) if len(recent) else 0.0

    def end(k: int) -> float:
        beyond = sum(gain * SHRINKS**i for i in range(1, k - far + 1))
        return floor + float(row(k, min(max(k, near), far)) @ x) - beyond

    return {k: end(k) for k in rates}


def climb(
    run: Run,
    metric: Metric,
    ticks: int,
    *,
    average: float | None = None,
    seeds: int = 4,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Ladder:
    """Try rates around the run's own in short runs.

    Args:
        run: of one setting.
        metric: of one lane's parameters; it must fall as the network learns.
        ticks: the length of the run that is planned.
        average: the fraction from which slow weights are averaged where they will be read.
        seeds: networks for each rate.
        seed: the first of them.
        say: called with a line of text at every rung.
    """
    count(seeds, "seeds", 2)
    ladder, centre = Ladder(float(run.optimiser.eta), {}), 0
    while True:
        rates = list(range(centre - OCTAVES, centre + OCTAVES + 1))
        for h, kept in RUNGS.items():
            promising = ladder.predicted() if h > min(RUNGS) else {}
            rates = sorted(sorted(promising, key=promising.__getitem__)[:kept]) or rates
            length = max(1, round(ticks * 2.0**h))
            say(f"{len(rates)} rates x {seeds} seeds for {length:,} ticks")
            (values,) = penalised(ends(run, metric, rates, length, average, seeds, seed))
            for k, found in values.items():
                ladder.values.setdefault(k, {})[h] = found
        tried = sorted(ladder.values)
        # where nothing has learned, the rates were too small
        centre = ladder.best if ladder.learns else tried[-1]
        if centre not in (tried[0], tried[-1]) or abs(centre) >= WIDEST:
            return ladder


def ends(
    run: Run,
    metric: Metric,
    rates: list[int],
    ticks: int,
    average: float | None,
    seeds: int,
    seed: int,
) -> dict[int, np.ndarray]:
    """Octave -> what each seed ends with; NaN where it diverged."""
    eta = float(run.optimiser.eta)
    many = grid(lambda eta: at_rate(run, eta), eta=[eta * 2.0**k for k in rates])
    record = train(
        many, ticks=ticks, seeds=seeds, seed=seed, records=1, average=average, metrics={"m": metric}
    )
    values = record.final(averaged=average is not None).transpose("eta", "seed").values
    return dict(zip(rates, values, strict=True))


def penalised(*each: dict[int, np.ndarray]) -> list[dict[int, np.ndarray]]:
    """A seed that diverged counts as twice the worst of all of them."""
    known = np.concatenate([values for found in each for values in found.values()])
    finite = known[np.isfinite(known)]
    if not finite.size:
        raise ValueError(
            "every network diverged, or the metric is never finite; begin with a smaller learning "
            "rate, or look at the metric."
        )
    worst = 2 * np.abs(finite).max()
    return [{k: np.where(np.isfinite(v), v, worst) for k, v in found.items()} for found in each]


def at_rate(run: Run, eta: float) -> Run:
    """The same run with another learning rate."""
    return eqx.tree_at(lambda r: r.optimiser.eta, run, np.float32(eta))
