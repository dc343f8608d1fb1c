"""All figures of a command: train on an executor, then draw them, write data and one page."""

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import xarray as xr

from ..files import content, plain_json
from ..progress import say
from ..record import versions
from ..report.display import Display
from ..report.files import DARK, LIGHT, drawn, picture, pictures, recorded
from ..report.findings import VERDICTS
from ..report.machine import PLAIN, clock, hardware, per_call
from ..report.page import Entry, page
from ..sweep import RunFolder, Sweep, collect, execute
from ..sweep.cells import chunks
from ..sweep.executors import Executor
from ..sweep.run import done
from . import figure, figures_in

TIMES = "elapsed.json"


def sweeps_of(word: str, size: str) -> dict[str, dict[str, Sweep]]:
    """The sweeps of each figure that the word stands for, at size "quick" or "full"."""
    return {name: figure(name).sweeps(figure(name).SIZES[size]) for name in figures_in(word)}


def configuration(word: str, size: str) -> dict[str, Any]:
    """What a run folder is bound to: all settings and sweeps, as JSON can hold them."""
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
    """Train what is missing in the run folder `out`, and write its report.

    `word` names the figures, `size` is "quick" or "full", `command` is printed on the page as the
    way to run it again. Returns the path of the page.
    """
    own = sweeps_of(word, size)
    with RunFolder(out, configuration(word, size), resume) as folder:
        elapsed = elapsed_before(folder)
        for fetch in {figure(name).DATA for name in own} - {None}:
            fetch(say)
        train(own, folder, executor, elapsed)
        entries = []
        for name, sweeps in own.items():
            data = {key: collect(sweep, folder) for key, sweep in sweeps.items()}
            entries.append(entry(name, size, data, folder, elapsed))
        folder.write(TIMES, json.dumps(elapsed))
        html = page(f"flexphase: {word}, {size}", command, facts(own, elapsed), entries)
        return folder.write("report.html", html)


def train(
    own: dict[str, dict[str, Sweep]],
    folder: RunFolder,
    executor: Executor,
    elapsed: dict[str, float],
) -> None:
    """Run the sweeps of all figures; the seconds each took are added to `elapsed`."""
    figures = {sweep.name: name for name, sweeps in own.items() for sweep in sweeps.values()}
    sweeps = [sweep for own_sweeps in own.values() for sweep in own_sweeps.values()]
    every = [chunk for sweep in sweeps for chunk in chunks(sweep)]
    finished = [chunk.name for chunk in every if done(folder, chunk)]
    with Display(figures, every, finished, elapsed) as display:

        def watch(running: dict[str, int], finished: str | None) -> None:
            display.watch(running, finished)
            if finished:
                folder.write(TIMES, json.dumps(elapsed))

        execute(sweeps, folder, executor, watch)


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
    found = [claim.verdict for claim in findings.claims]
    say(f"{name}: {', '.join(f'{verdict} {found.count(verdict)}' for verdict in VERDICTS)}")
    return Entry(
        name,
        module.TITLE,
        findings,
        light=picture(findings, "svg", LIGHT),
        dark=picture(findings, "svg", DARK),
        settings=dict(module.SIZES[size]) | {f"seeds of {d}": _range(ds) for d, ds in data.items()},
        files=paths,
        times=times(module, data, elapsed[name]),
    )


def _range(dataset: xr.Dataset) -> str:
    return f"{int(dataset.seed[0])} to {int(dataset.seed[-1])}"


def times(module: ModuleType, data: dict[str, xr.Dataset], elapsed: float) -> dict[str, str]:
    """What the figure took, and what a plain NumPy loop would have taken for as many ticks."""
    if not data:
        return {"time": clock(elapsed)}
    ticks = sum(int(d["ticks"].isel(record=-1).sum()) for d in data.values())
    training, metrics = (
        clock(sum(d.attrs[key] for d in data.values())) for key in ("seconds", "metric_seconds")
    )
    known = {
        "time": f"{clock(elapsed)} on the clock",
        "worker time": f"{training} training, {metrics} metrics",
        "engine": ", ".join(sorted({str(d.attrs["engine"]) for d in data.values()})),
        "ticks of all lanes": f"{ticks:.3g}",
    }
    if module.PLAIN is None:
        return known
    kind, *shape = module.PLAIN
    cost = per_call(PLAIN[kind](*shape))
    measured = (
        f"{1e6 * cost:.3g} us per tick, measured here on a plain NumPy loop, a lane at a time"
    )
    return known | {"the authors' way": f"{clock(ticks * cost)}: {measured}"}


def facts(own: dict[str, Any], elapsed: dict[str, float]) -> dict[str, str]:
    """What the page says of the whole run."""
    known = {
        "time for everything": clock(sum(elapsed.get(name, 0.0) for name in own)),
        "time per figure": ", ".join(f"{name} {clock(elapsed.get(name, 0.0))}" for name in own),
        "machine": hardware(),
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items()),
    }
    if {"fig2_bas", "fig3"} <= own.keys():
        bars = elapsed.get("fig2_bas", 0.0) + elapsed.get("fig3", 0.0)
        known["time for Fig. 2 B/D and Fig. 3"] = clock(bars)
    return known


def elapsed_before(folder: RunFolder) -> dict[str, float]:
    """Seconds on the clock of earlier attempts at this run."""
    try:
        kept = plain_json(content(folder.path / TIMES, 2**20))
        return {str(k): s for k, v in kept.items() if 0 <= (s := float(v)) < 1e12}
    except (FileNotFoundError, ValueError, AttributeError, TypeError, RuntimeError, OverflowError):
        return {}
