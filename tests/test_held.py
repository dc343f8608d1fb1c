"""Stimuli with a clock of their own: how long each is held, for inputs and targets alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import z_score

import flexphase as fp
from flexphase import kernels
from flexphase.core import init, tick
from flexphase.lanes import lanes
from flexphase.training import choose

N = 512
INPUTS = np.arange(N, dtype=np.float32)[:, None] / N
BOTH = fp.Rows((INPUTS, 2 * INPUTS))


PROCESS = fp.Phases(fp.Bernoulli(0.4), fp.Geometric(6.0))


def shown(source, ticks, process=PROCESS, seed=3):
    """Stimulus, sign, number of the phase and tick within it, at every tick of a lane."""
    run = fp.Run(Nothing(), process, fp.always_on, source, fp.Optimiser(0.1))

    def one(s, _):
        new = tick(run, s)
        within = new.phase.ticks - new.phase.left - 1
        return new, (new.x, new.phase.sign, s.phases, within)

    start = init(run, jax.random.key(seed))
    seen = jax.jit(lambda s: jax.lax.scan(one, s, None, ticks)[1])(start)
    return jax.tree.map(np.asarray, seen)


class Nothing:
    """A method without a network."""

    def check(self, x):
        """Any stimulus will do."""

    def init(self, key):
        return jnp.zeros(1), jnp.zeros(1)

    def enter(self, key, params, z, x, sign):
        return z

    def step(self, key, params, z, x, sign):
        return z

    def grad(self, params, z, x, sign):
        return params


def changes(values):
    """Where a stimulus differs from that of the tick before; the first is new. Two draws of 512 are
    the same row once in 512, so a change may be missed that often.
    """
    return np.append(True, values[1:, 0] != values[:-1, 0])


def expected(clock, n, within, t):
    """Where a new stimulus is due, by the definition of each clock."""
    return {
        "ticks": t % 5 == 0,
        "part": within % 3 == 0,
        "phase": within == 0,
        "pair": (within == 0) & (n % 2 == 0),
    }[clock]


CLOCKS = {
    "ticks": fp.Held(BOTH, ticks=5),
    "part": fp.Held(BOTH, ticks=3, restart=True),
    "phase": fp.Held(BOTH, phases=1),
    "pair": fp.Held(BOTH, phases=2),
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_stimulus_changes_when_its_clock_says_so(clock):
    """Never elsewhere, in phases of either sign; inputs and targets stay together."""
    (inputs, targets), sign, n, within = shown(CLOCKS[clock], 600)
    due, new = expected(clock, n, within, np.arange(600)), changes(inputs)
    assert not (new & ~due).any()
    assert (due & ~new).sum() <= 4  # the same row again, by chance
    assert (due & (sign < 0)).any() and (due & (sign > 0)).any()
    np.testing.assert_array_equal(targets, 2 * inputs)


@pytest.mark.parametrize(
    ("source", "per_phase"),
    [(fp.Held(BOTH, ticks=4, random=True), False), (fp.Held(BOTH, phases=2.5, random=True), True)],
)
def test_random_clocks_have_their_mean(source, per_phase):
    """A change at every tick with probability 1/4, at every phase with 1/2.5, times 511/512 for
    rows that come again: binomial, |z| < 4.
    """
    (inputs, targets), _, _, within = shown(source, 6000)
    new, moments = changes(inputs)[1:], (within == 0)[1:]
    np.testing.assert_array_equal(targets, 2 * inputs)
    chance = (1 / 2.5 if per_phase else 1 / 4) * (1 - 1 / N)
    trials = moments.sum() if per_phase else len(new)
    assert not per_phase or not (new & ~moments).any()
    assert z_score(new.sum(), trials * chance, np.sqrt(trials * chance * (1 - chance))) < 4


def test_a_held_image_keeps_its_row_while_labels_follow_the_phase():
    """True label in positive phases, a wrong one in negative ones, the image held for two."""
    labels = np.arange(30) % 3
    images = np.random.default_rng(0).random((30, 5)).astype(np.float32)
    source = fp.Held(fp.LabelContrast(images, labels, classes=3), phases=2)
    x, sign, n, within = shown(source, 400)
    true, shown_label = labels[x.row], x.label.argmax(1)
    assert ((shown_label == true) == (sign > 0)).all()
    np.testing.assert_array_equal(x.image, images[x.row])
    moved = np.flatnonzero(x.row[1:] != x.row[:-1]) + 1
    assert ((within[moved] == 0) & (n[moved] % 2 == 0)).all() and len(moved) > 5


def test_stimuli_are_the_same_whatever_the_phases():
    """The clock of ticks does not look at the phases: two processes show the same rows."""
    source = fp.Held(BOTH, ticks=7, random=True)
    other = fp.Phases(fp.Alternating(), fp.Fixed(9))
    np.testing.assert_array_equal(shown(source, 300)[0][0], shown(source, 300, other)[0][0])


@pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
def test_both_engines_show_the_same_stimuli():
    """To the last bit, at every tenth tick."""
    data = np.random.default_rng(1).integers(0, 2, (40, 6))
    run = fp.Run(
        fp.RBM(6, 3),
        PROCESS,
        fp.always_on,
        fp.Held(fp.Rows(data), ticks=2.5, random=True),
        fp.Optimiser(0.1),
    )
    ends = {}
    for engine in ("jax", "native"):
        seen = []
        for ticks in (10, 37, 64):
            every = lanes(run, 3, 0)
            chosen = choose(engine, run, 1, ())
            state = chosen.advance(every, chosen.start(every), ticks, lambda n: None)
            seen.append((np.asarray(state.x), np.asarray(state.phase.left)))
        ends[engine] = seen
    for one, two in zip(*ends.values(), strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.Held(BOTH), "in ticks or in phases"),
        (lambda: fp.Held(BOTH, ticks=3, phases=2), "in ticks or in phases"),
        (lambda: fp.Held(BOTH, phases=2, restart=True), "restart=True counts"),
        (lambda: fp.Held(BOTH, ticks=0), "number of ticks"),
        (lambda: fp.Held(BOTH, ticks=2.5), "number of ticks"),
        (lambda: fp.Held(np.eye(3), ticks=2), "cannot be held"),
        (lambda: fp.Batches(fp.Held(BOTH, ticks=2), 3), "write Held.Batches"),
    ],
)
def test_bad_clocks_are_refused_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
