"""The bookkeeping of one `train`: when to record, what was recorded, how long it took."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import checkpoints
from .averages import Average, Slow
from .checks import count
from .core import Observer, State
from .describe import Described, described
from .engine import NONE, Visits
from .lanes import Lanes
from .metrics import AtEnd, check_values, finite_in, measure, optima
from .record import deciding_versions
from .record_schema import CLOCKS, check_names


def configuration(
    dims: Mapping[str, Any], run: Described, engine: str, parts: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run consists of, as JSON: all but the length of training and the versions.

    Args:
        dims: the axes of the lanes.
        run: its five parts.
        engine: the name of the engine.
        parts: what else belongs to it, by name: metrics, observers, the average.
    """
    return {
        "run": run.run,
        "dims": {name: np.asarray(v).tolist() for name, v in dims.items()},
        "swept": {name: np.asarray(v).tolist() for name, v in run.swept.items()},
        "engine": engine,
        **{name: described(part).run for name, part in parts.items()},
    }


@dataclass
class Log:
    """The state of all lanes, and what was recorded of it so far."""

    lanes: Lanes
    state: State  # at the last record
    slow: Slow | None  # the slow weights at the last record
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
        *,
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
        config = configuration(lanes.dims, run, engine, parts)
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
            config=config | {"ticks": total, "records": records},
            described=run,
            checkpoint=Path(checkpoint) if checkpoint else None,
            optima=optima(metrics),
        )
        check_values(metrics, state.params, lanes.run.method)
        averaged = [f"averaged.{name}" for name in metrics] if average else []
        log.curves = {name: [] for name in [*CLOCKS, *metrics, *averaged]}
        log.diverged_at = np.full(len(lanes.keys), -1, np.int64)
        if not checkpoints.restore(log):
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
        """What two runs must have in common to be one: the configuration and the versions, all but
        the length of training.
        """
        rest = {k: v for k, v in self.config.items() if k not in ("ticks", "records")}
        return rest | {"versions": deciding_versions()}
