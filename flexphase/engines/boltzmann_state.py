"""The state of a run as plain arrays for the Boltzmann kernels, and back."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import State
from ..kernels import owned
from ..methods.binary import Units

#: Of the leaves of rbm.Params and of boltzmann.Couplings, whose one bias is called a here.
NAMES = ("W", "a", "c")


class Noise(NamedTuple):
    """State.noise of this engine: generators, and for wide models what a clamped phase has gathered
    so far (see rbm_wide_kernel.cpp).
    """

    rng: Any  # (lanes, 4), wide: (lanes, 4, 16)
    base: Any = ()
    drive: Any = ()
    gathered: Any = ()
    write: Any = ()  # generators of devices that draw, shaped like rng


@eqx.filter_jit
def generators(keys: Any, wide: bool) -> Any:
    """The first state of a generator in every lane, from these keys."""
    shape = (4, 16) if wide else (4,)
    return jax.vmap(lambda k: jax.random.bits(k, shape, jnp.uint32))(keys)


@eqx.filter_jit
def seeds(keys: Any, params: Any, wide: bool) -> Noise:
    """Generators from a lane's key alone: the key of tick 0, which this engine does not use."""
    rng = generators(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys), wide)
    return (
        Noise(rng, params, jnp.zeros_like(params.c), jnp.zeros((len(keys), params.c.shape[1] + 1)))
        if wide
        else Noise(rng)
    )


def bits(data: Any) -> np.ndarray:
    """Rows of zeros and ones as 32-bit words, unit i in bit i % 32 of word i // 32: (1 or lanes,
    rows, words).
    """
    array = np.asarray(data) != 0
    array = array[None] if array.ndim == 2 else array
    wide = np.zeros((*array.shape[:2], -(-array.shape[2] // 32) * 32), bool)
    wide[..., : array.shape[2]] = array
    return np.packbits(wide, axis=-1, bitorder="little").view("<u4").astype(np.uint32)


def joined(method: Any) -> dict[str, np.ndarray]:
    """The order of the units in a sweep, the units that unit i is joined to (joined[first[i] :
    first[i + 1]]), and for each pair (i, j) the place of (j, i) in that list.
    """
    mask, colour = np.asarray(method.mask), np.asarray(method.colour)
    if mask.ndim == 3:
        if (mask != mask[:1]).any():
            raise ValueError("the lanes of a native run must have the same mask; use engine='jax'.")
        mask, colour = mask[0], colour[0]
    first = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int32)
    number = np.zeros(mask.shape, np.int32)
    number[mask] = np.arange(mask.sum())  # of the pair (i, j) in the list
    return {
        "order": np.argsort(colour, kind="stable").astype(np.int32),
        "first": first,
        "joined": np.nonzero(mask)[1].astype(np.int32),
        "mirror": np.ascontiguousarray(number.T[mask]),
    }


def by_name(prefix: str, params: Any) -> dict[str, np.ndarray]:
    return {prefix + name: owned(leaf) for name, leaf in zip(NAMES, params, strict=False)}


def to_arrays(state: State) -> dict[str, np.ndarray]:
    """The state as arrays that the kernels may write to."""
    noise = state.noise
    arrays = by_name("", state.params) | by_name("acc_", state.memory)
    arrays |= {
        "v": owned(state.z.v),
        "h": owned(state.z.h),
        "x": owned(state.x),
        "rng": owned(noise.rng, np.uint32),
        "left": owned(state.phase.left, np.int32),
        "updates": owned(state.updates, np.int32),
        "slot": np.zeros(len(state.key), np.int32),
    }
    if state.z.chain:
        arrays |= {"chain_v": owned(state.z.chain[0]), "chain_h": owned(state.z.chain[1])}
    if not isinstance(noise.write, tuple):
        arrays["write_rng"] = owned(noise.write, np.uint32)
    if noise.base:
        arrays |= by_name("base_", noise.base) | {
            "drive": owned(noise.drive),
            "gathered": owned(noise.gathered),
        }
    return arrays


def params_in(arrays: Mapping[str, Any], like: Any, prefix: str = "") -> Any:
    """The arrays of that prefix in the form of the parameters."""
    return type(like)(*(arrays[prefix + name] for name, _ in zip(NAMES, like, strict=False)))


def to_state(state: State, written: dict[str, np.ndarray]) -> State:
    """The state with what the kernels have written."""
    arrays = {name: jnp.asarray(array) for name, array in written.items()}

    base = state.noise.base
    wide = ((), (), ())
    if base:
        wide = (params_in(arrays, base, "base_"), arrays["drive"], arrays["gathered"])
    chain = (arrays["chain_v"], arrays["chain_h"]) if state.z.chain else ()
    state = state._replace(
        params=params_in(arrays, state.params),
        memory=params_in(arrays, state.memory, "acc_") if state.memory else (),
        z=Units(arrays["v"], arrays["h"], chain),
        x=arrays["x"],
        updates=arrays["updates"],
        noise=Noise(arrays["rng"], *wide, write=arrays.get("write_rng", ())),
    )
    return jax.tree.map(jnp.asarray, state)
