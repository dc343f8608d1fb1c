"""Phase processes: what `tape` says is what `tick` sees; signs, lengths and probabilities against
closed forms.
"""

from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from flexphase import estimators
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import Rows
from flexphase.methods.rbm import RBM
from flexphase.phases import (
    Alternating,
    Bernoulli,
    Clamped,
    Fixed,
    Geometric,
    Markov,
    Matched,
    Pairs,
    Phases,
    Recorded,
    Sinusoidal,
    tape,
)

seeds, probabilities = st.integers(0, 2**31 - 1), st.floats(0.01, 0.99)
lengths, means = st.integers(1, 6), st.floats(1, 8)


class Walk(eqx.Module):
    """What a lane sees, tick by tick."""

    ticks: int = eqx.field(static=True)

    @eqx.filter_jit
    def __call__(self, process, key):
        run = Run(RBM(2, 1), process, estimators.always_on, Rows(np.eye(2)), Optimiser(0.1))

        def body(s, _):
            s = tick(run, s)
            return s, (s.phase, s.phases)

        start = init(run, key)
        return jax.lax.scan(body, start, None, self.ticks)[1], tape(process, start.key, self.ticks)


def check(process, seed, ticks=40):
    (seen, finished), told = Walk(ticks)(process, jax.random.key(seed))
    every = np.asarray(told.ticks)
    assert every.min() >= 1
    number = np.repeat(np.arange(len(every)), every)[:ticks]
    for name in ("sign", "prob", "length", "ticks"):
        assert np.array_equal(getattr(seen, name), np.asarray(getattr(told, name))[number]), name
    ends = np.cumsum(every)
    assert np.array_equal(finished, np.searchsorted(ends, np.arange(1, ticks + 1), side="right"))
    assert np.array_equal(seen.left, ends[number] - np.arange(1, ticks + 1))
    assert np.isin(seen.sign, (-1, 1)).all()
    return told


@given(seeds, probabilities, lengths, lengths)
def test_tape_is_what_tick_sees_fixed(seed, b, plus, minus):
    told = check(Phases(Bernoulli(b), Fixed(plus), Fixed(minus)), seed)
    sign = np.asarray(told.sign)
    assert np.array_equal(told.ticks, np.where(sign > 0, plus, minus)) and np.array_equal(
        told.length, told.ticks
    )
    assert np.allclose(told.prob, np.where(sign > 0, b, 1 - b), atol=1e-6)


@given(seeds, probabilities, means, means)
def test_tape_is_what_tick_sees_geometric(seed, b, plus, minus):
    told = check(Phases(Bernoulli(b), Geometric(plus), Geometric(minus)), seed)
    assert np.allclose(told.length, np.where(np.asarray(told.sign) > 0, plus, minus), rtol=1e-6)


@given(seeds, lengths, means)
def test_tape_is_what_tick_sees_alternating(seed, plus, minus):
    told = check(Phases(Alternating(), Fixed(plus), Geometric(minus)), seed)
    assert (
        np.array_equal(told.sign, np.resize([1, -1], len(told.sign))) and (told.prob == 0.5).all()
    )


def test_a_later_stretch_of_tape_is_the_same_tape():
    process, key = Phases(Bernoulli(0.3), Geometric(5)), jax.random.key(1)
    whole, part = tape(process, key, 50), tape(process, key, 20, start=30)
    assert all(np.array_equal(a[30:], b) for a, b in zip(whole, part, strict=True))


@pytest.mark.parametrize(
    "process",
    [
        Phases(Markov(0.8, 0.6), Geometric(5)),
        Phases(Alternating(), Matched(Geometric(5))),
        Recorded(sign=[1, -1] * 6, ticks=range(1, 13), after="shuffle", block=1),
    ],
)
def test_a_process_with_a_memory_is_told_the_state_of_its_lane(process):
    run = Run(RBM(2, 1), process, estimators.always_on, Rows(np.eye(2)), Optimiser(0.1))
    s = start = init(run, jax.random.key(1))
    told = tape(process, start.key, 12, state=start.process)
    one = eqx.filter_jit(tick)
    for sign, ticks in zip(told.sign.tolist(), told.ticks.tolist(), strict=True):
        for _ in range(ticks):
            s = one(run, s)
            assert (float(s.phase.sign), int(s.phase.ticks)) == (sign, ticks)


@pytest.mark.parametrize("period", [1.0, 7.0, 8.3, 200.0, 1000.3, 2.0**23 + 1, 1e8])
def test_a_swinging_teacher_never_loses_its_beat(period):
    """sin(2 pi t / period) with t mod period in exact fractions, up to the last tick there is."""
    exact = Fraction(float(np.float32(period)))
    begins = (0, 2**16 - 2, 2**24 - 2, 2**24 + 1000, 123_456_789, 2**31 - 6)
    n = np.concatenate([np.arange(b, b + 5) for b in begins])
    process = Sinusoidal(period)
    told = jax.jit(jax.vmap(lambda i: process.step(jax.random.key(0), i, ())[0].sign))(jnp.int32(n))
    share = np.array([float(int(i) % exact / exact) for i in n])
    np.testing.assert_allclose(told, np.sin(2 * np.pi * share), atol=2e-6)


@pytest.mark.codegen
@pytest.mark.parametrize("period", [7.0, 8.3, 200.0])
def test_a_swinging_teacher_has_the_bits_of_a_plain_remainder(period):
    """Where float32 has every whole number."""
    n = jnp.int32(np.random.default_rng(0).integers(0, 2**24, 1000))
    process = Sinusoidal(period)
    told = jax.jit(jax.vmap(lambda i: process.step(jax.random.key(0), i, ())[0].sign))(n)
    p = jnp.float32(period)
    plain = jax.jit(jax.vmap(lambda i: jnp.sin(2 * jnp.pi * ((i % p) / p))))(n)
    assert np.array_equal(told, plain)


@pytest.mark.parametrize("b", [0.1, 0.5, 0.9])
def test_share_of_positive_phases(b):
    """Binomial, 50,000 phases: |z| < 4; and no memory: the same after a positive phase."""
    sign = np.asarray(tape(Phases(Bernoulli(b), Fixed(1)), jax.random.key(0), 50_000).sign)
    assert abs((sign > 0).mean() - b) / np.sqrt(b * (1 - b) / len(sign)) < 4
    after = sign[1:][sign[:-1] > 0]
    assert abs((after > 0).mean() - b) / np.sqrt(b * (1 - b) / len(after)) < 4


@pytest.mark.parametrize("tau", [1.0, 1.5, 4.0, 50.0])
def test_geometric_lengths(tau):
    """P(T = k) = (1 - 1/tau)^(k-1) / tau: chi-square over 1, 2, ... against SciPy's geom, p > 1e-4;
    E[T], E[T^2], E[T^3] by |z| < 4.
    """
    drawn = np.asarray(
        tape(Phases(Bernoulli(0.5), Geometric(tau)), jax.random.key(2), 100_000).ticks
    ).astype(float)
    if tau == 1:
        assert (drawn == 1).all()
        return
    top = int(stats.geom.ppf(0.999, 1 / tau))
    expected = stats.geom.pmf(np.arange(1, top), 1 / tau)
    seen = np.bincount(np.minimum(drawn, top).astype(int), minlength=top + 1)[1:]
    assert stats.chisquare(seen, len(drawn) * np.append(expected, 1 - expected.sum())).pvalue > 1e-4
    for power, moment in ((1, tau), (2, 2 * tau**2 - tau), (3, 6 * tau**3 - 6 * tau**2 + tau)):
        values = drawn**power
        assert abs(values.mean() - moment) / (values.std() / len(drawn) ** 0.5) < 4


@given(probabilities, st.integers(1, 1000))
def test_equal_lengths_have_exactly_that_mean(b, T):
    """So that phases x mean length is a whole number of ticks, the same in every lane of a sweep
    over b.
    """
    assert float(Phases(Bernoulli(b), Fixed(T)).mean_length) == T
    assert float(Phases(Alternating(), Fixed(T), Fixed(3 * T)).mean_length) == 2 * T


def test_one_number_for_each_random_choice_of_a_lane():
    """A process draws from its own key: the length does not depend on b, nor the sign on tau."""
    key = jax.random.key(5)
    one, two = (
        tape(Phases(Bernoulli(0.3), Geometric(5)), key, 200),
        tape(Phases(Bernoulli(0.7), Geometric(5)), key, 200),
    )
    assert np.array_equal(one.ticks, two.ticks)
    assert np.array_equal(one.sign, tape(Phases(Bernoulli(0.3), Geometric(50)), key, 200).sign)
    assert jnp.all(one.sign <= two.sign)


@pytest.mark.parametrize("make", [Alternating, Pairs, Clamped])
def test_b_is_no_choice_where_the_order_fixes_it(make):
    """A term of Pairs(b=0.2) would weigh 1/0.2, though half of the phases are positive."""
    known = make().b
    assert make(b=known).b == known
    with pytest.raises(ValueError, match="the share of positive phases is"):
        make(b=0.2)
