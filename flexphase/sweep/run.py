"""Sweeps on an executor, into a run folder, and back as one dataset."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from ..record import Record
from .cells import Chunk, Sweep, chunks
from .executors import Executor
from .folder import RunFolder

Watch = Callable[[dict[str, int], str | None], None]


def place(folder: RunFolder) -> Path:
    return folder.path / "chunks"


def done(folder: RunFolder, chunk: Chunk) -> bool:
    return (place(folder) / f"{chunk.name}.nc").exists()


def execute(
    sweeps: Sequence[Sweep], folder: RunFolder, executor: Executor, watch: Watch | None = None
) -> None:
    """Run every chunk that has no record yet. `watch` is told the ticks that each running chunk has
    done, and which has just finished.
    """
    place(folder).mkdir(exist_ok=True)
    every = [chunk for sweep in sweeps for chunk in chunks(sweep)]
    if len({chunk.name for chunk in every}) < len(every):
        raise ValueError("two sweeps of one run have the same name.")
    todo = [chunk for chunk in every if not done(folder, chunk)]
    tasks = [json.dumps(chunk.task() | {"folder": str(place(folder).resolve())}) for chunk in todo]
    for pattern in (
        ".*.part",
        "*.ticks",
    ):  # of a run that was killed: the lock says that it is over
        for stale in place(folder).glob(pattern):
            stale.unlink(missing_ok=True)
    if not tasks:
        return
    for finished in executor.run(tasks):
        if watch:
            watch({path.stem: _ticks(path) for path in place(folder).glob("[!.]*.ticks")}, finished)


def _ticks(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def collect(sweep: Sweep, folder: RunFolder) -> xr.Dataset:
    """All chunks of a sweep: dimensions cell, seed and record, with the settings of each cell as
    coordinates.
    """
    parts: dict[int, list[Any]] = {}
    times = {"seconds": 0.0, "metric_seconds": 0.0}
    engines = set()
    for chunk in chunks(sweep):
        dataset = Record.load(place(folder) / f"{chunk.name}.nc").dataset
        parts.setdefault(chunk.cells[0], []).append(dataset)
        times = {name: times[name] + float(dataset.attrs[name]) for name in times}
        engines.add(str(dataset.attrs["engine"]))
    rows = [xr.concat(part, "seed") if len(part) > 1 else part[0] for part in parts.values()]
    whole = xr.concat(rows, "cell", combine_attrs="drop").sortby("cell")
    names = dict.fromkeys(name for cell in sweep.cells for name in cell)
    settings = {
        name: ("cell", [cell.get(name, float("nan")) for cell in sweep.cells])
        for name in names
        if name != "ticks"
    }
    whole = whole.assign_coords(settings)
    whole.attrs = {
        "sweep": json.dumps(sweep._asdict()),
        "engine": ", ".join(sorted(engines)),
    } | times
    return whole
