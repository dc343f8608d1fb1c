"""`flexphase reproduce`: a run from end to end at toy size, and bad input in one line."""

import json
import os
import socket
import subprocess
import sys

import pytest
import xarray as xr
from mnist_files import raw_mnist

from flexphase.cli import main
from flexphase.experiments import FIGURES, figure, figures_in, reproduce
from flexphase.experiments.reproduce import elapsed_before
from flexphase.report.machine import PLAIN
from flexphase.sweep import Local, RunFolder
from flexphase.sweep.cells import chunks

TOY = {
    "phases": 60,
    "seeds": 3,
    "bs": [0.2, 0.5, 0.8],
    "starts": ["carry", "persistent"],
    "moments": 8,
}


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(figure("fig3").SIZES, "quick", TOY)


def test_the_descriptions_are_light_to_import():
    """The command line reads them before it knows whether anything heavy is needed."""
    heavy = "{'numpy', 'jax', 'pandas', 'xarray', 'matplotlib'}"
    code = f"import sys, flexphase.experiments; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_help_is_made_from_the_descriptions(capsys):
    assert main(["reproduce", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ",".join([*FIGURES, "all"]) in shown
    for experiment in FIGURES.values():
        assert experiment.title in shown


def test_every_file_of_a_figure_has_what_a_run_asks_for():
    for module in map(figure, figures_in("all")):
        assert module.TITLE and set(module.SIZES) == {"quick", "full"}
        assert callable(module.show) and (module.DATA is None or callable(module.DATA))
        assert not module.sweeps(module.SIZES["quick"]) or module.PLAIN[0] in PLAIN


def test_every_figure_plans_its_sweeps_at_both_sizes():
    names = [name for word in FIGURES for name in figures_in(word)]
    assert figures_in("all") == names
    for size in ("quick", "full"):
        own = reproduce.sweeps_of("all", size)
        every = [
            chunk.name
            for sweeps in own.values()
            for sweep in sweeps.values()
            for chunk in chunks(sweep)
        ]
        assert len(every) == len(set(every))
        assert json.loads(
            json.dumps(reproduce.configuration("all", size))
        ) == reproduce.configuration("all", size)
    with pytest.raises(ValueError, match="no figure 'fig9'"):
        figures_in("fig9")


def test_full_is_the_papers_size():
    """Experimental Details: ten rates, 10^5 steps, CD-1 10^7; the budget in ticks follows from the
    lengths 100, 100 and 150.
    """
    cells = reproduce.sweeps_of("fig2", "full")["fig2_bas"]["bas"].cells
    ticks = {(c["name"], c["length"]): c["ticks"] for c in cells}
    assert ticks == {
        ("cd", 1): 2 * 10**7,
        ("cd", 100): 2 * 10**7,
        ("isd", 100): 10**7,
        ("aol", 100): 10**7,
        ("aol-random", 150): 15 * 10**6,
    }
    assert len({c["eta"] for c in cells}) == 10
    network = reproduce.sweeps_of("fig2", "full")["fig2_mnist"]["network"].cells
    assert {(c["name"], c["ticks"]) for c in network} == {("standard", 240_000), ("ISD", 120_000)}


def test_a_run_from_end_to_end_and_again(toy, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["reproduce", "fig3", "--out", str(out), "--workers", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(out / "report.html")
    assert "fig3: chunk" in shown.err  # a line per milestone, for there is no terminal
    for kind in ("png", "svg", "pdf", "csv", "nc"):
        assert (out / f"fig3.{kind}").stat().st_size > 500
    text = (out / "report.html").read_text()
    for words in (
        "flexphase reproduce fig3 --quick --out",
        "robust for b from 0.2 to 0.8",
        "the authors&#x27; way",
        "seeds of b",
    ):
        assert words in text
    with xr.open_dataset(out / "fig3.nc", engine="h5netcdf") as kept:
        assert kept.sizes["seed"] == 3
        # four claims for each of two rules, and the conjecture
        assert len(json.loads(kept.attrs["claims"])) == 9
    before = {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()}

    assert main(["reproduce", "fig3", "--out", str(out)]) == 2
    assert "already holds a run" in one_line(capsys)
    assert main(["reproduce", "fig3", "--out", str(out), "--resume"]) == 0
    assert {
        p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()
    } == before  # nothing was computed twice


@pytest.mark.parametrize(
    "kept", [f'{{"fig1": 1{"0" * 400}}}', '{"fig1": Infinity}', '{"fig1": -1, "x": NaN}', "[]"]
)
def test_times_that_are_none_are_forgotten(kept, tmp_path):
    with RunFolder(tmp_path / "run", {}) as folder:
        folder.write("elapsed.json", kept)
        assert elapsed_before(folder) == {}


@pytest.mark.slow
def test_a_folder_whose_name_is_no_utf8(tmp_path):
    out = os.fsencode(tmp_path) + b"/r\xff"
    words = [sys.executable, "-m", "flexphase", "reproduce", "fig1", "--out", os.fsdecode(out)]
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(words, capture_output=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == out + b"/report.html"
    with open(out + b"/report.html", encoding="utf-8") as page:
        assert "/r\ufffd" in page.read()


@pytest.mark.slow
def test_the_appendix_from_end_to_end(monkeypatch, tmp_path):
    """Two sweeps in one figure: both are in its netCDF, and pictures are drawn where there are no
    curves.
    """
    raw_mnist()
    monkeypatch.setitem(
        figure("appendix").SIZES,
        "quick",
        {"phases": 400, "seeds": 2, "bs": [0.3, 0.5, 0.7], "shown": 100, "records": 2},
    )
    assert main(["reproduce", "appendix", "--out", str(tmp_path / "run")]) == 0
    for group, lanes in ((None, (3, 2)), ("standard", (1, 1))):
        with xr.open_dataset(
            tmp_path / "run" / "appendix.nc", engine="h5netcdf", group=group
        ) as kept:
            assert kept["final.free_energy_error"].shape == lanes and not any(
                str(name).startswith("params") for name in kept
            )
    text = (tmp_path / "run" / "report.html").read_text()
    assert text.count('<figure class="curve" data-panel="0,') == 2
    assert text.count('class="pictures"') == 4  # two rules, last iterate and slow weights


def one_line(capsys) -> str:
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig9"], "invalid choice: 'fig9'"),
        ([], "required: experiment"),
        (["fig3", "--quick", "--full"], "not allowed with"),
        (["fig3", "--workers", "2", "--dask", "tcp://localhost:1"], "not allowed with"),
        (["fig3", "--workers", "0"], "at least 1 worker"),
        (["fig3", "--workers", "two"], "invalid int value"),
    ],
)
def test_bad_options_are_one_line_and_touch_nothing(
    arguments, words, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    assert words in one_line(capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_a_dask_address_that_does_not_answer_touches_nothing(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    assert main(["reproduce", "fig3", "--dask", f"tcp://127.0.0.1:{port}"]) == 2
    assert "no Dask scheduler answers" in one_line(capsys)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_run_is_refused_untouched(tmp_path, capsys):
    with RunFolder(tmp_path / "run", {"figures": "fig2"}):
        pass
    before = {p: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    assert main(["reproduce", "fig3", "--out", str(tmp_path / "run"), "--resume"]) == 2
    assert "another configuration" in one_line(capsys)
    assert {p: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before


def test_an_unwritable_folder_is_one_line(capsys):
    assert main(["reproduce", "fig1", "--out", "/proc/nowhere/run"]) == 2
    assert "cannot write to /proc/nowhere/run" in one_line(capsys)


def test_ctrl_c_keeps_the_folder(toy, tmp_path, capsys, monkeypatch):
    class Impatient(Local):
        def run(self, tasks):
            yield None
            raise KeyboardInterrupt

    monkeypatch.setattr("flexphase.sweep.Local", Impatient)
    assert main(["reproduce", "fig3", "--out", str(tmp_path / "run")]) == 130
    monkeypatch.undo()
    assert (tmp_path / "run" / "run.json").exists()
