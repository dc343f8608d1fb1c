"""Whatever a user types: one line on standard error, exit code 2, no traceback, nothing written."""

import errno
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from flexphase.cli import main
from flexphase.cli.common import run_folder
from flexphase.machine import limits_of_groups

SMALL = [
    "train",
    "rbm",
    "--data",
    "bas:2",
    "--hidden",
    "2",
    "--length",
    "2",
    "--records",
    "1",
    "--phases",
    "4",
    "--engine",
    "jax",
]


def refused(capsys, *words, code=2, says=""):
    assert main([str(w) for w in words]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "Traceback" not in err, err
    assert says in err, err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fly"], "invalid choice"),
        (["train"], "required"),
        (["train", "perceptron"], "invalid choice"),
        (["--nope"], "unrecognized arguments: --nope"),
        (["plot"], "required"),
        (["sample", "nowhere"], "no record"),
        (["plot", "nowhere", "--out", "x.png"], "no record"),
    ],
)
def test_words_that_are_no_command(words, says, capsys):
    refused(capsys, *words, says=says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trian"], "did you mean train?"),
        (["train", "rmb"], "did you mean rbm?"),
        (["train", "rbm", "--rule", "aoll"], "did you mean aol?"),
        (["train", "rbm", "--lenght", "3"], "did you mean --length?"),
        (["train", "rbm", "--lenght=3"], "flexphase train rbm: unrecognized"),
        (["train", "rbm", "--data", "minst"], "did you mean mnist?"),
        (["data", "fetch", "nmist"], "did you mean mnist?"),
        (["plan", "rmb"], "did you mean rbm?"),
        (["plan", "rbm", "--lanse", "3"], "did you mean --lane?"),
        (["plot", "x", "--bnad", "sd"], "did you mean --band?"),
    ],
)
def test_the_nearest_word_for_a_typo(words, says, capsys):
    refused(capsys, *words, says=says)


@pytest.mark.parametrize(
    "words",
    [
        [*SMALL, "--out"],
        [*SMALL, "--recorded"],
        ["theory", "lengths", "--out"],
        ["ledger", "x", "--out"],
        ["plot", "x", "--out"],
        ["plot", "x", "--table"],
        ["sample", "x", "--out"],
        ["phases", "--out"],
        ["live", "--out"],
        ["study", "locality", "--out"],
        ["reproduce", "fig1", "--dask"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_an_empty_word_is_not_taken_for_none(words, capsys, tmp_path, monkeypatch):
    """As `--out "$UNSET"` gives one."""
    monkeypatch.chdir(tmp_path)
    refused(capsys, *words, "", says=f"argument {words[-1]}: an empty word names nothing")
    assert not list(tmp_path.iterdir())


def test_no_word_is_suggested_where_none_is_near(capsys):
    assert main([*SMALL, "--colour", "red"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--b", "0", "strictly between"),
        ("--b", "1", "strictly between"),
        ("--b", "nan", "finite"),
        ("--b", "half", "not a number"),
        ("--b", "-0.5", "strictly between"),
        ("--lr", "0", "above 0"),
        ("--lr", "-1", "above 0"),
        ("--lr", "inf", "finite"),
        ("--lr", "1e999", "finite"),
        ("--lr", "1e39", "single precision"),
        ("--lr", "1e-50", "single precision"),
        ("--b", "1e-46", "single precision"),
        ("--b", "0.999999999", "strictly between"),
        ("--lr", "ⅷ", "not a number"),
        ("--length", "0", "above 0"),
        ("--length", "0.5", "at least 1"),
        ("--length", "2.5", "whole number"),
        ("--length", "1e12", "phase length"),
        ("--seeds", "0", "at least 1"),
        ("--seeds", "-3", "whole number"),
        ("--seeds", "1.5", "whole number"),
        ("--seed", "-1", "whole number"),
        ("--seed", "99999999999999999999", "seed"),
        ("--seeds", "1e9", "memory"),
        ("--hidden", "1e9", "memory"),
        ("--hidden", "1e38", "memory"),
        ("--records", "1e10", "memory"),
        ("--phases", "0", "at least 1"),
        ("--phases", "1e300", "ticks"),
        ("--phases", "9" * 5000, "finite"),
        ("--records", "0", "at least 1"),
        ("--hidden", "0", "at least 1"),
        ("--side", "0", "at least 1"),
        ("--side", "5", "for --data bas, and the data are bas:2"),
        ("--rule", "hebb", "invalid choice"),
        ("--engine", "abacus", "invalid choice"),
        ("--negative-start", "nowhere", "invalid choice"),
        ("--optimiser", "newton", "invalid choice"),
        ("--threads", "0", "at least 1"),
        ("--binarise", "7", "threshold"),
        ("--data", "", "no data"),
        ("--data", "nowhere.npy", "no data"),
        ("--data", "bas:0", "between 1 and 12"),
        ("--data", "bas:13", "between 1 and 12"),
        ("--data", "bas:-1", "whole number"),
        ("--data", "bas:", "whole number"),
        ("--data", "bas:四", "whole number"),
        ("--data", "bas:99999999999", "whole number"),
        ("--data", "données\udcff.csv", "no data"),
        ("--data", "x" * 300 + ".npy", ""),
        ("--data", "a\0b.npy", ""),
        ("--out", "a\0b", ""),
        ("--colour", "red", "unrecognized"),
        ("--ticks", "5", "not allowed with"),
    ],
)
def test_options(option, value, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(capsys, *SMALL, option, value, says=says)
    assert not list(tmp_path.iterdir())


NEED_LABELS = [
    "forward-forward",
    "equilibrium-propagation",
    "contrastive-hebbian",
    "coupled",
    "deep-resistor",
    "predictive-coding",
    "clapp",
    "scff",
]


@pytest.mark.parametrize("method", NEED_LABELS)
def test_missing_labels(method, capsys):
    refused(capsys, "train", method, "--data", "bas", says="learns labels, and bas has none")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tempering", "3", "--negative-start", "data"], "leave out --negative-start"),
        (["--binarise", "0.5"], "--binarise is for --visible binary"),
        (["--no-visible-bias"], "a harmonium has visible biases"),
        (["--visible", "binary", "--data", "two-moons"], "zeros and ones; give --binarise"),
        (["--sigma", "0"], "is not above 0"),
    ],
)
def test_harmoniums_that_do_not_fit(words, says, capsys):
    refused(capsys, "train", "harmonium", *words, says=says)


def files(folder):
    """Data files that are none, with what the answer must say."""
    rng = np.random.default_rng(0)
    np.save(folder / "pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (folder / "code.npy").write_bytes(pickle.dumps(os.getcwd))
    np.savez(folder / "pickle.npz", x=np.array([None], dtype=object))
    np.savez(folder / "empty.npz")
    np.savez(folder / "labels.npz", x=np.zeros((4, 2)), y=np.array([0, 1, 2]))
    np.savez(folder / "negative.npz", x=np.zeros((2, 2)), y=np.array([0, -1]))
    (folder / "broken.npz").write_bytes(b"PK\3\4 and no more")
    (folder / "short.npy").write_bytes(
        (lambda p: (np.save(p, np.zeros((9, 9))), p.read_bytes()[:-8])[1])(folder / "whole.npy")
    )
    np.save(folder / "grey.npy", rng.random((5, 4)))
    np.save(folder / "nan.npy", np.array([[0, np.nan]]))
    np.save(folder / "inf.npy", np.array([[0, np.inf], [1, 0]]))
    np.save(folder / "huge.npy", np.array([[0, 1e300], [1, 0]]))
    np.save(folder / "none.npy", np.zeros((0, 4)))
    np.save(folder / "flat.npy", np.zeros(4))
    np.save(folder / "four.npy", np.zeros((2, 2, 2, 2)))
    np.save(folder / "words.npy", np.array([["a", "b"]]))
    np.save(folder / "complex.npy", np.zeros((2, 2), complex))
    (folder / "void.csv").write_text("")
    (folder / "header.csv").write_text("a,b\n")
    (folder / "gap.csv").write_text("1,,0,1\n0,1,0,1\n")
    (folder / "ragged.csv").write_text("0,1\n1\n")
    (folder / "words.csv").write_text("0,1\nno,1\n")
    (folder / "latin.csv").write_bytes(b"\xe9,1\n0,1\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "data.txt").write_text("0 1")
    (folder / "folder.npy").mkdir()
    said = {
        "pickle.npy": "cannot be read",
        "grey.npy": "--binarise",
        "nan.npy": "finite numbers",
        "inf.npy": "finite numbers",
        "huge.npy": "finite numbers of at most 1e+09 in size",
        "folder.npy": "no data",
        "gap.csv": "its first line holds numbers beside what is none",
        "data.txt": "end in",
    }
    return {p.name: said.get(p.name, "") for p in sorted(folder.iterdir()) if p.name != "whole.npy"}


def test_files_that_are_no_data(tmp_path, capsys, recwarn):
    for name, says in files(tmp_path).items():
        refused(
            capsys,
            *SMALL[:2],
            "--data",
            tmp_path / name,
            "--phases",
            "4",
            "--out",
            tmp_path / "out",
            says=says,
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["harmonium", "energy", "predictive-coding"])
def test_data_that_are_not_finite(method, tmp_path, capsys, recwarn):
    np.savez(tmp_path / "x.npz", images=[[0, np.inf], [1, 0]], labels=[0, 1])
    words = ["train", method, "--data", tmp_path / "x.npz", "--out", tmp_path / "out"]
    refused(capsys, *words, says="finite numbers")
    assert not recwarn.list and not (tmp_path / "out").exists()


def test_images_without_contrast(tmp_path, capsys, recwarn):
    np.savez(tmp_path / "x.npz", images=np.ones((4, 4)), labels=[0, 1, 0, 1])
    words = ["train", "predictive-coding", "--data", tmp_path / "x.npz"]
    refused(capsys, *words, "--out", tmp_path / "out", says="all pixels of x are equal")
    assert not recwarn.list and not (tmp_path / "out").exists()


@pytest.mark.parametrize("volts", ["1e300", "1e-300", "1e7"])
def test_volts_that_are_no_voltage(volts, tmp_path, capsys, recwarn):
    words = ["train", "coupled", "--volts", volts, "--out", tmp_path / "out"]
    refused(capsys, *words, says="--volts must be")
    assert not recwarn.list and not (tmp_path / "out").exists()


def test_a_side_is_for_bars_and_stripes_in_plan_too(capsys):
    says = "--side 5 is for --data bas, and the data are two-moons"
    refused(capsys, "plan", "energy", "--side", "5", says=says)


def test_more_than_the_memory_of_the_machine(tmp_path, capsys, monkeypatch):
    """Of a small machine, so that nothing large is tried."""
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--out", "run"]) == 0
    capsys.readouterr()
    monkeypatch.setattr("flexphase.machine.memory", lambda: 1e8)
    refused(capsys, "sample", "run", "--rows", "3e6", says="fewer rows")
    refused(capsys, "phases", "--phases", "5e6", says="fewer phases")
    refused(capsys, "plan", "rbm", "--hidden", "1e6", says="fewer units, lanes or pilots")
    refused(capsys, "plan", "rbm", "--lanes", "1e6", says="fewer units, lanes or pilots")
    refused(capsys, "plan", "run", "--checkpoint", "--lanes", "1e7", says="fewer units, lanes")
    refused(capsys, *SMALL, "--hidden", "1e7", "--out", "new", says="fewer seeds, units or records")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_two_commands_in_one_second_get_two_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("flexphase.cli.common.time.strftime", lambda _: "20260101-000000")
    names = [run_folder("train", tmp_path / "runs").name for _ in range(3)]
    stamp = "train-20260101-000000"
    assert names == [stamp, f"{stamp}-2", f"{stamp}-3"]
    (tmp_path / "file").write_text("kept")
    assert run_folder("train", tmp_path / "file") == tmp_path / "file" / stamp  # its writer refuses


@pytest.mark.parametrize(
    ("lines", "limits", "allowed"),
    [
        ("0::/job/step\n", {"memory.max": 9e9, "job/memory.max": 5e9}, 5e9),
        ("0::/job/step\n", {"job/step/memory.max": 3e9, "job/memory.max": 5e9}, 3e9),
        ("0::/\n", {"memory.max": 2e9}, 2e9),
        ("3:cpu:/\n4:memory:/docker/1f\n", {"memory/memory.limit_in_bytes": 4e9}, 4e9),
        ("4:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": 1e9, "memory.max": 2e9}, 1e9),
        ("0::/../../other\n", {}, None),
        ("nonsense\n", {"memory.max": 1e9}, None),
    ],
    ids=["above", "own", "a container", "version 1", "both", "elsewhere", "unknown"],
)
def test_memory_of_a_container(lines, limits, allowed, tmp_path):
    """The layouts of the kernel's documents: cgroups(7), admin-guide/cgroup-v2."""
    (tmp_path / "mine").write_text(lines)
    for name, limit in limits.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(f"{int(limit)}\n")
    (tmp_path / "groups").mkdir(exist_ok=True)
    found = [*limits_of_groups(str(tmp_path / "mine"), tmp_path / "groups")]
    assert min(found, default=None) == allowed
    assert [*limits_of_groups(str(tmp_path / "none"))] == []


def test_a_group_without_a_limit(tmp_path):
    (tmp_path / "mine").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert [*limits_of_groups(str(tmp_path / "mine"), tmp_path)] == []


def test_out_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("kept")
    refused(capsys, *SMALL, "--out", tmp_path / "file", says="is a file")
    refused(capsys, *SMALL, "--out", tmp_path / "file" / "below", says="cannot write")
    refused(capsys, *SMALL, "--out", "/proc/flexphase", says="cannot write")
    assert (tmp_path / "file").read_text() == "kept"
    refused(capsys, *SMALL, "--resume", says="--out")


def test_only_a_command_that_can_go_on_advises_to(tmp_path, capsys):
    (tmp_path / "kept").touch()
    refused(capsys, *SMALL, "--out", tmp_path, says="is not a run folder")
    refused(capsys, "theory", "lengths", "--out", tmp_path, says="choose another folder.")


def test_a_full_disk_is_one_line_and_what_was_there_stays(tmp_path, capsys, monkeypatch):
    words = [*SMALL, "--out", str(tmp_path / "run")]
    real = np.savez

    def full(*args, **arrays):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    refused(capsys, *words, says="No space left")
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert names == {".lock", "run.json", "config.json"}
    monkeypatch.setattr(np, "savez", real)
    assert main([*words, "--resume"]) == 0


def test_memory_that_jax_asks_for_in_vain_is_one_line(tmp_path, capsys, monkeypatch):
    from flexphase.cli import train

    def greedy(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 66336152800 bytes.")

    monkeypatch.setattr(train, "fits_in_memory", greedy)
    refused(capsys, *SMALL, "--out", tmp_path / "run", says="not enough memory")


def test_closed_streams_are_no_fault(tmp_path):
    words = f"{sys.executable} -m flexphase sample {tmp_path} --json"
    done = subprocess.run(["sh", "-c", f"{words} >&-"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "no record.nc" in done.stderr
    done = subprocess.run(["sh", "-c", f"{words} 2>&-"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""


def test_records_that_are_none(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    record = tmp_path / "run" / "record.nc"
    (tmp_path / "short.nc").write_bytes(record.read_bytes()[:1000])
    (tmp_path / "text.nc").write_text("hello")
    (tmp_path / "empty").mkdir()
    for bad in ("short.nc", "text.nc", "empty"):
        refused(capsys, "plot", tmp_path / bad, "--out", tmp_path / "f.png", says=bad)
        refused(capsys, "sample", tmp_path / bad, says=bad)
    refused(
        capsys,
        "plot",
        record,
        "--metric",
        "beauty",
        "--out",
        tmp_path / "f.png",
        says="choose from nll",
    )
    refused(capsys, "plot", record, "--out", tmp_path / "f.docx", says=".png")
    refused(capsys, "plot", record, "--out", tmp_path, says="is a folder")
    refused(capsys, "plot", record, record, "--fields", "--out", tmp_path / "f.png", says="one run")
    refused(capsys, "sample", record, "--lane", "7", says="there is no 7")
    refused(capsys, "sample", record, "--label", "3", says="no label units")
    refused(capsys, "sample", record, "--label", "all", says="no label units")
    refused(capsys, "sample", record, "--seed", "1e30", says="2^31")
    refused(capsys, "sample", record, "--out", tmp_path / "no" / "s.png", says="no folder")
    figure = ["plot", record, "--out", tmp_path / "f.png"]
    refused(capsys, *figure, "--table", tmp_path / "no" / "t.csv", says="no folder")
    refused(capsys, *figure, "--table", tmp_path / "f.png", says="both name")
    refused(capsys, *figure, "--table", tmp_path / "t.txt", says="t.csv")
    refused(capsys, *figure, "--table", tmp_path, says="give --table a file")
    refused(capsys, *figure, "--band", "iqr", says="invalid choice")
    refused(capsys, *figure, "--log", "z", says="invalid choice")
    (tmp_path / "mine.npy").write_text("kept")
    refused(capsys, "sample", record, "--out", tmp_path / "mine.png", says="mine.npy exists")
    assert (tmp_path / "mine.npy").read_text() == "kept"
    (tmp_path / "run" / "checkpoint.npz").write_bytes(b"nonsense")
    refused(capsys, *SMALL, "--out", tmp_path / "run", "--resume", says="not a checkpoint")
    assert not (tmp_path / "f.png").exists()


def test_records_that_do_not_fit_themselves(tmp_path, capsys):
    """Each part is well-formed: more classes than units, weights that are no matrix, a method that
    cannot compute.
    """
    from flexphase.record import Record

    assert main([*SMALL, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    whole, path = Record.load(tmp_path / "run" / "record.nc"), tmp_path / "record.nc"

    def forged(dataset):
        return Record(dataset).save(path)

    out = ["--out", tmp_path / "f.png"]
    forged(whole.dataset.assign_attrs(classes=100))
    refused(capsys, "sample", path, *out, says="at least one pixel, not -96")
    forged(whole.dataset.assign({"params.W": whole["params.W"][:, 0, 0]}))
    refused(capsys, "plot", path, "--fields", *out, says="no matrix")
    for field in ({"scale": None}, {"visible_bias": "x"}):
        config = whole.config
        config["run"]["method"] |= field
        forged(whole.dataset.assign_attrs(config=json.dumps(config)))
        if "scale" in field:
            refused(capsys, "sample", path, *out, says="cannot be rebuilt")
        refused(capsys, "ledger", path, "--phases", "1", says="cannot be rebuilt")
        refused(capsys, "plan", path, "--checkpoint", "--lanes", "2", says="cannot be rebuilt")
    assert not (tmp_path / "f.png").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("no json", "Expecting value"),
        ("{}", "KeyError"),
        ("[1]", "TypeError"),
        ("3", "TypeError"),
        ('{"method": "perceptron"}', "KeyError"),
        ('{"method": "rbm", "batch": "x"}', "--batch: 'x' is not a number"),
        ('{"method": "rbm", "optimiser": 0}', "--optimiser: invalid choice"),
        ('{"method": "rbm", "optimiser": "chain"}', "--optimiser: invalid choice"),
        ('{"method": "rbm", "lr": [0.1]}', "is not a number"),
        ('{"method": "rbm", "lr": null}', "is not a number"),
        ('{"method": "rbm", "no_visible_bias": "yes"}', "--no-visible-bias is yes or no"),
        ('{"method": "rbm", "stay": [0.5]}', "expected 2 arguments"),
        ('{"method": "rbm", "colour": "red"}', "there is no option colour"),
    ],
)
def test_damaged_options_of_a_record(options, says, tmp_path):
    from flexphase.cli.records import Kept
    from flexphase.record import Record

    with pytest.raises(ValueError, match=r"are damaged .*; train again") as refusal:
        _ = Kept(Record(xr.Dataset(attrs={"options": options})), tmp_path).options
    assert says in str(refusal.value)


def test_an_error_of_ours_is_one_line_too(capsys, monkeypatch):
    from flexphase.cli import records

    def broken(path):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(records, "load", broken)
    from flexphase.cli import plot

    monkeypatch.setattr(plot, "load", broken)
    refused(
        capsys,
        "plot",
        "x",
        "--out",
        "never.png",
        code=1,
        says="RuntimeError: first line second line",
    )
    monkeypatch.setenv("FLEXPHASE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["plot", "x", "--out", "never.png"])
