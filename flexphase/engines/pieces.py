"""Phases in the form that the kernels take: whole, or cut where a stimulus changes inside a phase.

The kernels show one stimulus per phase. Where a source has a clock of its own (`Held`), a positive
phase is cut into pieces, each a phase to the kernels, with the weights that its ticks have in the
whole one. Free phases need not be cut: a free network does not see its stimulus.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..core import State, declares, stimulus_key
from ..data.held import tick_keys
from ..data.sources import random_row
from ..lanes import Lanes
from .tapes import Tape

WATCHED = 2**22  # ticks, over all lanes, in which changes are looked for at once


class Pieces(NamedTuple):
    """A stretch of tape for the kernels."""

    told: dict[str, np.ndarray]
    left: np.ndarray  # (lanes,) ticks until the present piece ends
    reach: int  # ticks that may be run
    slot: np.ndarray | None = None  # (lanes, pieces) of the tape to which a piece belongs
    until: Any = None  # (lanes, slots) ticks from here to the end of each phase
    changes: Any = None  # of each lane: ticks from here, and rows

    def place(self, arrays: dict[str, np.ndarray], ticks: int) -> tuple[np.ndarray, np.ndarray]:
        """After so many ticks: the slot of the tape in which each lane is, and what is left."""
        if self.slot is None:
            return arrays["slot"], arrays["left"]
        lane = np.arange(len(self.left))
        slot = self.slot[lane, arrays["slot"]]
        return slot, (self.until[lane, slot] - ticks).astype(np.int32)

    def show(self, x: np.ndarray, data: np.ndarray, ticks: int) -> None:
        """Write the stimulus of the last of so many ticks."""
        for lane, (at, row) in enumerate(self.changes or []):
            seen = np.searchsorted(at, ticks - 1, side="right")
            if seen:
                x[lane] = (data[lane] if data.ndim == 3 else data)[row[seen - 1]]


def pieces_of(lanes: Lanes, state: State, tape: Tape, rows: int) -> Pieces:
    """The tape as the kernels want it; `state` is where its first phase is."""
    left = np.array(state.phase.left, np.int32)
    told = {name: np.asarray(part) for name, part in tape.for_kernel().items()}
    ticks = told["ticks"].astype(np.int64)
    ticks[:, 0] = left
    until = np.cumsum(ticks, axis=1)
    reach = int(until[:, -1].min())
    if not declares(lanes.run.source, "clocked"):
        return Pieces(told, left, reach)
    reach = min(reach, watched(len(left)))
    changes = changes_in(lanes, state, tape, reach, rows)
    cut = [
        cut_lane({name: part[lane] for name, part in told.items()}, until[lane], at, row, reach)
        for lane, (at, row) in enumerate(changes)
    ]
    most = max(len(one["slot"]) for one in cut)
    joined = {name: np.stack([padded(one[name], most) for one in cut]) for name in cut[0]}
    slot, first = joined.pop("slot"), joined.pop("first")[:, 0].astype(np.int32)
    return Pieces(joined, first, reach, slot, until, changes)


def watched(lanes: int) -> int:
    return max(WATCHED // lanes, 1024)


def padded(part: np.ndarray, n: int) -> np.ndarray:
    """Filled up to n rows with the last one, which is never reached."""
    return np.concatenate([part, np.repeat(part[-1:], n - len(part), 0)])


def changes_in(
    lanes: Lanes, state: State, tape: Tape, ticks: int, rows: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each lane: at which of the next ticks the stimulus changes, and to which row."""
    size = power_of_two(ticks)
    due = np.asarray(_due(lanes, state, tape, size))[:, :ticks]
    at = [np.flatnonzero(lane) for lane in due]
    most = power_of_two(max(map(len, at)))
    t = np.stack([np.resize(lane, most) if len(lane) else np.zeros(most, int) for lane in at])
    row = np.asarray(_rows(lanes, state.key, state.ticks[:, None] + t.astype(np.int32), rows))
    return [(lane, row[i, : len(lane)]) for i, lane in enumerate(at)]


def power_of_two(n: int) -> int:
    """At least n and at least 64, so that few sizes are compiled."""
    return 2 ** max(int(n - 1).bit_length(), 6)


@eqx.filter_jit
def _due(lanes: Lanes, state: State, tape: Tape, ticks: int) -> Any:
    """(lanes, ticks): does the stimulus change? As `Held.due` says at every tick."""

    def one(run: Any, s: State, tape: Tape) -> Any:
        lasts = tape.phase.ticks.at[0].set(s.phase.left)
        ends = jnp.cumsum(jnp.minimum(lasts, ticks))
        t = jnp.arange(ticks, dtype=jnp.int32)
        slot = jnp.minimum(jnp.searchsorted(ends, t, side="right"), len(ends) - 1)
        begin = (ends - jnp.minimum(lasts, ticks)).at[0].set(s.phase.left - s.phase.ticks)
        phase = jax.tree.map(lambda part: part[slot], tape.phase)
        phase = phase._replace(left=phase.ticks - (t - begin[slot]))
        key = stimulus_key(s.key)

        def due(t: Any, phase: Any, n: Any) -> Any:
            return run.source.due(tick_keys(key, t)[0], phase, n, t)

        return jax.vmap(due)(s.ticks + t, phase, tape.start - 1 + slot)

    return lanes.vmap(one, state, tape)


@eqx.filter_jit
def _rows(lanes: Lanes, keys: Any, t: Any, rows: int) -> Any:
    """The rows that are shown from these ticks on."""

    def one(run: Any, key: Any, t: Any) -> Any:
        root = stimulus_key(key)
        return jax.vmap(lambda t: random_row(tick_keys(root, t)[1], rows))(t)

    return lanes.vmap(one, keys, t)


def cut_lane(
    told: dict[str, np.ndarray], until: np.ndarray, at: np.ndarray, row: np.ndarray, reach: int
) -> dict[str, np.ndarray]:
    """The pieces of one lane: `at` are the ticks at which its stimulus changes, to `row`."""
    ticks, sign = told["ticks"].astype(np.int64), told["sign"]
    begin = until - ticks  # of slot 0: before now
    inside = np.searchsorted(until, at, side="right")
    cuts = at[(sign[inside] > 0) & (at != begin[inside])]
    starts = np.union1d(until[:-1][until[:-1] < reach], cuts)
    slot = np.append(0, np.searchsorted(until, starts, side="right"))
    edges = np.concatenate([[0], starts])
    ends = np.minimum(np.append(edges[1:], until[slot[-1]]), until[slot])
    age, lasts = edges - begin[slot], ends - edges
    last = age + lasts - 1
    piece = {name: part[slot] for name, part in told.items()}
    for name in ("weight", "apply"):
        each = piece[name]
        lane = np.arange(len(slot))
        piece[name] = np.stack(
            [
                each[lane, moment(age, ticks[slot])],
                each[:, 1],
                each[lane, moment(last, ticks[slot])],
            ],
            axis=1,
        )
    seen = np.searchsorted(at, edges, side="right")
    shown = np.append(-1, row)[seen].astype(np.int32)
    piece["row"] = np.where(np.arange(len(slot)) == 0, -1, shown).astype(np.int32)
    piece["ticks"] = lasts.astype(np.int32)
    piece["ticks"][0] += 1  # the present one has begun: its first tick is over
    first = np.full(len(slot), lasts[0])
    return piece | {"slot": slot, "first": first}


def moment(age: np.ndarray, ticks: np.ndarray) -> np.ndarray:
    """Which of the three weights a tick has: 0 at the first of a phase, 2 at the last, else 1."""
    return np.where(age == ticks - 1, 2, np.where(age == 0, 0, 1))
