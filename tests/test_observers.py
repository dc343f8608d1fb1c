"""Statistics of phases in long runs, against whole numbers that NumPy counts exactly."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexphase as fp
from flexphase.core import Phase
from flexphase.phases.statistics import drawn, statistics


def last_tick(sign, ticks):
    """A state in which a phase has just ended."""
    one = jnp.float32(1)
    return SimpleNamespace(during=Phase(one * sign, one, one, jnp.int32(ticks), jnp.int32(1)))


@jax.jit
def counted(signs, lengths):
    """What the observer carries after these phases."""
    observer = fp.PhaseStatistics()

    def see(carry, phase):
        return observer.see(carry, last_tick(*phase)), None

    start = observer.init(last_tick(1, 1))
    return jax.lax.scan(see, start, (signs, lengths))[0]


@pytest.mark.parametrize("width", [0, 10, 1000, 90_000])
def test_many_ticks_are_counted_exactly(width):
    """A thousand million ticks, sixty times what float32 counts: against sums of 64 bits."""
    rng = np.random.default_rng(0)
    lengths = 100_001 + rng.integers(-width, width + 1, 10_000)
    signs = rng.choice([1.0, -1.0, 0.0], 10_000)
    seen = fp.PhaseStatistics().result(counted(jnp.float32(signs), jnp.int32(lengths)))
    for i, sign in enumerate((1, -1, 0)):
        assert int(seen["phases"][i]) == (signs == sign).sum()
        assert int(seen["ticks"][i]) == lengths[signs == sign].sum()
    assert float(seen["mean_length"]) == pytest.approx(lengths.mean(), rel=1e-6)
    cv = lengths.std() / lengths.mean()
    assert float(seen["cv_length"]) == pytest.approx(cv, rel=1e-4, abs=1e-9)


def test_counting_goes_on_beyond_the_whole_numbers_of_float32():
    """2^24 + 1 is the first that float32 does not have."""
    many = 2**24
    carry = counted(jnp.ones(1), jnp.ones(1, jnp.int32))
    carry = carry._replace(phases=carry.phases + many, ticks=carry.ticks + many)
    carry = carry._replace(switches=carry.switches + many)
    seen = fp.PhaseStatistics().see(carry, last_tick(-1, 1))
    assert seen.phases.tolist() == [many + 1, many + 1, many]
    assert seen.ticks.tolist() == [many + 1, many + 1, many]
    assert int(seen.switches) == many + 1


def test_a_long_run_keeps_the_spread_of_its_lengths():
    """Lengths 1 and 3 in turn have mean 2 and variance 1, whatever came before: from a carry of
    2^27 such phases, 2,000 more leave a cv of 1/2 and a sum of squares of 2^27 + 2,000.
    """
    many, more = 2**27, 2000
    carry = counted(jnp.ones(2), jnp.int32([1, 3]))
    share = jnp.int32([many - 2, 0, 0])
    carry = carry._replace(
        phases=carry.phases + share,
        ticks=carry.ticks + 2 * share,
        squares=jnp.float32(many),
    )
    observer = fp.PhaseStatistics()

    def see(i, carry):
        return observer.see(carry, last_tick(1, 1 + 2 * (i % 2)))

    end = jax.lax.fori_loop(0, more, see, carry)
    assert float(end.squares) - float(end.lost) == pytest.approx(many + more, abs=1)
    assert float(observer.result(end)["cv_length"]) == pytest.approx(0.5, rel=1e-6)


def observed(process, phases):
    sign, ticks = drawn(process, phases)
    run = fp.Run(fp.RBM(4, 3), process, fp.always_on, fp.Rows(np.eye(4)), fp.Optimiser(0.1))
    record = fp.train(run, ticks=int(ticks.sum()), observers={"p": fp.PhaseStatistics()})
    return {name: v.values[0] for name, v in record.observed("p").items()}, statistics(sign, ticks)


def test_a_pause_is_no_change_of_sign():
    """Pause, +, pause, -, ...: 20 phases with a sign have 19 changes, in a run as on a tape."""
    process = fp.Pauses(fp.Phases(fp.Alternating(), fp.Fixed(2)), 3)
    seen, told = observed(process, 40)
    assert float(seen["switch_rate"]) == pytest.approx(19 / 20)
    assert told.switch_rate == pytest.approx(19 / 20)
    assert seen["phases"].tolist() == [10, 10, 20] and seen["ticks"].tolist() == [20, 20, 60]


def test_a_run_and_a_tape_have_the_same_statistics():
    process = fp.Pauses(fp.Phases(fp.Markov(0.7, 0.4), fp.Geometric(4.0)), 2)
    seen, told = observed(process, 300)
    for name in ("b", "mean_length", "cv_length", "switch_rate"):
        assert float(seen[name]) == pytest.approx(getattr(told, name), rel=1e-5), name
