"""What a worker does: train one chunk, from its checkpoint if there is one, and save its record."""

import contextlib
import importlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import exact_lanes
from ..files import replacing
from ..lanes import Grid
from ..record import Record, changed, deciding_versions
from ..training import train

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
EVERY = 0.25  # seconds between notes of progress


def function(name: str) -> Callable[..., Any]:
    """The function that "module:function" names; functions are never sent between processes."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} does not name a function; write it as package.module:function.")
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def note(path: Path) -> Callable[[int, int, dict[str, float]], None]:
    """A `progress` for train that writes the ticks done to a small file, for `execute` to read."""
    last = 0.0

    def progress(done: int, total: int, latest: dict[str, float]) -> None:
        nonlocal last
        if time.monotonic() - last > EVERY:
            last = time.monotonic()
            with replacing(path, lasting=False) as part:
                part.write_text(str(done))

    return progress


def work(task: str) -> str:
    """Run the chunk that `task` describes (JSON: `Chunk.task()` and its folder); returns its name.

    The record appears whole or not at all; a chunk that has one is left alone.
    """
    exact_lanes()  # here, because Dask's workers start here
    chunk = json.loads(task)
    sweep, folder, name = chunk["sweep"], Path(chunk["folder"]), chunk["name"]
    target, kept, ticks = folder / f"{name}.nc", folder / f"{name}.npz", folder / f"{name}.ticks"
    if differ := changed(chunk["versions"], deciding_versions()):
        raise ValueError(f"a worker needs {', '.join(differ)}, as the run has it")
    if not target.exists():
        settings = [{k: v for k, v in cell.items() if k != "ticks"} for cell in chunk["chosen"]]
        build, metrics = function(sweep["build"]), function(sweep["metrics"])
        record = train(
            Grid([build(**cell) for cell in settings], {"cell": chunk["cells"]}),
            ticks=chunk["chosen"][0]["ticks"],
            seeds=chunk["seeds"],
            seed=chunk["seed"],
            metrics=metrics(**settings[0]),
            records=sweep["records"],
            average=sweep["average"],
            engine=sweep["engine"],
            progress=note(ticks),
            checkpoint=kept,
        )
        if record.attrs["interrupted"]:
            raise KeyboardInterrupt
        # The run itself is in the plan of the folder; parameters only where they are wanted.
        params = () if sweep["keep_params"] else ("params", "averaged.params")
        surplus = [v for v in record.dataset if str(v).startswith(("swept.", "data.", *params))]
        own = {k: v for k, v in chunk.items() if k not in ("folder", "versions")}
        record.attrs["task"] = json.dumps(own)  # whose record this is
        Record(record.dataset.drop_vars(surplus)).save(target)
    for path in (kept, ticks):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    return name
