"""The bookkeeping of one `train`: when to record, what was recorded, how long it took, and the
checkpoint.
"""

import contextlib
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from .checks import count
from .lanes import Lanes
from .record import CLOCKS, Record, describe, is_key, pack, replacing, versions


def budget(mean_length: Any, ticks: int | None, phases: int | None) -> int:
    """Ticks to run, from ticks or from phases x mean phase length."""
    if (ticks is None) == (phases is None):
        raise ValueError("give either ticks= or phases=, the length of training.")
    if phases is not None:
        phases = count(phases, "phases")
        lengths = np.unique(np.asarray(mean_length))
        if len(lengths) > 1:
            raise ValueError(
                "the lanes have different mean phase lengths, so one number of phases is many "
                "numbers of ticks; give ticks=."
            )
        ticks = round(phases * float(lengths[0]))
    ticks = count(ticks, "ticks")
    if ticks >= 2**31:
        raise ValueError(
            f"training must last fewer than 2^31 ticks, not {ticks}; train longer in several runs."
        )
    return ticks


def check_names(names: list[str]) -> None:
    """Axes and metrics become variables of one netCDF file: a name that it cannot hold is refused
    before training, not lost after it.
    """
    for name in names:
        taken = name in (*CLOCKS, "record", "diverged_at", "", ".", "..") or name.startswith(
            ("params", "final.")
        )
        if taken or names.count(name) > 1 or "/" in name:
            raise ValueError(
                f"{name!r} cannot name an axis or a metric of a record: a name stands for one "
                "thing, has no slash, begins neither with "
                f"params nor with final., and is none of {', '.join(CLOCKS)}, record, diverged_at."
            )


class OverLanes(eqx.Module):
    """A metric that takes the parameters of all lanes at once, because it can do so faster than one
    by one.
    """

    def __call__(self, params: Any) -> Any:
        raise NotImplementedError


class AtEnd(eqx.Module):
    """A dear metric: its curve is taken with `along`, a cheaper version of it, and `Record.final`
    with `end`.
    """

    along: Any
    end: Any


@eqx.filter_jit
def each_lane(metric: Any, params: Any) -> Any:
    return jax.vmap(metric)(params)


def measure(metric: Any, params: Any) -> np.ndarray:
    """A metric's value in every lane."""
    return np.asarray(
        metric(params) if isinstance(metric, OverLanes) else each_lane(metric, params)
    )


def _unpack(tree: Any, packed: list[np.ndarray]) -> Any:
    """The inverse of `pack`, given a tree of the same structure."""
    leaves, treedef = jax.tree.flatten(tree)
    restored = [
        jax.random.wrap_key_data(jnp.asarray(new)) if is_key(old) else new
        for old, new in zip(leaves, packed, strict=True)
    ]
    return jax.tree.unflatten(treedef, restored)


@dataclass
class Log:
    """The state of all lanes, and what was recorded of it so far."""

    lanes: Lanes
    state: Any
    marks: np.ndarray
    metrics: Mapping[str, Any]
    config: dict[str, Any]
    engine: str
    checkpoint: Path | None
    curves: dict[str, list[np.ndarray]]
    times: dict[str, float] = field(default_factory=lambda: {"seconds": 0.0, "metric_seconds": 0.0})
    diverged_at: np.ndarray = field(default_factory=lambda: np.array([]))
    finals: dict[str, np.ndarray] = field(default_factory=dict)
    done: int = 0
    interrupted: bool = False

    @staticmethod
    def open(
        lanes: Lanes,
        state: Any,
        total: int,
        records: int,
        metrics: Mapping[str, Any],
        engine: str,
        checkpoint: Any,
    ) -> "Log":
        records = count(records, "records")
        check_names([*lanes.dims, *metrics])
        config = {
            "run": describe(lanes.settings),
            "dims": describe(lanes.dims),
            "ticks": total,
            "records": records,
            "metrics": {name: describe(m) for name, m in metrics.items()},
            "engine": engine,
        }
        marks = np.unique(np.linspace(0, total, min(records, total) + 1).round().astype(int))
        curves = {name: [] for name in [*CLOCKS, *metrics]}
        log = Log(
            lanes,
            state,
            marks,
            metrics,
            config,
            engine,
            Path(checkpoint) if checkpoint else None,
            curves,
        )
        log.diverged_at = np.full(len(lanes.keys), -1, np.int64)
        if log.checkpoint and log.checkpoint.exists():
            log.restore()
        else:
            log.add(state)
        return log

    def next_mark(self) -> int | None:
        """Ticks from here to the next record; None at the end."""
        seen = len(self.curves["ticks"])
        self.done = int(self.marks[seen - 1])
        return int(self.marks[seen]) - self.done if seen < len(self.marks) else None

    def latest(self) -> dict[str, float]:
        """The mean of each metric over the lanes that have one."""
        last = {name: self.curves[name][-1] for name in self.metrics}
        return {
            name: float(np.mean(values[np.isfinite(values)]))
            if np.isfinite(values).any()
            else np.nan
            for name, values in last.items()
        }

    @contextlib.contextmanager
    def timing(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.times[what] += time.perf_counter() - began

    def add(self, state: Any) -> None:
        """A record of this state."""
        with self.timing("metric_seconds"):
            cheap = {
                name: metric.along if isinstance(metric, AtEnd) else metric
                for name, metric in self.metrics.items()
            }
            values = {name: measure(metric, state.params) for name, metric in cheap.items()}
        values |= {clock: np.asarray(getattr(state, clock)) for clock in CLOCKS}
        finite = np.all(
            [
                np.isfinite(np.asarray(p)).reshape(len(p), -1).all(1)
                for p in jax.tree.leaves(state.params)
            ],
            axis=0,
        )
        diverged_at = np.where((self.diverged_at < 0) & ~finite, values["ticks"], self.diverged_at)
        curves = {name: [*curve, values[name]] for name, curve in self.curves.items()}
        self.state, self.diverged_at, self.curves = (
            state,
            diverged_at,
            curves,
        )  # at once: Ctrl-C may come at any time
        if self.checkpoint:
            self.keep()

    def finish(self) -> None:
        """The dear metrics, at the end."""
        with self.timing("metric_seconds"):
            self.finals = {
                name: measure(m.end, self.state.params)
                for name, m in self.metrics.items()
                if isinstance(m, AtEnd)
            }

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()

    def keep(self) -> None:
        assert self.checkpoint
        arrays = {f"state{i}": leaf for i, leaf in enumerate(pack(self.state))}
        arrays |= {f"curve.{name}": np.stack(curve) for name, curve in self.curves.items()}
        arrays |= {
            "diverged_at": self.diverged_at,
            "times": np.array(list(self.times.values())),
            "digest": np.array(self.digest()),
        }
        with replacing(self.checkpoint) as part, open(part, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())

    def restore(self) -> None:
        try:
            with open(self.checkpoint, "rb") as opened, np.load(opened, allow_pickle=False) as file:  # type: ignore[arg-type]
                kept = dict(file)
            if ours := str(kept["digest"]) == self.digest():
                self._take(kept)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.checkpoint} is not a checkpoint of flexphase ({error}); choose another "
                "folder."
            ) from None
        if not ours:
            raise ValueError(
                f"{self.checkpoint} belongs to another configuration; resume with the same "
                "settings or choose another folder."
            )

    def _take(self, kept: dict[str, np.ndarray]) -> None:
        fresh = pack(self.state)
        state = [kept[f"state{i}"] for i in range(len(fresh))]
        curves = {name: list(kept[f"curve.{name}"]) for name in self.curves}
        if [a.shape for a in state] != [a.shape for a in fresh] or len(
            {len(curve) for curve in curves.values()}
        ) > 1:
            raise ValueError("its arrays do not fit together")
        self.state, self.curves, self.diverged_at = (
            _unpack(self.state, state),
            curves,
            kept["diverged_at"],
        )
        self.times = dict(zip(self.times, kept["times"].tolist(), strict=True))

    def record(self) -> Record:
        shape, dims = self.lanes.shape, list(self.lanes.dims)
        data: dict[str, Any] = {}
        for name, curve in self.curves.items():
            data[name] = (
                [*dims, "record"],
                np.moveaxis(np.stack(curve), 0, -1).reshape(*shape, -1),
            )
            data[name][1].flags.writeable = True
        data |= {
            f"final.{name}": (dims, values.reshape(shape)) for name, values in self.finals.items()
        }
        for path, leaf in jax.tree_util.tree_flatten_with_path(self.state.params)[0]:
            name = "params" + "".join(
                f".{getattr(p, 'name', getattr(p, 'key', getattr(p, 'idx', '')))}" for p in path
            )
            array = np.asarray(leaf).reshape(*shape, *leaf.shape[1:])
            data[name] = ([*dims, *(f"{name}_{i}" for i in range(array.ndim - len(dims)))], array)
        about = {"long_name": "ticks at which a parameter was found not finite; -1: never"}
        data["diverged_at"] = (dims, self.diverged_at.reshape(shape), about)
        dataset = xr.Dataset(
            data, coords={name: values for name, values in self.lanes.dims.items()}
        )
        for clock, words in CLOCKS.items():
            dataset[clock].attrs["long_name"] = words
        dataset.attrs = {
            "config": json.dumps(self.config),
            "versions": json.dumps(versions()),
            "metrics": json.dumps(list(self.metrics)),
            "engine": self.engine,
            "interrupted": int(self.interrupted),
        } | self.times
        return Record(dataset)
