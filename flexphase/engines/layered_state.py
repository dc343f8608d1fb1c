"""The state of a run as plain arrays for the kernels of layered networks, and back.

Every array has an axis for the lanes first; states and stimuli then have one for the replicas.
Units are padded with zeros to a multiple of 16, and memory is aligned to 64 bytes.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..methods.equilibrium_propagation import Layer

Arrays = dict[str, np.ndarray]


def wide(units: int) -> int:
    """Units with their padding."""
    return -(-units // 16) * 16


def empty(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros in aligned memory."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + size].view(dtype).reshape(shape)


def aligned(value: Any) -> np.ndarray:
    """A copy in aligned memory."""
    value = np.asarray(value)
    array = empty(value.shape, value.dtype)
    array[...] = value
    return array


def padded(value: Any) -> np.ndarray:
    """A copy whose last axis, that of the units, is padded."""
    value = np.asarray(value)
    array = empty((*value.shape[:-1], wide(value.shape[-1])))
    array[..., : value.shape[-1]] = value
    return array


def turned(layer: int, below: int, units: int) -> bool:
    """Are the weights stored as (units, below)? Vectors run along the longer side."""
    return layer > 0 and units < below


def layers_to_arrays(params: Any, before: str = "") -> Arrays:
    """Parameters, or what is shaped like them, by the names that the kernels know."""
    arrays = {}
    for i, (W, c) in enumerate(params):
        W = np.asarray(W)
        if turned(i, *W.shape[1:]):
            W = W.transpose(0, 2, 1)
        arrays |= {f"{i}.{before}W": padded(W), f"{i}.{before}c": padded(c)}
    return arrays


def layers_from_arrays(arrays: Arrays, sizes: tuple[int, ...], before: str = "") -> Any:
    """The way back."""
    layers = []
    for i, (below, units) in enumerate(itertools.pairwise(sizes)):
        W, c = arrays[f"{i}.{before}W"], arrays[f"{i}.{before}c"][:, :units]
        W = W[..., :below].transpose(0, 2, 1) if turned(i, below, units) else W[..., :units]
        layers.append(Layer(jnp.array(W), jnp.array(c)))
    return tuple(layers)


def by_replica(part: Any, replicas: int) -> np.ndarray:
    """(lanes, units) or (lanes, replicas, units) as the latter."""
    part = np.asarray(part)
    return part.reshape(len(part), replicas, part.shape[-1])


def states_to_arrays(states: Any, replicas: int) -> Arrays:
    """s_1, ..., s_L by the names that the kernels know."""
    return {f"{i}.s": padded(by_replica(s, replicas)) for i, s in enumerate(states)}


def states_from_arrays(arrays: Arrays, like: Any) -> Any:
    """The way back, in the shapes of `like`."""
    return tuple(
        jnp.array(arrays[f"{i}.s"][..., : s.shape[-1]].reshape(s.shape)) for i, s in enumerate(like)
    )


def terms(
    arrays: Arrays, factor: np.ndarray, x: np.ndarray, after: str, sizes: tuple[int, ...]
) -> Any:
    """The local terms of these states and inputs: sum over replicas of factor gain s_{l-1} s_l."""
    layers, below = [], x
    for i, units in enumerate(sizes[1:]):
        s = arrays[f"{i}.{after}"][..., :units]
        weighted = factor[..., None] * arrays["gain"][:, i, None, None] * s
        W = np.matmul(below.transpose(0, 2, 1), weighted)
        layers.append(Layer(jnp.asarray(W), jnp.asarray(weighted.sum(1))))
        below = s
    return tuple(layers)


def is_trace(part: Any) -> bool:
    return isinstance(part, optax.TraceState)


def traces(opt: Any) -> Any:
    """The trace of momentum in an optimiser's state, shaped like the parameters."""
    return next(part.trace for part in jax.tree.leaves(opt, is_leaf=is_trace) if is_trace(part))


def with_traces(opt: Any, trace: Any) -> Any:
    """The optimiser's state with another trace of momentum."""

    def replaced(part: Any) -> Any:
        return optax.TraceState(trace) if is_trace(part) else part

    return jax.tree.map(replaced, opt, is_leaf=is_trace)
