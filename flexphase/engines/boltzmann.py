"""The compiled Boltzmann engine: the same phases and stimuli as `tick`, in C++ with many lanes to a
vector register.
"""

import time
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import optax

from ..core import Run, State
from ..data.held import Held
from ..data.sources import Rows
from ..engine import NONE, Visits, next_piece
from ..kernels import _native, owned, threads
from ..lanes import Lanes
from ..methods.binary import NegativeStart
from ..methods.boltzmann import BoltzmannMachine
from ..methods.rbm import RBM
from . import devices
from .boltzmann_state import (
    bits,
    generators,
    joined,
    params_in,
    seeds,
    to_arrays,
    to_state,
)
from .jax import start
from .pieces import pieces_of, watched
from .tapes import check_signs, not_on_tape, remembers, settled, slots, tape_of, unheld

WIDE = 768  # weights of an RBM; beyond that, vectors run along the units instead of the lanes


class BoltzmannEngine:
    """RBMs and general Boltzmann machines of zeros and ones, trained by plain gradient descent, on
    simple devices or without.
    """

    name = "native"

    def __init__(self, asked: int | None = None, isa: str = ""):
        self.threads, self.isa = threads(asked), isa
        self._data: tuple[Any, np.ndarray] = (None, np.zeros(0))

    def refuses(self, run: Run) -> str | None:
        """Why this engine cannot train the run; None if it can."""
        if type(run.method) not in (RBM, BoltzmannMachine):
            return (
                "the native Boltzmann engine knows RBM and BoltzmannMachine, not "
                f"{type(run.method).__name__}."
            )
        source = unheld(run.source)
        if type(source) is not Rows:
            return (
                "the native Boltzmann engine takes its stimuli from Rows, held or not, not from "
                f"{type(source).__name__}."
            )
        data, visible = np.asarray(source.data), run.method.visible  # type: ignore[attr-defined]
        if data.shape[-1] != visible:
            return f"the data have {data.shape[-1]} columns and the model {visible} visible units."
        if not ((data == 0) | (data == 1)).all():
            return "the native Boltzmann engine needs data of zeros and ones."
        if run.optimiser.make is not optax.sgd:
            return "the native Boltzmann engine knows plain gradient descent (optax.sgd) only."
        return devices.refuses(run.optimiser) or not_on_tape(run.estimator)

    def start(self, lanes: Lanes, params: Any = None) -> State:
        state, method = start(lanes, params), lanes.run.method
        wide = type(method) is RBM and method.visible * method.hidden > WIDE
        noise = seeds(state.key, state.params, wide)
        if devices.draws(lanes.run.optimiser):
            noise = noise._replace(write=generators(state.opt[1].key, wide))
        return state._replace(noise=noise)

    def constant(self, lanes: Lanes) -> dict[str, np.ndarray]:
        """Arrays that the kernels only read; the bits of the data are kept between calls."""
        source, method = unheld(lanes.run.source), lanes.run.method
        if self._data[0] is not source.data:
            self._data = (source.data, bits(source.data))
        eta = owned(np.broadcast_to(np.asarray(lanes.run.optimiser.eta), (len(lanes.keys),)))
        return (
            {"data": self._data[1], "eta": eta}
            | devices.arrays(lanes.run.optimiser, len(lanes.keys))
            | (joined(method) if type(method) is BoltzmannMachine else {})
        )

    def options(self, run: Run, wide: bool) -> dict[str, Any]:
        """How the kernels run."""
        method: Any = run.method
        options = {
            "negative_start": get_args(NegativeStart).index(method.negative_start),
            "visible_bias": method.visible_bias,
            "remember": remembers(run.estimator),
            "threads": self.threads,
            "isa": self.isa,
        } | devices.options(run.optimiser)
        return options | ({"wide": wide} if type(method) is RBM else {})

    def advance(
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        visits: Visits = NONE,
        noise: Any = None,
        written: Any = None,
    ) -> State:
        """In pieces of about a third of a second. Tests may give the random numbers: `noise`
        (ticks, lanes, visible + hidden), and `written` (ticks, lanes, 3, parameters) of the writes
        to devices.
        """
        method, data = lanes.run.method, np.asarray(unheld(lanes.run.source).data)
        held = type(lanes.run.source) is Held
        ahead = min(ticks, watched(len(lanes.keys))) if held else ticks
        block = slots(ahead, lanes.run.process.mean_length)
        draws = noise is not None and method.negative_start in ("data", "random")
        enters = method.visible + method.hidden if draws else 0
        options = self.options(lanes.run, wide=bool(state.noise.base))
        kernel = _native.rbm if type(method) is RBM else _native.machine
        arrays, constant = to_arrays(state), self.constant(lanes)
        done, piece = 0, 64
        while done < ticks:
            at = (state.key, state.phases, state.phase, state.process)
            tape = tape_of(lanes, at, block, data.shape[-2], enters)
            check_signs(tape.phase.sign)
            part = pieces_of(lanes, state, tape, data.shape[-2])
            arrays["slot"][:], arrays["left"][:] = 0, part.left
            end = min(done + part.reach, ticks)
            span = end - done
            while done < end:
                began = time.perf_counter()
                n = min(piece, end - done, visits.ahead(done, ticks))
                tests = {"noise": noise, "given": written}
                given = {k: owned(v[done : done + n]) for k, v in tests.items() if v is not None}
                kernel(arrays | constant | part.told | given, n, **options)
                piece = next_piece(piece, n, began)
                done += n
                visits.pay(done, params_in(arrays, state.params))
                report(n)
            part.show(arrays["x"], data, span)
            state = settled(state, tape, *part.place(arrays, span), span)
        return to_state(state, arrays)
