"""Statistics of phases in long runs, against whole numbers that NumPy counts exactly."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexphase as fp
from flexphase import plot
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


def a_run():
    return fp.Run(fp.RBM(4, 3), *fp.cd(2), fp.Rows(np.eye(4)), fp.Optimiser(0.1))


def traced(ticks, **options):
    record = fp.train(a_run(), ticks=ticks, observers={"trace": fp.Trace(8, **options)})
    return record, {name: v.values[0] for name, v in record.observed("trace").items()}


def test_ticks_that_a_run_does_not_reach_are_no_rests(tmp_path):
    """A sign of 0 would be a phase without plasticity, which this run never has."""
    record, seen = traced(5, select=lambda s: {"v": s.z.v, "n": s.ticks})
    assert seen["sign"][:5].tolist() == [1, 1, -1, -1, 1] and np.isnan(seen["sign"][5:]).all()
    assert np.isfinite(seen["v"][:5]).all() and np.isnan(seen["v"][5:]).all()
    assert not seen["first"][5:].any() and seen["n"].tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    ax = plot.raster(fp.Record.load(record.save(tmp_path / "r.nc")))
    assert ax.get_xlim() == (0, 5) and "no plasticity" not in ax.get_title()


def test_a_raster_of_what_was_never_seen_is_refused():
    record, seen = traced(5, start=5)
    assert np.isnan(seen["sign"]).all()
    with pytest.raises(ValueError, match="ended before the trace 'trace' began"):
        plot.raster(record)


def test_a_raster_of_a_whole_trace_is_whole():
    """As in records that were made when ticks to come were zeros."""
    record, _ = traced(12)
    assert plot.raster(record).get_xlim() == (0, 8)
    sign = record["observed.trace.sign"].copy()
    sign[0, 5:] = 0
    old = fp.Record(record.dataset.assign({"observed.trace.sign": sign}))
    assert plot.raster(old).get_xlim() == (0, 8)


def test_statistics_of_no_phase_are_no_numbers():
    run = a_run()._replace(process=fp.Phases(fp.Alternating(), fp.Fixed(100)))
    seen = fp.train(run, ticks=5, observers={"p": fp.PhaseStatistics()}).observed("p")
    assert np.isnan(seen["b"]).all() and np.isnan(seen["mean_length"]).all()
    assert (seen["phases"] == 0).all()


class Returns(eqx.Module):
    """An observer whose result is an array of this type."""

    dtype: str = eqx.field(static=True)

    def init(self, state):
        return state.ticks

    def see(self, carry, state):
        return state.ticks

    def result(self, carry):
        return {"x": carry.astype(self.dtype)}


class Nests(eqx.Module):
    """An observer that carries what other observers see."""

    def init(self, state):
        return state.seen

    def see(self, carry, state):
        return state.seen

    def result(self, carry):
        return {}


def select(**named):
    return {"t": fp.Trace(5, lambda s: {name: of(s) for name, of in named.items()})}


CANNOT = {
    "a random key": (select(k=lambda s: s.key), r"\['k'\] is a random key; leave it out"),
    "the whole state": (
        {"t": fp.Trace(5, lambda s: s._asdict())},
        r"\['key'\] is a random key; leave it out",
    ),
    "a type that NumPy has not": ({"t": Returns("bfloat16")}, r"bfloat16.*astype\(jnp.float32\)"),
    "a name with a slash": ({"a/b": fp.Trace(5)}, "'a/b' cannot name what is observed"),
    "a name with a line break": ({"a\n": fp.Trace(5)}, "without control characters"),
    "a name that is a number": ({3: fp.Trace(5)}, "3 cannot name what is observed"),
    "an empty name": ({"": fp.Trace(5)}, "'' cannot name what is observed"),
    "a selected name with a slash": (select(**{"a/b": lambda s: s.ticks}), "cannot name"),
    "a selected name with a null": (select(**{"a\0b": lambda s: s.ticks}), "cannot name"),
    "names that mix": ({"a": fp.Trace(5), "a.b": fp.Trace(5)}, "'a' and 'a.b' return"),
    "two arrays of one name": (
        select(**{"a": lambda s: {"b": s.ticks}, "a.b": lambda s: s.ticks}),
        "two variables or axes called 't.a.b'",
    ),
    "an array named as an axis": (
        select(a=lambda s: s.ticks, a_0=lambda s: s.ticks),
        "two variables or axes called 't.a_0'",
    ),
    "an observer that holds itself": ({"n": Nests()}, "Nests.see must return the structure"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_a_record_could_not_hold_is_refused_before_training(name):
    observers, words = CANNOT[name]
    with pytest.raises(ValueError, match=words):
        fp.train(a_run(), ticks=4, observers=observers, progress=pytest.fail)


def test_a_trace_of_nearly_the_whole_state_is_kept(tmp_path):
    """All but the random key; what observers carry is no part of what they select."""

    def most(state):
        return {name: part for name, part in state._asdict().items() if name != "key"}

    observers = {"t": fp.Trace(3, most), "t2": fp.Trace(2), "x.y": fp.PhaseStatistics()}
    record = fp.train(a_run(), ticks=4, observers=observers)
    loaded = fp.Record.load(record.save(tmp_path / "r.nc"))
    assert loaded.observed("t")["params.W"].shape == (1, 3, 4, 3)
    assert loaded.observed("x.y").keys() == record.observed("x.y").keys()
