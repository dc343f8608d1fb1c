"""The compiled Boltzmann engine on its own noise: exact distributions, and results that depend on
nothing they should not depend on.
"""

import functools
from typing import get_args

import jax
import numpy as np
import optax
import pytest
from on_native import assert_same_bits, quiet, walk
from scipy.special import logsumexp
from scipy.stats import chisquare

import flexphase as fp
from flexphase import engines, kernels
from flexphase.engines import boltzmann, choose
from flexphase.lanes import lanes
from flexphase.likelihood import states
from flexphase.methods.binary import NegativeStart
from flexphase.methods.boltzmann import BoltzmannMachine, energy
from flexphase.methods.rbm import Params

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
DATA = np.random.default_rng(0).integers(0, 2, (6, 5))


@functools.cache
def experiment(kind="small-persistent", seeds=20, tau=6.0, eta=0.05):
    """Lanes are in different phases, and at different ticks of them."""
    size, start = kind.split("-")
    methods = {"small": (fp.RBM, 3), "wide": (fp.RBM, 200), "machine": (BoltzmannMachine, 3)}
    make, hidden = methods[size]
    return lanes(
        fp.Run(
            make(5, hidden, negative_start=start),
            *fp.aol_random(0.4, tau),
            fp.Rows(DATA),
            fp.Optimiser(eta),
        ),
        seeds,
        0,
    )


@functools.cache
def walked(kind, pieces=(300,), threads=1, isa="", seeds=20):
    return walk(experiment(kind, seeds), pieces, threads, isa)._replace(key=())


@pytest.mark.parametrize(
    "kind",
    [
        f"{size}-{start}"
        for size in ("small", "wide", "machine")
        for start in get_args(NegativeStart)
    ],
)
class TestDependsOnNothingElse:
    """The reference of each is the same engine run another way: equal to the last bit."""

    def test_where_calls_end(self, kind):
        assert_same_bits(
            walked(kind), walked(kind, (1, 2, 8, 89, 200))
        )  # inside phases of about 6 ticks

    def test_threads(self, kind):
        assert_same_bits(walked(kind), walked(kind, threads=3))

    def test_instruction_set(self, kind):
        for isa in kernels._native.isas():
            assert_same_bits(walked(kind), walked(kind, isa=isa))

    def test_other_lanes(self, kind):
        few = walked(kind, seeds=3)
        assert_same_bits(
            jax.tree.map(lambda leaf: leaf[:3], walked(kind)._replace(key=())), few._replace(key=())
        )


@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_samples_follow_the_enumerated_distribution(kind, monkeypatch):
    """States (v, h) of 512 free chains that do not learn, 20 sweeps apart, against p = exp(-E) / Z
    over all 2^6 states: chi-square.
    """
    monkeypatch.setattr(boltzmann, "WIDE", 0 if kind == "wide" else 10**9)
    always_free = fp.Phases(fp.Bernoulli(1e-7), fp.Fixed(1))
    method = BoltzmannMachine(4, 2) if kind == "machine" else fp.RBM(4, 2)
    every = lanes(
        fp.Run(method, always_free, fp.always_on, fp.Rows(DATA[:, :4]), fp.Optimiser(0.0)), 512, 1
    )
    engine = boltzmann.BoltzmannEngine(1)
    state = engine.start(every)
    rng = np.random.default_rng(5)
    params = jax.tree.map(
        lambda p: rng.normal(0, 0.7, p.shape[1:]).astype(np.float32), state.params
    )
    if kind == "machine":
        params = params._replace(W=np.triu(params.W, 1) + np.triu(params.W, 1).T)
    state = state._replace(
        params=jax.tree.map(lambda p: np.broadcast_to(p, (512, *p.shape)), params)
    )
    seen = np.zeros(64)
    for _ in range(12):
        state = engine.advance(every, state, 20, quiet)
        z = np.concatenate([state.z.v, state.z.h], axis=1)
        np.add.at(seen, (z @ (1 << np.arange(6))).astype(int), 1)
    z = np.asarray(states(6))
    E = (
        energy(params, z)
        if kind == "machine"
        else -((z[:, :4] @ params.W) * z[:, 4:]).sum(1) - z[:, :4] @ params.a - z[:, 4:] @ params.c
    )
    p = np.exp(-np.asarray(E, float))
    assert chisquare(seen, seen.sum() * p / p.sum()).pvalue > 0.001


def test_nll_is_the_enumerated_one():
    """Against free energies summed in double precision over all states of the visible units, at
    sizes on both sides of square.
    """
    rng = np.random.default_rng(3)
    for visible, hidden, scale in (
        (1, 1, 1.0),
        (3, 8, 2.0),
        (8, 3, 2.0),
        (10, 12, 0.5),
        (9, 10, 30.0),
        (11, 11, 200.0),
    ):
        params = Params(
            *(
                rng.normal(0, scale, (2, *shape)).astype(np.float32)
                for shape in ((visible, hidden), (visible,), (hidden,))
            )
        )
        data = rng.integers(0, 2, (4, visible)).astype(np.float32)
        every = np.asarray(states(visible), float)
        for lane, ours in enumerate(kernels.rbm_nll(*params, data, 2)):
            W, a, c = (np.asarray(p[lane], float) for p in params)
            F_data, F_every = (-v @ a - np.logaddexp(0, c + v @ W).sum(1) for v in (data, every))
            expected = F_data.sum() + len(data) * logsumexp(-F_every)
            assert ours == pytest.approx(expected, rel=1e-12)


def test_nll_metric_of_all_lanes_is_that_of_each():
    """The compiled kernel and the JAX enumeration of one lane, in float32."""
    params = walked("small-persistent").params
    nll = fp.NLL(DATA)
    np.testing.assert_allclose(nll(params), jax.vmap(nll)(params), rtol=1e-5)


def test_nll_of_broken_parameters_is_not_a_number():
    bad = Params(
        np.full((1, 3, 2), np.nan, np.float32),
        np.zeros((1, 3), np.float32),
        np.zeros((1, 2), np.float32),
    )
    assert np.isnan(kernels.rbm_nll(*bad, np.zeros((1, 3)))).all()


@pytest.mark.slow
def test_learning_curves_agree_with_jax():
    """NLL along training over 24 seeds, engine against engine: the z-score of the difference of the
    means.
    """
    data = fp.bars_and_stripes(2)
    run = fp.Run(fp.RBM(4, 6), *fp.aol(0.5, 10), fp.Rows(data), fp.Optimiser(0.05))
    ours, theirs = (
        fp.train(run, phases=3000, seeds=24, metrics={"nll": fp.NLL(data)}, records=5, engine=e)[
            "nll"
        ]
        for e in ("native", "jax")
    )
    error = np.sqrt((ours.var("seed") + theirs.var("seed")) / 23)
    z = ((ours.mean("seed") - theirs.mean("seed")) / error).values[1:]
    assert np.abs(z).max() < 3


def test_refusals_are_sentences():
    good = fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 5), fp.Rows(DATA), fp.Optimiser(0.1))
    ramp = fp.Weighted(lambda p: (p.sign * p.left, p.last))
    assert boltzmann.BoltzmannEngine(1).refuses(good) is None
    for run, word in (
        (good._replace(optimiser=fp.Optimiser(0.1, optax.adam)), "gradient descent"),
        (good._replace(source=fp.Rows(DATA * 0.5)), "zeros and ones"),
        (good._replace(estimator=ramp), "same at all ticks"),
        (good._replace(estimator=fp.Baseline(0.1)), "memory of its own"),
        (good._replace(method=fp.RBM(4, 3)), "columns"),
    ):
        assert word in (boltzmann.BoltzmannEngine(1).refuses(run) or "")
        assert choose("auto", run).name == "jax"
        with pytest.raises(ValueError, match=word):
            choose("native", run)
    assert choose("auto", good).name == "native"


def test_threads_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("FLEXPHASE_THREADS", "3")
    assert boltzmann.BoltzmannEngine().threads == 3
    for wrong in ("0", "two", "-1", "65537", "3000000000", "9" * 5000):
        monkeypatch.setenv("FLEXPHASE_THREADS", wrong)
        with pytest.raises(ValueError, match="FLEXPHASE_THREADS"):
            boltzmann.BoltzmannEngine()
    with pytest.raises(ValueError, match="from 1 to 65,536"):
        boltzmann.BoltzmannEngine(3_000_000_000)


def test_without_a_compiler_jax_serves_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(engines, "MISSING", "no compiler (a test).")
    run = fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 5), fp.Rows(DATA), fp.Optimiser(0.1))
    engines.say_if_missing.cache_clear()
    assert choose("auto", run).name == "jax" and not caplog.text
    fp.train(run, ticks=2, records=1, observers={"trace": fp.Trace(2)})
    assert not caplog.text  # observers need JAX in any case
    for _ in range(2):
        assert fp.train(run, ticks=2, records=1).attrs["engine"] == "jax"
    assert caplog.text.count("no compiler (a test).") == 1
    engines.say_if_missing.cache_clear()
    with pytest.raises(ValueError, match="no compiler"):
        choose("native", run)


def test_a_checkpoint_resumes_to_the_same_bits(tmp_path):
    """The uninterrupted run is the reference; `progress` stops the other in the middle."""
    run = fp.Run(fp.RBM(5, 200), *fp.aol_random(0.5, 7.0), fp.Rows(DATA), fp.Optimiser(0.1))
    train = functools.partial(
        fp.train, run, ticks=500, seeds=2, metrics={"nll": fp.NLL(DATA)}, records=5, engine="native"
    )
    calls = iter(range(1000))

    def stop(done, total, latest):
        if next(calls) == 5:
            raise KeyboardInterrupt

    assert train(checkpoint=tmp_path / "c.npz", progress=stop).attrs["interrupted"]
    resumed, whole = train(checkpoint=tmp_path / "c.npz"), train()
    for name in ("nll", "params.W", "phases"):
        np.testing.assert_array_equal(resumed[name], whole[name])
