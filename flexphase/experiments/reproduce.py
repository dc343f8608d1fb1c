"""Every figure that was asked for: sweeps on an executor, then pictures, data, claims and one page."""

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import xarray as xr

from ..record import versions
from ..report.display import Display, say
from ..report.files import DARK, LIGHT, drawn, picture, pictures, recorded
from ..report.findings import VERDICTS
from ..report.machine import PLAIN, clock, hardware, per_call
from ..report.page import Entry, page
from ..sweep import RunFolder, Sweep, collect, execute
from ..sweep.cells import Chunk, chunks
from ..sweep.executors import Executor
from ..sweep.folder import stack
from ..sweep.run import done
from . import figure, figures_in

TIMES = "elapsed.json"


def sweeps_of(word: str, size: str) -> dict[str, dict[str, Sweep]]:
    """The sweeps of each figure."""
    return {name: figure(name).sweeps(figure(name).SIZES[size]) for name in figures_in(word)}


def configuration(word: str, size: str) -> dict[str, Any]:
    """What a run folder is bound to."""
    sweeps = {
        name: {key: sweep._asdict() for key, sweep in own.items()}
        for name, own in sweeps_of(word, size).items()
    }
    return {
        "figures": word,
        "size": size,
        "settings": {name: figure(name).SIZES[size] for name in sweeps},
        "sweeps": sweeps,
    }


def reproduce(
    word: str, size: str, out: Path, resume: bool, executor: Executor, command: str
) -> Path:
    """The page."""
    own = sweeps_of(word, size)
    with RunFolder(out, configuration(word, size), resume) as folder:
        began, elapsed = time.monotonic(), _elapsed(folder)
        for fetch in {figure(name).DATA for name in own} - {None}:
            fetch(say)
        train(own, folder, executor, elapsed)
        entries = [
            entry(
                name,
                size,
                {key: collect(sweep, folder) for key, sweep in own[name].items()},
                folder,
                elapsed,
            )
            for name in own
        ]
        elapsed["all"] = elapsed.get("all", 0.0) + time.monotonic() - began
        folder.write(TIMES, json.dumps(elapsed))
        return folder.write(
            "report.html", page(f"flexphase: {word}, {size}", command, facts(own, elapsed), entries)
        )


def train(
    own: dict[str, dict[str, Sweep]],
    folder: RunFolder,
    executor: Executor,
    elapsed: dict[str, float],
) -> None:
    figures = {sweep.name: name for name, sweeps in own.items() for sweep in sweeps.values()}
    every: list[Chunk] = [
        chunk for sweeps in own.values() for sweep in sweeps.values() for chunk in chunks(sweep)
    ]
    with Display(figures, every, [c.name for c in every if done(folder, c)], elapsed) as display:

        def watch(running: dict[str, int], finished: str | None) -> None:
            display.watch(running, finished)
            if finished:
                folder.write(TIMES, json.dumps(elapsed))

        execute(
            [sweep for sweeps in own.values() for sweep in sweeps.values()], folder, executor, watch
        )


def entry(
    name: str, size: str, data: dict[str, xr.Dataset], folder: RunFolder, elapsed: dict[str, float]
) -> Entry:
    """Draw a figure, write its files, and weigh its claims."""
    module, began = figure(name), time.monotonic()
    findings = module.show(module.SIZES[size], data)
    paths = {
        "CSV": drawn(name, findings, folder),
        "netCDF": recorded(name, findings, data, folder),
        **pictures(name, findings, folder),
    }
    elapsed[name] = elapsed.get(name, 0.0) + time.monotonic() - began
    settings = dict(module.SIZES[size]) | {f"seeds of {d}": _range(ds) for d, ds in data.items()}
    say(
        f"{name}: "
        + ", ".join(f"{v} {sum(c.verdict == v for c in findings.claims)}" for v in VERDICTS)
    )
    light, dark = (picture(findings, "svg", style) for style in (LIGHT, DARK))
    return Entry(
        name,
        module.TITLE,
        findings,
        light,
        dark,
        settings,
        paths,
        times(module, data, elapsed[name]),
    )


def _range(dataset: xr.Dataset) -> str:
    return f"{int(dataset.seed[0])} to {int(dataset.seed[-1])}"


def times(module: ModuleType, data: dict[str, xr.Dataset], elapsed: float) -> dict[str, str]:
    """What the figure took, and what a plain NumPy loop would have taken for the same ticks."""
    if not data:
        return {"time": clock(elapsed)}
    ticks = sum(int(d["ticks"].isel(record=-1).sum()) for d in data.values())
    parts, (kind, *shape) = {"seconds": "training", "metric_seconds": "metrics"}, module.PLAIN
    cost = per_call(PLAIN[kind](*shape))
    return {
        "time": f"{clock(elapsed)} on the clock",
        "worker time": ", ".join(
            f"{clock(sum(d.attrs[key] for d in data.values()))} {what}"
            for key, what in parts.items()
        ),
        "engine": ", ".join(sorted({str(d.attrs["engine"]) for d in data.values()})),
        "ticks of all lanes": f"{ticks:.3g}",
        "the authors' way": f"{clock(ticks * cost)}: {1e6 * cost:.3g} us per tick, measured here "
        "on a plain NumPy loop, a lane at a time",
    }


def facts(own: dict[str, Any], elapsed: dict[str, float]) -> dict[str, str]:
    bars = [elapsed.get(name, 0.0) for name in ("fig2_bas", "fig3") if name in own]
    known = {
        "time for everything": clock(elapsed["all"]),
        "time per figure": ", ".join(f"{name} {clock(elapsed.get(name, 0.0))}" for name in own),
        "machine": hardware(),
        "versions": ", ".join(f"{k} {v}" for k, v in (stack() | versions()).items()),
    }
    return known | ({"time for Fig. 2 B/D and Fig. 3": clock(sum(bars))} if len(bars) == 2 else {})


def _elapsed(folder: RunFolder) -> dict[str, float]:
    """Seconds on the clock of earlier attempts at this run."""
    try:
        return {str(k): float(v) for k, v in json.loads((folder.path / TIMES).read_text()).items()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}
