"""make test-kill: commands that are killed at random moments end with the bits of an unbroken run.

KILLS (default 3) signals, SIGKILL, SIGTERM or SIGHUP in turn, for each command, for its workers,
for the workers of Dask and for its scheduler; SEED (default 0) chooses the moments. Three of four
come to a command while it works in its folder, the fourth while it starts. Then what a machine may
lack: disk, memory, file descriptors, a home, the right to write.
"""

import collections
import contextlib
import functools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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


def at_work(process: subprocess.Popen) -> bool:
    """Is everything imported, and the folder locked?"""
    with contextlib.suppress(OSError):
        files = Path(f"/proc/{process.pid}/fd").iterdir()
        return any(os.readlink(file).endswith("/.lock") for file in files)
    return False


def wait_for_work(process: subprocess.Popen) -> float:
    """Until it is at work or has ended; how long that took."""
    began = time.monotonic()
    while process.poll() is None and not at_work(process):
        time.sleep(0.02)
    return time.monotonic() - began


def done(words: list[str], folder: Path) -> tuple[float, float]:
    """Let the command end; the seconds in which it started, and those in which it worked."""
    process = begun(words, folder)
    start, began = wait_for_work(process), time.monotonic()
    _, err = process.communicate()
    assert process.returncode == 0, err
    return start, time.monotonic() - began


def children(process: subprocess.Popen) -> list[int]:
    """Of all its threads, less Python's own resource tracker."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            found += (task / "children").read_text().split()
    return [int(pid) for pid in found if b"resource_tracker" not in command_line(pid)]


def command_line(pid: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def records(folder: Path) -> dict[str, xr.Dataset]:
    """What was computed: the record of train, or those of all chunks."""
    found = [p for p in folder.rglob("*.nc") if p.parent.name == "chunks" or p.name == "record.nc"]
    return {p.name: Record.load(p).dataset for p in found}


def assert_same(folder: Path, calm: Path) -> None:
    one, two = records(folder), records(calm)
    assert one.keys() == two.keys() and one
    for name in one:
        same_bits(one[name], two[name])
    assert not [*folder.rglob(".*.part"), *folder.glob("chunks/*.npz"), *folder.rglob("*.ticks")]


class Campaign:
    """Runs of one command until KILLS signals were sent.

    After each end the run goes on; a finished one begins again in a new folder.
    """

    def __init__(self, words: list[str], path: Path):
        self.words, self.path = words, path
        self.rng, self.sent, self.ends = random.Random(SEED), 0, []
        self.folders = [path / "0"]

    def begun(self, *more: str) -> subprocess.Popen:
        return begun([*self.words, *more], self.folders[-1])

    def kill(self, pids: list[int]) -> int:
        """Send the next signal to one of them, if there are any; returns its number."""
        number = SIGNALS[self.sent % len(SIGNALS)]
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), number)
                self.sent += 1
        return number

    def harass(self, process: subprocess.Popen, victims: Any, pause: float) -> None:
        """Kill one of `victims()` again and again while the command works."""
        wait_for_work(process)
        while process.poll() is None and self.sent < KILLS:
            time.sleep(self.rng.uniform(0, pause))
            if process.poll() is None:
                self.kill(victims())

    def end(self, process: subprocess.Popen, codes: tuple[int, ...]) -> None:
        """It must end with one of these exit codes, 2 with one line after those of progress."""
        _, err = process.communicate(timeout=600)
        code = process.returncode
        assert code in codes and "Traceback" not in err, (code, err)
        said = [line.startswith("flexphase: ") for line in err.splitlines()]
        assert code != 2 or (said[-1] and sum(said) == 1), err
        self.ends.append(code)
        if code == 0:
            self.folders.append(self.path / str(len(self.folders)))

    def same_as(self, unbroken: Path, victim: str) -> None:
        """The last run goes to its end; all have the bits of the unbroken one."""
        done(self.words, self.folders[-1])
        for folder in self.folders:
            assert_same(folder, unbroken)
        counts = collections.Counter(self.ends)
        words = " ".join(self.words[:2])
        print(f"{words}, {victim}: {self.sent} signals, seed {SEED}, ends {dict(counts)}")


@pytest.fixture(scope="module", params=COMMANDS)
def calm(request, tmp_path_factory):
    """-> words, folder of an unbroken run, the seconds of its start and of its work.

    A run before it compiles: the later ones do not, and moments are drawn from their time.
    """
    folder = tmp_path_factory.mktemp("calm") / "run"
    words = COMMANDS[request.param]
    done(words, folder.with_name("first"))
    return words, folder, *done(words, folder)


def test_the_command_is_killed(calm, tmp_path):
    words, unbroken, start, work = calm
    runs = Campaign(words, tmp_path)
    while runs.sent < KILLS:
        process = runs.begun()
        if runs.sent % 4:
            wait_for_work(process)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it may end before its moment
            process.wait(runs.rng.uniform(0, work if runs.sent % 4 else start))
        number = runs.kill([process.pid] if process.poll() is None else [])
        runs.end(process, (0, 130, -number))
    runs.same_as(unbroken, "the command")


def test_workers_are_killed(calm, tmp_path):
    """A chunk whose workers die three times ends the command with one line."""
    words, unbroken, _, work = calm
    if words[0] == "train":
        pytest.skip("train has no workers")
    runs = Campaign(words, tmp_path)
    while runs.sent < KILLS:
        process = runs.begun()
        runs.harass(process, functools.partial(children, process), work / 8)
        runs.end(process, (0, 2))
    runs.same_as(unbroken, "a worker")


def test_dask_workers_are_killed(tmp_path):
    """Their nannies start them again; Dask gives a task up whose workers die four times."""
    words = COMMANDS["reproduce"][:2]
    _, work = done(words, tmp_path / "calm")
    runs = Campaign(words, tmp_path)
    with Cluster(workers=2) as cluster:
        while runs.sent < KILLS:
            process = runs.begun("--dask", cluster.address)
            runs.harass(process, cluster.worker_pids, work / 8)
            runs.end(process, (0, 2))
    runs.same_as(tmp_path / "calm", "a Dask worker")


def test_the_dask_scheduler_is_killed(tmp_path):
    """Its death ends the command with one line; --resume goes on with another."""
    words = COMMANDS["reproduce"][:2]
    _, work = done(words, tmp_path / "calm")
    runs = Campaign(words, tmp_path)
    while runs.sent < KILLS:
        with Cluster(workers=1) as cluster:
            process = runs.begun("--dask", cluster.address)
            wait_for_work(process)
            time.sleep(runs.rng.uniform(0, work))
            runs.kill([cluster.scheduler.pid] if process.poll() is None else [])
            runs.end(process, (0, 2))
    runs.same_as(tmp_path / "calm", "the Dask scheduler")


class Cluster:
    """A Dask scheduler and its workers as processes of their own."""

    def __init__(self, workers: int):
        pytest.importorskip("distributed", reason="dask.distributed is not installed")
        words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
        self.scheduler = subprocess.Popen(
            [*words, "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.scheduler.stderr
        lines = iter(self.scheduler.stderr.readline, "")
        self.address = next(line.split()[-1] for line in lines if "Scheduler at" in line)
        self.nannies = [self.nanny() for _ in range(workers)]

    def nanny(self) -> subprocess.Popen:
        words = [sys.executable, "-m", "distributed.cli.dask_worker", self.address]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            [*words, "--nthreads", "1", "--no-dashboard"], stdout=quiet, stderr=quiet
        )

    def worker_pids(self) -> list[int]:
        """A nanny gives up where its worker dies before it is ready: another takes its place."""
        self.nannies = [n if n.poll() is None else self.nanny() for n in self.nannies]
        return [pid for nanny in self.nannies for pid in children(nanny)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        workers = [pid for nanny in self.nannies for pid in children(nanny)]
        for part in (*self.nannies, self.scheduler):
            part.kill()
            part.wait()
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self.scheduler.stderr
        self.scheduler.stderr.close()


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


#: What is too little, and what is just enough: JAX reserves 2 GiB of addresses.
LITTLE = [
    ("RLIMIT_AS", 2**28, 2),
    ("RLIMIT_AS", 2**30, 2),
    ("RLIMIT_AS", 2**31 + 2**26, 0),
    ("RLIMIT_NOFILE", 8, 2),
    ("RLIMIT_FSIZE", 3000, 2),
]


@pytest.mark.parametrize("engine", ["jax", "native"])
@pytest.mark.parametrize(("limit", "value", "ends"), LITTLE)
def test_small_limits_are_one_line_and_lose_nothing(limit, value, ends, engine, tmp_path):
    words = [*TRAIN, "--engine", engine, "--phases", "200"]
    done(words, tmp_path / "calm")
    code, err = limited(**{limit: value})(words, tmp_path / "run")
    assert code == ends and err.count("\n") == 1, (code, err)
    done(words, tmp_path / "run")
    assert_same(tmp_path / "run", tmp_path / "calm")


def test_no_home_and_no_cache(tmp_path):
    words = [*TRAIN, "--engine", "jax", "--phases", "200"]
    done(words, tmp_path / "calm")
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "USER")}
    for name, home in {"none": {}, "nowhere": {"HOME": "/nonexistent"}}.items():
        process = begun(words, tmp_path / name, env=env | home)
        _, err = process.communicate()
        assert process.returncode == 0 and "Traceback" not in err, err
        assert_same(tmp_path / name, tmp_path / "calm")


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


@contextlib.contextmanager
def full(disk: Path):
    """While the block runs, a file of somebody else takes all that is left."""
    filler = disk / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        filler.unlink()


@contextlib.contextmanager
def read_only(disk: Path):
    """While the block runs, its path leads to a mount that is read-only: the disk itself stays in
    use by the lock of the run, and the system refuses to remount it.
    """
    subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
    words = ["mount", "-o", "remount,bind,ro", str(disk)]
    # busy while a file is written that was opened since the line above
    while subprocess.run(words, capture_output=True).returncode:
        time.sleep(0.01)
    try:
        yield
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("lack", [full, read_only], ids=["full", "read-only"])
def test_a_disk_that_becomes_full_or_read_only_during_the_run(lack, calm, disk):
    """At random moments of the work; one line, and the run goes on when there is space again."""
    words, unbroken, _, work = calm
    subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
    rng, ends = random.Random(SEED), []
    for run in map(str, range(KILLS)):
        process = begun(words, disk / run)
        wait_for_work(process)
        time.sleep(rng.uniform(0, work))
        with lack(disk):
            _, err = process.communicate(timeout=600)
        ends.append(process.returncode)
        said = [line for line in err.splitlines() if line.startswith("flexphase: ")]
        assert process.returncode in (0, 2) and "Traceback" not in err, (process.returncode, err)
        assert len(said) == (process.returncode == 2), err
        done(words, disk / run)
        assert_same(disk / run, unbroken)
    print(f"{' '.join(words[:2])}, {lack.__name__}: seed {SEED}, ends {collections.Counter(ends)}")
