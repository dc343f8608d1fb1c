"""Commands that are stopped: one line, exit code 130, nothing lost; two of them in one folder."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flexphase import Record, folder
from flexphase.cli import main
from flexphase.folder import Lock, RunFolder
from flexphase.stopping import Stopping

SMALL = ["train", "rbm", "--data", "bas:2", "--hidden", "2", "--length", "2"]
SMALL += ["--records", "2", "--phases", "8", "--engine", "jax"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from flexphase.__main__ import main
main()
"""


def started(words, **options):
    """A command as a process; a shell's background jobs ignore SIGINT, so it is given back."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def used(pid):
    """Seconds of CPU that a process has used; on a crowded machine, too, they say how far it is."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stopped(words, after):
    """-> exit code and standard error of a command that gets Ctrl-C after so many CPU seconds, and
    how long it took to end.
    """
    process = started(words)
    while process.poll() is None and used(process.pid) < after:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, err, time.monotonic() - began


@linux
@pytest.mark.parametrize(
    "after", [2.5, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.8, 1.6, 4.0, 6.0))]
)
def test_ctrl_c_in_the_first_seconds(after, tmp_path):
    """While libraries are imported and programs compiled; the machine decides which."""
    words = ["train", "rbm", "--phases", "100000000", "--records", "3", "--engine", "jax", "--out"]
    code, err, _ = stopped([*words, tmp_path / "run"], after)
    assert code == 130 and "Traceback" not in err and "interrupted" in err, err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopping") / "run"
    assert main([*SMALL, "--out", str(folder)]) == 0
    return folder


@linux
def test_ctrl_c_reaches_a_single_long_call_of_jax(trained, tmp_path):
    """Three hundred million sweeps are one call, and would take hours."""
    words = ["sample", trained, "--steps", 300_000_000, "--out", tmp_path / "s.png"]
    code, err, took = stopped(words, 9)
    assert (code, err) == (130, "flexphase: interrupted\n") and took < 10
    assert not list(tmp_path.iterdir())


@linux
@pytest.mark.slow
def test_ctrl_c_reaches_a_long_plan(tmp_path):
    """It would take minutes; nothing of it is kept."""
    code, err, took = stopped(["plan", "rbm", "--pilots", "64", "--json"], 12)
    assert code == 130 and err.endswith("flexphase: interrupted\n") and took < 10, err
    assert "Traceback" not in err


HALF_DONE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from flexphase import files
from flexphase.data import mnist_sources
from flexphase.stopping import STOPPING

def wait(folder):
    (folder / "large.whl").touch()
    child = subprocess.Popen(["sleep", "100"])
    with STOPPING.undone(child.kill):
        print(child.pid, folder, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        child.wait()
    print("went on", flush=True)

STOPPING.watch()
with files.replacing(Path("x.png")) as part, mnist_sources.temporary_folder() as folder:
    part.touch()
    wait(folder)
print("went on", flush=True)
"""


def test_a_command_that_is_stopped_leaves_nothing_half_done(tmp_path):
    """No part of a file, no temporary folder, no child; and the other thread says nothing more."""
    done = subprocess.run(
        [sys.executable, "-c", HALF_DONE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "flexphase: interrupted\n")
    child, folder = done.stdout.split()
    assert not Path(folder).exists() and not list(tmp_path.iterdir())
    status = Path(f"/proc/{child}/stat")
    assert not status.exists() or ") Z " in status.read_text()


def test_handlers_that_were_set_in_c_are_left_alone(monkeypatch):
    """Python knows nothing of them, and cannot give them back."""
    given = []
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *args: given.append(args))
    with Stopping().stoppable():
        pass
    assert not given


# Folders


def test_resume_leaves_a_folder_of_the_user_alone(tmp_path, capsys):
    for name in ("config.json", "record.nc", "curve.csv"):
        (tmp_path / name).write_text("mine")
    assert main([*SMALL, "--resume", "--out", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err
    assert all(path.read_text() == "mine" for path in tmp_path.iterdir())


def test_a_finished_run_without_its_checkpoint_is_not_begun_again(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run")]
    assert main([*SMALL, *out]) == 0
    (tmp_path / "run" / "checkpoint.npz").unlink()
    before = (tmp_path / "run" / "record.nc").read_bytes()
    for more, says in (([], "without its checkpoint"), (["--lr", "0.5"], "another configuration")):
        capsys.readouterr()
        assert main([*SMALL, "--resume", *more, *out]) == 2
        assert says in capsys.readouterr().err
    assert (tmp_path / "run" / "record.nc").read_bytes() == before


def test_a_second_process_is_refused_in_the_folder_of_train(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--resume"]
    assert main([*SMALL, *out]) == 0
    capsys.readouterr()
    with open(tmp_path / "run" / ".lock", "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert main([*SMALL, *out]) == 2
    assert "another process is working" in capsys.readouterr().err
    assert main([*SMALL, *out]) == 0


def test_parts_that_a_killed_run_left_are_removed(tmp_path):
    out = ["--out", str(tmp_path / "run"), "--resume"]
    assert main([*SMALL, *out]) == 0
    for name in (".record.nc.123-0123abcd.part", ".checkpoint.npz.7-abcdef01.part", Lock.TAKEOVER):
        (tmp_path / "run" / name).write_text("half")
    (tmp_path / "run" / ".notes.part").write_text("mine")
    assert main([*SMALL, *out]) == 0
    assert [path.name for path in (tmp_path / "run").glob(".*.part")] == [".notes.part"]


@pytest.mark.parametrize("name", ["movie.mp4.part", ".notes.part", ".a.1-2.part"])
def test_a_folder_with_a_download_of_the_user_is_not_empty(name, tmp_path, capsys):
    (tmp_path / name).write_text("mine")
    assert main([*SMALL, "--out", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_whose_run_was_killed_before_its_plan_is_free(tmp_path):
    (tmp_path / ".run.json.12-0123abcd.part").write_text("half")
    with RunFolder(tmp_path, {"a": 1}):
        assert {path.name for path in tmp_path.iterdir()} == {Lock.FILE, "run.json"}


@pytest.mark.parametrize("read", [False, True])
def test_a_lock_that_is_a_fifo_is_refused_not_waited_for(read, tmp_path, capsys):
    os.mkfifo(tmp_path / Lock.FILE)
    reader = os.open(tmp_path / Lock.FILE, os.O_RDONLY | os.O_NONBLOCK) if read else None
    assert main([*SMALL, "--out", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and ("regular file" if read else "cannot write") in err
    assert [path.name for path in tmp_path.iterdir()] == [Lock.FILE]
    if reader is not None:
        os.close(reader)


def without_flock(*_):
    raise OSError(errno.ENOLCK, "No locks available")


def written_by(number, **other):
    """The lock of another process of this host, or of another one."""
    return " ".join((folder.me() | {"number": str(number)} | other).values())


def test_a_file_system_without_flock(tmp_path, monkeypatch):
    """As Lustre without -o flock, or NFS without lockd, answers."""
    monkeypatch.setattr(fcntl, "flock", without_flock)
    owner = tmp_path / "run" / Lock.OWNER
    with RunFolder(tmp_path / "run", {"a": 1}):
        assert owner.read_text().split()[1] == str(os.getpid())
        with (
            pytest.raises(ValueError, match="another process is working"),
            RunFolder(tmp_path / "run", {"a": 1}, resume=True),
        ):
            pass
        assert owner.exists()
    assert not owner.exists()
    gone = subprocess.Popen(["true"])
    gone.wait()
    owner.write_text(written_by(gone.pid))  # killed on this host
    with RunFolder(tmp_path / "run", {"a": 1}, resume=True):
        pass
    for other in ("host", "space"):  # in another container, that number may be alive
        owner.write_text(written_by(gone.pid, **{other: "another"}))
        with pytest.raises(ValueError, match=rf"{gone.pid}\).*remove"):
            RunFolder(tmp_path / "run", {"a": 1}, resume=True).__enter__()


@pytest.mark.parametrize("moment", ["gone", "link"])
def test_of_two_processes_that_find_a_dead_owner_one_goes_on(moment, tmp_path, monkeypatch):
    """The other one comes in the midst of the first: while it looks, and just before it acts."""
    monkeypatch.setattr(fcntl, "flock", without_flock)
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / Lock.OWNER).write_text(written_by(dead.pid))
    locks, taken = [Lock(tmp_path), Lock(tmp_path)], []

    def take(lock):
        try:
            lock.take()
            taken.append(lock)
        except ValueError:
            lock.release()

    where = folder if moment == "gone" else os
    real = getattr(where, moment)

    def interrupted(*args):
        monkeypatch.setattr(where, moment, real)
        found = real(*args) if moment == "gone" else None
        take(locks[1])
        return found if moment == "gone" else real(*args)

    monkeypatch.setattr(where, moment, interrupted)
    take(locks[0])
    assert len(taken) == 1
    taken[0].release()
    take(Lock(tmp_path))
    assert len(taken) == 2
    taken[1].release()
    assert [path.name for path in tmp_path.iterdir()] == [Lock.FILE]


WINDOWS = """
import os, select, signal, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None  # importing it is an ImportError
del signal.SIGHUP, os.O_NONBLOCK, os.O_CLOEXEC, os.set_blocking
sockets_only = select.select

def select_sockets(*args):
    assert not any(isinstance(one, int) for some in args[:3] for one in some)
    return sockets_only(*args)

def kill(*_):
    raise AssertionError("a signal of 0 is Ctrl-C there")

select.select, os.kill = select_sockets, kill
from flexphase.__main__ import main
main()
"""


def as_on_windows(*words):
    """A command in a Python without what only Unix has."""
    command = [sys.executable, "-c", WINDOWS, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_what_only_unix_has(tmp_path):
    """It trains and goes on; a folder that another process holds, or held, is refused."""
    out = ["--out", tmp_path / "run", "--resume"]
    for _ in range(2):
        done = as_on_windows(*SMALL, *out)
        assert done.returncode == 0, done.stderr
    owner = tmp_path / "run" / Lock.OWNER
    assert not owner.exists()
    owner.write_text(f"{os.uname().nodename} {os.getpid()}")
    held = as_on_windows(*SMALL, *out)
    assert held.returncode == 2 and f"remove {owner}" in held.stderr


# Figures, the environment, streams


@pytest.mark.parametrize("kind", ["pgf", "eps", "ps", "jpg", "raw", "svgz", "docx", ""])
def test_formats_that_are_not_offered_are_refused_first(kind, trained, tmp_path, capsys):
    file = tmp_path / (f"f.{kind}" if kind else "f")
    for words in (["plot", trained], ["sample", trained], ["ledger", "rbm"], ["phases"]):
        assert main([*map(str, words), "--out", str(file)]) == 2
        assert "end the name in .png, .svg or .pdf" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "PNG"])
def test_formats_that_are_offered_work(kind, trained, tmp_path):
    assert main(["plot", str(trained), "--out", str(tmp_path / f"f.{kind}")]) == 0
    assert (tmp_path / f"f.{kind}").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("XLA_FLAGS", "--xla_no_such_flag=1"),
        ("XLA_FLAGS", "--no_xla_cpu_max_isa=AVX"),
        ("JAX_PLATFORMS", "abacus"),
        ("JAX_PLATFORM_NAME", "abacus"),
        ("MPLBACKEND", "abacus"),
    ],
)
def test_an_environment_with_which_jax_does_not_start(name, value, tmp_path):
    process = started([*SMALL, "--out", tmp_path / "run"], env=os.environ | {name: value})
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2 and err.count("\n") == 1 and name in err and value in err, err
    assert not (tmp_path / "run").exists()


def test_a_record_is_kept_where_nothing_can_be_drawn(tmp_path, capsys, monkeypatch):
    def broken():
        raise ValueError("no drawing")

    monkeypatch.setattr("flexphase.cli.program.draw_plainly", broken)
    assert main([*SMALL, "--out", str(tmp_path / "run")]) == 2
    assert "no drawing" in capsys.readouterr().err
    assert Record.load(tmp_path / "run" / "record.nc").metrics == ["nll"]


FEW_FILES = """
import resource
from flexphase.__main__ import main
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
main()
"""


@linux
@pytest.mark.parametrize("words", [["--version"], [*SMALL, "--out", "run"]])
def test_a_process_that_may_open_almost_no_files(words, tmp_path):
    command = [sys.executable, "-c", FEW_FILES, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    assert "cannot start" in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_standard_error_is_no_fault(tmp_path):
    words = [sys.executable, "-m", "flexphase", *SMALL, "--out", str(tmp_path / "run")]
    with open("/dev/full", "w") as full:
        assert subprocess.run(words, stderr=full, check=False).returncode == 0
        assert subprocess.run(words, stderr=full, check=False).returncode == 2
        assert subprocess.run([*words[:3], "fly"], stderr=full, check=False).returncode == 2
    assert Record.load(tmp_path / "run" / "record.nc").metrics == ["nll"]
