"""make test-kill: commands that are killed at random moments end with the bits of an unbroken run.

KILLS (default 3) signals for each command, SIGKILL, SIGTERM or SIGHUP in turn, at moments that are
uniform over the time an unbroken run takes; SEED (default 0) chooses them. Then what a machine may
lack: disk, memory, file descriptors, a home, the right to write.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr
from sweeping import same_bits

from flexphase import Record

pytestmark = [pytest.mark.kill, pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")]
KILLS, SEED = int(os.environ.get("KILLS", "3")), int(os.environ.get("SEED", "0"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
START = """
import sys
from flexphase.__main__ import main
from flexphase.experiments import figure
if "reproduce" in sys.argv:
    figure("fig3").SIZES["quick"] = {
        "phases": 3000, "seeds": 3, "bs": [0.2, 0.5], "starts": ["carry"], "moments": 8
    }
if "study" in sys.argv:
    figure("processes").SIZES["quick"] = {"phases": 3000, "seeds": 2, "kappas": [5.0]}
main()
"""
TRAIN = ["train", "rbm", "--data", "bas:3", "--seeds", "4", "--records", "30", "--average", "0.5"]
COMMANDS = {
    "train native": [*TRAIN, "--engine", "native", "--phases", "200000"],
    "train jax": [*TRAIN, "--engine", "jax", "--phases", "2000"],
    "reproduce": ["reproduce", "fig3", "--workers", "2"],
    "study": ["study", "processes", "--workers", "2"],
}


def begun(words: list[str], folder: Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", START, *words, "--out", str(folder), "--resume"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def done(words: list[str], folder: Path) -> float:
    """Let the command end; how long it took."""
    began = time.monotonic()
    process = begun(words, folder)
    _, err = process.communicate()
    assert process.returncode == 0, err
    return time.monotonic() - began


def children(process: subprocess.Popen) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def records(folder: Path) -> dict[str, xr.Dataset]:
    """What was computed: the record of train, or those of all chunks."""
    found = [p for p in folder.rglob("*.nc") if p.parent.name == "chunks" or p.name == "record.nc"]
    return {p.name: Record.load(p).dataset for p in found}


def assert_same(folder: Path, calm: Path) -> None:
    one, two = records(folder), records(calm)
    assert one.keys() == two.keys() and one
    for name in one:
        same_bits(one[name], two[name])
    assert not list(folder.rglob(".*.part"))


@pytest.fixture(scope="module", params=COMMANDS)
def calm(request, tmp_path_factory):
    """-> words, folder of an unbroken run, its seconds."""
    folder = tmp_path_factory.mktemp("calm") / "run"
    words = COMMANDS[request.param]
    return words, folder, done(words, folder)


@pytest.mark.parametrize("victim", ["the command", "a worker"])
def test_killed_at_random_moments(calm, victim, tmp_path):
    """After each signal the run goes on; a finished one begins again in a new folder."""
    words, unbroken, seconds = calm
    if victim == "a worker" and words[0] == "train":
        pytest.skip("train has no workers")
    rng, sent, folders, ends = random.Random(SEED), 0, [tmp_path / "0"], []
    while sent < KILLS:
        process = begun(words, folders[-1])
        time.sleep(rng.uniform(0, seconds))
        number = SIGNALS[sent % len(SIGNALS)]
        workers = children(process) if victim == "a worker" else [process.pid]
        if process.poll() is None and workers:
            os.kill(rng.choice(workers), signal.SIGKILL if victim == "a worker" else number)
            sent += 1
        if victim == "a worker":
            process.communicate()
            assert process.returncode == 0
        else:
            _, err = process.communicate(timeout=120)
            assert process.returncode in (0, 130, -number) and "Traceback" not in err, err
        ends.append(process.returncode)
        if process.returncode == 0:
            folders.append(tmp_path / str(len(folders)))
    done(words, folders[-1])
    for folder in folders:
        assert_same(folder, unbroken)
    print(f"{words[0]} {words[-3:]}, {victim}: {sent} signals, seed {SEED}, ends {ends}")


def test_dask_worker_and_scheduler_killed(tmp_path):
    """The scheduler's death ends the command with one line; --resume goes on with another."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    words = COMMANDS["reproduce"][:2]
    done([*words, "--workers", "2"], tmp_path / "calm")
    rng = random.Random(SEED)
    for i in range(max(KILLS // 3, 1)):
        with cluster() as (address, parts):
            process = begun([*words, "--dask", address], tmp_path / "run")
            time.sleep(rng.uniform(5, 30))
            parts[i % len(parts)].kill()
            _, err = process.communicate(timeout=600)
            assert process.returncode in (0, 2) and "Traceback" not in err, err
    done([*words, "--workers", "2"], tmp_path / "run")
    assert_same(tmp_path / "run", tmp_path / "calm")


class cluster:
    """A Dask scheduler and two workers as processes of their own."""

    def __enter__(self):
        dask = [sys.executable, "-m", "distributed.cli"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        words = [*dask[:2], f"{dask[2]}.dask_scheduler", "--port", "0", "--no-dashboard"]
        scheduler = subprocess.Popen(words, **quiet)
        lines = iter(scheduler.stderr.readline, "")
        address = next(line.split()[-1] for line in lines if "Scheduler at" in line)
        words = [*dask[:2], f"{dask[2]}.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
        quiet["stderr"] = subprocess.DEVNULL
        workers = [subprocess.Popen(words, **quiet) for _ in range(2)]
        self.parts = [*workers[:1], scheduler, *workers[1:]]
        return address, self.parts

    def __exit__(self, *_):
        for part in self.parts:
            part.kill()
            part.wait()
            if part.stderr:
                part.stderr.close()


# What a machine may lack


def limited(**limits: int):
    """A `preexec_fn` would warn in a process with threads: prlimit after the start."""

    def start(words, folder):
        process = begun(words, folder)
        for name, value in limits.items():
            resource.prlimit(process.pid, getattr(resource, name), (value, value))
        _, err = process.communicate(timeout=300)
        return process.returncode, err

    return start


@pytest.mark.parametrize(
    "limits",
    [{"RLIMIT_AS": 2**30}, {"RLIMIT_AS": 2**28}, {"RLIMIT_NOFILE": 12}, {"RLIMIT_FSIZE": 3000}],
    ids=str,
)
def test_small_limits_are_one_line_and_lose_nothing(limits, tmp_path):
    words = [*TRAIN, "--engine", "jax", "--phases", "200"]
    done(words, tmp_path / "calm")
    code, err = limited(**limits)(words, tmp_path / "run")
    assert code in (0, 2) and "Traceback" not in err, (code, err)
    done(words, tmp_path / "run")
    assert_same(tmp_path / "run", tmp_path / "calm")


def test_no_home_and_no_cache(tmp_path):
    words = [*TRAIN, "--engine", "jax", "--phases", "200"]
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "USER")}
    process = begun(words, tmp_path / "run", env=env | {"HOME": "/nonexistent"})
    _, err = process.communicate()
    assert process.returncode == 0 and "Traceback" not in err, err


@pytest.fixture
def disk(tmp_path):
    """A real disk of 200 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("remount", ["size=8k", "ro"])
def test_a_disk_that_is_full_or_read_only(remount, disk, tmp_path):
    words = [*TRAIN, "--engine", "jax", "--phases", "200"]
    done(words, tmp_path / "calm")
    subprocess.run(["mount", "-o", f"remount,{remount}", str(disk)], check=True)
    process = begun(words, disk / "run")
    _, err = process.communicate()
    assert process.returncode == 2 and err.count("\n") == 1, err
    subprocess.run(["mount", "-o", "remount,rw,size=20m", str(disk)], check=True)
    done(words, disk / "run")
    assert_same(disk / "run", tmp_path / "calm")
