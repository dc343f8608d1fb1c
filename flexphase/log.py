"""The bookkeeping of one `train`: when to record, what was recorded, how long it took."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from . import checkpoints
from .averages import Average, Slow
from .checks import count
from .core import Observer, State
from .describe import Described, described, digest
from .engine import NONE, Visits
from .lanes import Lanes
from .metrics import AtEnd, check_values, finite_in, measure, optima
from .record import RESERVED, Record, deciding_versions, leaf_name, versions
from .record_schema import CLOCKS

KEPT_DATA = 2**20  # numbers: smaller data are kept in the record, larger ones by their digest


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


def identity(
    dims: Mapping[str, Any], run: Described, engine: str, parts: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run consists of, as JSON: all but the length of training."""
    return {
        "run": run.run,
        "dims": {name: np.asarray(v).tolist() for name, v in dims.items()},
        "swept": {name: np.asarray(v).tolist() for name, v in run.swept.items()},
        "engine": engine,
        **{name: described(part).run for name, part in parts.items()},
    }


def check_end(ends: int | None, ticks: int) -> None:
    """A record of phases that does not repeat must last as long as training."""
    if ends is not None and ticks > ends:
        raise ValueError(
            f"the record of phases ends after {ends} ticks, and training would last {ticks}; "
            "train for fewer, or repeat the record: Recorded(..., after='repeat')."
        )


def check_names(names: list[str]) -> None:
    """Axes and metrics become variables of one netCDF file: a name that it cannot hold is refused
    before training, not lost after it.
    """
    for name in names:
        taken = name in (*CLOCKS, "record", "diverged_at", "", ".", "..")
        if taken or name.startswith(RESERVED) or names.count(name) > 1 or "/" in name:
            raise ValueError(
                f"{name!r} cannot name an axis or a metric of a record: a name stands for one "
                f"thing, has no slash, begins with none of {', '.join(RESERVED)}, and is none of "
                f"{', '.join(CLOCKS)}, record, diverged_at."
            )


@dataclass
class Log:
    """The state of all lanes, and what was recorded of it so far."""

    lanes: Lanes
    state: State  # at the last record
    slow: Slow | None  # there
    marks: np.ndarray  # ticks at which metrics are taken
    metrics: Mapping[str, Any]
    observers: Mapping[str, Observer]
    average: Average | None
    config: dict[str, Any]
    described: Described
    checkpoint: Path | None
    optima: dict[str, float]
    curves: dict[str, list[np.ndarray]] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=lambda: {"seconds": 0.0, "metric_seconds": 0.0})
    diverged_at: np.ndarray = field(default_factory=lambda: np.array([]))
    finals: dict[str, np.ndarray] = field(default_factory=dict)
    done: int = 0
    interrupted: bool = False
    stopped: bool = False

    @staticmethod
    def open(
        lanes: Lanes,
        state: State,
        total: int,
        records: int,
        metrics: Mapping[str, Any],
        observers: Mapping[str, Observer],
        average: Average | None,
        engine: str,
        checkpoint: str | Path | None,
        given: Any = None,
    ) -> "Log":
        """Begin, or go on from the checkpoint; `given` are parameters to start from, if any."""
        records = count(records, "records")
        check_names([*lanes.dims, *metrics])
        run = described(lanes.settings)
        parts = {"metrics": metrics, "observers": observers, "average": average}
        parts |= {} if given is None else {"params": given}
        own = identity(lanes.dims, run, engine, parts)
        config = own | {"ticks": total, "records": records}
        log = Log(
            lanes=lanes,
            state=state,
            slow=Slow.empty(average, state.params) if average else None,
            marks=np.unique(
                np.linspace(0, total, min(records, total) + 1).round().astype(np.int64)
            ),
            metrics=metrics,
            observers=observers,
            average=average,
            config=config,
            described=run,
            checkpoint=Path(checkpoint) if checkpoint else None,
            optima=optima(metrics),
        )
        check_values(metrics, state.params)
        averaged = [f"averaged.{name}" for name in metrics] if average else []
        log.curves = {name: [] for name in [*CLOCKS, *metrics, *averaged]}
        log.diverged_at = np.full(len(lanes.keys), -1, np.int64)
        if log.checkpoint and log.checkpoint.exists():
            checkpoints.restore(log)
        else:
            log.add(state, log.slow)
        return log

    @property
    def total(self) -> int:
        return int(self.marks[-1])

    @property
    def moments(self) -> np.ndarray:
        """Ticks at which parameters are added to the slow weights."""
        return self.average.moments(self.total) if self.average else np.zeros(0, np.int64)

    def ahead(self) -> int | None:
        """Ticks from the last record to the next one; None at the end."""
        self.done = int(self.state.ticks[0])
        later = self.marks[self.marks > self.done]
        return int(later[0]) - self.done if len(later) and not self.stopped else None

    def visits(self, ahead: int, slow: Slow | None) -> Visits:
        """The moments of the average up to the next record."""
        return NONE if slow is None else slow.visits(self.total, self.done, ahead)

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
        """Add the time of the block to `times[what]`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.times[what] += time.perf_counter() - began

    def add(self, state: State, slow: Slow | None) -> None:
        """A record: the metrics of this state and of its slow weights."""
        with self.timing("metric_seconds"):
            cheap = {n: m.along if isinstance(m, AtEnd) else m for n, m in self.metrics.items()}
            values = self.measured(cheap, state.params)
            if slow is not None:
                none = dict.fromkeys(cheap, np.full(len(self.lanes.keys), np.nan))
                mean = self.measured(cheap, slow.params(state.params)) if slow.taken else none
                values |= {f"averaged.{name}": value for name, value in mean.items()}
        values |= {clock: np.asarray(getattr(state, clock)) for clock in CLOCKS}
        fresh = (self.diverged_at < 0) & ~finite_in(state.params)
        diverged_at = np.where(fresh, values["ticks"], self.diverged_at)
        curves = {name: [*curve, values[name]] for name, curve in self.curves.items()}
        # At once: Ctrl-C may come at any time.
        self.state, self.slow, self.diverged_at, self.curves = state, slow, diverged_at, curves
        if self.checkpoint:
            checkpoints.keep(self)

    def measured(self, metrics: Mapping[str, Any], params: Any) -> dict[str, np.ndarray]:
        """The metrics in every lane; NaN where a parameter is not finite, whatever a metric makes
        of it: a network that diverged must not look like one that guesses.
        """
        finite = finite_in(params)
        values = {name: self.checked(name, measure(m, params)) for name, m in metrics.items()}
        if finite.all():
            return values
        return {name: np.where(finite, value, np.nan) for name, value in values.items()}

    def checked(self, name: str, values: np.ndarray) -> np.ndarray:
        """One real number for each lane."""
        lanes = len(self.lanes.keys)
        if values.shape != (lanes,) or values.dtype.kind not in "biuf":
            raise ValueError(
                f"the metric {name!r} must return one real number for each of the {lanes} lanes, "
                f"not {values.dtype} of shape {values.shape}."
            )
        return values

    def finish(self) -> None:
        """The expensive metrics, at the end."""
        state, slow = self.state, self.slow
        ends = {name: m.end for name, m in self.metrics.items() if isinstance(m, AtEnd)}
        with self.timing("metric_seconds"):
            values = self.measured(ends, state.params)
            self.finals = {f"final.{name}": value for name, value in values.items()}
            if slow is not None and slow.taken:
                mean = self.measured(ends, slow.params(state.params))
                self.finals |= {f"averaged.final.{name}": value for name, value in mean.items()}

    def identity(self) -> dict[str, Any]:
        """What two runs must have in common to be one: all but the length of training."""
        rest = {k: v for k, v in self.config.items() if k not in ("ticks", "records")}
        return rest | {"versions": deciding_versions()}

    def record(self) -> Record:
        """What was recorded so far."""
        shape, dims = self.lanes.shape, list(self.lanes.dims)
        state, slow = self.state, self.slow
        data: dict[str, Any] = {}
        for name, curve in self.curves.items():
            values = np.moveaxis(np.stack(curve), 0, -1).reshape(*shape, -1)
            data[name] = ([*dims, "record"], np.array(values))
        data |= {name: (dims, values.reshape(shape)) for name, values in self.finals.items()}
        data |= self.variables("params", state.params)
        if slow is not None and slow.taken:
            data |= self.variables("averaged.params", slow.params(state.params))
        for name, observer in self.observers.items():
            seen = jax.vmap(observer.result)(state.seen[name])
            data |= self.variables(f"observed.{name}", seen)
        data |= self.provenance()
        about = {"long_name": "ticks at which a parameter was found not finite; -1: never"}
        data["diverged_at"] = (dims, self.diverged_at.reshape(shape), about)
        dataset = xr.Dataset(data, coords=dict(self.lanes.dims))
        for clock, words in CLOCKS.items():
            dataset[clock].attrs["long_name"] = words
        for metric, value in self.optima.items():
            dataset[metric].attrs["optimum"] = value
        dataset.attrs = {
            "config": json.dumps(self.config),
            "digest": digest(self.identity()),
            "versions": json.dumps(versions()),
            "metrics": json.dumps(list(self.metrics)),
            "engine": self.config["engine"],
            "interrupted": int(self.interrupted),
            "stopped": int(self.stopped),
        } | self.times
        return Record(dataset)

    def variables(self, prefix: str, tree: Any) -> dict[str, Any]:
        """The leaves of a tree of all lanes as variables of the record."""
        shape, dims, named = self.lanes.shape, list(self.lanes.dims), {}
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            name = f"{prefix}.{leaf_name(path)}" if path else prefix
            array = np.asarray(leaf).reshape(*shape, *leaf.shape[1:])
            own = [f"{name}_{i}" for i in range(array.ndim - len(dims))]
            named[name] = ([*dims, *own], array)
        return named

    def provenance(self) -> dict[str, Any]:
        """Swept numbers, and data that are small enough to be kept."""
        dims, named = [d for d in self.lanes.dims if d != "seed"], {}
        arrays = {f"swept.{path}": (dims, v) for path, v in self.described.swept.items()}
        small = {k: v for k, v in self.described.large.items() if v.size <= KEPT_DATA}
        arrays |= {f"data.{sha256}": ([], v) for sha256, v in small.items()}
        for name, (lane, array) in arrays.items():
            own = [f"{name}_{i}" for i in range(array.ndim - len(lane))]
            named[name] = ([*lane, *own], array)
        return named
