"""Every method x process x estimator goes through the same loop, the custom ones of this file included."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from flexphase import estimators
from flexphase.core import Estimator, Optimiser, Phase, Run, check, init, tick, train
from flexphase.data import LabelContrast, Rows, bars_and_stripes
from flexphase.lanes import grid
from flexphase.methods import RBM, BoltzmannMachine, EquilibriumPropagation, ForwardForward
from flexphase.methods.boltzmann import lattice
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from flexphase.rules import aol_random, cd, isd


class Sticky(eqx.Module):
    """A process with a memory: the sign changes with probability `change`; in the long run each has probability 1/2."""

    change: jax.Array = eqx.field(converter=jnp.float32)
    alternates: bool = eqx.field(static=True, default=False)

    @property
    def mean_length(self):
        return jnp.float32(2)

    def init(self, key):
        return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)

    def step(self, key, n, sign):
        sign = jnp.where(jax.random.uniform(key) < self.change, -sign, sign)
        return Phase(sign, jnp.float32(0.5), jnp.float32(2), jnp.int32(2), jnp.int32(2)), sign


IMAGES, LABELS = np.random.default_rng(0).random((12, 6)).astype(np.float32), np.arange(12) % 3
BINARY = Rows(bars_and_stripes(2))
METHODS = {
    "rbm": (RBM(4, 3), BINARY),
    "boltzmann": (BoltzmannMachine(4, 2, negative_start="persistent"), BINARY),
    "chequerboard": (BoltzmannMachine(4, 2, lattice(2, 3), "chequerboard", negative_start="data"), BINARY),
    "forward-forward": (ForwardForward((6, 5, 4), classes=3), LabelContrast(IMAGES, LABELS, classes=3)),
    "equilibrium": (EquilibriumPropagation((6, 5, 3)), Rows((IMAGES, np.eye(3, dtype=np.float32)[LABELS]))),
}
PROCESSES = {
    "alternating": Phases(Alternating(), Fixed(2), Fixed(3)),
    "bernoulli": Phases(Bernoulli(0.4), Fixed(2)),
    "geometric": Phases(Bernoulli(0.6), Geometric(2.5), Geometric(1.5)),
    "sticky": Sticky(0.3),
}
ESTIMATORS = {
    "two_term": estimators.two_term,
    "isd": estimators.isd,
    "always_on": estimators.always_on,
    "at first sight": Estimator(lambda p: (p.sign / p.prob * p.first, p.first), local=True),
}
LANES, TICKS = 3, 24


def make(method, process, estimator):
    learner, source = METHODS[method]
    return Run(learner, PROCESSES[process], ESTIMATORS[estimator], source, Optimiser(0.1))


def size(tree):
    return sum(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(tree))


@eqx.filter_jit
def watch(run, keys):
    """Every lane's parameters before and after, and at every tick boundary: what the accumulator holds, the clocks, the phase."""

    def lane(key):
        def body(s, _):
            new = tick(run, s)
            return new, (size(new.acc), new.ticks, new.phases, new.updates, new.phase)

        start = init(run, key)
        end, seen = jax.lax.scan(body, start, None, TICKS)
        return start.params, end.params, seen

    return jax.vmap(lane)(keys)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_combination(method, process, estimator):
    """Under jit and vmap: clocks, updates where the estimator says so, and an empty accumulator exactly for the temporally local rules."""
    run = make(method, process, estimator)
    if estimator == "two_term" and process != "alternating":
        with pytest.raises(ValueError, match=r"two-term estimator.*isd or always_on"):
            check(run)
        return
    check(run)
    keys = jax.random.split(jax.random.key(1), LANES)
    before, after, (held, ticks, phases, updates, phase) = jax.tree.map(np.asarray, watch(run, keys))
    assert (ticks == np.arange(1, TICKS + 1)).all()
    last, first = phase.left == 0, phase.left == phase.ticks - 1  # `left` was counted down at the end of the tick
    assert (phases == np.cumsum(last, axis=1)).all()
    applies = {"two_term": last & (phase.sign < 0), "isd": last, "always_on": np.ones_like(last), "at first sight": first}[estimator]
    assert (updates == np.cumsum(applies, axis=1)).all()
    if estimator == "two_term":  # g_plus is remembered from the end of a positive phase to the end of the negative one
        assert ((held > 0) == (phases % 2 == 1)).all() and (held > 0).any()
    else:
        assert (held == 0).all()
    assert jax.tree.all(jax.tree.map(lambda a: np.isfinite(a).all(), after))
    assert not jax.tree.all(jax.tree.map(np.array_equal, before, after))


def test_a_process_with_a_memory_unrolls_to_what_its_lane_sees():
    run = make("rbm", "sticky", "isd")
    keys = jax.random.split(jax.random.key(1), LANES)
    _, _, (*_, phase) = watch(run, keys)
    for lane, key in enumerate(keys):
        start = init(run, key)
        told = tape(run.process, start.key, TICKS // 2, state=start.process)
        assert np.array_equal(np.repeat(told.sign, 2), phase.sign[lane])


def bits(record):
    """All numbers of a record that are not times."""
    return {str(name): np.asarray(value) for name, value in record.dataset.items()}


def same(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k], equal_nan=True) for k in one)


@pytest.mark.parametrize("method", METHODS)
def test_a_lane_alone_is_the_same_lane_among_many(method):
    """Bit for bit, with seeds and b swept around it; and the same seed gives the same bits again."""
    learner, source = METHODS[method]

    def run(b, eta=0.05):
        return Run(learner, *aol_random(b, 3.0), source, Optimiser(eta))

    def go(what, seeds, seed):
        return train(what, ticks=150, seeds=seeds, seed=seed, records=3)

    alone = go(run(0.4), 1, 6)
    many = go(grid(run, b=[0.2, 0.4, 0.7], eta=[0.05, 0.1]), 4, 4)
    among = many.dataset.sel(eta=0.05, b=0.4).isel(seed=[2])
    assert all(np.array_equal(value, among[name]) for name, value in bits(alone).items() if name != "seed")
    assert same(bits(alone), bits(go(run(0.4), 1, 6)))


class Uncompared(list):
    """A list that is a constant to JAX."""

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


class Counted(eqx.Module):
    """A method that counts how often it is traced, that is compiled."""

    method: RBM
    traced: list = eqx.field(static=True)

    def __getattr__(self, name):
        return getattr(self.method, name)

    def grad(self, *args):
        self.traced.append(1)
        return self.method.grad(*args)


def test_one_compilation_for_each_shape():
    """Other values of b, tau, eta and seed, other lengths of training and other records: nothing is compiled again."""
    counted = Counted(RBM(4, 3), Uncompared())

    def run(b, tau, eta):
        return Run(counted, *aol_random(b, tau), BINARY, Optimiser(eta))

    def go(seeds, seed, ticks, records, **axes):
        train(grid(run, **axes), ticks=ticks, seeds=seeds, seed=seed, records=records)
        return len(counted.traced)

    once = go(2, 0, 40, 2, b=[0.2, 0.5], tau=[3.0], eta=[0.1, 0.2])
    assert once == go(2, 17, 97, 5, b=[0.3, 0.9], tau=[8.0], eta=[0.01, 0.3])
    assert once < go(3, 0, 40, 2, b=[0.2, 0.5], tau=[3.0], eta=[0.1, 0.2])


@pytest.mark.parametrize("method", ["rbm", "equilibrium"])
def test_a_stopped_run_goes_on_to_the_same_bits(method, tmp_path):
    """Ctrl-C from the progress report, after the third record: what was recorded is returned, and the checkpoint leads to the same end."""
    learner, source = METHODS[method]
    run = Run(learner, *isd(0.5, 2), source, Optimiser(0.01, optax.adam))
    metrics = {"size": size}
    kept = tmp_path / "checkpoint.npz"

    def go(checkpoint=None, progress=None):
        return train(run, ticks=100, seeds=3, records=5, metrics=metrics, checkpoint=checkpoint, progress=progress)

    def ctrl_c(done, total, latest):
        assert total == 100 and set(latest) == {"size"}
        if done > 60:
            raise KeyboardInterrupt

    whole, part = go(), go(kept, ctrl_c)
    assert part.attrs["interrupted"] == 1 and whole.attrs["interrupted"] == 0
    assert part["ticks"].isel(seed=0).values.tolist() == [0, 20, 40, 60]
    assert np.array_equal(part["size"], whole["size"].isel(record=slice(4)))
    assert same(bits(go(kept)), bits(whole))
    again = go(kept, ctrl_c)  # nothing is left to do
    assert again.attrs["interrupted"] == 0 and same(bits(again), bits(whole))
    with pytest.raises(ValueError, match="another configuration"):
        train(run, ticks=120, seeds=3, records=5, metrics=metrics, checkpoint=kept)


def test_a_diverging_lane_is_marked_and_the_others_go_on():
    def run(eta):
        return Run(METHODS["rbm"][0], *cd(1), BINARY, Optimiser(eta))

    shown = []

    def show(done, total, latest):
        shown.append(latest["size"])

    record = train(grid(run, eta=[0.1, 1e38]), ticks=60, seeds=2, records=3, metrics={"size": size}, progress=show)
    assert (record["diverged_at"].sel(eta=1e38) > 0).all() and (record["diverged_at"].sel(eta=0.1) == -1).all()
    assert np.isfinite(shown).all()
    alone = train(run(0.1), ticks=60, seeds=2, records=3, metrics={"size": size})
    assert np.array_equal(record["size"].sel(eta=0.1), alone["size"]) and np.isfinite(alone["size"]).all()
    lost = train(run(1e38), ticks=60, records=1, metrics={"size": size}, progress=lambda *args: None)
    assert lost["diverged_at"] == 60
