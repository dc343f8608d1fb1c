"""Devices in the compiled Boltzmann engine: the JAX engine's states with the same noise, its
distribution with their own, and bits that depend on nothing else.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_native import assert_same_bits, quiet, walk
from scipy import stats

import flexphase as fp
from flexphase import kernels
from flexphase.engines import boltzmann, choose
from flexphase.engines.jax import JaxEngine
from flexphase.lanes import lanes

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
SLOW = pytest.mark.slow
DATA = np.random.default_rng(0).integers(0, 2, (6, 5))
DEVICES = {
    "stochastic levels": {"bits": 5, "range": 1.0, "rounding": "stochastic"},
    "nearest levels": {"bits": 8, "range": 1.0},
    "stochastic pulses": {"pulse": 0.05, "range": 0.8, "rounding": "stochastic"},
    "pulses": {"pulse": 0.004, "asymmetry": 0.3},
    "noisy": {"range": 1.0, "noise": 0.01, "proportional": 0.5},
    "noisy levels": {
        "bits": 5,
        "range": 1.0,
        "rounding": "stochastic",
        "noise": 0.01,
        "proportional": 0.5,
        "asymmetry": -0.2,
    },
}


@functools.cache
def experiment(kind, device, seeds=20, rule="aol"):
    methods = {
        "small": fp.RBM(5, 3, scale=0.3),
        "wide": fp.RBM(5, 20, scale=0.3),
        "machine": fp.BoltzmannMachine(5, 3, scale=0.3),
    }
    rules = {"aol": fp.aol(0.4, 6), "isd": fp.isd(0.4, 3), "cd": fp.cd(2)}
    optimiser = fp.OnDevice(fp.Optimiser(0.05), fp.Device(**DEVICES[device]))
    return lanes(fp.Run(methods[kind], *rules[rule], fp.Rows(DATA), optimiser), seeds, 0)


@functools.cache
def walked(kind, device, pieces=(100,), threads=1, isa="", seeds=20):
    return walk(experiment(kind, device, seeds), pieces, threads, isa)


def parts(state):
    return state.params, state.z, state.noise, state.updates


@pytest.fixture
def regime(monkeypatch):
    """The kernel that a size would choose is chosen by name."""
    return lambda kind: monkeypatch.setattr(boltzmann, "WIDE", 0 if kind == "wide" else 10**9)


@pytest.mark.parametrize(
    "device",
    ["noisy levels", *(pytest.param(d, marks=SLOW) for d in ("stochastic levels", "noisy"))],
)
@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_bits_depend_on_nothing_else(kind, device, regime):
    """Where calls end, threads, the instruction set and the other lanes."""
    regime(kind)
    one = parts(walked(kind, device))
    assert_same_bits(one, parts(walked(kind, device, (1, 2, 8, 39, 50))))
    assert_same_bits(one, parts(walked(kind, device, threads=3)))
    for isa in kernels._native.isas():
        assert_same_bits(one, parts(walked(kind, device, isa=isa)))
    few = parts(walked(kind, device, seeds=3))
    assert_same_bits(jax.tree.map(lambda leaf: leaf[:3], one), few)


@functools.partial(jax.jit, static_argnums=(1, 2))
def unit_noise(keys, ticks, units):
    """The uniform numbers of `step` at ticks 0, 1, ...: (ticks, lanes, units)."""

    def at(tick, key):
        return jax.random.uniform(jax.random.fold_in(key, tick), (units,))

    of_lanes = jax.vmap(at, in_axes=(None, 0))
    return jax.vmap(of_lanes, in_axes=(0, None))(jnp.arange(ticks), keys)


def write_noise(keys, params, updates):
    """What `Device.written` draws at each update: (updates, lanes, 3, parameters)."""
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(params)]

    def update(key, _):
        key, *own = jax.random.split(key, len(shapes) + 1)
        pairs = list(zip(own, shapes, strict=True))
        drawn = [
            [jax.random.uniform(k, s).ravel() for k, s in pairs],
            [jax.random.normal(jax.random.fold_in(k, 1), s).ravel() for k, s in pairs],
            [jax.random.normal(jax.random.fold_in(k, 2), s).ravel() for k, s in pairs],
        ]
        return key, jnp.stack([jnp.concatenate(row) for row in drawn])

    each = jax.jit(jax.vmap(lambda key: jax.lax.scan(update, key, None, updates)[1]))
    return np.moveaxis(np.asarray(each(keys)), 0, 1)


CASES = [
    ("small", "stochastic levels", "aol"),
    ("small", "noisy levels", "aol"),
    ("small", "stochastic pulses", "cd"),
    ("small", "pulses", "isd"),
    ("wide", "stochastic levels", "aol"),
    ("wide", "noisy", "cd"),
    ("machine", "stochastic levels", "aol"),
    ("machine", "noisy levels", "cd"),
]
MORE = [
    (kind, device, rule)
    for kind in ("small", "wide", "machine")
    for device in DEVICES
    for rule in ("aol", "isd", "cd")
]


@pytest.mark.parametrize(
    ("kind", "device", "rule"),
    [*CASES, *(pytest.param(*c, marks=SLOW) for c in MORE if c not in CASES)],
)
def test_same_states_and_weights_with_the_same_noise(kind, device, rule, regime):
    """Fed the JAX engine's own numbers, of units and of writes, for 60 ticks."""
    regime(kind)
    every, ticks = experiment(kind, device, 2, rule), 60
    theirs, engine = JaxEngine().start(every), boltzmann.BoltzmannEngine(1)
    ours = engine.start(every)
    assert_same_bits(ours.params, theirs.params)  # both begin on their levels
    units = unit_noise(theirs.key, ticks, theirs.z.v.shape[1] + theirs.z.h.shape[1])
    written = None
    if every.run.optimiser.device.draws:
        each = {"aol": 1, "isd": 3, "cd": 4}[rule]  # ticks per update
        drawn = write_noise(theirs.opt[1].key, theirs.params, -(-ticks // each))
        written = drawn[np.arange(ticks) // each]
    theirs = JaxEngine().advance(every, theirs, ticks, quiet)
    ours = engine.advance(every, ours, ticks, quiet, noise=np.asarray(units), written=written)
    assert_same_bits((ours.z, ours.updates), (theirs.z, theirs.updates))
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)
    moved = np.abs(np.asarray(ours.params.W) - np.asarray(engine.start(every).params.W))
    assert moved.max() > 0.01


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_writes_follow_their_distribution(kind, noise, regime):
    """Own noise, one write from 0 of 0.3 and of -0.3 steps to every active synapse, 4,000 lanes:
    the mean change is what was asked for, its variance s^2 f (1 - f) plus that of the noise.
    """
    regime(kind)
    method = {
        "small": fp.RBM(2, 2, scale=0.0),
        "wide": fp.RBM(2, 2, scale=0.0),
        "machine": fp.BoltzmannMachine(2, 2, scale=0.0),
    }[kind]
    step, n = 1 / 15, 4000
    device = fp.Device(bits=5, range=1.0, rounding="stochastic", noise=noise or None)
    optimiser = fp.OnDevice(fp.Optimiser(0.3 * step / 2), device)
    clamped = fp.Phases(fp.Bernoulli(0.5), fp.Fixed(1))
    every = lanes(fp.Run(method, clamped, fp.always_on, fp.Rows(np.ones((1, 2))), optimiser), n, 0)
    engine = boltzmann.BoltzmannEngine(2)
    end = engine.advance(every, engine.start(every), 1, quiet)
    sign = np.asarray(end.phase.sign)
    v, h = np.asarray(end.z.v), np.asarray(end.z.h)
    both = (v[:, 0] * h[:, 0]).astype(bool)
    W = np.asarray(end.params.W)
    w = (W[:, 0, 2] if kind == "machine" else W[:, 0, 0])[both] * sign[both]
    sd = np.sqrt(step**2 * 0.3 * 0.7 + 0.3 * noise**2)
    assert len(w) > 800
    assert abs(w.mean() - 0.3 * step) / (sd / np.sqrt(len(w))) < 4
    assert w.std() == pytest.approx(sd, rel=0.08)


@pytest.mark.parametrize("kind", ["small", "wide"])
def test_write_noise_is_normal(kind, regime):
    """One write of c to every active synapse, 4,000 lanes: c (1 + a) plus a bell whose variance is
    the sum of those of the two noises. Neighbours, which share a draw, are independent, and so are
    their squares.
    """
    regime(kind)
    change, a, q, noise, n = 0.05, 0.2, 0.5, 0.04, 4000
    device = fp.Device(noise=noise, proportional=q, asymmetry=a)
    optimiser = fp.OnDevice(fp.Optimiser(change / 2), device)
    process, data = fp.Phases(fp.Bernoulli(0.5), fp.Fixed(1)), fp.Rows(np.ones((1, 6)))
    method = fp.RBM(6, 2, scale=0.0)
    every = lanes(fp.Run(method, process, fp.always_on, data, optimiser), n, 0)
    engine = boltzmann.BoltzmannEngine(2)
    end = engine.advance(every, engine.start(every), 1, quiet)
    on = (np.asarray(end.phase.sign) > 0) & np.asarray(end.z.h).all(1).astype(bool)
    mean = change * (1 + a)
    z = (np.asarray(end.params.W)[on] - mean) / np.hypot(noise, q * mean)  # (lanes, 6, 2)
    assert z.size > 5000
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    pairs = z.reshape(-1, 2)
    for power in (1, 2):
        assert abs(np.corrcoef(pairs.T**power)[0, 1]) * len(pairs) ** 0.5 < 4


@pytest.mark.parametrize(
    "pulses", [2.5, 2.0**22 - 0.5, 2.0**22 + 0.5, 2.0**22 + 1.5, 2.0**23 - 0.5]
)
@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_pulses_are_whole_up_to_the_last_half_of_a_float(kind, pulses, regime):
    """One write of so many pulses, up or down: the nearest whole number, the even one of two (IEEE
    754, as NumPy rounds). Below 2^23 floats have halves.
    """
    regime(kind)
    pulse = 2.0**-10
    make = fp.BoltzmannMachine if kind == "machine" else fp.RBM
    optimiser = fp.OnDevice(fp.Optimiser(pulses * pulse / 2), fp.Device(pulse=pulse))
    clamped = fp.Phases(fp.Bernoulli(0.5), fp.Fixed(1))
    rows = fp.Rows(np.ones((1, 2)))
    every = lanes(fp.Run(make(2, 2, scale=0.0), clamped, fp.always_on, rows, optimiser), 40, 0)
    engine = boltzmann.BoltzmannEngine(1)
    W = np.asarray(engine.advance(every, engine.start(every), 1, quiet).params.W) / pulse
    assert set(np.unique(W)) == {-np.round(pulses), 0, np.round(pulses)}


@pytest.mark.slow
@pytest.mark.parametrize("device", [*DEVICES])
def test_learning_agrees_with_jax_in_distribution(device):
    """NLL of 64 seeds, engine against engine: the z-score of the difference of the means."""
    data = fp.bars_and_stripes(2)
    fields = DEVICES[device] | {"range": 3.0}
    optimiser = fp.OnDevice(fp.Optimiser(0.05), fp.Device(**fields))
    run = fp.Run(fp.RBM(4, 6), *fp.aol(0.5, 10), fp.Rows(data), optimiser)
    nll = [
        fp.train(run, phases=600, seeds=64, metrics={"nll": fp.NLL(data)}, records=1, engine=e)
        for e in ("native", "jax")
    ]
    ours, theirs = (record.final().values for record in nll)
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 64)
    assert abs(ours.mean() - theirs.mean()) / error < 4


def test_what_the_kernels_do_not_know_is_refused():
    def run(**device):
        optimiser = fp.OnDevice(fp.Optimiser(0.1), fp.Device(range=1.0, **device))
        return fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 5), fp.Rows(DATA), optimiser)

    assert choose("auto", run(bits=4, noise=0.1)).name == "native"
    for name, value in {"leak": 10.0, "spread": 0.1, "delay": 2, "stuck": 0.1}.items():
        assert choose("auto", run(**{name: value})).name == "jax"
        with pytest.raises(ValueError, match=f"write noise of a device, not {name}"):
            choose("native", run(**{name: value}))


class Frozen(fp.Device):
    """A device of one's own: no change has an effect."""

    def response(self, change, w):
        return 0.0


def test_a_device_of_ones_own_does_what_it_says():
    optimiser = fp.OnDevice(fp.Optimiser(0.1), Frozen(range=1.0))
    run = fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 5), fp.Rows(DATA), optimiser)
    early, late = (fp.train(run, ticks=ticks, records=1).params["W"] for ticks in (1, 100))
    np.testing.assert_array_equal(early, late)
    with pytest.raises(ValueError, match="does not know Frozen"):
        choose("native", run)


def test_a_checkpoint_resumes_to_the_same_bits(tmp_path):
    """The uninterrupted run is the reference; `progress` stops the other in the middle."""
    device = fp.Device(bits=6, range=2.0, rounding="stochastic")
    optimiser = fp.OnDevice(fp.Optimiser(0.1), device)
    run = fp.Run(fp.RBM(5, 4), *fp.aol_random(0.5, 7.0), fp.Rows(DATA), optimiser)
    go = functools.partial(fp.train, run, ticks=500, seeds=2, records=5, engine="native")
    calls = iter(range(1000))

    def stop(done, total, latest):
        if next(calls) == 4:
            raise KeyboardInterrupt

    assert go(checkpoint=tmp_path / "c.npz", progress=stop).attrs["interrupted"]
    assert np.array_equal(go(checkpoint=tmp_path / "c.npz").params["W"], go().params["W"])
