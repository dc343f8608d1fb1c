"""Devices against closed forms: levels, unbiased rounding, bounds, curves of pulses, leaks."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import z_score
from on_jax import train

import flexphase as fp
from flexphase.core import init, tick
from flexphase.hardware.device import Device
from flexphase.hardware.limits import MOST_BITS
from flexphase.hardware.on_device import OnDevice, transformation
from flexphase.hardware.presets import PRESETS
from flexphase.methods.boltzmann import Couplings

MANY = 40_000  # synapses of a statistical test


def write(device, change, start=0.0, times=1, n=MANY, seed=0):
    """n equal synapses after some equal writes."""
    params = jnp.full(n, start, jnp.float32)
    changes = jnp.full(n, change, jnp.float32)
    state = device.init(jax.random.key(seed), params)

    @jax.jit
    def go(state, params):
        def once(_, carry):
            new, state = device.write(changes, carry[0], carry[1])
            return state, new

        return jax.lax.fori_loop(0, times, once, (state, params))

    return np.asarray(go(state, params)[1], float)


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_levels_are_signed_integers(bits):
    """2^bits - 1 levels, evenly from -R to R, 0 among them."""
    device = Device(bits=bits, range=3.0)
    wide = jnp.linspace(-5, 5, 100_001)
    held = np.unique(np.asarray(device.hold(device.init(jax.random.key(0), wide), wide)[0]))
    assert len(held) == 2**bits - 1 and 0 in held
    np.testing.assert_allclose(held, np.linspace(-3, 3, 2**bits - 1), atol=1e-6)


def test_the_most_bits_have_levels_that_float32_can_tell_apart():
    """The highest 10,000: held ones stay, and a change of one step moves by one, up to rounding a
    float32 (a sixth of a step at R = 3); numbers of levels by float64.
    """
    highest = 2 ** (MOST_BITS - 1) - 1
    device = Device(bits=MOST_BITS, range=3.0)
    levels = np.arange(highest - 10_000, highest)
    w = jnp.float32(levels * (3 / highest))
    state = device.init(jax.random.key(0), w)
    held = device.hold(state, w)[0]
    np.testing.assert_array_equal(device.hold(state, held)[0], held)
    np.testing.assert_array_equal(np.rint(np.asarray(held, float) * (highest / 3)), levels)
    moved = np.asarray(device.write(jnp.full_like(w, 3 / highest), state, held)[0], float)
    np.testing.assert_array_equal(np.rint(moved * (highest / 3)), levels + 1)


@pytest.mark.parametrize("change", [0.03, -0.03, 0.07, 0.25])
@pytest.mark.parametrize("kind", ["bits", "pulse"])
def test_stochastic_rounding_is_unbiased(kind, change):
    """E = change and Var = s^2 f (1 - f), f the rest of change / s; 40,000 synapses."""
    limit = {"bits": 5} if kind == "bits" else {"pulse": 2 / 15}
    device = Device(range=2.0, rounding="stochastic", **limit)
    s, moved = 2 / 15, write(device, change)
    f = abs(change) / s % 1
    sd = s * np.sqrt(f * (1 - f))
    assert z_score(moved.mean(), change, sd / np.sqrt(MANY)) < 4
    assert moved.std() == pytest.approx(sd, rel=0.03)
    np.testing.assert_allclose(moved / s, np.round(moved / s), atol=1e-5)


def test_rounding_to_the_nearest_loses_half_a_step():
    device = Device(bits=4, range=7.0)  # steps of 1
    assert (write(device, 0.49, times=100, n=5) == 0).all()
    assert (write(device, 0.51, times=3, n=5) == 3).all()
    assert (write(device, -2.6, n=5) == -3).all()


def test_a_range_and_a_leak_have_their_stationary_values():
    """Pushed for ever: R; with a leak, rest + d / (1 - exp(-1/tau)) = that of a geometric sum."""
    assert (write(Device(range=1.5), 0.01, times=1000, n=3) == 1.5).all()
    leak = Device(leak=50.0, rest=0.3)
    expected = 0.3 + 0.004 / (1 - np.exp(-1 / 50))
    np.testing.assert_allclose(write(leak, 0.004, times=2000, n=3), expected, rtol=1e-5)
    params = jnp.full(3, 2.0)
    state = leak.init(jax.random.key(0), params)
    for _ in range(50):
        params, state = leak.hold(state, params)
    np.testing.assert_allclose(params, 0.3 + 1.7 * np.exp(-1), rtol=1e-5)


@pytest.mark.parametrize("nonlinearity", [0.4, 1.0])
def test_pulses_follow_their_curve(nonlinearity):
    """w_n = R/v - (R/v - w_0)(1 - v p/R)^n upwards, the mirror image downwards."""
    R, p, n, v = 2.0, 0.05, 60, nonlinearity
    device = Device(pulse=p, range=R, nonlinearity=v)
    for sign in (1, -1):
        curve = R / v - (R / v + 0.5) * (1 - v * p / R) ** n
        up = write(device, sign * p, start=-0.5 * sign, times=n, n=2)
        np.testing.assert_allclose(sign * up, min(curve, R), rtol=1e-5)


def test_asymmetry_moves_the_point_of_balance():
    """Up and down in turn end where (1 + a)(1 - v w/R) = (1 - a)(1 + v w/R): w = a R / v, and
    without soft bounds at the end of the range.
    """
    a, R = 0.2, 2.0
    for v, balance in ((0.5, a * R / 0.5), (None, R)):
        device = Device(range=R, asymmetry=a, nonlinearity=v)
        w, state = jnp.zeros(2), device.init(jax.random.key(0), jnp.zeros(2))
        write_one = eqx.filter_jit(device.write)
        for i in range(3000):
            w, state = write_one(jnp.full(2, 0.01 * (-1) ** i), state, w)
        np.testing.assert_allclose(w, balance, atol=0.01)


def test_write_noise_has_the_stated_size():
    """Proportional: sd = p |d|. Additive: a walk, sd = noise sqrt(n), but around levels noise
    alone. None where nothing is written.
    """
    assert write(Device(proportional=0.5), 0.2).std() == pytest.approx(0.1, rel=0.02)
    assert write(Device(noise=0.1), 1e-3, times=9).std() == pytest.approx(0.3, rel=0.02)
    levels = Device(bits=4, range=70.0, noise=1.0)
    assert write(levels, 10.0, times=3).std() == pytest.approx(1.0, rel=0.02)
    assert (write(Device(noise=0.1, bits=4, range=7.0), 0.4) == 0).all()
    assert (write(Device(noise=0.1, proportional=1.0), 0.0, start=0.7) == np.float32(0.7)).all()


def test_devices_differ_and_break():
    """Factors of mean 1 (lognormal, sd sqrt(exp(s^2) - 1)); shares of the broken are binomial."""
    spread = write(Device(spread=0.3), 1.0)
    sd = np.sqrt(np.exp(0.09) - 1)
    assert z_score(spread.mean(), 1, sd / np.sqrt(MANY)) < 4
    assert spread.std() == pytest.approx(sd, rel=0.03)
    broken = write(Device(range=2.0, dead=0.1, stuck=0.2), 0.5)
    for value, share in ((0.0, 0.1), (-2.0, 0.1), (2.0, 0.1)):
        found = (broken == value).mean()
        assert z_score(found, share, np.sqrt(share * (1 - share) / MANY)) < 4
    # what is never asked to change is no synapse
    assert (write(Device(range=2.0, dead=0.5, stuck=0.5), 0.0, start=1.0) == 1).all()


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("limits", [{"leak": 5.0, "rest": 0.3}, {"bits": 4}, {"noise": 0.1}])
def test_what_is_broken_stays_where_it_is(limits, delay):
    """Whatever leaks, rounds or is noisy: 0, or the end of the range, from the first change on."""
    device = Device(range=0.7, dead=0.5, stuck=0.5, delay=delay, **limits)
    w = jnp.full(100, 0.25)
    asked, nothing = jnp.full(100, 0.5), jnp.zeros(100)
    state = device.init(jax.random.key(2), w)
    for _ in range(1 + delay):
        w, state = device.write(asked, state, w)
    place = np.asarray(w)
    assert {*place.tolist()} == {0.0, np.float32(0.7).item(), -np.float32(0.7).item()}
    for change in (None, nothing, asked, None, nothing, None, None):
        w, state = device.hold(state, w) if change is None else device.write(change, state, w)
        np.testing.assert_array_equal(w, place)


def test_what_was_never_written_leaks_until_it_is():
    """rest + exp(-n/leak) (w - rest), broken or not: a synapse breaks at its first change."""
    device = Device(range=2.0, leak=5.0, stuck=1.0)
    w = jnp.full(4, 1.0)
    state = device.init(jax.random.key(0), w)
    for n in range(1, 6):
        step = device.hold if n % 2 else functools.partial(device.write, jnp.zeros(4))
        w, state = step(state, w)
        np.testing.assert_allclose(w, np.exp(-n / 5), rtol=1e-6)


def test_a_delayed_change_arrives_late():
    device = Device(delay=3)
    w, state = jnp.zeros(1), device.init(jax.random.key(0), jnp.zeros(1))
    seen = []
    for change in (1.0, 10.0, None, 100.0, None, None, None):
        asked = None if change is None else jnp.full(1, change)
        w, state = device.hold(state, w) if asked is None else device.write(asked, state, w)
        seen.append(float(w[0]))
    assert seen == [0, 0, 0, 1, 11, 11, 111]


def test_a_pair_of_units_has_one_device():
    device = Device(bits=5, range=2, rounding="stochastic", noise=0.1, spread=0.5, stuck=0.2)
    W = Couplings(jnp.zeros((6, 6)), jnp.zeros(6))
    change = Couplings(0.3 * (1 - jnp.eye(6)), jnp.full(6, 0.3))
    new, _ = device.write(change, device.init(jax.random.key(1), W), W)
    assert np.array_equal(new.W, new.W.T) and (np.diag(new.W) == 0).all()
    assert len(np.unique(new.W)) > 6


DATA = fp.bars_and_stripes(2)


def run(device=None, eta=0.05, method=None):
    plain = fp.Optimiser(eta)
    optimiser = plain if device is None else OnDevice(plain, device)
    return fp.Run(method or fp.RBM(4, 3), *fp.aol(0.5, 5), fp.Rows(DATA), optimiser)


go = functools.partial(train, ticks=200, records=1)


def test_an_ideal_device_gives_the_bits_of_no_device():
    plain = go(run(), seeds=2).params
    for device in (Device(), Device.like("ideal"), Device(noise=0.0, range=1e6)):
        written = go(run(device), seeds=2).params
        assert all(np.array_equal(plain[name], written[name]) for name in plain)


def test_bits_range_and_noise_are_lanes_with_noise_of_their_own():
    """A lane alone is the lane among many, and the run comes back from the record."""

    def make(bits, range, noise):
        return run(Device(bits=bits, range=range, noise=noise, rounding="stochastic"))

    many = go(fp.grid(make, bits=[3, 6], range=[1.0, 2.0], noise=[0.0, 0.1]), seeds=2)
    alone = go(make(6, 2.0, 0.1), seeds=1, seed=1)
    among = many.sel(bits=6, range=2.0, noise=0.1).dataset.isel(seed=[1])
    assert np.array_equal(alone.params["W"], among["params.W"])
    assert (np.abs(many.params["W"]).max(axis=(-1, -2, -3)) <= [[[1, 1], [2, 2]]] * 2).all()
    again = many.sel(bits=3, range=1.0, noise=0.0).run().optimiser.device
    assert (again.bits, again.range, again.noise) == (3, 1, 0)


def test_noise_is_independent_between_seeds():
    """A walk of pure write noise: correlation over 15 parameters and 200 seeds, z below 4."""
    walk = go(run(Device(noise=1.0), eta=1e-6), seeds=200, ticks=50).params["W"].reshape(200, -1)
    one, two = (walk[i::2] - walk.mean(0) for i in (0, 1))
    r = (one * two).sum() / np.sqrt((one**2).sum() * (two**2).sum())
    assert abs(r) * np.sqrt(one.size) < 4


def test_as_an_optax_transformation():
    """In a chain it does what `OnDevice` does, up to the rounding of a difference."""
    device = Device(bits=6, range=2.0, rounding="stochastic")
    change, params = jnp.linspace(-0.3, 0.3, 50), jnp.linspace(-1.5, 1.5, 50)
    chain = optax.chain(optax.sgd(1.0), transformation(device, seed=4))
    updates, _ = chain.update(-change, chain.init(params), params)
    written, _ = device.write(change, device.init(jax.random.key(4), params), params)
    np.testing.assert_allclose(params + updates, written, atol=1e-6)
    chained = fp.Optimiser(0.05, lambda eta: optax.chain(optax.sgd(eta), transformation(device)))
    a, b = go(run()._replace(optimiser=chained), seeds=2).params["W"]
    assert np.abs(a * 31 / 2 - np.round(a * 31 / 2)).max() < 1e-4 and not np.array_equal(a, b)


def test_a_circuit_reads_with_noise_and_has_levels():
    """Noise of 0 changes nothing; noisy reads of one binary unit give P(on) of a probit; the states
    of equilibrium propagation take 2^2 levels.
    """
    plain, silent = go(run()).params, go(run(method=fp.Circuit(fp.RBM(4, 3), read_noise=0.0)))
    assert np.array_equal(plain["W"], silent.params["W"])
    from flexphase.data import Rows

    x = np.random.default_rng(0).random((4, 3)).astype(np.float32)
    method = fp.Circuit(fp.EquilibriumPropagation((3, 5, 3)), activity_bits=2)
    one = fp.Run(method, *fp.aol(0.5, 5), Rows((x, x)), fp.Optimiser(0.1))
    end = jax.lax.fori_loop(0, 20, lambda _, s: tick(one, s), init(one, jax.random.key(0)))
    levels = np.concatenate([np.ravel(s) for s in end.z]) * 3
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-5)
    with pytest.raises(ValueError, match="RBM are 0 or 1, which is one bit already"):
        train(run(method=fp.Circuit(fp.RBM(4, 3), activity_bits=2)), ticks=1)


def test_a_circuit_follows_graded_phases_if_its_method_does():
    """Without noise it has the bits of the method alone; around an RBM it is refused."""
    x = np.random.default_rng(0).random((4, 3)).astype(np.float32)
    method = fp.EquilibriumPropagation((3, 5, 3), centred=True)
    source = fp.Held(fp.Rows((x, x)), ticks=20)
    plain = fp.Run(method, fp.Sinusoidal(20), fp.always_on, source, fp.Optimiser(0.1))
    silent = plain._replace(method=fp.Circuit(method, read_noise=0.0))
    one, two = (go(each, ticks=60).params for each in (plain, silent))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    binary = plain._replace(method=fp.Circuit(fp.RBM(3, 2)), source=fp.Held(fp.Rows(x > 0.5), 20))
    with pytest.raises(ValueError, match="Circuit knows phases of sign"):
        go(binary)


def test_shares_of_broken_synapses_may_add_up_to_all():
    """0.7 and 0.3 as float32 are a little more than 1."""
    for dead in (0.1, 0.3, 0.7, 1.0):
        broken = write(Device(range=2.0, dead=dead, stuck=1 - dead), 0.5, n=200)
        assert np.isin(broken, (-2, 0, 2)).all()


def test_read_noise_is_that_of_the_weights():
    """The drive of a unit with n inputs of 1 has a variance of n sd^2 (plus that of the bias)."""
    circuit = fp.Circuit(fp.RBM(8, 1), read_noise=0.5)
    params, _ = circuit.init(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 4000)
    W = jax.vmap(lambda k: circuit.read(k, params).W)(keys)[..., 0]
    assert float(W.sum(1).std()) == pytest.approx(0.5 * np.sqrt(8), rel=0.05)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_learn_something_and_say_where_they_come_from(name):
    preset = PRESETS[name]
    device = Device.like(name)
    assert preset.source and preset.words
    if name != "ideal":
        assert Device.like(name, range=1.0).range == 1 and device.range == 4
        ratio = (device.step or 1) / (Device.like(name, range=2.0).step or 1)
        assert ratio == pytest.approx(2)  # pulses and levels are shares of the range
    moved = write(device, 0.01, n=4000)
    error = 4 * (moved.std() + 1e-6) / np.sqrt(4000)
    assert abs(moved.mean() - 0.01) < error  # at w = 0 all of them are unbiased


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"bits": 0, "range": 1}, "bits.*at least 2 and at most 23, not 0"),
        ({"bits": 2.5, "range": 1}, "whole number"),
        ({"bits": 8}, "bits of a device need a range"),
        ({"range": 0}, "range of a device.*above 0"),
        ({"range": -1}, "range of a device.*above 0"),
        ({"noise": -0.1}, "write noise.*at least 0, not -0.1"),
        ({"proportional": "much"}, "must be a number"),
        ({"pulse": 0}, "pulse of a device.*above 0"),
        ({"pulse": 0.1, "bits": 4, "range": 1}, "bits or pulses, not both"),
        ({"rounding": "up"}, "rounding must be nearest or stochastic"),
        ({"nonlinearity": 2, "range": 1}, "at most 1"),
        ({"nonlinearity": 0.5}, "need a range"),
        ({"leak": 0}, "leak of a device.*above 0"),
        ({"dead": 1.5}, "share of dead"),
        ({"dead": 0.6, "stuck": 0.5, "range": 1}, "dead and stuck synapses add up to 1.1"),
        ({"delay": 0.5}, "delay of a device, in ticks"),
    ],
)
def test_bad_devices_are_sentences(fields, words):
    with pytest.raises(ValueError, match=words):
        Device(**fields)


def test_an_unknown_preset_is_a_sentence():
    with pytest.raises(ValueError, match="no device 'memristor'; choose from ideal"):
        Device.like("memristor")
