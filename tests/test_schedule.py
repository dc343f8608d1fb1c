"""`schedule` in plain Python: the phases and weights that `train` uses, and nothing of JAX."""

from itertools import islice

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from any_process import PROCESSES

import flexphase as fp
from flexphase.core import Phase, init, lane_keys, tick
from flexphase.phases import Tick, tape
from flexphase.phases.statistics import drawn
from flexphase.theory.frozen import learns_always

RULES = {
    "cd": fp.cd(3),
    "isd": fp.isd(0.3, 4),
    "aol": fp.aol(0.7, 3),
    "aol_random": fp.aol_random(0.2, 5),
    "sinusoidal": (fp.Sinusoidal(7), fp.always_on),
}
RULES |= {name: (process, fp.always_on) for name, process in PROCESSES.items()}
RULES |= {f"{name}, isd": (PROCESSES[name], fp.estimators.isd) for name in ("recorded", "pauses")}


def told(rule, phases, seed):
    """(sign, first, last, weight, apply, length) at every tick, from the tape of phases."""
    keys = lane_keys(jax.random.key(seed))
    drawn = tape(rule[0], keys.run, phases, state=rule[0].init(keys.process))
    lasts = np.asarray(drawn.ticks)
    number = np.repeat(np.arange(phases), lasts)
    left = np.concatenate([np.arange(n, 0, -1) for n in lasts]).astype(np.int32)
    now = jax.tree.map(lambda part: np.asarray(part)[number], drawn)._replace(left=left)
    weight, apply = jax.vmap(rule[1].weigh)(now)
    return now.sign, left == lasts[number], left == 1, weight, apply, lasts[number]


@pytest.mark.parametrize("name", RULES)
def test_a_schedule_is_the_tape(name):
    """Bit for bit (weights too, which are float32), for every rule and process; 300 phases, so that
    more than one block is drawn. A sine is rounded otherwise by another program, in its last bit.
    """
    rule = RULES[name]
    columns = list(zip(*fp.schedule(tuple(rule), seed=4, phases=300), strict=True))
    for field, ours, theirs in zip(Tick._fields, columns, told(rule, 300, 4), strict=True):
        rounding = 1e-6 if name == "sinusoidal" else 0
        np.testing.assert_allclose(ours, theirs, rtol=rounding, atol=rounding, err_msg=field)


@pytest.mark.parametrize("name", ["aol_random", "markov, lognormal", "shuffled"])
def test_it_is_what_train_sees(name):
    """The loop itself, tick by tick, for the lane of the same seed."""
    process, estimator = RULES[name]
    run = fp.Run(fp.RBM(2, 1), process, estimator, fp.Rows(np.eye(2)), fp.Optimiser(0.1))
    start = init(run, jax.random.key(6))
    _, phase = jax.lax.scan(lambda s, _: (new := tick(run, s), new.during), start, None, 200)
    ours = list(islice(fp.schedule(run, seed=6), 200))
    assert [t.sign for t in ours] == phase.sign.tolist()
    assert [t.length for t in ours] == phase.ticks.tolist()
    assert [t.last for t in ours] == phase.last.tolist()
    updates = fp.train(run, ticks=200, seed=6, records=1).dataset["updates"].values.max()
    assert sum(t.apply for t in ours) == updates


def test_every_number_is_of_plain_python():
    for name in ("cd", "isd", "recorded", "sinusoidal"):
        for t in fp.schedule(tuple(RULES[name]), phases=4):
            kinds = [type(value) for value in t]
            assert kinds == [float, bool, bool, float, bool, int], name


@pytest.mark.parametrize("b", [0.1, 0.37, 0.5, 0.9])
@pytest.mark.parametrize("rule", [fp.isd, fp.aol, fp.aol_random])
def test_weights_are_right_for_every_b(rule, b):
    """The weights of a phase add up to sign / P(sign), times T / tau where learning is always on
    and lengths are random: by hand, from the definition.
    """
    total = 0.0
    for t in fp.schedule(rule(b, 5), seed=1, phases=200):
        total += t.weight
        if t.last:
            share = t.length / 5 if rule is fp.aol_random else 1
            exact = t.sign / (b if t.sign > 0 else 1 - b) * share
            assert total == pytest.approx(exact, rel=1e-5)
            total = 0.0


def test_it_ends_after_its_phases_and_says_so_when_asked_again():
    phases = fp.schedule(fp.isd(0.5, 2), phases=3)
    assert len(list(phases)) == 6
    with pytest.raises(ValueError, match="has ended after its 3 phases; make a new one"):
        next(phases)
    with pytest.raises(ValueError, match="has ended"):
        list(phases)
    record = fp.schedule((fp.Recorded(TABLE, after="end"), fp.always_on), phases=100)
    assert [t.sign for t in record] == [1, 1, -1, 0, 1]
    with pytest.raises(ValueError, match="has ended after its 4 phases"):
        next(record)


TABLE = {"onset": [0, 2, 4], "duration": [2, 1, 1], "type": ["+", "-", "+"]}


def test_the_same_seed_gives_the_same_phases():
    one, two, other = (list(fp.schedule(fp.aol_random(0.5, 9), s, 50)) for s in (1, 1, 2))
    assert one == two and one != other


class Twice(fp.Weighted):
    """A step of one's own, which `weigh` does not tell."""

    def update(self, phase, g, memory):
        return super().update(phase, jax.tree.map(lambda term: 2 * term, g), memory)


class Kept(type(fp.estimators.two_term)):
    """The same of a two-term rule."""

    def update(self, phase, g, memory):
        return g, phase.last, memory


class Half(fp.Weighted):
    """A weight of one's own, and the step of every weight."""

    def scaled(self, phase):
        return self.weigh(phase)[0] / 2


@pytest.mark.parametrize("estimator", [Twice(fp.always_on.weigh), Kept()])
def test_a_step_of_ones_own_is_not_told_as_a_weight(estimator):
    """By a schedule, nor by the theory, which would take it for that of its parent."""
    process, name = fp.cd(2).process, type(estimator).__name__
    with pytest.raises(ValueError, match=f"{name} is not a weight"):
        fp.schedule((process, estimator))
    run = fp.Run(fp.RBM(2, 1), process, estimator, fp.Rows(np.eye(2)), fp.Optimiser(0.1))
    with pytest.raises(ValueError, match=rf"the theory is for weighted terms, and.*{name}"):
        learns_always(run)


def test_a_class_of_ones_own_with_the_step_of_its_parent_is_a_weight():
    process = fp.cd(2).process
    ours, theirs = (
        list(fp.schedule((process, estimator), phases=3))
        for estimator in (Half(fp.always_on.weigh), fp.always_on)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((fp.isd,), "schedule needs a rule"),
        (("isd",), "schedule needs a rule"),
        ((fp.Phases(fp.Bernoulli(0.5), fp.Fixed(2)),), "schedule needs a rule"),
        (((fp.Phases(fp.Bernoulli(0.5), fp.Fixed(2)), fp.estimators.two_term),), "alternate"),
        (((fp.isd(0.5)[0], fp.Baseline(0.1)),), "Baseline is not a weight"),
        ((fp.isd(0.5), -1), "the seed"),
        ((fp.isd(0.5), 2**31), "the seed"),
        ((fp.isd(0.5), 0, 0), "phases"),
        ((fp.isd(0.5), 0, 2.5), "phases"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        fp.schedule(*arguments)


class Ending(eqx.Module):
    """+, -, +, - in phases of 3 ticks, and after 900 ticks no more."""

    b, mean_length, ends = 0.5, 3.0, 900

    def init(self, key):
        return ()

    def step(self, key, n, state):
        sign, ticks = jnp.where(n % 2 == 0, 1.0, -1.0), jnp.int32(3)
        return Phase(sign, jnp.float32(0.5), jnp.float32(3), ticks, ticks), state

    def with_length(self, tau):
        raise ValueError("its phases last 3 ticks.")


def test_a_process_of_ones_own_may_end():
    """It declares after how many ticks; more than one block of phases is drawn before."""
    process = Ending()
    ticks = list(fp.schedule((process, fp.always_on), seed=1))
    assert len(ticks) == process.ends == 900
    assert [t.length for t in ticks[::3]] == [3] * 300
    assert len(list(fp.schedule((process, fp.always_on), seed=1, phases=7))) == 21
    sign, lengths = drawn(process, 1000)
    assert len(sign) == len(lengths) == 300 and lengths.sum() == 900
    ended = fp.schedule((process, fp.always_on), seed=1)
    list(ended)
    with pytest.raises(ValueError, match="after its 300 phases"):
        next(ended)
