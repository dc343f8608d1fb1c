"""A synapse as a piece of hardware: how it carries out the changes of an optimiser."""

from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from ..checks import above_zero, between, count, from_zero
from ..core import Key, PyTree
from .limits import limit, whole_bits
from .presets import PRESETS
from .synapses import Synapses, fail, normal, tied, uniform

Rounding = Literal["nearest", "stochastic"]
Limit = Any  # a number that `grid` may sweep; None: the device has no such limit


class Device(eqx.Module):
    """What a synapse makes of a change; its limits act in the order below.

    None: the device has no such limit. Numbers are leaves: `grid` sweeps them. Noise differs from
    lane to lane.

    Args:
        leak, rest: w - rest decays by exp(-1/leak) per tick; leak is in ticks, above 0.
        delay: a change arrives so many ticks late.
        pulse: the smallest change: writes are whole numbers of pulses of this size, above 0. Not
            together with bits.
        asymmetry: a in [-1, 1]: increases are 1 + a, decreases 1 - a times what was asked for.
        nonlinearity: n in [0, 1], soft bounds: changes are multiplied by 1 - n w/R upwards and by
            1 + n w/R downwards.
        spread: from device to device: changes are multiplied by log-normal factors of mean 1; this
            is the sd of the logarithm.
        proportional: write noise: changes are multiplied by 1 + proportional N(0, 1), afresh at
            every write.
        bits: signed integers as levels: k R / (2^(bits-1) - 1), |k| < 2^(bits-1); from 2 to 23.
        rounding: how a change becomes a whole number of pulses or levels: `nearest`, which loses
            changes of less than half a step, or `stochastic`, up with the probability that makes
            its mean the change (unbiased).
        noise: write noise: noise N(0, 1) is added at every write.
        range: R, above 0: weights stay within -R and R. bits, nonlinearity and stuck need it.
        dead, stuck: shares of synapses at 0, and at -R or R, for ever.

    Example: `OnDevice(Optimiser(0.01), Device(bits=8, range=4, rounding="stochastic"))`.
    """

    bits: Limit = limit(whole_bits, "bits, of which one is the sign,", 2)
    range: Limit = limit(above_zero, "the range of a device, its largest weight,")
    rounding: Rounding = eqx.field(static=True, default="nearest")
    pulse: Limit = limit(above_zero, "the pulse of a device, its smallest change,")
    noise: Limit = limit(from_zero, "the write noise of a device")
    proportional: Limit = limit(from_zero, "the proportional write noise of a device")
    asymmetry: Limit = limit(between, "the asymmetry of a device", -1, 1)
    nonlinearity: Limit = limit(between, "the nonlinearity of a device", 0, 1)
    spread: Limit = limit(from_zero, "the spread between devices")
    leak: Limit = limit(above_zero, "the leak of a device, a time constant in ticks,")
    rest: Array = eqx.field(
        converter=lambda v: between(v, "the rest value of a device", -np.inf), default=0.0
    )
    dead: Limit = limit(between, "the share of dead synapses", 0, 1)
    stuck: Limit = limit(between, "the share of stuck synapses", 0, 1)
    delay: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.rounding not in get_args(Rounding):
            raise ValueError(
                f"rounding must be {' or '.join(get_args(Rounding))}, not {self.rounding!r}."
            )
        count(self.delay, "the delay of a device, in ticks,", 0)
        if self.bits is not None and self.pulse is not None:
            raise ValueError("a device has bits or pulses, not both; leave one of them out.")
        if self.range is None:
            bounded = ("bits", "nonlinearity", "stuck")
            if needs := [name for name in bounded if getattr(self, name) is not None]:
                raise ValueError(f"{needs[0]} of a device need a range; give range=4 or so.")
        shares = [share for share in (self.dead, self.stuck) if share is not None]
        if not any(isinstance(share, Tracer) for share in shares):
            broken = np.max(sum(np.asarray(share, float) for share in shares))
            if broken > 1 + 1e-6:  # 0.7 and 0.3 as float32 are a little more than 1
                raise ValueError(
                    f"the shares of dead and stuck synapses add up to {broken:g}, more than all of "
                    "them; lower one."
                )

    @staticmethod
    def like(preset: str, **changes: Any) -> "Device":
        """A device by name (`flexphase.hardware.presets`): `Device.like("rram", range=2)`."""
        if preset not in PRESETS:
            raise ValueError(f"there is no device {preset!r}; choose from {', '.join(PRESETS)}.")
        return Device(**PRESETS[preset].fields(**changes))

    @property
    def step(self) -> Any:
        """The distance between two levels, or the size of a pulse; None if changes are free."""
        if self.bits is None or self.range is None:
            return self.pulse
        return self.range / self.highest

    @property
    def highest(self) -> Any:
        """The number of the highest level."""
        return jnp.exp2(self.bits - 1) - 1

    @property
    def draws(self) -> bool:
        """Does a write need random numbers?"""
        noisy = self.noise is not None or self.proportional is not None
        return noisy or (self.rounding == "stochastic" and self.step is not None)

    @property
    def breaks(self) -> bool:
        """Are there synapses that do not work?"""
        return self.dead is not None or self.stuck is not None

    def init(self, key: Key, params: PyTree) -> Synapses:
        """Draw what differs from synapse to synapse."""
        k_write, k_spread, k_broken, k_value = jax.random.split(key, 4)
        state = Synapses(key=k_write if self.draws else ())
        if self.spread is not None:
            sigma, noise = self.spread, normal(k_spread, params)
            factors = jax.tree.map(lambda xi: jnp.exp(sigma * xi - sigma**2 / 2), noise)
            state = state._replace(spread=tied(factors))
        if self.breaks:
            dead, stuck = (jnp.float32(0) if p is None else p for p in (self.dead, self.stuck))
            broken, which = uniform(k_broken, params), uniform(k_value, params)
            end = jnp.float32(0) if self.range is None else self.range

            def place(u: Array, side: Array) -> Array:
                return jnp.where(u < dead, 0, jnp.where(side < 0.5, -end, end))

            state = state._replace(
                broken=tied(jax.tree.map(lambda u: u < dead + stuck, broken)),
                value=tied(jax.tree.map(place, broken, which)),
            )
        if self.delay:
            queue = jax.tree.map(lambda p: jnp.zeros((self.delay, *p.shape), p.dtype), params)
            state = state._replace(queue=queue)
        return state

    def write(self, change: PyTree, state: Synapses, params: PyTree) -> tuple[PyTree, Synapses]:
        """-> parameters after a tick at which `change` was asked for, state of the device."""
        idle = self.leaked(params)
        change, state = self.delayed(change, state)
        leaves, treedef = jax.tree.flatten(idle)
        keys, state = self.next_keys(state, len(leaves))
        spread = treedef.flatten_up_to(state.spread) if self.spread is not None else [1] * len(keys)
        changes = treedef.flatten_up_to(change)
        written = map(self.written, keys, spread, changes, leaves)
        new = jax.tree.unflatten(treedef, list(written))
        if self.breaks:
            new = jax.tree.map(fail, state.broken, state.value, change, params, idle, new)
        return tied(new), state

    def hold(self, state: Synapses, params: PyTree) -> tuple[PyTree, Synapses]:
        """-> parameters after a tick without a change, state of the device."""
        if self.delay:
            return self.write(jax.tree.map(jnp.zeros_like, params), state, params)
        new = self.leaked(params)
        if self.bits is not None and self.noise is None and self.leak is None:
            new = jax.tree.map(self.levelled, new)
        new = jax.tree.map(self.bounded, new)
        if self.breaks:
            none = jax.tree.map(jnp.zeros_like, params)
            new = jax.tree.map(fail, state.broken, state.value, none, params, new, new)
        return new, state

    def written(self, key: Any, spread: Any, change: Array, w: Array) -> Array:
        """One array of weights after one write. `key` is () where nothing is drawn."""
        if self.pulse is not None:
            change = self.pulse * self.rounded(key, change / self.pulse)
        change = change * self.response(change, w) * spread
        if self.proportional is not None:
            xi = jax.random.normal(jax.random.fold_in(key, 1), w.shape)
            change = change * (1 + self.proportional * xi)
        if self.bits is None:
            wrote, new = change != 0, w + change
        else:
            steps = self.rounded(key, change / self.step)
            wrote, new = steps != 0, self.levelled(w + steps * self.step)
        if self.noise is not None:
            new = new + self.noise * jax.random.normal(jax.random.fold_in(key, 2), w.shape)
        if self.bits is not None or self.noise is not None:
            new = jnp.where(wrote, new, w)
        return self.bounded(new)

    def rounded(self, key: Any, steps: Array) -> Array:
        """A whole number of steps."""
        if self.rounding == "nearest":
            return jnp.round(steps)
        size = jnp.abs(steps)
        below = jnp.floor(size)
        up = jax.random.uniform(key, steps.shape) < size - below
        return jnp.sign(steps) * (below + up)

    def response(self, change: Array, w: Array) -> Any:
        """The factor (1 +- asymmetry) (1 -+ nonlinearity w / R), upper signs for increases."""
        factor: Any = 1
        if self.asymmetry is not None:
            factor = jnp.where(change > 0, 1 + self.asymmetry, 1 - self.asymmetry)
        if self.nonlinearity is not None:
            full = self.nonlinearity * w / self.range
            factor = factor * jnp.where(change > 0, 1 - full, 1 + full)
        return factor

    def levelled(self, w: Array) -> Array:
        """The nearest level."""
        return self.step * jnp.clip(jnp.round(w / self.step), -self.highest, self.highest)

    def bounded(self, w: Array) -> Array:
        """Weights within the range."""
        return w if self.range is None else jnp.clip(w, -self.range, self.range)

    def leaked(self, params: PyTree) -> PyTree:
        """Parameters one tick later: rest + exp(-1/leak) (w - rest)."""
        if self.leak is None:
            return params
        left = jnp.exp(-1 / self.leak)
        return jax.tree.map(lambda w: self.rest + left * (w - self.rest), params)

    def delayed(self, change: PyTree, state: Synapses) -> tuple[PyTree, Synapses]:
        """The change that arrives now."""
        if not self.delay:
            return change, state
        arriving = jax.tree.map(lambda queue: queue[0], state.queue)
        queue = jax.tree.map(
            lambda waiting, new: jnp.concatenate([waiting[1:], new[None]]), state.queue, change
        )
        return arriving, state._replace(queue=queue)

    def next_keys(self, state: Synapses, n: int) -> tuple[list[Any], Synapses]:
        """A key for each array of parameters."""
        if not self.draws:
            return [()] * n, state
        key, *keys = jax.random.split(state.key, n + 1)
        return keys, state._replace(key=key)
