"""What the command line does to its own process: programs that are kept, and nothing else."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.artist import Artist

from flexphase.cli import main, program
from flexphase.machine import cache_folder
from flexphase.record import Record
from flexphase.stopping import STOPPING

JAX = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
TIME = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The environment of a user who set nothing, with a cache folder."""
    for name in (*JAX, TIME):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLEXPHASE_CACHE", str(tmp_path))
    yield tmp_path
    for name in (*JAX, TIME):
        os.environ.pop(name, None)


def test_programs_are_kept_in_the_users_own_folder(own):
    program.keep_compiled()
    folder = own / "compiled" / program.processor()
    assert os.environ[JAX[0]] == str(folder) and os.environ[TIME] == "0"
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", JAX)
def test_jaxs_own_variables_decide(own, monkeypatch, name):
    monkeypatch.setenv(name, "false")
    program.keep_compiled()
    assert os.environ[name] == "false" and not any(own.iterdir())
    assert TIME not in os.environ


def test_a_folder_that_cannot_be_used_is_not(own, monkeypatch):
    (own / "compiled").write_text("in the way")
    program.keep_compiled()
    assert JAX[0] not in os.environ
    (own / "compiled").unlink()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(own).st_uid + 1)
    program.keep_compiled()
    assert JAX[0] not in os.environ


def test_the_oldest_programs_and_empty_ones_are_removed(tmp_path):
    for i in range(6):
        (tmp_path / f"{i}").write_text("x" if i != 4 else "")
        os.utime(tmp_path / f"{i}", (i, i))
    program.forget_oldest(tmp_path, most=6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "5"]
    program.forget_oldest(tmp_path, most=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3", "5"]


def test_cache_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("FLEXPHASE_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("mnist") == tmp_path / "flexphase" / "mnist"
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "me")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("x") == tmp_path / "me" / ".cache" / "flexphase" / "x"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder("x") == tmp_path / "me" / "Library" / "Caches" / "flexphase" / "x"
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache_folder("x") == tmp_path / "me" / "flexphase" / "x"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache_folder("x") == tmp_path / "flexphase" / "x"


def test_a_home_is_asked_for_only_where_it_is_needed(own, monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    monkeypatch.delenv("FLEXPHASE_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    assert cache_folder("x") == own / "flexphase" / "x"
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.raises(ValueError, match="FLEXPHASE_CACHE"):
        cache_folder("x")
    program.keep_compiled()  # a cache that cannot be had is none
    assert JAX[0] not in os.environ


def test_matplotlib_gets_a_folder_where_the_users_cannot_be_written_to(own, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", str(own / "theirs"))
    program.keep_fonts()
    assert os.environ["MPLCONFIGDIR"] == str(own / "theirs")
    monkeypatch.setenv("MPLCONFIGDIR", "/dev/null")
    program.keep_fonts()
    assert os.environ["MPLCONFIGDIR"] == str(own / "matplotlib")
    monkeypatch.setenv("FLEXPHASE_CACHE", "/dev/null")
    monkeypatch.setenv("MPLCONFIGDIR", "/dev/null")
    monkeypatch.setattr(STOPPING, "begun", [])
    program.keep_fonts()
    folder = Path(os.environ["MPLCONFIGDIR"])
    assert folder.is_dir()
    STOPPING.undo()
    assert not folder.exists()


def test_a_user_without_a_home_reads_one_line_and_nothing_is_left(tmp_path):
    (tmp_path / "taken").touch()
    unset = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "FLEXPHASE_CACHE")
    env = {k: v for k, v in os.environ.items() if k not in unset}
    env |= {"HOME": "/dev/null", "TMPDIR": str(tmp_path)}
    done = command("train", "rbm", "--data", "bas:2", "--out", tmp_path, env=env)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def command(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "flexphase", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_settings_for_other_programs_do_not_spoil_a_figure(tmp_path):
    """LaTeX may be missing, and what a library advises its authors is no error of ours."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    env = os.environ | {"PYTHONWARNINGS": "error"}
    done = command("phases", "--phases", "50", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "phases.png").stat().st_size > 1000


def test_what_standard_output_cannot_write_is_written_as_far_as_possible(tmp_path):
    """`--out é` failed after all the work where PYTHONIOENCODING=ascii."""
    code = """if True:
        from flexphase.cli import program
        program.prepare([])
        print("a\\xe9\\udce9")
        print("\\udce9")
    """
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=env)
    assert ran.stdout == b"a\\xe9\\udce9\n\xe9\n"


def test_main_called_from_python_leaves_the_process_alone(own, capsys):
    before = gc.get_threshold(), sys.modules.get("dask")
    assert main(["--version"]) == 0
    assert (gc.get_threshold(), sys.modules.get("dask")) == before
    assert JAX[0] not in os.environ


def test_dask_is_left_to_an_xarray_that_is_there_already():
    """It failed: `xarray.open_dataset` after xarray, then the command line, were imported."""
    code = """if True:
        import sys
        import xarray
        from flexphase.cli import program
        program.prepare(["study"])
        print("dask" in sys.modules and sys.modules["dask"] is None)
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.slow
def test_a_second_run_compiles_nothing_and_has_the_same_bits(tmp_path):
    """Against a run without a cache; the second one adds no program to the folder."""
    command = [sys.executable, "-m", "flexphase", "train", "rbm", "--phases", "20", "--out"]
    plain = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    kept = plain | {"FLEXPHASE_CACHE": str(tmp_path / "cache")}
    runs = {"off": plain | {JAX[1]: "false"}, "first": kept, "second": kept}
    nll, programs = {}, {}
    for name, environment in runs.items():
        out = tmp_path / name
        done = subprocess.run([*command, str(out)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        nll[name] = Record.load(out / "record.nc")["nll"].values
        programs[name] = sorted((tmp_path / "cache").rglob("*-cache"))
    np.testing.assert_array_equal(nll["first"], nll["off"])
    np.testing.assert_array_equal(nll["second"], nll["off"])
    assert not programs["off"] and programs["first"] and programs["second"] == programs["first"]


def test_matplotlib_loses_its_docstrings_in_a_process_of_our_own_only(monkeypatch):
    name = "_update_set_signature_and_docstring"
    theirs = Artist.__dict__[name]
    monkeypatch.setattr(Artist, name, theirs)  # so that it is put back
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.setattr(program, "PREPARED", [])
    program.draw_plainly()
    assert Artist.__dict__[name] is theirs
    monkeypatch.setattr(program, "PREPARED", [os.getpid()])
    program.draw_plainly()
    assert Artist.__dict__[name] is not theirs
