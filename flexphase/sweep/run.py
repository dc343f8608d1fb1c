"""Sweeps on an executor, into a run folder, and back as one dataset."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from ..files import content, make_folder, plain_json, understood
from ..folder import RunFolder
from ..record import Record, changed, deciding_versions
from .cells import Chunk, Sweep, chunks
from .executors import Executor

#: Called with {chunk: ticks done} of the running chunks, and the chunk that has just finished.
Watch = Callable[[dict[str, int], str | None], None]


def place(folder: RunFolder) -> Path:
    """Where the chunks of a run are kept."""
    return folder.path / "chunks"


def done(folder: RunFolder, chunk: Chunk) -> bool:
    """Has the chunk been finished, in this run or an earlier one?"""
    return (place(folder) / f"{chunk.name}.nc").exists()


def execute(
    sweeps: Sequence[Sweep], folder: RunFolder, executor: Executor, watch: Watch | None = None
) -> None:
    """Run every chunk of the sweeps that has no record in the folder yet.

    `watch(running, finished)` is called now and then: see `Watch`.
    """
    make_folder(place(folder), exist_ok=True)
    every = [chunk for sweep in sweeps for chunk in chunks(sweep)]
    if len({chunk.name for chunk in every}) < len(every):
        raise ValueError("two sweeps of one run have the same name.")
    todo = [chunk for chunk in every if not done(folder, chunk)]
    shared = {"folder": str(place(folder).resolve()), "versions": deciding_versions()}
    tasks = [json.dumps(chunk.task() | shared) for chunk in todo]
    finished = [place(folder) / f"{chunk.name}.npz" for chunk in every if done(folder, chunk)]
    for stale in (*finished, *place(folder).glob("*.ticks")):  # the lock says that they are stale
        stale.unlink(missing_ok=True)
    if not tasks:
        return
    for finished in executor.run(tasks):
        if watch:
            watch({path.stem: _ticks(path) for path in place(folder).glob("[!.]*.ticks")}, finished)


def _ticks(path: Path) -> int:
    try:
        return int(content(path, 100))
    except (OSError, ValueError):
        return 0


def kept(folder: RunFolder, chunk: Chunk) -> xr.Dataset:
    """The record of a finished chunk; a file that is not its own is a ValueError."""
    path = place(folder) / f"{chunk.name}.nc"
    with understood(f"{path} is not of this run", "; remove it and go on with --resume"):
        record = Record.load(path)
        versions = plain_json(record.attrs["versions"])
        task = plain_json(json.dumps(chunk.task()))
        seeds = range(chunk.seed, chunk.seed + chunk.seeds)
        holds_and_should = {
            "cells": (record["cell"].values.tolist(), chunk.cells),
            "seeds": (record["seed"].values.tolist(), list(seeds)),
            "ticks": ({*record["ticks"].values[..., -1].flat}, {chunk.ticks}),
            "versions": (changed(versions, deciding_versions()), []),
            "settings": (plain_json(record.attrs.get("task", "null")), task),
        }
        if other := [name for name, (one, two) in holds_and_should.items() if one != two]:
            raise ValueError(f"it has other {other[0]}")
    return record.dataset


def collect(sweep: Sweep, folder: RunFolder) -> xr.Dataset:
    """All chunks of a finished sweep as one dataset.

    Its dimensions are cell, seed and record; the settings of each cell are coordinates.
    """
    parts: dict[int, list[Any]] = {}
    times = {"seconds": 0.0, "metric_seconds": 0.0}
    engines = set()
    for chunk in chunks(sweep):
        dataset = kept(folder, chunk)
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
    about = {"sweep": json.dumps(sweep._asdict()), "engine": ", ".join(sorted(engines))}
    whole.attrs = about | times
    return whole
