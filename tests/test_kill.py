"""Nothing is lost: processes and workers killed at random moments, a full disk, and the same bits
in the end.
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
from sweeping import same_bits, small

from flexphase.sweep import Local, RunFolder, collect, execute
from flexphase.sweep.cells import chunks
from flexphase.sweep.executors import ChunkError

TESTS = Path(__file__).parent
SCRIPT = """
import sys
from sweeping import small
from flexphase.sweep import Local, RunFolder, execute
with RunFolder(sys.argv[1], {}, resume=True) as folder:
    execute([small(ticks=int(sys.argv[2]), records=40, engine=sys.argv[3])], folder, Local(2))
"""


def begin(path: Path, ticks: int, engine: str) -> subprocess.Popen:
    """The small sweep in a process of its own."""
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
        )
    }
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), str(ticks), engine], env=env)


def undisturbed(path: Path, ticks: int, engine: str):
    sweep = small(ticks=ticks, records=40, engine=engine)
    with RunFolder(path, {}) as folder:
        execute([sweep], folder, Local(2))
        return collect(sweep, folder)


def wait_for_work(path: Path, process: subprocess.Popen) -> None:
    """Until a checkpoint or a record is there."""
    while process.poll() is None and not any(path.glob("chunks/small-*")):
        time.sleep(0.02)


def kill_and_resume(path: Path, ticks: int, engine: str, kills: int, seed: int) -> int:
    """SIGKILL at once when it is seen at work, then at random moments, then let the run get
    through; how many kills hit it at work.
    """
    rng, hits = random.Random(seed), 0
    for _ in range(kills):
        process = begin(path, ticks, engine)
        wait_for_work(path, process)
        time.sleep(
            rng.uniform(0, 2.5) if hits else 0
        )  # a machine may be fast enough to be done by then
        hits += process.poll() is None
        process.kill()
        process.wait()
    last = begin(path, ticks, engine)
    assert last.wait() == 0
    return hits


@pytest.mark.slow
def test_sigkill_and_resume_end_with_the_same_bits(tmp_path):
    expected = undisturbed(tmp_path / "calm", 4000, "jax")
    assert kill_and_resume(tmp_path / "killed", 4000, "jax", kills=2, seed=1) > 0
    sweep = small(ticks=4000, records=40)
    with RunFolder(tmp_path / "killed", {}, resume=True) as folder:
        same_bits(collect(sweep, folder), expected)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jax", "auto"])
def test_many_kills(tmp_path, engine):
    ticks = 20_000 if engine == "jax" else 2_000_000
    expected = undisturbed(tmp_path / "calm", ticks, engine)
    assert kill_and_resume(tmp_path / "killed", ticks, engine, kills=8, seed=2) > 3
    with RunFolder(tmp_path / "killed", {}, resume=True) as folder:
        same_bits(collect(small(ticks=ticks, records=40, engine=engine), folder), expected)


@pytest.mark.slow
def test_a_killed_worker_has_its_chunk_rerun(tmp_path):
    sweep, executor, killed = small(ticks=4000, records=40), Local(2), []

    def watch(running, finished):
        if running and not killed:
            victim = executor.processes[0]
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    with RunFolder(tmp_path / "run", {}) as folder:
        execute([sweep], folder, executor, watch)
        assert killed
        assert not executor.processes
        same_bits(collect(sweep, folder), undisturbed(tmp_path / "calm", 4000, "jax"))


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path):
    process = begin(tmp_path / "run", 10_000_000, "jax")
    wait_for_work(tmp_path / "run", process)
    children = [
        int(p) for p in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    assert children
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)


def alive(pid: int) -> bool:
    """Running, and neither gone nor a zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_chunk_that_always_kills_its_worker_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("flexphase.sweep.executors.sys.executable", "/bin/false")
    with (
        RunFolder(tmp_path / "run", {}) as folder,
        pytest.raises(ChunkError, match="a worker died 3 times"),
    ):
        execute([small()], folder, Local(1))


@pytest.mark.slow
def test_a_file_that_cannot_grow_is_a_clear_error_and_the_folder_stays_whole(tmp_path):
    """RLIMIT_FSIZE stands for a full disk: writes beyond it fail with EFBIG."""

    class Cramped(Local):
        def _start(self, share):
            process = super()._start(share)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (2000, 2000))
            return process

    sweep = small()
    with RunFolder(tmp_path / "run", {}) as folder:
        with pytest.raises(ChunkError, match="File too large"):
            execute([sweep], folder, Cramped(1))
        assert not [
            p for p in folder.path.rglob("*") if p.suffix == ".nc" or p.name.endswith(".part")
        ]
        execute([sweep], folder, Local(2))
        assert collect(sweep, folder).sizes["cell"] == len(sweep.cells)


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [12, 40, 64, 90])
def test_a_full_disk(tmp_path, kilobytes):
    """A real one: a tmpfs of a few kilobytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk], capture_output=True
        ).returncode
    ):
        pytest.skip("mounting a small tmpfs needs root")
    try:
        sweep = small()
        with RunFolder(disk / "run", {}) as folder:
            with pytest.raises((ChunkError, OSError), match="No space left"):
                execute([sweep], folder, Local(1))
            assert not [p for p in folder.path.rglob("*") if p.name.endswith(".part")]
            subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
            execute([sweep], folder, Local(2))
            assert collect(sweep, folder).sizes["cell"] == len(sweep.cells)
            assert all((folder.path / "chunks" / f"{c.name}.nc").exists() for c in chunks(sweep))
    finally:
        subprocess.run(["umount", disk], check=True)
