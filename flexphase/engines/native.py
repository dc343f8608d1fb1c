"""The compiled Boltzmann engine: the same phases and stimuli as `tick`, in C++ with many lanes to a
vector register.
"""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
import optax

from ..core import Phase, State
from ..data.sources import Rows
from ..lanes import Lanes
from ..methods.binary import NegativeStart
from ..methods.boltzmann import BoltzmannMachine
from ..methods.rbm import RBM, Params
from .jax import start
from .native_state import bits, joined, owned, pack, seeds, settle, unpack
from .tapes import draw, reach

_native: Any = None
MISSING = (
    "flexphase was installed without its compiled engines (no C++ compiler was found), so the JAX "
    "engine serves."
)
with contextlib.suppress(ImportError):
    from .. import _native  # type: ignore[attr-defined,no-redef]

    MISSING = ""

WIDE = 768  # weights of an RBM; beyond that, vectors run along the units instead of the lanes
SLOTS = 4096  # phases per lane in a block of tape, at most


def cores(threads: int | None) -> int:
    """Threads to use: as asked, else FLEXPHASE_THREADS, else all cores of this process."""
    named = os.environ.get("FLEXPHASE_THREADS", "") if threads is None else str(threads)
    if not named:
        return (
            len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1
        )
    if not named.isdecimal() or int(named) < 1:
        raise ValueError(
            "the number of threads (threads= or FLEXPHASE_THREADS) must be a whole number from 1 "
            f"on, not {named!r}."
        )
    return int(named)


def changes_between(estimator: Any) -> bool:
    """Does the weight change in the middle of a phase? Tried on phases of seven ticks."""
    for sign in (1.0, -1.0):
        phase = Phase(
            jnp.float32(sign), jnp.float32(0.3), jnp.float32(7), jnp.int32(7), jnp.int32(7)
        )
        seen = [
            np.asarray(part)
            for left in range(2, 7)
            for part in estimator(phase._replace(left=jnp.int32(left)))
        ]
        if any(not np.array_equal(a, b) for a, b in zip(seen[:-2], seen[2:], strict=True)):
            return True
    return False


def nll(params: Params, data: Any, threads: int | None = None) -> np.ndarray:
    """Exact NLL in nats, summed over the rows of the data, of the RBM in every lane."""
    out = np.empty(len(params.W))
    lanes = {"W": owned(params.W), "a": owned(params.a), "c": owned(params.c)}
    _native.rbm_nll(lanes | {"data": owned(data), "nll": out}, cores(threads))
    return out


def slots(ticks: int, mean_length: Any) -> int:
    """Phases to draw ahead: enough, as a rule, for these ticks; in steps of an eighth of an octave,
    so that few sizes are compiled.
    """
    need = ticks / float(np.min(np.asarray(mean_length))) + 2
    need = min(max(need + 4 * need**0.5, 64), SLOTS)
    step = 2 ** max(int(np.log2(need)) - 3, 0)
    return int(-(-need // step) * step) + 1


class Boltzmann:
    """RBMs and general Boltzmann machines of zeros and ones, trained by plain gradient descent."""

    name = "native"

    def __init__(self, threads: int | None = None, isa: str = ""):
        self.threads, self.isa = cores(threads), isa
        self._data: tuple[Any, np.ndarray] = (None, np.zeros(0))

    def refuses(self, run: Any) -> str | None:
        if type(run.method) not in (RBM, BoltzmannMachine):
            return (
                "the native Boltzmann engine knows RBM and BoltzmannMachine, not "
                f"{type(run.method).__name__}."
            )
        if type(run.source) is not Rows:
            return (
                "the native Boltzmann engine takes its stimuli from Rows, not "
                f"{type(run.source).__name__}."
            )
        data = np.asarray(run.source.data)
        if data.shape[-1] != run.method.visible:
            return (
                f"the data have {data.shape[-1]} columns and the model {run.method.visible} "
                "visible units."
            )
        if not ((data == 0) | (data == 1)).all():
            return "the native Boltzmann engine needs data of zeros and ones."
        if run.optimiser.make is not optax.sgd:
            return "the native Boltzmann engine knows plain gradient descent (optax.sgd) only."
        if changes_between(run.estimator):
            return (
                "the native Boltzmann engine needs an estimator whose weight is the same at all "
                "ticks but the first and the last."
            )
        return None

    def start(self, lanes: Lanes) -> State:
        state, method = start(lanes), lanes.run.method
        wide = type(method) is RBM and method.visible * method.hidden > WIDE
        return state._replace(noise=seeds(state.key, state.params, wide))

    def constant(self, lanes: Lanes) -> dict[str, np.ndarray]:
        """Arrays that the kernels only read. The bits of the data are kept, for there may be many."""
        source, method = lanes.run.source, lanes.run.method
        if self._data[0] is not source.data:
            self._data = (source.data, bits(source.data))
        eta = owned(np.broadcast_to(np.asarray(lanes.run.optimiser.eta), (len(lanes.keys),)))
        return {"data": self._data[1], "eta": eta} | (
            joined(method) if type(method) is BoltzmannMachine else {}
        )

    def advance(
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        noise: Any = None,
    ) -> State:
        """In pieces of about a third of a second. For tests: `noise` (ticks, lanes, visible +
        hidden) in the place of our own.
        """
        method = lanes.run.method
        block, rows = slots(ticks, lanes.run.process.mean_length), lanes.run.source.data.shape[-2]
        enters = (
            method.visible + method.hidden
            if noise is not None and method.negative_start in ("data", "random")
            else 0
        )
        options = {
            "negative_start": get_args(NegativeStart).index(method.negative_start),
            "visible_bias": method.visible_bias,
            "remember": not lanes.run.estimator.local,
            "threads": self.threads,
            "isa": self.isa,
        }
        options |= {"wide": bool(state.noise.base)} if type(method) is RBM else {}
        kernel = _native.rbm if type(method) is RBM else _native.machine
        arrays, constant = unpack(state), self.constant(lanes)
        done, piece = 0, 64
        while done < ticks:
            tape = draw(
                lanes, (state.key, state.phases, state.phase, state.process), block, rows, enters
            )
            told = constant | {name: np.asarray(part) for name, part in tape.for_kernel().items()}
            arrays["slot"][:] = 0
            ahead = min(reach(tape, arrays["left"]), ticks - done)
            while ahead > 0:
                began, n = time.perf_counter(), min(piece, ahead)
                given = {} if noise is None else {"noise": owned(noise[done : done + n])}
                kernel(arrays | told | given, n, **options)
                piece = int(min(max(n * 0.3 / (time.perf_counter() - began), 1), 100 * piece))
                ahead, done = ahead - n, done + n
                report(n)
            state = settle(state, tape, arrays["slot"], arrays["left"])
        return pack(state, arrays, ticks)
