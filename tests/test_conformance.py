"""Every method x process x estimator goes through the same loop, the custom ones of this file
included.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_jax import train

from flexphase import estimators
from flexphase.contract import check
from flexphase.core import Optimiser, Phase, Run, init, tick
from flexphase.data import ImagePairs, LabelContrast, Rows, bars_and_stripes
from flexphase.estimators import Baseline, Weighted
from flexphase.lanes import grid
from flexphase.methods import (
    CLAPP,
    NCE,
    RBM,
    BoltzmannMachine,
    Centred,
    ContrastiveHebbian,
    DeepResistor,
    EnergyModel,
    EquilibriumPropagation,
    ForwardForward,
    GaussianUnits,
    Gibbs,
    Harmonium,
    HelmholtzMachine,
    Holomorphic,
    Hopfield,
    MixedUnits,
    PredictiveCoding,
    RandomSign,
    RecurrentHebbian,
    ResistorNetwork,
    SelfContrastiveForwardForward,
    SoftmaxUnits,
    Tempered,
    deep_energy_model,
    layered_edges,
)
from flexphase.methods.boltzmann import lattice
from flexphase.methods.nce import GaussianNoise, Precision, log_normal
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from flexphase.rules import aol_random, isd


class Sticky(eqx.Module):
    """A process with a memory: the sign changes with probability `change`; in the long run each has
    probability 1/2.
    """

    change: jax.Array = eqx.field(converter=jnp.float32)
    alternates: bool = eqx.field(static=True, default=False)
    b: float = eqx.field(static=True, default=0.5)

    @property
    def mean_length(self):
        return jnp.float32(2)

    def init(self, key):
        return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)

    def step(self, key, n, sign):
        sign = jnp.where(jax.random.uniform(key) < self.change, -sign, sign)
        return Phase(sign, jnp.float32(0.5), jnp.float32(2), jnp.int32(2), jnp.int32(2)), sign


IMAGES, LABELS = np.random.default_rng(0).random((12, 6)).astype(np.float32), np.arange(12) % 3
PATTERNS = bars_and_stripes(2)
BINARY = Rows(
    PATTERNS[PATTERNS.any(1)]
)  # a stimulus of zeros has a term of zeros, which looks like an empty accumulator
PAIRS_OF_ROWS = Rows((IMAGES, np.eye(3, dtype=np.float32)[LABELS]))


def triples(params, z, x):
    return -jnp.einsum("ijk,i,j,k->", params, z, z, z)


def six_units(key):
    return 0.1 * jax.random.normal(key, (6, 6, 6)), jnp.ones(6)


LABELLED = MixedUnits((GaussianUnits(6), SoftmaxUnits(3)))
METHODS = {
    "rbm": (RBM(4, 3), BINARY),
    "harmonium": (
        Harmonium(LABELLED, 3, "random"),
        Rows(np.hstack([IMAGES, np.eye(3, dtype=np.float32)[LABELS]])),
    ),
    "tempered and centred": (Centred(Tempered(RBM(4, 3), 3), PATTERNS), BINARY),
    "boltzmann": (BoltzmannMachine(4, 2, negative_start="persistent"), BINARY),
    "chequerboard": (
        BoltzmannMachine(4, 2, lattice(2, 3), "chequerboard", negative_start="data"),
        BINARY,
    ),
    "forward-forward": (
        ForwardForward((6, 5, 4), classes=3),
        LabelContrast(IMAGES, LABELS, classes=3),
    ),
    "equilibrium": (
        EquilibriumPropagation((6, 5, 3)),
        PAIRS_OF_ROWS,
    ),
    "predictive coding": (
        PredictiveCoding((6, 5, 3)),
        Rows((IMAGES, np.eye(3, dtype=np.float32)[LABELS])),
    ),
    "nce": (
        NCE(log_normal, Precision(jnp.float32(1), jnp.float32(0)), GaussianNoise(np.ones(6))),
        Rows(IMAGES),
    ),
    "clapp": (CLAPP((3, 5, 4)), ImagePairs(IMAGES)),
    "self-contrastive": (SelfContrastiveForwardForward((6, 5, 4)), ImagePairs(IMAGES, paired=True)),
    "helmholtz": (HelmholtzMachine(4, 3), BINARY),
    "hopfield": (Hopfield(4, dream=0.7), Rows(2 * PATTERNS - 1)),
    "holomorphic": (
        Holomorphic(EquilibriumPropagation((6, 5, 3), activation=jnp.tanh)),
        PAIRS_OF_ROWS,
    ),
    "random sign": (RandomSign(EquilibriumPropagation((6, 5, 3))), PAIRS_OF_ROWS),
    "contrastive-hebbian": (ContrastiveHebbian((6, 5, 3), 0.5), PAIRS_OF_ROWS),
    "recurrent-hebbian": (RecurrentHebbian(6, 2, 3), PAIRS_OF_ROWS),
    "coupled": (ResistorNetwork(layered_edges(6, 2, 3), range(6), range(8, 11)), PAIRS_OF_ROWS),
    "deep-resistor": (DeepResistor((6, 12, 3), gain=2.0), PAIRS_OF_ROWS),
    "energy": (EnergyModel(triples, six_units, Gibbs(), np.arange(6) < 4), BINARY),
    "langevin": (deep_energy_model((2, 5)), Rows(IMAGES[:, :2])),
}
PROCESSES = {
    "alternating": Phases(Alternating(), Fixed(2), Fixed(3)),
    "bernoulli": Phases(Bernoulli(0.4), Fixed(2)),
    "geometric": Phases(Bernoulli(0.6), Geometric(2.5), Geometric(1.5)),
    "sticky": Sticky(0.3),
}


def at_first_sight(phase):
    return phase.sign / phase.prob * phase.first, phase.first


ESTIMATORS = {
    "two_term": estimators.two_term,
    "isd": estimators.isd,
    "always_on": estimators.always_on,
    "baseline": Baseline(0.1),
    "differential": estimators.differential,
    "phase_change": estimators.phase_change,
    "at first sight": Weighted(at_first_sight),
}
TICKS = 24


def make(method, process, estimator):
    learner, source = METHODS[method]
    return Run(learner, PROCESSES[process], ESTIMATORS[estimator], source, Optimiser(0.1))


class AnyProcess(eqx.Module):
    """The process number `which`: a lane's phase process is data like everything else."""

    which: jax.Array

    def init(self, key):
        return tuple(process.init(key) for process in PROCESSES.values())

    def step(self, key, n, states):
        phases, states = zip(
            *(p.step(key, n, s) for p, s in zip(PROCESSES.values(), states, strict=True)),
            strict=True,
        )
        return jax.tree.map(lambda *leaves: jnp.stack(leaves)[self.which], *phases), states


class AnyEstimator(eqx.Module):
    """The estimator number `which`; each has a memory of its own."""

    which: jax.Array

    def init(self, params):
        return tuple(estimator.init(params) for estimator in ESTIMATORS.values())

    def update(self, phase, g, memories):
        made = [e.update(phase, g, m) for e, m in zip(ESTIMATORS.values(), memories, strict=True)]
        steps, applies, memories = zip(*made, strict=True)
        step = jax.tree.map(lambda *leaves: jnp.stack(leaves)[self.which], *steps)
        return step, jnp.stack(applies)[self.which], memories


def size(tree):
    return sum(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(tree))


@eqx.filter_jit
def watch(runs, keys):
    """Every lane's parameters before and after, and at every tick boundary: what the accumulator
    holds, the clocks, the phase.
    """

    def lane(run, key):
        def body(s, _):
            new = tick(run, s)
            held = new.memory[0] if isinstance(run.estimator, AnyEstimator) else new.memory
            return new, (size(held), new.ticks, new.phases, new.updates, new.phase)

        start = init(run, key)
        end, seen = jax.lax.scan(body, start, None, TICKS)
        return start.params, end.params, seen

    axes = Run(None, 0, 0, None, None)
    return jax.vmap(lane, in_axes=(axes, 0))(runs, keys)


#: Methods whose term is the same at all ticks of a phase, so that a phase adds nothing to it.
STEADY = {"forward-forward", "clapp", "self-contrastive", "hopfield"}


def examine(method, estimator, before, after, held, ticks, phases, updates, phase):
    """One lane: clocks, and updates where the estimator says so."""
    assert (ticks == np.arange(1, TICKS + 1)).all()
    # `left` was counted down at the end of the tick
    last, first = phase.left == 0, phase.left == phase.ticks - 1
    assert (phases == np.cumsum(last)).all()
    applies = {
        "two_term": last & (phase.sign < 0),
        "isd": last,
        "always_on": np.ones_like(last),
        "baseline": last,
        "phase_change": last,
        "differential": np.arange(TICKS) > 0,  # there is no change yet at the first tick
        "at first sight": first,
    }[estimator]
    assert (updates == np.cumsum(applies)).all()
    if estimator == "two_term":  # from the end of a positive phase to that of the negative one
        assert ((held > 0) == (phases % 2 == 1)).all() and (held > 0).any()
    assert jax.tree.all(jax.tree.map(lambda a: np.isfinite(a).all(), after))
    learns = estimator != "phase_change" or method not in STEADY
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after)) != learns


LOCAL = {"isd", "always_on", "at first sight"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_temporally_local_is_what_init_returns(name):
    memory = ESTIMATORS[name].init(METHODS["rbm"][0].init(jax.random.key(0))[0])
    assert (jax.tree.leaves(memory) == []) == (name in LOCAL)


def pick(tree, lane):
    return jax.tree.map(lambda a: np.asarray(a)[lane], tree)


PAIRS = [(p, e) for p in PROCESSES for e in ESTIMATORS if e != "two_term" or p == "alternating"]


@pytest.mark.parametrize("method", METHODS)
def test_every_process_and_estimator(method):
    """All of them, as lanes of one compilation: processes and estimators are data."""
    learner, source = METHODS[method]
    process = jnp.array([list(PROCESSES).index(p) for p, _ in PAIRS])
    estimator = jnp.array([list(ESTIMATORS).index(e) for _, e in PAIRS])
    runs = Run(learner, AnyProcess(process), AnyEstimator(estimator), source, Optimiser(0.1))
    before, after, seen = watch(runs, jax.random.split(jax.random.key(1), len(PAIRS)))
    for lane, (_, name) in enumerate(PAIRS):
        examine(method, name, pick(before, lane), pick(after, lane), *pick(seen, lane))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("process, estimator", PAIRS)
def test_every_combination_compiled_by_itself(method, process, estimator):
    run = make(method, process, estimator)
    check(run)

    def lanes(leaf):
        return jnp.stack([jnp.asarray(leaf)] * 3) if eqx.is_array_like(leaf) else leaf

    process, estimating = (jax.tree.map(lanes, part) for part in (run.process, run.estimator))
    stacked = run._replace(process=process, estimator=estimating)
    before, after, seen = watch(stacked, jax.random.split(jax.random.key(1), 3))
    for lane in range(3):
        examine(method, estimator, pick(before, lane), pick(after, lane), *pick(seen, lane))
    jax.clear_caches()  # no other combination needs these programs, and hundreds are too many


@pytest.mark.parametrize("process", [p for p in PROCESSES if p != "alternating"])
def test_two_terms_need_alternating_phases(process):
    with pytest.raises(
        ValueError, match=r"two-term estimator.*estimators.isd or flexphase.always_on"
    ):
        check(make("rbm", process, "two_term"))


def test_a_process_with_a_memory_unrolls_to_what_its_lane_sees():
    """The sticky process: `tape` from the lane's own key and first state."""
    run, key = make("rbm", "sticky", "isd"), jax.random.key(1)
    start = init(run, key)
    told = tape(run.process, start.key, 12, state=start.process)
    signs = jax.lax.scan(lambda s, _: (new := tick(run, s), new.phase.sign), start, None, 24)[1]
    assert np.array_equal(np.repeat(told.sign, 2), signs) and len(set(np.asarray(signs))) == 2


def bits(record):
    """All numbers of a record that are not times."""
    return {str(name): np.asarray(value) for name, value in record.dataset.items()}


def same(one, two):
    return one.keys() == two.keys() and all(
        np.array_equal(one[k], two[k], equal_nan=True) for k in one
    )


#: One of each kind of dynamics; the other methods take minutes to compile (make test-slow).
KINDS = ("rbm", "chequerboard", "forward-forward", "equilibrium")
EVERY = [pytest.param(m, marks=() if m in KINDS else pytest.mark.slow) for m in METHODS]


@pytest.mark.codegen
@pytest.mark.parametrize("method", EVERY)
def test_a_lane_alone_is_the_same_lane_among_many(method):
    """Bit for bit, with seeds and b swept around it; and the same seed gives the same bits
    again.
    """
    learner, source = METHODS[method]

    def run(b, eta=0.05):
        return Run(learner, *aol_random(b, 3.0), source, Optimiser(eta))

    def go(what, seeds, seed):
        return train(what, ticks=150, seeds=seeds, seed=seed, records=3)

    alone = go(run(0.4), 1, 6)
    many = go(grid(run, b=[0.2, 0.4, 0.7], eta=[0.05, 0.1]), 4, 4)
    among = many.dataset.sel(eta=0.05, b=0.4).isel(seed=[2])
    assert all(
        np.array_equal(value, among[name]) for name, value in bits(alone).items() if name != "seed"
    )
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
    """Other values of b, tau, eta and seed, other lengths of training and other records: nothing is
    compiled again.
    """
    counted = Counted(RBM(4, 3), Uncompared())

    def run(b, tau, eta):
        return Run(counted, *aol_random(b, tau), BINARY, Optimiser(eta))

    def go(seeds, seed, ticks, records, **axes):
        train(grid(run, **axes), ticks=ticks, seeds=seeds, seed=seed, records=records)
        return len(counted.traced)

    once = go(2, 0, 40, 2, b=[0.2, 0.5], tau=[3.0], eta=[0.1, 0.2])
    again = go(2, 17, 97, 5, b=[0.3, 0.9], tau=[8.0], eta=[0.01, 0.3])
    assert again == once + 1  # shapes are checked in every call, nothing is compiled
    assert again + 1 < go(3, 0, 40, 2, b=[0.2, 0.5], tau=[3.0], eta=[0.1, 0.2])


@pytest.mark.codegen
@pytest.mark.parametrize("method", ["rbm", "equilibrium"])
def test_a_stopped_run_goes_on_to_the_same_bits(method, tmp_path):
    """Ctrl-C from the progress report, after the third record: what was recorded is returned, and
    the checkpoint leads to the same end.
    """
    learner, source = METHODS[method]
    run = Run(learner, *isd(0.5, 2), source, Optimiser(0.01, optax.adam))
    metrics = {"size": size}
    kept = tmp_path / "checkpoint.npz"

    def go(checkpoint=None, progress=None):
        return train(
            run,
            ticks=100,
            seeds=3,
            records=5,
            metrics=metrics,
            checkpoint=checkpoint,
            progress=progress,
        )

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
    other = run._replace(estimator=estimators.always_on)
    with pytest.raises(ValueError, match=r"another configuration: estimator.weigh.*weigh_isd"):
        train(other, ticks=100, seeds=3, records=5, metrics=metrics, checkpoint=kept)


def test_a_diverging_lane_is_marked_and_the_others_go_on():
    def run(eta):
        return Run(METHODS["rbm"][0], *isd(0.5, 1), BINARY, Optimiser(eta))

    shown = []

    def show(done, total, latest):
        shown.append(latest["size"])

    record = train(
        grid(run, eta=[0.1, 3e38]),
        ticks=60,
        seeds=2,
        records=3,
        metrics={"size": size},
        progress=show,
    )
    assert (record["diverged_at"].sel(eta=3e38) > 0).all() and (
        record["diverged_at"].sel(eta=0.1) == -1
    ).all()
    assert np.isfinite(shown).all()
    alone = train(run(0.1), ticks=60, seeds=2, records=3, metrics={"size": size})
    assert (
        np.array_equal(record["size"].sel(eta=0.1), alone["size"])
        and np.isfinite(alone["size"]).all()
    )
    lost = train(
        run(3e38), ticks=60, records=1, metrics={"size": size}, progress=lambda *args: None
    )
    assert lost["diverged_at"] == 60
