"""The command line in-process: words in, one JSON object on standard output, everything else on
standard error.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from flexphase import NLL, RBM, Optimiser, Record, Rows, Run, bars_and_stripes, cd, train
from flexphase.catalogue import METHODS
from flexphase.cli import COMMANDS, main, parser

MORE = {
    "averaged",
    "untrained",
    "optimum",
}  # where there are slow weights, and where the scale is known
KEYS = [
    "method",
    "rule",
    "metric",
    "final",
    "ticks",
    "phases",
    "updates",
    "seconds",
    "metric_seconds",
    "engine",
    "out",
]
SMALL = [
    "train",
    "rbm",
    "--data",
    "bas:2",
    "--hidden",
    "3",
    "--length",
    "2",
    "--records",
    "2",
    "--engine",
    "jax",
]


def call(capsys, *words):
    code = main([str(w) for w in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two seeds, shared by the tests that only read it."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    assert (
        main([*SMALL, "--rule", "cd", "--phases", "200", "--seeds", "2", "--out", str(folder)]) == 0
    )
    return folder


def test_train_prints_one_object_and_equals_the_library(tmp_path, capsys):
    words = [
        *SMALL,
        "--rule",
        "cd",
        "--lr",
        "0.1",
        "--phases",
        "200",
        "--seeds",
        "2",
        "--seed",
        "5",
        "--no-visible-bias",
    ]
    code, out, err = call(capsys, *words, "--out", tmp_path / "run", "--json")
    result = json.loads(out)
    assert code == 0 and out.count("\n") == 1 and "nll" in err
    assert [name for name in result if name not in MORE] == KEYS
    data = bars_and_stripes(2)
    run = Run(
        RBM(4, 3, visible_bias=False, negative_start="data"), *cd(2), Rows(data), Optimiser(0.1)
    )
    same = (
        train(run, phases=200, seeds=2, seed=5, metrics={"nll": NLL(data)}, records=2, engine="jax")
        .final()
        .values
    )
    assert result["final"]["values"] == same.tolist()
    assert result["final"]["mean"] == pytest.approx(same.mean()) and result["final"][
        "sd"
    ] == pytest.approx(same.std(ddof=1), rel=1e-5)
    assert (result["ticks"], result["phases"], result["updates"]) == (400, 200, 100)
    assert (result["method"], result["rule"], result["metric"], result["engine"]) == (
        "rbm",
        "cd",
        "nll",
        "jax",
    )


def test_the_folder_holds_record_configuration_checkpoint_curve_and_figure(trained):
    assert {p.name for p in trained.iterdir()} == {
        ".lock",
        "run.json",
        "record.nc",
        "config.json",
        "checkpoint.npz",
        "curve.csv",
        "curve.png",
        "curve.svg",
    }
    config = json.loads((trained / "config.json").read_text())
    assert (
        config["options"]["rule"] == "cd"
        and config["resolved"]["run"]["method"]["negative_start"] == "data"
    )
    table = np.genfromtxt(trained / "curve.csv", delimiter=",", names=True)
    record = Record.load(trained / "record.nc")
    assert np.allclose(table["nll"].reshape(2, 3), record["nll"].values) and set(
        table["ticks"]
    ) == {0, 200, 400}


@pytest.mark.parametrize(
    ("rule", "budget", "clocks"),
    # ticks, phases, updates from the definitions of the rules (eqs. 1, 2 and 4), phases of two
    # ticks
    [
        ("cd", ["--updates", "7"], (28, 14, 7)),
        ("two-term", ["--phases", "6"], (12, 6, 3)),
        ("isd", ["--updates", "7"], (14, 7, 7)),
        ("aol", ["--updates", "8"], (8, 4, 8)),
        ("aol", ["--ticks", "10"], (10, 5, 10)),
    ],
)
def test_budgets_on_three_clocks(rule, budget, clocks, tmp_path, capsys):
    code, out, _ = call(
        capsys, *SMALL, "--rule", rule, *budget, "--out", tmp_path / "run", "--json"
    )
    result = json.loads(out)
    assert code == 0 and tuple(result[name] for name in ("ticks", "phases", "updates")) == clocks


def test_without_out_a_new_folder_is_made_under_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outs = [json.loads(call(capsys, *SMALL, "--phases", "4", "--json")[1])["out"] for _ in range(2)]
    assert outs[0] != outs[1] and all(
        out.startswith("runs/rbm-bas-aol-") and (tmp_path / out / "record.nc").exists()
        for out in outs
    )


def test_a_folder_is_never_overwritten_and_resume_changes_nothing(trained, capsys):
    before = {p.name: p.read_bytes() for p in trained.iterdir()}
    words = [*SMALL, "--rule", "cd", "--phases", "200", "--seeds", "2", "--out", trained]
    code, out, err = call(capsys, *words)
    assert code == 2 and out == "" and err.count("\n") == 1 and "--resume" in err
    assert before == {p.name: p.read_bytes() for p in trained.iterdir()}
    code, out, _ = call(capsys, *words, "--resume", "--json")
    assert (
        code == 0
        and json.loads(out)["final"]["values"]
        == Record.load(trained / "record.nc").final().values.tolist()
    )
    code, out, err = call(capsys, *words, "--resume", "--lr", "0.3")
    assert code == 2 and out == "" and err.count("\n") == 1 and "another configuration" in err
    assert before["checkpoint.npz"] == (trained / "checkpoint.npz").read_bytes()


def test_ctrl_c_keeps_what_was_recorded_and_resume_ends_with_the_same_bits(
    tmp_path, capsys, monkeypatch
):
    from flexphase.engines.jax import JaxEngine

    words = [*SMALL, "--phases", "300", "--seeds", "2", "--json"]
    whole = json.loads(call(capsys, *words, "--out", tmp_path / "whole")[1])
    real, calls = JaxEngine.advance, []

    def stopped(self, *args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(JaxEngine, "advance", stopped)
    code, out, err = call(capsys, *words, "--out", tmp_path / "cut")
    assert code == 130 and "--resume" in err and json.loads(out)["ticks"] == 300
    assert (tmp_path / "cut" / "record.nc").exists()
    monkeypatch.setattr(JaxEngine, "advance", real)
    code, out, _ = call(capsys, *words, "--out", tmp_path / "cut", "--resume")
    assert code == 0 and json.loads(out)["final"] == whole["final"]
    a, b = (Record.load(tmp_path / name / "record.nc") for name in ("whole", "cut"))
    assert all(np.array_equal(a.params[name], b.params[name]) for name in a.params)


def test_a_diverged_seed_is_null_in_strict_json(tmp_path, capsys):
    code, out, err = call(
        capsys,
        *SMALL,
        "--rule",
        "isd",
        "--lr",
        "1e38",
        "--phases",
        "50",
        "--seeds",
        "2",
        "--out",
        tmp_path / "r",
        "--json",
    )
    assert (
        code == 0
        and "NaN" not in out
        and json.loads(out)["final"] == {"mean": None, "sd": None, "values": [None, None]}
    )
    assert "2 of 2 seeds diverged" in err


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Bars of class 0 and stripes of class 1, 4 x 4."""
    path = tmp_path_factory.mktemp("data") / "bas.npz"
    np.savez(path, images=bars_and_stripes(4).reshape(-1, 4, 4), labels=np.repeat([0, 1], 16))
    return path


#: Every method as small as it goes: its words, and the metric that is its result.
SMALLEST = {
    "boltzmann": ("--data bas:2 --hidden 2 --length 2", "nll"),
    "clapp": ("--hidden 3", "train_error"),
    "contrastive-hebbian": ("--hidden 3 --length 2", "train_error"),
    "coupled": ("--length 2", "train_error"),
    "deep-resistor": ("--hidden 8 --length 2", "train_error"),
    "energy": ("--data two-moons:50 --hidden 3 --length 2 --batch 2", "nll_per_row"),
    "equilibrium-propagation": ("--hidden 3 --length 2", "train_error"),
    "forward-forward": ("--hidden 4 3", "train_error"),
    "harmonium": ("--hidden 3 --length 2 --batch 2", "train_error"),
    "helmholtz": ("--data bas:2 --hidden 2", "nll"),
    "hopfield": ("--patterns 3 --length 2", "stored"),
    "nce": ("--data bas:2 --hidden 2", "nll"),
    "predictive-coding": ("--hidden 3 --length 2", "train_error"),
    "rbm": ("--hidden 3 --length 2", "train_error"),
    "scff": ("--hidden 3", "train_error"),
}
MORE_METRICS = [("rbm", "--data bas:5 --hidden 21 --length 2", "nll_ais")]
SLOW = {"clapp", "energy", "harmonium"}  # to compile
LOWER = {"nll", "nll_ais", "nll_per_row", "train_error", "test_error"}  # is better


def test_every_method_is_tried():
    assert SMALLEST.keys() == METHODS.keys()


@pytest.mark.parametrize(
    ("method", "words", "metric"),
    [
        *(
            pytest.param(name, *of, marks=pytest.mark.slow if name in SLOW else ())
            for name, of in SMALLEST.items()
        ),
        *MORE_METRICS,
    ],
)
def test_every_method_trains_from_the_command_line(
    method, words, metric, labelled, tmp_path, capsys
):
    small = ["--phases", "8", "--records", "1", "--seeds", "2", "--out", tmp_path / "run", "--json"]
    code, out, _ = call(capsys, "train", method, "--data", labelled, *words.split(), *small)
    result = json.loads(out)
    assert (
        code == 0
        and [name for name in result if name not in MORE] == KEYS
        and result["metric"] == metric
        and len(result["final"]["values"]) == 2
    )
    assert all(value is not None for value in result["final"]["values"])
    assert METHODS[method].higher_is_better == (metric not in LOWER)  # what the planner is told
    if metric.endswith("error"):
        assert 0 <= result["final"]["mean"] <= 1
    elif metric == "nll_ais":
        # hardly trained: AIS must find the NLL of a uniform model, 2 * 2^5 rows of 25 units
        assert result["final"]["mean"] == pytest.approx(64 * 25 * np.log(2), rel=0.02)


def test_class_conditional_samples_hold_the_label_units(labelled, tmp_path, capsys):
    words = [
        "train",
        "rbm",
        "--data",
        labelled,
        "--hidden",
        "3",
        "--length",
        "2",
        "--phases",
        "8",
        "--records",
        "1",
        "--out",
        tmp_path / "run",
    ]
    assert call(capsys, *words)[0] == 0
    assert (
        call(
            capsys,
            "sample",
            tmp_path / "run",
            "--label",
            "all",
            "--rows",
            "5",
            "--steps",
            "2",
            "--out",
            tmp_path / "s.png",
        )[0]
        == 0
    )
    assert np.array_equal(
        np.load(tmp_path / "s.npy")[:, 16:], np.eye(2)[[0, 0, 0, 1, 1, 1]]
    )  # rounded up, a row each
    assert (
        call(
            capsys,
            "sample",
            tmp_path / "run",
            "--label",
            "1",
            "--rows",
            "2",
            "--steps",
            "2",
            "--out",
            tmp_path / "t.png",
        )[0]
        == 0
    )
    assert np.array_equal(np.load(tmp_path / "t.npy")[:, 16:], [[0, 1], [0, 1]])


def test_sample_writes_a_picture_and_zeros_and_ones(trained, tmp_path, capsys):
    code, out, _ = call(
        capsys,
        "sample",
        trained,
        "--rows",
        "9",
        "--steps",
        "3",
        "--out",
        tmp_path / "s.png",
        "--json",
    )
    rows = np.load(tmp_path / "s.npy", allow_pickle=False)
    assert (
        code == 0
        and json.loads(out)["out"] == str(tmp_path / "s.png")
        and rows.shape == (9, 4)
        and set(np.unique(rows)) <= {0, 1}
    )
    again = call(
        capsys, "sample", trained, "--rows", "9", "--steps", "3", "--out", tmp_path / "s2.svg"
    )
    assert again[0] == 0 and np.array_equal(rows, np.load(tmp_path / "s2.npy"))


def test_sample_completes_a_clamped_half(trained, tmp_path, capsys):
    code, _, _ = call(
        capsys,
        "sample",
        trained,
        "--clamp",
        "top",
        "--rows",
        "20",
        "--steps",
        "5",
        "--out",
        tmp_path / "s.png",
    )
    rows = np.load(tmp_path / "s.npy").reshape(20, 2, 2)
    held = bars_and_stripes(2)[np.random.default_rng(0).integers(8, size=20)].reshape(20, 2, 2)
    assert code == 0 and np.array_equal(rows[:, 0], held[:, 0])


@pytest.mark.parametrize(
    "words", ["--batch 3", pytest.param("--batch 2 --hold 3", marks=pytest.mark.slow)]
)
def test_a_clamped_half_is_that_of_single_rows(words, tmp_path, capsys):
    """Rows that were shown several at a time are held one by one: 8 rows, which 3 does not
    divide.
    """
    run = tmp_path / "run"
    assert call(capsys, *SMALL, "--phases", "4", *words.split(), "--out", run)[0] == 0
    sample = ["sample", run, "--clamp", "left", "--rows", "20", "--steps", "2"]
    assert call(capsys, *sample)[0] == 0
    rows = np.load(run / "samples.npy").reshape(20, 2, 2)
    held = bars_and_stripes(2)[np.random.default_rng(0).integers(8, size=20)].reshape(20, 2, 2)
    assert np.array_equal(rows[:, :, 0], held[:, :, 0])


def test_files_without_out_get_one_free_number(tmp_path, capsys, monkeypatch):
    """The picture and the array of samples the same; what is there stays."""
    run = tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    assert call(capsys, *SMALL, "--phases", "4", "--out", run)[0] == 0
    (run / "samples.npy").write_text("mine")
    assert call(capsys, "sample", run, "--rows", "3")[0] == 0
    assert (run / "samples-2.png").exists() and (run / "samples-2.npy").exists()
    for name in ("figure.png", "figure-2.png"):
        assert call(capsys, "plot", run)[0] == 0
        assert (tmp_path / name).exists()
    (tmp_path / "figure-3.csv").write_text("mine")
    assert call(capsys, "plot", run, "--table")[0] == 0
    assert (tmp_path / "figure-4.png").exists() and (tmp_path / "figure-4.csv").exists()
    assert (tmp_path / "figure-3.csv").read_text() == (run / "samples.npy").read_text() == "mine"


def test_a_machine_that_read_with_noise_has_samples(tmp_path, capsys):
    run, device = tmp_path / "run", ["--device", "bits=8,range=4,read_noise=0.1"]
    assert call(capsys, *SMALL, "--phases", "4", *device, "--out", run)[0] == 0
    code, _, err = call(capsys, "sample", run, "--rows", "5", "--steps", "2")
    assert code == 0 and np.load(run / "samples.npy").shape == (5, 4), err


def test_samples_name_their_machines_and_take_only_words_of_use(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["sample", "--help"]) == 0
    told = capsys.readouterr().out
    assert "(boltzmann, harmonium, helmholtz, rbm)" in told and "helmholtz takes none" in told
    run = tmp_path / "run"
    small = ["--data", "bas:2", "--hidden", "2", "--phases", "4", "--records", "1"]
    assert call(capsys, "train", "helmholtz", *small, "--out", run)[0] == 0
    code, _, err = call(capsys, "sample", run, "--steps", "3")
    assert code == 2 and "leave out --steps" in err and not (run / "samples.npy").exists()
    assert call(capsys, "sample", run, "--rows", "3")[0] == 0
    code, out, _ = call(capsys, "sample", run, "--rows", "3", "--force", "--json")
    assert code == 0 and json.loads(out)["steps"] == 0


def test_plot_draws_several_runs_and_a_table(trained, tmp_path, capsys):
    words = [
        "plot",
        trained,
        trained / "record.nc",
        "--x",
        "updates",
        "--out",
        tmp_path / "f.svg",
        "--table",
        tmp_path / "t.csv",
        "--json",
    ]
    code, out, _ = call(capsys, *words)
    result = json.loads(out)
    assert (
        code == 0
        and (tmp_path / "f.svg").read_text().count("CD-2") >= 1
        and len(result["runs"]) == 2
    )
    assert result["runs"][0]["mean"] == pytest.approx(
        float(Record.load(trained / "record.nc").final().mean())
    )
    code, _, err = call(capsys, *words)
    assert code == 2 and "--force" in err
    assert call(capsys, *words, "--force")[0] == 0


def test_plot_options_and_a_table_beside_the_figure(trained, tmp_path, capsys):
    """The numbers of the table against NumPy's."""
    words = ["plot", trained, "--band", "quantiles", "--log", "both", "--out", tmp_path / "f.svg"]
    code, _, err = call(capsys, *words, "--table")
    assert code == 0 and str(tmp_path / "f.csv") in err
    assert "median and quartiles over 2 seeds" in (tmp_path / "f.svg").read_text()
    names, row = [line.split(",") for line in (tmp_path / "f.csv").read_text().splitlines()]
    values = dict(zip(names, row[-len(names) :], strict=True))
    final = Record.load(trained / "record.nc").final().values
    for name, expected in (
        ("mean", final.mean()),
        ("sd", final.std(ddof=1)),
        ("median", np.median(final)),
    ):
        assert float(values[name]) == pytest.approx(float(expected), rel=1e-5)


def test_plot_refuses_mixed_metrics_and_names_the_methods(trained, labelled, tmp_path, capsys):
    words = ["train", "rbm", "--data", labelled, "--hidden", "2", "--length", "2", "--phases", "4"]
    assert call(capsys, *words, "--records", "1", "--out", tmp_path / "error")[0] == 0
    code, _, err = call(capsys, "plot", trained, tmp_path / "error", "--out", tmp_path / "f.svg")
    assert code == 2 and "nll, train_error" in err and not (tmp_path / "f.svg").exists()
    words = ["train", "boltzmann", "--data", "bas:2", "--hidden", "2", "--length", "2"]
    small = ["--phases", "4", "--records", "1", "--out", tmp_path / "machine"]
    assert call(capsys, *words, *small)[0] == 0
    assert call(capsys, "plot", trained, tmp_path / "machine", "--out", tmp_path / "f.svg")[0] == 0
    drawn = (tmp_path / "f.svg").read_text()
    assert "RBM, CD-2" in drawn and "Boltzmann machine, AoL, T = 2, b = 0.5" in drawn


def test_help_names_every_command_and_true_defaults(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    told = [line.split()[0] for line in listed.splitlines() if re.match(r" {4}\w", line)]
    assert told == list(COMMANDS)
    for method in METHODS:
        assert main(["train", method, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        defaults = vars(parser().parse_args(["train", method]))
        told = {
            name: value
            for name, value in defaults.items()
            if value not in (None, False) and name not in ("command", "method", "func")
        }
        assert {
            "data",
            "rule",
            "b",
            "length",
            "lr",
            "optimiser",
            "seeds",
            "records",
            "engine",
        } <= set(told)
        for name, value in told.items():
            switch = f" --{name.replace('_', '-')}"  # --centred, --no-centred
            entry = re.split(f"{switch}(?:, --no-[a-z]+)? ", text)[-1].split(" --")[0]
            assert f"(default: {value})" in entry, (method, name)


def test_start_up_imports_nothing_heavy():
    heavy = "jax", "xarray", "matplotlib", "rich", "numpy", "dask"
    code = (
        f"import sys; from flexphase.cli import parser; parser(); print([m for m in {heavy} if m "
        "in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_as_a_process():
    from flexphase import __version__

    done = subprocess.run(
        [sys.executable, "-m", "flexphase", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"flexphase {__version__}\n" and done.stderr == ""


def test_a_reader_that_goes_away_is_no_error(trained):
    words = ["plot", str(trained), "--json", "--out", str(trained.parent / "p.png")]
    done = subprocess.Popen(
        [sys.executable, "-m", "flexphase", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    done.stdout.close()
    assert done.wait() == 141 and "Traceback" not in done.stderr.read()
    done.stderr.close()


@pytest.mark.parametrize(
    "sent",
    [
        signal.SIGHUP,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_a_real_signal_ends_a_real_process_and_loses_nothing(sent, tmp_path):
    long = "train rbm --data bas:2 --phases 10000000 --records 1000 --engine jax"
    words = f"{long} --out {tmp_path}/run".split()
    # a shell's background jobs are deaf to Ctrl-C, those of nohup to SIGHUP
    hear = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    )
    command = [
        sys.executable,
        "-c",
        f"{hear}; from flexphase.__main__ import main; main()",
        *words,
    ]
    checkpoint, times = tmp_path / "run" / "checkpoint.npz", set()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and len(times) < 2:  # the first is written before it compiles
            times |= {checkpoint.stat().st_mtime_ns} if checkpoint.exists() else set()
            time.sleep(0.05)
        process.send_signal(sent)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (
        process.returncode == 130 and out == "" and "--resume" in err and "Traceback" not in err
    ), err
    assert Record.load(tmp_path / "run" / "record.nc").attrs["interrupted"] == 1


@pytest.mark.parametrize(
    "sent", ["SIGHUP", *(pytest.param(s, marks=pytest.mark.slow) for s in ("SIGINT", "SIGTERM"))]
)
def test_a_signal_while_results_are_written_loses_nothing(sent, tmp_path):
    words = f"train rbm --data bas:2 --phases 4 --engine jax --out {tmp_path}/run".split()
    patch = f"""
import os, signal, sys
from flexphase.cli import main, train
keep = train.keep
train.keep = lambda *what: (os.kill(os.getpid(), signal.{sent}), keep(*what))
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())"""
    done = subprocess.run([sys.executable, "-c", patch, *words], capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "run" / "curve.svg").exists(), done.stderr


def test_a_terminal_gets_a_bar_with_rate_time_left_and_the_metric(tmp_path):
    ours, theirs = os.openpty()
    words = [
        "train",
        "rbm",
        "--data",
        "bas:3",
        "--phases",
        "3000",
        "--seeds",
        "4",
        "--engine",
        "jax",
        "--out",
        str(tmp_path / "run"),
    ]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-m", "flexphase", *words], stdout=subprocess.PIPE, stderr=theirs, env=env
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end of a terminal has gone
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.communicate()[0] == b"" and process.returncode == 0
    text = shown.decode()
    assert (
        "ticks/s" in text
        and "nll " in text
        and re.search(r"\d+%", text)
        and re.search(r"\d:\d\d:\d\d", text)
    )
