"""Every selection and every duration: frequencies and moments against closed forms.

Statistics come from 64 independent lanes of 512 phases; z-scores are those of the mean over lanes,
with the standard deviation over lanes, and must stay below 4.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import z_score
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import flexphase as fp
from flexphase.phases import Stretched, tape
from flexphase.phases.statistics import run_lengths

LANES, PHASES = 64, 512
SELECTIONS = {
    "alternating": fp.Alternating(),
    "bernoulli": fp.Bernoulli(0.3),
    "markov": fp.Markov(0.8, 0.6),
    "pairs": fp.Pairs(),
    "homeostatic": fp.Homeostatic(0.3, 0.5),
    "blocks": fp.Blocks(2, 3),
}
DURATIONS = {
    "fixed": fp.Fixed(4),
    "geometric": fp.Geometric(5.0),
    "gamma": fp.Gamma(6.0, 0.5),
    "lognormal": fp.LogNormal(6.0, 0.8),
    "weibull": fp.Weibull(6.0, 1.2),
    "empirical": fp.Empirical([1, 2.5, 7]),
    "matched": fp.Matched(fp.Geometric(5.0)),
}
#: Long-run share of positive phases and rate of changes of sign, by hand.
SHARES = {
    "alternating": (1 / 2, 1),
    "bernoulli": (0.3, 2 * 0.3 * 0.7),
    "markov": (0.4 / 0.6, 2 * (0.4 / 0.6) * 0.2),
    "pairs": (1 / 2, 3 / 4),  # always inside a pair, half of the time between two
    "homeostatic": (0.3, None),
    "blocks": (2 / 5, 2 / 5),
}


class AnySelection(eqx.Module):
    """One of the selections, chosen by a number, so that all of them share a program."""

    which: jax.Array
    alternates = False
    timed = True

    @property
    def b(self):
        return jnp.stack([jnp.float32(one.b) for one in SELECTIONS.values()])[self.which]

    def init(self, key):
        return tuple(one.init(key) for one in SELECTIONS.values())

    def sign(self, u, n, states):
        every = zip(SELECTIONS.values(), states, strict=True)
        signs, states = zip(*(one.sign(u, n, state) for one, state in every), strict=True)
        return jnp.stack([jnp.float32(sign) for sign in signs])[self.which], states

    def lasted(self, sign, share, states):
        every = zip(SELECTIONS.values(), states, strict=True)
        return tuple(
            one.lasted(sign, share, state) if isinstance(one, fp.Homeostatic) else state
            for one, state in every
        )


class AnyDuration(eqx.Module):
    """One of the durations, in the same way."""

    which: jax.Array

    @property
    def mean(self):
        return jnp.stack([jnp.float32(one.mean) for one in DURATIONS.values()])[self.which]

    def init(self, key):
        return tuple(one.init(key) for one in DURATIONS.values())

    def next(self, u, key, sign, states):
        every = zip(DURATIONS.values(), states, strict=True)
        drawn, states = zip(*(one.next(u, key, sign, state) for one, state in every), strict=True)
        return jnp.stack(drawn)[self.which], states


@cache
def every_tape():
    """Tapes of all pairs, arrays of (selections, durations, lanes, phases)."""
    keys = jax.random.split(jax.random.key(17), LANES)

    def draw(select, last, key):
        return tape(fp.Phases(AnySelection(select), AnyDuration(last)), key, PHASES)

    for axes in ((None, None, 0), (None, 0, None), (0, None, None)):
        draw = jax.vmap(draw, axes)
    drawn = jax.jit(draw)(jnp.arange(len(SELECTIONS)), jnp.arange(len(DURATIONS)), keys)
    return jax.tree.map(lambda part: np.asarray(part, float), drawn)


def lanes_of(select):
    """Tapes of a selection with every duration, arrays of (lanes, phases)."""
    row = jax.tree.map(lambda part: part[list(SELECTIONS).index(select)], every_tape())
    return {name: jax.tree.map(lambda part, i=i: part[i], row) for i, name in enumerate(DURATIONS)}


def z_of_lanes(values, exact):
    """z-score of the mean of independent lanes; 0 where all are exactly that."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / len(values) ** 0.5
    return 0.0 if np.allclose(values, exact, rtol=1e-6) else z_score(values.mean(), exact, error)


@pytest.mark.parametrize("select", SELECTIONS)
def test_frequencies_and_moments_of_every_pair(select):
    """The share of positive phases is b, and phases of either sign have the mean and the variance
    of their law: |z| < 4. Weights divide by b and by that mean.

    Left out: the lengths of matched phases that a homeostat of time selects, which depend on it
    (`test_a_homeostat_of_matched_lengths_is_off_balance`).
    """
    b, _ = SHARES[select]
    selection = SELECTIONS[select]
    assert float(selection.b) == pytest.approx(b)
    for name, phases in lanes_of(select).items():
        law, positive = DURATIONS[name], phases.sign > 0
        np.testing.assert_allclose(phases.prob, np.where(positive, b, 1 - b), rtol=1e-6)
        np.testing.assert_allclose(phases.length, float(law.mean), rtol=1e-6)
        assert phases.ticks.min() >= 1 and np.isin(phases.sign, (-1, 1)).all()
        if (select, name) == ("homeostatic", "matched"):
            continue
        # the error of a share that is balanced is of order 1/n: the ends of the record
        ends = 3 / PHASES if select in ("homeostatic", "blocks") else 0
        assert abs(positive.mean() - b) < ends or z_of_lanes(positive.mean(1), b) < 4, name
        for own in (positive, ~positive):
            count = own.sum(1)
            mean, variance = float(law.mean), float(law.variance)
            assert z_of_lanes((own * (phases.ticks - mean)).sum(1) / count, 0) < 4, name
            square = (own * (phases.ticks - mean) ** 2).sum(1) / count
            assert z_of_lanes(square, variance) < 4, name


@pytest.mark.parametrize("select", [name for name, (_, rate) in SHARES.items() if rate])
def test_the_sign_changes_as_often_as_it_should(select):
    sign = lanes_of(select)["geometric"].sign
    changes = (sign[:, 1:] != sign[:, :-1]).mean(1)
    rate = SHARES[select][1]
    end = 1 / PHASES if select in ("blocks", "pairs") else 0  # where the record is cut
    assert abs(changes.mean() - rate) < end or z_of_lanes(changes, rate) < 4


def test_runs_of_a_markov_chain_are_geometric():
    """Chi-square of the positive runs against SciPy's geom(1 - stay), p > 1e-4."""
    sign = np.asarray(tape(fp.Phases(fp.Markov(0.8, 0.6), fp.Fixed(1)), jax.random.key(4), 20_000))
    sign = sign[0]
    runs = run_lengths(sign)
    positive = runs[0 if sign[0] > 0 else 1 :: 2]
    top = 12
    seen = np.bincount(np.minimum(positive, top), minlength=top + 1)[1:]
    law = stats.geom(0.2)
    expected = np.append(law.pmf(np.arange(1, top)), law.sf(top - 1))
    assert stats.chisquare(seen, len(positive) * expected).pvalue > 1e-4


def chain_of(b, kappa, reach=60):
    """The law of the imbalance D = positive - b n at equal lengths, for b = 1/2: the vector that
    the matrix of its transitions leaves alone. -> places, law, chance of a positive phase.
    """
    D = np.arange(-reach, reach + 1) * b
    up = 1 / (1 + np.exp(kappa * D) * (1 - b) / b)
    moves = np.diag(up[:-1], 1) + np.diag(1 - up[1:], -1)
    moves[0, 0], moves[-1, -1] = 1 - up[0], up[-1]
    lazy = (moves + np.eye(len(D))) / 2  # the same law, without the parity of n
    return D, np.linalg.matrix_power(lazy, 2**14)[reach], up


def test_a_homeostat_keeps_the_balance_of_its_chain():
    """Equal lengths, b = 1/2: E[D^2] and the rate of changes of sign against the stationary law of
    the birth and death chain, found by powers of its matrix.
    """
    kappa = 0.7
    D, law, up = chain_of(0.5, kappa)
    process = fp.Phases(fp.Homeostatic(0.5, kappa), fp.Fixed(3))
    keys = jax.random.split(jax.random.key(3), LANES)
    sign = np.asarray(jax.vmap(lambda key: tape(process, key, 1000).sign)(keys), float)
    ahead = np.cumsum(sign, 1)[:, 100:] / 2
    assert z_of_lanes((ahead**2).mean(1), law @ D**2) < 4
    down = 1 - up
    after_up, after_down = np.append(down[1:], 1), np.append(1, up[:-1])
    switch = law @ (up * after_up + down * after_down)
    assert z_of_lanes((sign[:, 101:] != sign[:, 100:-1]).mean(1), switch) < 4


def test_a_homeostat_balances_time_and_not_counts():
    """Geometric lengths: the weights of always-on learning, sign T / (prob tau), add up to a number
    that stops growing, where those of random selection grow like sqrt(n): after 500 phases their
    variance is n (E[T^2] / tau^2) / (b (1 - b)) + ... = 4 n (2 - 1/tau) at b = 1/2.
    """

    @jax.jit
    @jax.vmap
    def weighed(key):
        own = {}
        for name, select in (("h", fp.Homeostatic(0.5, 0.5)), ("b", fp.Bernoulli(0.5))):
            own[name] = tape(fp.Phases(select, fp.Geometric(5.0)), key, 500)
        sums = {k: (p.sign * p.ticks / (p.prob * p.length)).sum() for k, p in own.items()}
        return sums, (own["h"].sign > 0).mean()

    sums, share = weighed(jax.random.split(jax.random.key(8), 256))
    variance = 500 * 4 * (2 - 1 / 5)
    assert abs(np.var(sums["b"]) / variance - 1) < 4 * (2 / 256) ** 0.5
    assert np.var(sums["h"]) < 0.05 * variance
    # the share of positive phases stays b, as a length does not depend on why its sign was chosen
    assert z_of_lanes(share, 0.5) < 4


def test_a_homeostat_of_matched_lengths_is_off_balance():
    """The one pair whose b is not what it says: a long positive phase is followed by one negative
    phase, a short one often by another positive one, so negative phases are fewer and longer. Time
    is balanced all the same, so that always-on learning sees both terms alike, and ISD does not.
    """
    process = fp.Phases(fp.Homeostatic(0.5, 5.0), fp.Matched(fp.Geometric(20.0)))
    lanes = jax.random.split(jax.random.key(17), LANES)
    phases = jax.jit(jax.vmap(lambda key: tape(process, key, PHASES)))(lanes)
    positive, ticks = np.asarray(phases.sign) > 0, np.asarray(phases.ticks, float)
    assert z_of_lanes(positive.mean(1), 0.5) > 10 and 0.53 < positive.mean() < 0.58
    assert ticks[~positive].mean() > 1.15 * ticks[positive].mean()
    imbalance = (np.where(positive, 0.5, -0.5) * ticks / 20).sum(1)
    assert np.abs(imbalance).mean() < 1  # of 512 phases


# ---- lengths


def beyond(law):
    """SciPy's law of the time beyond the first tick, with mean `mean` - 1 and sd cv x mean."""
    mean, sd = float(law.mean) - 1, float(law.cv * law.mean)
    ratio = sd / mean
    match law:
        case fp.Gamma():
            return stats.gamma(1 / ratio**2, scale=mean * ratio**2)
        case fp.LogNormal():
            s = np.sqrt(np.log1p(ratio**2))
            return stats.lognorm(s, scale=mean * np.exp(-(s**2) / 2))
        case fp.Weibull():
            unit = stats.weibull_min(float(law.shape))
            return stats.weibull_min(float(law.shape), scale=mean / unit.mean())
    raise AssertionError


def masses(law, top):
    """P(T = 1), ... P(T = top - 1), P(T >= top) of T = 1 + Y, rounded up with the probability of
    the fraction: P(T = 1 + j) = E[max(0, 1 - |Y - j|)] = S(j - 1) - 2 S(j) + S(j + 1) with
    S(j) = E[max(0, Y - j)], the integral of P(Y > y) from j on.
    """
    y = beyond(law)
    pieces = [integrate.quad(y.sf, j, j + 1)[0] for j in range(top + 1)]
    S = y.mean() - np.concatenate([[-1], np.cumsum([0, *pieces])])  # S(-1) = E[Y] + 1
    S[0] = y.mean() + 1
    mass = S[:-2] - 2 * S[1:-1] + S[2:]
    return np.append(mass[: top - 1], 1 - mass[: top - 1].sum())


@pytest.mark.parametrize(
    "law", [fp.Gamma(6.0, 0.5), fp.Gamma(3.0, 1.5), fp.LogNormal(6.0, 0.8), fp.Weibull(6.0, 1.2)]
)
def test_lengths_have_the_law_that_scipy_gives_them(law):
    """Chi-square over 1, 2, ... with 40,000 lengths, p > 1e-4; the stated variance is that of the
    masses (their sum up to 400 ticks).
    """
    keys = jax.random.split(jax.random.key(6), 40_000)
    u = jax.random.uniform(jax.random.key(7), (40_000,))
    drawn = np.asarray(jax.vmap(law.draw)(u, keys))
    expected = masses(law, top := 20)
    seen = np.bincount(np.minimum(drawn, top), minlength=top + 1)[1:]
    assert stats.chisquare(seen, len(drawn) * expected).pvalue > 1e-4
    y = beyond(law)
    assert y.std() == pytest.approx(float(law.cv * law.mean), rel=1e-4)
    many = masses(law, 400)[:-1]
    k = np.arange(1, 400)
    if y.sf(400) < 1e-12:
        assert many @ k == pytest.approx(float(law.mean), rel=1e-4)
        assert many @ k**2 - float(law.mean) ** 2 == pytest.approx(float(law.variance), rel=1e-3)


means, spreads = st.floats(1.5, 200), st.floats(0.05, 3)
shares = st.floats(0, 0.984375, width=32, allow_subnormal=False)
keys = st.integers(0, 2**31 - 1).map(jax.random.key)


@settings(max_examples=6)
@given(means, spreads, keys)
def test_no_length_is_below_one_tick_and_every_law_says_its_mean(mean, cv, key):
    for law in (fp.Gamma(mean, cv), fp.LogNormal(mean, cv), fp.Weibull(mean, cv)):
        ticks = jax.vmap(law.draw)(jnp.linspace(0, 0.999, 50), jax.random.split(key, 50))
        assert ticks.min() >= 1 and ticks.dtype == jnp.int32
        assert float(law.mean) == pytest.approx(mean)
        longer = law.with_mean(2 * mean)
        assert type(longer) is type(law) and float(longer.mean) == pytest.approx(2 * mean)
        # rounding to whole ticks adds at most 1/4
        assert (cv * mean) ** 2 - 1e-3 * mean**2 <= law.variance <= 1.001 * (cv * mean) ** 2 + 0.25


@given(spreads)
def test_the_shape_of_a_weibull_law_gives_its_spread(cv):
    """Against SciPy's moments of weibull_min."""
    law = fp.Weibull(1e4, cv)  # so long that the first tick does not matter
    y = stats.weibull_min(float(law.shape))
    assert y.std() / y.mean() == pytest.approx(cv * 1e4 / (1e4 - 1), rel=1e-4)


@given(st.lists(st.floats(1, 50), min_size=1, max_size=8), st.floats(1, 80))
def test_measured_lengths_keep_their_mean_when_stretched(samples, tau):
    law = fp.Empirical(samples)
    assert float(law.mean) == pytest.approx(np.mean(samples), rel=1e-5)
    other = law.with_mean(tau)
    assert float(other.samples.min()) >= 1 - 1e-5
    if np.mean(samples) > 1.001 or tau > np.mean(samples):
        assert float(other.mean) == pytest.approx(tau, rel=1e-3)


@given(shares, shares)
def test_b_of_a_markov_chain_is_its_stationary_law(plus, minus):
    """The eigenvector of the transition matrix, by NumPy."""
    moves = np.array([[plus, 1 - plus], [1 - minus, minus]])
    values, vectors = np.linalg.eig(moves.T)
    law = np.real(vectors[:, np.argmin(abs(values - 1))])
    assert float(fp.Markov(plus, minus).b) == pytest.approx(law[0] / law.sum(), abs=1e-5)


@given(st.integers(1, 9), st.integers(1, 9))
def test_blocks_are_runs_of_that_many(plus, minus):
    sign = np.asarray(
        tape(fp.Phases(fp.Blocks(plus, minus), fp.Fixed(1)), jax.random.key(0), 64).sign
    )
    assert np.array_equal(sign, np.resize([1] * plus + [-1] * minus, 64))
    assert float(fp.Blocks(plus, minus).b) == pytest.approx(plus / (plus + minus))


@settings(max_examples=8)
@given(keys)
def test_pairs_and_a_strict_homeostat_see_one_of_each(key):
    """In every pair of phases, at equal lengths."""
    for select in (fp.Pairs(), fp.Homeostatic(0.5, 60.0)):
        sign = np.asarray(tape(fp.Phases(select, fp.Fixed(2)), key, 64).sign)
        assert (sign.reshape(-1, 2).sum(1) == 0).all()


@settings(max_examples=8)
@given(keys)
def test_a_matched_phase_lasts_as_long_as_the_positive_one_before_it(key):
    told = tape(fp.Phases(fp.Bernoulli(0.6), fp.Matched(fp.Geometric(7.0))), key, 64)
    sign, ticks = np.asarray(told.sign), np.asarray(told.ticks)
    last = ticks[0]
    for s, T in zip(sign, ticks, strict=True):
        assert s > 0 or last == T
        last = T


@pytest.mark.parametrize("tau", [2.0, 30.0])
def test_stretched_phases_have_the_mean_length_that_is_asked_for(tau):
    """z over 64 lanes of 256 phases, for a process that does not know how to change its length."""
    process = Stretched(fp.Phases(fp.Pairs(), fp.Geometric(6.0), fp.Fixed(3)), tau)
    lanes = jax.random.split(jax.random.key(2), LANES)
    told = jax.vmap(lambda key: tape(process, key, 256))(lanes)
    assert z_of_lanes(np.asarray(told.ticks, float).mean(1), tau) < 4
    for sign in (1, -1):
        own = np.asarray(told.sign) == sign
        mean = (own * np.asarray(told.ticks)).sum(1) / own.sum(1)
        assert z_of_lanes(mean, float(np.asarray(told.length)[own][0])) < 4
