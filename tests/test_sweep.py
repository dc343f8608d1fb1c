"""Sweeps: the plan of chunks, the run folder, the line search, the same bits on every executor."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from sweeping import BUILD, METRICS, Here, same_bits, small

from flexphase import EXACT
from flexphase.api import Grid, train
from flexphase.experiments import bas
from flexphase.machine import cores
from flexphase.record import Record, deciding_versions
from flexphase.report.machine import hardware
from flexphase.sweep import (
    Local,
    RunFolder,
    Sweep,
    best,
    cells,
    collect,
    execute,
    executors,
    learning_rates,
    matching,
)
from flexphase.sweep.cells import chunks
from flexphase.sweep.executors import ChunkError
from flexphase.sweep.work import function, work


def test_cells_are_every_combination():
    made = cells(rule=["isd", "aol"], b=np.array([0.2, 0.5]), T=100)
    assert made == [{"rule": r, "b": b, "T": 100} for r in ("isd", "aol") for b in (0.2, 0.5)]
    assert all(type(cell["b"]) is float for cell in made)  # plain numbers, for JSON
    with pytest.raises(ValueError, match="'b' of the sweep is empty"):
        cells(b=[])


axes = st.dictionaries(
    st.sampled_from(["name", "length", "eta", "b"]),
    st.one_of(
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        st.lists(st.floats(0.1, 0.9), min_size=1, max_size=7),
    ),
)


@given(axes, st.integers(1, 60), st.integers(1, 50))
def test_chunks_hold_every_lane_once_and_mix_real_numbers_only(axes, seeds, lanes):
    grid = cells(**axes, ticks=100)
    assert len(grid) == np.prod([len(axis) for axis in axes.values()], initial=1)
    plan = chunks(Sweep("s", BUILD, METRICS, grid, seeds, seed=3, lanes=lanes))
    held = [
        (cell, seed) for c in plan for cell in c.cells for seed in range(c.seed, c.seed + c.seeds)
    ]
    assert sorted(held) == [
        (cell, seed) for cell in range(len(grid)) for seed in range(3, 3 + seeds)
    ]
    assert len({c.name for c in plan}) == len(plan)
    for c in plan:
        assert len(c.cells) * c.seeds <= lanes
        assert len({repr([v for v in grid[i].values() if type(v) is int]) for i in c.cells}) == 1
        assert json.loads(json.dumps(c.task()))["chosen"] == [grid[i] for i in c.cells]


def test_learning_rates_are_equal_steps_on_a_log_scale():
    rates = np.array(learning_rates(0.001, 0.04))
    assert len(rates) == 10
    np.testing.assert_allclose([rates[0], rates[-1]], [0.001, 0.04])
    np.testing.assert_allclose(np.diff(np.log10(rates)), np.log10(40) / 9)  # closed form
    with pytest.raises(ValueError, match="0 < low"):
        learning_rates(0, 1)


def test_best_takes_the_lowest_final_mean_and_no_diverged_cell():
    nll = np.array(
        [[[9, 5.0], [9, 5.2]], [[9, 4.0], [1, np.nan]], [[9, 4.5], [1, 5.1]], [[0, 6], [0, np.inf]]]
    )
    data = xr.Dataset(
        {"nll": (("cell", "seed", "record"), nll)}, coords={"eta": ("cell", [0.1, 0.2, 0.3, 0.4])}
    )
    assert float(best(data, "nll").eta) == 0.3  # (4.5 + 5.1) / 2 = 4.8 < 5.1; the second has a NaN
    with pytest.raises(ValueError, match="search lower"):
        best(data.isel(cell=[1, 3]), "nll")
    with pytest.raises(ValueError, match="no cell"):
        matching(data, eta=0.7)


def test_functions_are_named_and_nothing_else():
    assert function(BUILD) is bas.build
    for text in ("os.system('x')", "flexphase", "a:b:c", "../x:y", ""):
        with pytest.raises(ValueError, match="does not name a function"):
            function(text)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The small sweep on one process."""
    sweep = small()
    with RunFolder(tmp_path_factory.mktemp("one") / "run", {}) as folder:
        seen = []
        execute([sweep], folder, Local(1), lambda running, finished: seen.append(finished))
        assert sorted(filter(None, seen)) == [c.name for c in chunks(sweep)]
        assert sorted(p.name for p in (folder.path / "chunks").iterdir()) == [
            f"{c.name}.nc" for c in chunks(sweep)
        ]
        execute([sweep], folder, Forbidden())  # nothing is left to do
        return collect(sweep, folder)


class Forbidden(Local):
    def run(self, tasks):
        raise AssertionError("a finished chunk was computed again")


def test_a_sweep_is_what_train_gives_for_each_cell(reference):
    sweep = small()
    for i in (1, 5):
        cell = {k: v for k, v in sweep.cells[i].items() if k != "ticks"}
        alone = train(
            Grid([bas.build(**cell)], {}),
            ticks=300,
            seeds=2,
            records=6,
            metrics=bas.metrics(),
            engine="jax",
        )
        for name in ("ticks", "phases", "updates", "params.W", "params.c"):
            np.testing.assert_array_equal(reference[name].values[i], alone[name].values)
        # sums of the NLL depend on the width of the batch
        np.testing.assert_allclose(reference["nll"].values[i], alone["nll"].values, rtol=2e-6)
        assert float(reference.eta[i]) == cell["eta"]


@pytest.mark.codegen
def test_two_processes_give_the_same_bits(reference, tmp_path):
    with RunFolder(tmp_path / "run", {}) as folder:
        execute([small()], folder, Local(2))
        same_bits(collect(small(), folder), reference)


@pytest.mark.slow
def test_the_compiled_engine_gives_the_same_bits_whatever_the_processes_and_threads(tmp_path):
    """One process has all cores as threads, two have a share each."""
    sweep, found = small(ticks=20_000, engine="auto", lanes=10), []
    for workers in (1, 2):
        with RunFolder(tmp_path / str(workers), {}) as folder:
            execute([sweep], folder, Local(workers))
            found.append(collect(sweep, folder))
    same_bits(*found)


def test_a_worker_that_dies_idle_is_not_missed(monkeypatch):
    """Two workers with a task each: the first to answer is killed while the other still works."""
    code = """
import sys, time
for line in sys.stdin:
    time.sleep(float(line))
    print('{"done": "%s"}' % line.strip(), flush=True)
"""

    def start(threads):
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe)

    executor = Local(2)
    monkeypatch.setattr(executor, "_start", start)
    done = []
    for answer in executor.run(["0", "1.5"]):
        if answer == "0":
            idle = executor.processes[0]
            idle.kill()
            idle.wait()
        done.append(answer)
    assert [answer for answer in done if answer] == ["0", "1.5"]


def test_cores_where_the_system_does_not_say_which_may_be_used(monkeypatch):
    """As on macOS: all cores of the machine, and one if their number is unknown."""
    assert 1 <= cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert cores() == 12 and Local().most == 12 and ", 12 cores" in hardware()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1 and Local().most == 1


def test_workers_import_from_where_their_parent_does(tmp_path, monkeypatch):
    """A module that the parent can import is found; a file of the current folder that happens to
    have the name of one is not run.
    """
    (tmp_path / "json.py").write_text("open('taken', 'w').close()")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_own.py").write_text("from flexphase.experiments.bas import build")
    monkeypatch.syspath_prepend(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    sweep = small(ticks=20)._replace(build="my_own:build")
    with RunFolder("run", {}) as folder:
        execute([sweep._replace(cells=sweep.cells[:1])], folder, Local(1))
        assert (folder.path / "chunks" / "small-000.nc").exists()
    assert not (tmp_path / "taken").exists()


def one_task(folder, **changes):
    chunk = chunks(small(ticks=20)._replace(**changes))[0]
    return json.dumps(chunk.task() | {"folder": str(folder), "versions": deciding_versions()})


STARTED = """
import os, sys
from flexphase.sweep.work import work
work(sys.argv[1])
print(os.environ["XLA_FLAGS"])
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="asks for AVX")
def test_a_worker_that_others_start_has_exact_lanes_too(tmp_path):
    """As Dask starts one: all that it calls is `work`."""
    bare = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    words = [sys.executable, "-c", STARTED, one_task(tmp_path)]
    done = subprocess.run(words, env=bare, capture_output=True, text=True)
    assert EXACT in done.stdout.split(), done.stderr


@pytest.mark.parametrize("module", ["flexphase.training", "flexphase.record"])
def test_a_worker_that_cannot_import_answers_with_a_sentence(module, tmp_path, monkeypatch, capfd):
    """Its own libraries, or those of the sweep before it listens."""
    without = f"import sys; sys.modules[{module!r}] = None\n"
    monkeypatch.setattr(executors, "WORKER", without + executors.WORKER)
    with pytest.raises(ChunkError, match=f"import of {module} halted"):
        list(Local(1).run([one_task(tmp_path)]))
    assert capfd.readouterr().err == ""


STOPS = """
import signal

def build(**cell):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    signal.raise_signal(signal.SIGINT)
"""


def test_a_worker_that_is_interrupted_ends_without_a_word(tmp_path, monkeypatch, capfd):
    (tmp_path / "stops.py").write_text(STOPS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(executors, "CRASHES", 1)
    with pytest.raises(ChunkError, match="a worker died 1 times at small-000"):
        list(Local(1).run([one_task(tmp_path, build="stops:build")]))
    assert capfd.readouterr().err == ""


def test_an_error_in_a_chunk_is_one_sentence(tmp_path):
    bad = Sweep(
        "bad", BUILD, METRICS, cells(name="isd", length=5, eta=0.1, b=1.5, ticks=10), seeds=1
    )
    with (
        RunFolder(tmp_path / "run", {}) as folder,
        pytest.raises(ChunkError, match="must lie strictly between 0 and 1"),
    ):
        execute([bad], folder, Local(1))


@pytest.fixture
def finished(tmp_path):
    """The folder of a small sweep that has been run, and the file of its first chunk."""
    with RunFolder(tmp_path / "run", {}) as folder:
        execute([small(ticks=20)], folder, Here())
        yield folder, tmp_path / "run" / "chunks" / "small-000.nc"


def changed(path, **attrs):
    record = Record.load(path)
    record.attrs.update(attrs)
    record.save(path)


@pytest.mark.parametrize("other", ["chunk", "sweep", "run", "version", "length", "damaged"])
def test_a_chunk_that_is_not_of_this_run_is_refused(other, finished, tmp_path):
    folder, first = finished
    sweep, says = small(ticks=20), "other"
    if other == "chunk":
        shutil.copy(first.with_stem("small-001"), first)
    elif other == "sweep":
        changed(first, task=json.dumps({"name": "large-000"}))
    elif other == "run":
        record = train(
            bas.build(name="isd", length=5, eta=0.1), ticks=20, metrics=bas.metrics(), engine="jax"
        )
        record.save(first)
        says = "cell"
    elif other == "version":
        versions = json.loads(Record.load(first).attrs["versions"])
        changed(first, versions=json.dumps(versions | {"jax": "0.0.1"}))
    elif other == "length":
        sweep = small(ticks=30)
    else:
        first.write_bytes(first.read_bytes()[:1000])
        says = "not a record"
    words = rf"small-000\.nc is not of this run .*{says}.*remove it and go on with --resume\.$"
    with pytest.raises(ValueError, match=words) as refused:
        collect(sweep, folder)
    assert "\n" not in str(refused.value)


def test_a_chunk_that_does_not_say_whose_it_is_is_refused(finished):
    folder, first = finished
    record = Record.load(first)
    del record.attrs["task"]
    record.save(first)
    with pytest.raises(ValueError, match="other settings"):
        collect(small(ticks=20), folder)


def test_a_worker_of_another_version_is_refused_before_it_works(tmp_path):
    chunk = chunks(small())[0]
    task = chunk.task() | {"folder": str(tmp_path), "versions": {"flexphase": "0.0.1"}}
    with pytest.raises(ValueError, match=r"a worker needs flexphase 0\.0\.1"):
        work(json.dumps(task))
    assert not list(tmp_path.iterdir())


# The run folder


def listing(path):
    return {p.relative_to(path): (p.stat().st_mtime_ns, p.stat().st_size) for p in path.rglob("*")}


def test_a_second_process_is_refused(tmp_path):
    with RunFolder(tmp_path / "run", {"a": 1}):
        before = listing(tmp_path)
        with (
            pytest.raises(ValueError, match="another process is working"),
            RunFolder(tmp_path / "run", {"a": 1}, resume=True),
        ):
            pass
        assert listing(tmp_path) == before
    with RunFolder(tmp_path / "run", {"a": 1}, resume=True):
        pass  # the lock went with its holder


def test_another_configuration_version_or_folder_is_refused_untouched(tmp_path):
    run = tmp_path / "run"
    with RunFolder(run, {"a": 1}):
        pass
    before = listing(tmp_path)
    for config, resume, words in [
        ({"a": 2}, True, "another configuration"),
        ({"a": 1}, False, "already holds a run"),
    ]:
        with pytest.raises(ValueError, match=words), RunFolder(run, config, resume):
            pass
        assert listing(tmp_path) == before
    plan = json.loads((run / "run.json").read_text())
    plan["versions"]["flexphase"] = "0.0.1"
    (run / "run.json").write_text(json.dumps(plan))
    with (
        pytest.raises(ValueError, match=re.escape("another version: flexphase 0.0.1")),
        RunFolder(run, {"a": 1}, True),
    ):
        pass
    for damage in ("{", "[]", '{"digest": 1}'):
        (run / "run.json").write_text(damage)
        with pytest.raises(ValueError, match="damaged"), RunFolder(run, {"a": 1}, True):
            pass


def test_folders_that_are_not_ours(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, words in [
        ("mine", "not a run folder"),
        ("file", "is a file"),
        ("file/run", "cannot write"),
        ("/proc/run", "cannot write"),
    ]:
        with pytest.raises(ValueError, match=words), RunFolder(tmp_path / name, {}, resume=True):
            pass
    (tmp_path / "empty").mkdir()
    with RunFolder(tmp_path / "empty", {}):
        pass  # an empty folder is free
