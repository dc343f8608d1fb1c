"""`train`: every lane of a run, on the engine that fits, into a record."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .averages import Average, average_of
from .checks import budget, check_end
from .contract import check, check_observers, runs_of
from .core import Observer, Run
from .engines import choose, say_if_missing
from .files import check_place
from .lanes import Grid, Lanes, lanes
from .log import Log
from .metrics import check_metrics
from .progress import Display, Progress, display
from .record import Record
from .record_of import record_of


def train(
    run: Run | Grid,
    *,
    ticks: int | None = None,
    phases: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    metrics: Mapping[str, Any] | None = None,
    records: int = 50,
    average: float | Average | None = None,
    params: Any = None,
    observers: Mapping[str, Observer] | None = None,
    stop: Callable[[Record], bool] | None = None,
    progress: Progress | Display | bool | None = None,
    checkpoint: str | Path | None = None,
    engine: str = "auto",
    threads: int | None = None,
) -> Record:
    """Train a run for every seed, or a grid of runs, and record what happens.

    Args:
        run: `Run(method, process, estimator, source, optimiser)`, or `grid(...)` of such.
        ticks: the length of training in network time steps.
        phases: the same in phases: ticks = phases x mean phase length. Give one of the two.
        seeds: how many networks of each setting, side by side.
        seed: the first seed.
        metrics: functions of one lane's parameters, by name: {"nll": NLL(data)}.
        records: how often metrics are taken, at evenly spaced moments after the start.
        average: slow weights. A fraction such as 0.5 averages the parameters over the rest of
            training; `Mean` and `Exponential` say more. Metrics are then taken on both.
        params: parameters to start from, in the form that the method's `init` gives them: one set
            for all lanes, or with leading axes like those of the record.
        observers: see the whole state at every tick, by name: {"trace": Trace(200)}. They need the
            JAX engine, which is then taken.
        stop: called with the record so far at every record; True ends training there.
        progress: True draws a bar, in a terminal or a notebook (elsewhere it is silent); a function
            is called as progress(ticks done, ticks in all, latest metrics); so is a `Display`,
            which is also told what is compiled.
        checkpoint: a file that is kept at every record. A run that was stopped goes on from it, to
            the same bits; a finished one is extended by asking for more ticks.
        engine: "auto" takes the fastest that fits the run; "jax" or "native" insist.
        threads: of the compiled engines (default: all cores).

    Returns: a `Record`. Ctrl-C returns what was recorded so far, with attrs["interrupted"] = 1.

    Example: `record = train(run, phases=40_000, seeds=8, metrics={"nll": NLL(data)})`, then
    `record.final().mean()`.
    """
    check(run)
    named = check_metrics(metrics)
    watching = check_observers(observers, runs_of(run)[0])
    mean = average_of(average)
    check_stop(stop)
    if checkpoint:
        check_place(Path(checkpoint))
    every = lanes(run, seeds, seed)
    total = budget(every.run.process.mean_length, ticks, phases)
    check_end(getattr(every.run.process, "ends", None), total)
    chosen = choose(engine, run, threads, watching)
    title, n = type(every.run.method).__name__, len(every.keys)
    with display(progress, title) as bar:
        bar.stage(f"compiling the start of {n} {'lane' if n == 1 else 'lanes'}")
        given = None if params is None else in_lanes(every, params)
        state = chosen.start(every, given)
        bar.stage(f"compiling metrics: {', '.join(named)}" if named else "first record")
        log = Log.open(
            every,
            state,
            total=total,
            records=records,
            metrics=named,
            observers=watching,
            average=mean,
            engine=chosen.name,
            checkpoint=checkpoint,
            given=given,
        )
        if engine == "auto" and not watching:  # observers need JAX in any case
            say_if_missing()
        bar.stage(f"building the loop of the {chosen.name} engine")

        def report(ticks: int) -> None:
            log.done += ticks
            bar(log.done, total, log.latest())

        try:
            while (ahead := log.ahead()) is not None:
                slow = log.slow and log.slow.copy()  # Ctrl-C must not leave log.slow half updated
                with log.timing("seconds"):
                    visits = log.visits(ahead, slow)
                    state = chosen.advance(every, log.state, ahead, report, visits)
                log.add(state, slow)
                if stop:
                    log.stopped = bool(stop(record_of(log)))
            bar.stage("metrics at the end")
            log.finish()
        except KeyboardInterrupt:
            log.interrupted = True
    return record_of(log)


def check_stop(stop: Any) -> None:
    """Refuse what cannot be asked whether training ends."""
    if stop and not callable(stop):
        raise ValueError(
            f"stop must be a function of the record so far, not {stop!r}, such as "
            'lambda record: record["nll"][:, -1].mean() < 120.'
        )


def in_lanes(every: Lanes, params: Any) -> Any:
    """Given parameters with a leading lane axis, checked against those of the method."""

    def own(run: Run, key: jax.Array) -> Any:
        return run.method.init(key)[0]

    start = jax.eval_shape(lambda: every.vmap(own, every.keys))
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), start)
    if jax.tree.structure(params) != jax.tree.structure(like):
        raise ValueError(
            f"params must have the form that {type(every.run.method).__name__}.init gives, "
            f"{jax.tree.structure(like)}, not {jax.tree.structure(params)}."
        )
    n = len(every.keys)

    def leaf(value: Any, want: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError("params must be finite numbers.")
        if array.shape == want.shape:
            return jnp.asarray(np.broadcast_to(array, (n, *want.shape)), want.dtype)
        if array.shape in ((*every.shape, *want.shape), (n, *want.shape)):
            return jnp.asarray(array.reshape(n, *want.shape), want.dtype)
        raise ValueError(
            f"an array of params has the shape {array.shape}; it must be {want.shape}, or that "
            f"with leading axes {every.shape}."
        )

    return jax.tree.map(leaf, params, like)
