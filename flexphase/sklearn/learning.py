"""From the words of a scikit-learn estimator to a run, and through it to trained parameters."""

from argparse import Namespace
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.utils import check_random_state

from ..averages import Slow, average_of
from ..catalogue import RULES
from ..catalogue.arguments import did_you_mean
from ..checks import budget
from ..core import Run
from ..engine import NONE
from ..engines import choose, say_if_missing
from ..lanes import lanes
from ..progress import display
from ..rules import Rule


class Learned(NamedTuple):
    """One trained network, as NumPy arrays."""

    params: Any  # the slow weights where there is an average
    z: Any  # the state of its units, from which `partial_fit` goes on


def rule_of(name: str, b: float, length: float) -> Rule:
    """The process and the estimator of that name: cd, isd, aol, aol-random, ..."""
    if name not in tuple(RULES):  # it may be anything, also a list
        near = did_you_mean(str(name), RULES)
        raise ValueError(f"there is no rule {name!r}; choose from {', '.join(RULES)}{near}.")
    return RULES[name].build(Namespace(b=b, length=length))


def seed_of(random_state: Any) -> int:
    """A seed of ours from scikit-learn's `random_state`."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def ticks_for(run: Run, rows: float) -> int:
    """Ticks in which about `rows` positive phases begin: a row is shown in each."""
    process = run.process
    return budget(process.mean_length, None, max(1, round(rows / float(process.b))))


def learn(
    run: Run,
    ticks: int,
    seed: int,
    *,
    average: float | None = None,
    start: Learned | None = None,
    verbose: Any = 0,
) -> Learned:
    """One network after so many ticks: `train` neither starts from units nor gives them back.

    Args:
        average: a fraction such as 0.5: return the mean of the parameters over the rest of
            training.
        start: parameters and units to go on from.
        verbose: True or 1 draws a bar.
    """
    every, engine, mean = lanes(run, 1, seed), choose("auto", run), average_of(average)
    say_if_missing()
    if start is None:
        state = engine.start(every)
    else:
        state = engine.start(every, jax.tree.map(lambda leaf: leaf[None], start.params))
        state = state._replace(z=jax.tree.map(lambda leaf: leaf[None], start.z))
    slow = None if mean is None else Slow.empty(mean, state.params)
    done = 0
    with display(bool(verbose), type(run.method).__name__) as bar:

        def report(n: int) -> None:
            nonlocal done
            done += n
            bar(done, ticks, {})

        visits = NONE if slow is None else slow.visits(ticks, 0, ticks)
        state = engine.advance(every, state, ticks, report, visits)
    params = state.params if slow is None else slow.params(state.params)
    learned = Learned(first_lane(params), first_lane(state.z))
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learned)):
        raise ValueError(
            "training diverged, and the weights are no longer finite; try a smaller learning_rate."
        )
    return learned


def first_lane(tree: Any) -> Any:
    """The leaves of the only lane, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.array(np.asarray(leaf)[0]), tree)
