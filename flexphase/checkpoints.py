"""The checkpoint of a run: plain arrays, whole or absent, from which it goes on to the same
bits.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .averages import Slow
from .describe import difference, is_key, plain_array
from .files import content, npz, plain_json, replacing, understood
from .record import named_in
from .record_schema import CLOCKS

if TYPE_CHECKING:
    from .log import Log


def leaves_of(tree: Any) -> list[np.ndarray]:
    """The leaves of a state as plain arrays; random keys as their bits."""
    return [plain_array(leaf) for leaf in jax.tree.leaves(tree)]


def tree_of(like: Any, leaves: list[np.ndarray]) -> Any:
    """The inverse of `leaves_of`, given a tree of the same structure."""
    old, treedef = jax.tree.flatten(like)
    new = [
        jax.random.wrap_key_data(jnp.asarray(b)) if is_key(a) else jnp.asarray(b)
        for a, b in zip(old, leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, new)


def keep(log: "Log") -> None:
    """Write the checkpoint of the last record."""
    assert log.checkpoint
    state, slow = log.state, log.slow
    arrays = {f"state{i}": leaf for i, leaf in enumerate(leaves_of(state))}
    arrays |= {f"curve.{name}": np.stack(curve) for name, curve in log.curves.items()}
    if slow is not None:
        arrays |= {f"slow{i}": leaf for i, leaf in enumerate(slow.mean)}
        arrays["taken"] = np.array(slow.taken, np.int64)
    identity = log.identity()
    arrays |= {
        "diverged_at": log.diverged_at,
        "times": np.array(list(log.times.values())),
        "identity": np.frombuffer(json.dumps(identity).encode(), np.uint8),
    }
    arrays["checksum"] = checksum(arrays)
    with replacing(log.checkpoint) as part, open(part, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def checksum(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The SHA-256 of all arrays: their names, types, shapes and bytes."""
    whole = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        whole.update(repr((name, array.dtype.str, array.shape)).encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(whole.digest(), np.uint8)


def restore(log: "Log") -> bool:
    """Go on from the checkpoint, if there is one; refuse one that is damaged or belongs to another
    run.
    """
    path = log.checkpoint
    if path is None:
        return False
    with understood(f"{path} is not a checkpoint of flexphase", "; choose another folder"):
        try:
            kept = npz(content(path))
        except FileNotFoundError:
            return False
        if not np.array_equal(kept.pop("checksum", np.empty(0)), checksum(kept)):
            raise ValueError("its checksum is wrong, so it was damaged or changed")
        identity = plain_json(kept.pop("identity").tobytes())
        own = log.identity()
        own["versions"] = named_in(identity["versions"], own["versions"])
        if identity == own:
            take(log, kept)
    if identity != own:
        raise ValueError(
            f"{path} belongs to another configuration: {difference(identity, own)}; "
            "resume with the same settings or choose another folder."
        )
    here = int(log.state.ticks[0])
    if here > log.total:
        raise ValueError(
            f"the run in {path} has already done {here} ticks, more than the {log.total} asked "
            "for; ask for more, or choose another folder."
        )
    settle_average(log)
    return True


def take(log: "Log", kept: dict[str, np.ndarray]) -> None:
    """The arrays of a checkpoint, if they fit."""
    like = layout(log, points=len(kept["curve.ticks"]))
    if kept.keys() != like.keys():
        raise ValueError("its arrays are not those of the run")
    for name, array in kept.items():
        shape, dtype = like[name]
        shape = array.shape[:1] if name == "taken" else shape
        kind = array.dtype == dtype if dtype else array.dtype.kind in "biuf"
        if array.shape != shape or not kind or (0 in shape[:1] and name == "curve.ticks"):
            raise ValueError(f"its {name} does not fit the run")
    state = tree_of(log.state, [kept[f"state{i}"] for i in range(len(leaves_of(log.state)))])
    ticks = np.asarray(state.ticks)
    if (ticks != ticks[0]).any():
        raise ValueError("its clocks do not agree")
    left, lasts = np.asarray(state.phase.left), np.asarray(state.phase.ticks)
    if not ((left >= 0) & (left <= lasts)).all():
        raise ValueError("its phases have more ticks to go than they last")
    for clock in CLOCKS:
        curve = kept[f"curve.{clock}"]
        if curve.dtype.kind not in "iu" or (curve < 0).any():
            raise ValueError(f"its {clock} are no whole numbers from 0 on")
        if (curve[-1] != np.asarray(getattr(state, clock))).any():
            raise ValueError("its clocks do not agree")
    if not (np.isfinite(kept["times"]) & (kept["times"] >= 0)).all():
        raise ValueError("its times are no seconds")
    if log.slow is not None:
        mean = [kept[f"slow{i}"] for i in range(len(log.slow.mean))]
        log.slow = Slow(log.slow.average, mean, kept["taken"].tolist())
    log.state = state
    log.curves = {name: list(kept[f"curve.{name}"]) for name in log.curves}
    log.diverged_at = kept["diverged_at"]
    log.times = dict(zip(log.times, kept["times"].tolist(), strict=True))


def layout(log: "Log", points: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape and dtype of every array in a checkpoint of this run; None: any real number."""
    lanes, number = (len(log.lanes.keys),), np.dtype(np.float64)
    arrays = {f"state{i}": leaf for i, leaf in enumerate(leaves_of(log.state))}
    if log.slow is not None:
        arrays |= {f"slow{i}": leaf for i, leaf in enumerate(log.slow.mean)}
        arrays["taken"] = np.zeros(0, np.int64)
    like = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    like |= {"diverged_at": (lanes, np.dtype(np.int64)), "times": ((len(log.times),), number)}
    return like | {f"curve.{name}": ((points, *lanes), None) for name in log.curves}


def settle_average(log: "Log") -> None:
    """A run that is extended needs the moments of the longer one."""
    if log.slow is None:
        return
    here = int(log.state.ticks[0])
    wanted = log.moments[log.moments <= here]
    if wanted.tolist() == log.slow.taken:
        return
    if len(wanted):
        raise ValueError(
            f"the average of the longer run would begin at tick {wanted[0]}, which this one has "
            f"passed (tick {here}); train at least twice as long, or begin the average later."
        )
    log.slow = Slow.empty(log.slow.average, log.state.params)
    nothing = np.full(len(log.lanes.keys), np.nan)
    for name in log.metrics:
        log.curves[f"averaged.{name}"] = [nothing for _ in log.curves[f"averaged.{name}"]]
