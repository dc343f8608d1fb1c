"""The checkpoint of a run: plain arrays, whole or absent, from which it goes on to the same
bits.
"""

import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .averages import Slow
from .describe import digest, is_key, plain_array
from .record import replacing

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
        "digest": np.array(digest(identity)),
        "identity": np.frombuffer(json.dumps(identity).encode(), np.uint8),
    }
    with replacing(log.checkpoint) as part, open(part, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())


def restore(log: "Log") -> None:
    """Go on from the checkpoint; refuse one that is damaged or belongs to another run."""
    path = log.checkpoint
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:  # type: ignore[arg-type]
            kept = dict(file)
        identity = json.loads(kept["identity"].tobytes().decode())
        if str(kept["digest"]) != digest(identity):
            raise ValueError("its description was changed")
        if identity == log.identity():
            take(log, kept)
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        zipfile.BadZipFile,
    ) as error:
        raise ValueError(
            f"{path} is not a checkpoint of flexphase ({error}); choose another folder."
        ) from None
    if identity != log.identity():
        raise ValueError(
            f"{path} belongs to another configuration: {difference(identity, log.identity())}; "
            "resume with the same settings or choose another folder."
        )
    here = int(log.state.ticks[0])
    if here > log.total:
        raise ValueError(
            f"the run in {path} has already done {here} ticks, more than the {log.total} asked "
            "for; ask for more, or choose another folder."
        )
    settle_average(log)


def take(log: "Log", kept: dict[str, np.ndarray]) -> None:
    """The arrays of a checkpoint, if they fit."""
    fresh = leaves_of(log.state)
    state = [kept[f"state{i}"] for i in range(len(fresh))]
    curves = {name: list(kept[f"curve.{name}"]) for name in log.curves}
    fits = [(a.shape, a.dtype) for a in state] == [(a.shape, a.dtype) for a in fresh]
    lengths = {len(curve) for curve in curves.values()}
    lanes = (len(log.lanes.keys),)
    if not fits or len(lengths) != 1 or 0 in lengths:
        raise ValueError("its arrays do not fit together")
    if any(np.shape(point) != lanes for curve in curves.values() for point in curve):
        raise ValueError("its curves do not have one number a lane")
    if kept["diverged_at"].shape != lanes or kept["times"].shape != (len(log.times),):
        raise ValueError("its arrays do not fit together")
    if log.slow is not None:
        like, taken = log.slow.mean, kept["taken"]
        mean = [kept[f"slow{i}"] for i in range(len(like))]
        fits = [(m.shape, m.dtype) for m in mean] == [(m.shape, m.dtype) for m in like]
        if not fits or taken.ndim != 1 or taken.dtype != np.int64:
            raise ValueError("its slow weights do not fit the run")
        log.slow = Slow(log.slow.average, mean, taken.tolist())
    log.state = tree_of(log.state, state)
    log.curves, log.diverged_at = curves, kept["diverged_at"].astype(np.int64)
    log.times = dict(zip(log.times, kept["times"].tolist(), strict=True))


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


def difference(then: Any, now: Any, path: str = "") -> str:
    """The first place where two descriptions differ, in words."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*then, *now]:
            if then.get(name) != now.get(name):
                where = f"{path}.{name}" if path else str(name)
                return difference(then.get(name), now.get(name), where)
    short = [text if len(text) < 60 else f"{text[:57]}..." for text in map(json.dumps, (then, now))]
    return f"{path.removeprefix('run.')} was {short[0]} and is now {short[1]}"
