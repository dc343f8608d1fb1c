"""Which signals a rule needs, found by running its estimator and its process on a few phases."""

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Estimator, Phase, Process, Run
from ..phases import Bernoulli, Fixed, Phases, tape

#: Signals in words, in the order of tables.
SIGNALS = {
    "phase_sign": "every synapse knows the sign of the phase",
    "phase_end": "a mark at the end of a phase",
    "learning_switch": "learning is switched on and off",
    "alternation": "phases must alternate",
    "clock": "phases of a fixed length: something counts ticks",
    "random_sign": "random bits choose the sign of a phase",
    "random_length": "random bits choose the length of a phase",
    "knows_b": "the step depends on the probability of a phase",
    "knows_tau": "the step depends on the mean length of a phase",
    "random_units": "units draw random numbers",
    "random_writes": "writes draw random numbers",
}
TICKS = 5  # of the phases on which an estimator is tried


def signals(run: Run) -> dict[str, bool]:
    """All of `SIGNALS` but the last two, which depend on what is computed."""
    return of_estimator(run.estimator) | of_process(run.process)


def of_estimator(estimator: Estimator) -> dict[str, bool]:
    """The signals on which its steps depend, found by trying it on phases that differ in one."""
    steps, applies = tried(estimator)
    always_positive, always_negative = (tried(estimator, signs=(s, s))[0] for s in (1, -1))
    return {
        "phase_sign": not np.array_equal(always_positive, always_negative),
        "phase_end": bool((applies[:, -1] != applies[:, 1]).any()),
        "learning_switch": not applies[1:].all(),
        "alternation": refuses_random_phases(estimator),
        "knows_b": not np.array_equal(steps, tried(estimator, prob=0.25)[0]),
        "knows_tau": not np.array_equal(steps, tried(estimator, length=50.0)[0]),
    }


def tried(
    estimator: Estimator,
    signs: tuple[int, int] = (1, -1),
    prob: float = 0.5,
    length: float = TICKS,
) -> tuple[np.ndarray, np.ndarray]:
    """What it makes of four phases, with a term that changes from tick to tick: (phases, ticks)
    sizes of the step, and whether it is taken.
    """
    params = jnp.ones(3)
    memory, steps, applies = estimator.init(params), [], []
    for i, sign in enumerate(signs * 2):
        for left in range(TICKS, 0, -1):
            phase = Phase(*map(jnp.float32, (sign, prob, length, TICKS, left)))
            g = params * (1 + 0.1 * i + 0.01 * left)
            step, apply, memory = estimator.update(phase, g, memory)
            steps.append(float(step.sum()) * bool(apply))
            applies.append(bool(apply))
    return np.array(steps).reshape(4, TICKS), np.array(applies).reshape(4, TICKS)


def refuses_random_phases(estimator: Estimator) -> bool:
    """Does its check raise for phases of random sign?"""
    try:
        estimator.check(Phases(Bernoulli(0.5), Fixed(TICKS)))
    except ValueError:
        return True
    return False


def of_process(process: Process) -> dict[str, bool]:
    """What differs between 64 lanes in their first four phases is random."""
    keys = jax.random.split(jax.random.key(0), 64)
    drawn = jax.vmap(lambda key: tape(process, key, 4))(keys)
    sign, ticks = np.asarray(drawn.sign), np.asarray(drawn.ticks)
    varies = bool((ticks != ticks[:1]).any())
    return {
        "clock": not varies,
        "random_sign": bool((sign != sign[:1]).any()),
        "random_length": varies,
    }
