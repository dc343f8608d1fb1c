"""The compiled Boltzmann engine: the same phases and stimuli as `tick`, in C++ with many lanes to a vector register."""

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..core import Phase, State
from ..data.sources import Rows
from ..lanes import Lanes
from ..methods.binary import NegativeStart, Units
from ..methods.rbm import RBM, Params
from .tapes import Tape, draw, reach

try:
    from .. import _native  # type: ignore[attr-defined]

    MISSING = ""
except ImportError:
    _native = None
    MISSING = "flexphase was installed without its compiled engines (no C++ compiler was found), so the JAX engine serves."

WIDE = 512  # weights; beyond that, vectors run along the units instead of the lanes
SLOTS = 4096  # phases per lane in a block of tape, at most


def cores(threads: int | None) -> int:
    """Threads to use: as asked, else FLEXPHASE_THREADS, else all cores of this process."""
    named = os.environ.get("FLEXPHASE_THREADS", "") if threads is None else str(threads)
    if not named:
        return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1
    if not named.isdecimal() or int(named) < 1:
        raise ValueError(f"the number of threads (threads= or FLEXPHASE_THREADS) must be a whole number from 1 on, not {named!r}.")
    return int(named)


def changes_between(estimator: Any) -> bool:
    """Does the weight change in the middle of a phase? Tried on phases of seven ticks."""
    for sign in (1.0, -1.0):
        phase = Phase(jnp.float32(sign), jnp.float32(0.3), jnp.float32(7), jnp.int32(7), jnp.int32(7))
        seen = [np.asarray(part) for left in range(2, 7) for part in estimator(phase._replace(left=jnp.int32(left)))]
        if any(not np.array_equal(a, b) for a, b in zip(seen[:-2], seen[2:], strict=True)):
            return True
    return False


class Noise(NamedTuple):
    """State.noise of this engine: generators, and for wide models what a clamped phase has gathered so far (see rbm_wide_kernel.cpp)."""

    rng: Any  # (lanes, 4), wide: (lanes, 4, 16)
    base: Any = ()
    drive: Any = ()
    gathered: Any = ()


def is_wide(method: Any) -> bool:
    return method.visible * method.hidden > WIDE


@eqx.filter_jit
def seeds(keys: Any, params: Params, wide: bool) -> Noise:
    """Generators from a lane's key alone; tick 0's key serves, for this engine never uses it otherwise."""
    rng = jax.vmap(lambda k: jax.random.bits(jax.random.fold_in(k, 0), (4, 16) if wide else (4,), jnp.uint32))(keys)
    return Noise(rng, params, jnp.zeros_like(params.c), jnp.zeros((len(keys), params.c.shape[1] + 1))) if wide else Noise(rng)


def bits(data: Any) -> np.ndarray:
    """Rows of zeros and ones as 32-bit words, unit i in bit i % 32 of word i // 32."""
    array = np.asarray(data) != 0
    array = array[None] if array.ndim == 2 else array
    wide = np.zeros((*array.shape[:2], -(-array.shape[2] // 32) * 32), bool)
    wide[..., : array.shape[2]] = array
    return np.packbits(wide, axis=-1, bitorder="little").view("<u4").astype(np.uint32)


def owned(value: Any, dtype: Any = np.float32) -> np.ndarray:
    """A copy that may be written to."""
    return np.array(value, dtype=dtype, order="C")


def nll(params: Params, data: Any, threads: int | None = None) -> np.ndarray:
    """Exact NLL in nats, summed over the rows of the data, of the RBM in every lane."""
    out = np.empty(len(params.W))
    lanes = {"W": owned(params.W), "a": owned(params.a), "c": owned(params.c)}
    _native.rbm_nll(lanes | {"data": owned(data), "nll": out}, cores(threads))
    return out


class Boltzmann:
    """RBMs of zeros and ones, trained by plain gradient descent."""

    name = "native"

    def __init__(self, threads: int | None = None):
        self.threads = cores(threads)

    def refuses(self, run: Any) -> str | None:
        if type(run.method) is not RBM:
            return f"the native Boltzmann engine knows the RBM, not {type(run.method).__name__}."
        if type(run.source) is not Rows:
            return f"the native Boltzmann engine takes its stimuli from Rows, not {type(run.source).__name__}."
        if run.source.data.shape[-1] != run.method.visible:
            return f"the data have {run.source.data.shape[-1]} columns and the RBM {run.method.visible} visible units."
        if not np.isin(np.asarray(run.source.data), (0, 1)).all():
            return "the native Boltzmann engine needs data of zeros and ones."
        if run.optimiser.make is not optax.sgd:
            return "the native Boltzmann engine knows plain gradient descent (optax.sgd) only."
        if changes_between(run.estimator):
            return "the native Boltzmann engine needs an estimator whose weight is the same at all ticks but the first and the last."
        return None

    def start(self, lanes: Lanes, state: State) -> State:
        return state._replace(noise=seeds(state.key, state.params, is_wide(lanes.run.method)))

    def advance(self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]) -> State:
        return advance(lanes, state, ticks, report, self.threads)


def slots(ticks: int, mean_length: Any) -> int:
    """Phases to draw ahead: enough, as a rule, for these ticks; in steps of an eighth of an octave, so that few sizes are compiled."""
    need = ticks / float(np.min(np.asarray(mean_length))) + 2
    need = min(max(need + 4 * need**0.5, 64), SLOTS)
    step = 2 ** max(int(np.log2(need)) - 3, 0)
    return int(-(-need // step) * step) + 1


def advance(lanes: Lanes, state: State, ticks: int, report: Callable[[int], None], threads: int, noise: Any = None, isa: str = "") -> State:
    """Move all lanes on, in pieces of about a third of a second. For tests: `noise` (ticks, lanes, visible + hidden) instead of our own."""
    method = lanes.run.method
    block = slots(ticks, lanes.run.process.mean_length)
    rows, enters = lanes.run.source.data.shape[-2], method.visible + method.hidden if method.negative_start in ("data", "random") else 0
    options = (
        get_args(NegativeStart).index(method.negative_start),
        method.visible_bias,
        not lanes.run.estimator.local,
        bool(state.noise.base),
        threads,
        isa,
    )
    arrays = unpack(lanes, state)
    done, piece = 0, 64
    while done < ticks:
        tape = draw(lanes, state, block, rows, enters)
        on_tape = {name: np.asarray(part) for name, part in tape.for_kernel().items()}
        arrays["slot"][:] = 0
        ahead = min(reach(tape, arrays["left"]), ticks - done)
        while ahead > 0:
            began, n = time.perf_counter(), min(piece, ahead)
            given = {} if noise is None else {"noise": np.ascontiguousarray(noise[done : done + n])}
            _native.rbm(arrays | on_tape | given, n, *options)
            piece = int(min(max(n * 0.3 / (time.perf_counter() - began), 1), 100 * piece))
            ahead, done = ahead - n, done + n
            report(n)
        state = settle(state, tape, arrays["slot"], arrays["left"])
    return pack(state, arrays, ticks)


def unpack(lanes: Lanes, state: State) -> dict[str, np.ndarray]:
    """The state as arrays that the kernels may write to."""
    count = len(state.key)
    arrays = {
        "W": owned(state.params.W), "a": owned(state.params.a), "c": owned(state.params.c),
        "acc_W": owned(state.acc.W), "acc_a": owned(state.acc.a), "acc_c": owned(state.acc.c),
        "v": owned(state.z.v), "h": owned(state.z.h), "x": owned(state.x), "rng": owned(state.noise.rng, np.uint32),
        "left": owned(state.phase.left, np.int32), "slot": np.zeros(count, np.int32), "updates": owned(state.updates, np.int32),
        "eta": owned(np.broadcast_to(np.asarray(lanes.run.optimiser.eta), (count,))), "data": bits(lanes.run.source.data),
    }  # fmt: skip
    if state.z.chain:
        arrays |= {"chain_v": owned(state.z.chain[0]), "chain_h": owned(state.z.chain[1])}
    if (noise := state.noise).base:
        arrays |= {"base_W": owned(noise.base.W), "base_a": owned(noise.base.a), "base_c": owned(noise.base.c)}
        arrays |= {"drive": owned(noise.drive), "gathered": owned(noise.gathered)}
    return arrays


def settle(state: State, tape: Tape, slot: np.ndarray, left: np.ndarray) -> State:
    """Where the lanes are in their phases."""
    lane = np.arange(len(slot))
    phase, process = jax.tree.map(lambda part: np.asarray(part)[lane, slot], (tape.phase, tape.process))
    phases = np.asarray(tape.start) + slot - (left > 0)
    return state._replace(phase=phase._replace(left=left.copy()), process=process, phases=phases.astype(np.int32))


def pack(state: State, arrays: dict[str, np.ndarray], ticks: int) -> State:
    """The state after these ticks."""
    a = arrays
    chain = (a["chain_v"], a["chain_h"]) if state.z.chain else ()
    wide = (Params(a["base_W"], a["base_a"], a["base_c"]), a["drive"], a["gathered"]) if state.noise.base else ()
    state = state._replace(
        params=Params(a["W"], a["a"], a["c"]), acc=Params(a["acc_W"], a["acc_a"], a["acc_c"]), z=Units(a["v"], a["h"], chain),
        x=a["x"], updates=a["updates"], noise=Noise(a["rng"], *wide), ticks=np.asarray(state.ticks) + np.int32(ticks),
    )  # fmt: skip
    return jax.tree.map(jnp.asarray, state)
