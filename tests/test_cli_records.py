"""Slow weights, records that are runs and resuming, through the command line."""

import json

import numpy as np
import pytest

import flexphase as fp
from flexphase.cli import main

WORDS = "train rbm --data bas:2 --hidden 3 --length 5 --seeds 2 --records 4"


def go(words, capsys, code=0):
    assert main(words.split()) == code, capsys.readouterr().err
    out = capsys.readouterr()
    return json.loads(out.out) if "--json" in words else out.err


def test_average_adds_the_slow_weights_to_the_json(tmp_path, capsys):
    """The numbers are those of `train(average=...)` on the same run."""
    out = tmp_path / "run"
    found = go(f"{WORDS} --phases 80 --average 0.5 --json --out {out}", capsys)
    record = fp.Record.load(out / "record.nc")
    assert set(found["averaged"]) == {"mean", "sd", "values"}
    assert found["averaged"]["values"] == pytest.approx(record.final(averaged=True).values)
    assert found["final"]["values"] == pytest.approx(record.final().values)
    assert found["averaged"]["values"] != found["final"]["values"]
    again = fp.train(
        record.run(),
        ticks=400,
        seeds=2,
        records=4,
        average=0.5,
        metrics={"nll": fp.NLL(fp.bars_and_stripes(2))},
    )
    np.testing.assert_array_equal(again.averaged_params["W"], record.averaged_params["W"])
    for words in (
        f"sample {out} --averaged --rows 4 --steps 5",
        f"plot {out} --averaged --out {tmp_path}/f.png",
    ):
        go(words, capsys)
    assert (tmp_path / "f.png").stat().st_size > 1000


@pytest.mark.parametrize("fraction", ["1", "-0.1", "half", "nan"])
def test_averages_that_cannot_begin(fraction, tmp_path, capsys):
    assert main(f"{WORDS} --average {fraction} --out {tmp_path}/run".split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "--average" in error and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("--rule isd", "estimator.weigh"),
        ("--b 0.4", "process.selection.b"),
        ("--lr 0.02", "optimiser.eta"),
        ("--engine jax", "engine"),
        ("--data bas:3", "method.visible"),
        ("--no-visible-bias", "method.visible_bias"),
        ("--seed 4", "dims.seed"),
        ("--batch 2", "class"),
        ("--average 0.4", "average"),
    ],
)
def test_a_run_is_not_resumed_as_another(changed, differs, tmp_path, capsys):
    """A finished AoL run 'resumed' as ISD once printed AoL's result under ISD's name."""
    out = tmp_path / "run"
    go(f"{WORDS} --rule aol --phases 20 --out {out}", capsys)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    error = go(f"{WORDS} --rule aol --phases 20 {changed} --resume --out {out}", capsys, code=2)
    assert "another configuration" in error and differs in error and error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_finished_run_is_extended(tmp_path, capsys):
    out, whole = tmp_path / "run", tmp_path / "whole"
    go(f"{WORDS} --phases 20 --out {out}", capsys)
    found = go(f"{WORDS} --phases 60 --resume --json --out {out}", capsys)
    direct = go(f"{WORDS} --phases 60 --json --out {whole}", capsys)
    assert found["final"] == direct["final"] and found["phases"] == direct["phases"] == 60
    one, two = (fp.Record.load(path / "record.nc") for path in (out, whole))
    np.testing.assert_array_equal(one.params["W"], two.params["W"])


def test_records_made_in_python_are_sampled_planned_and_plotted(tmp_path, capsys):
    rows = fp.bars_and_stripes(2)

    def run(b):
        return fp.Run(fp.RBM(4, 3), *fp.aol(b, 4), fp.Rows(rows), fp.Optimiser(0.05))

    grid = fp.grid(run, b=[0.3, 0.5])
    record = fp.train(grid, ticks=400, metrics={"nll": fp.NLL(rows)}, records=2, average=0.5)
    path = record.save(tmp_path / "mine.nc")
    for words in (
        f"sample {path} --lane 1 --rows 4 --steps 5 --clamp top --out {tmp_path}/s.png",
        f"plot {path} --out {tmp_path}/p.png",
    ):
        go(words, capsys)
    advice = go(f"plan {path} --lane 1 --averaged --lanes 8 --json", capsys)
    assert 0 < advice["b"] < 1 and advice["tau"] >= 1
    assert main(f"sample {path} --lane 2 --out {tmp_path}/t.png".split()) == 2
    assert "2 trained networks, numbered from 0" in capsys.readouterr().err
    assert main(f"plan {path} --lane 2".split()) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_batches_from_the_command_line(tmp_path, capsys):
    found = go(f"{WORDS} --phases 20 --batch 4 --json --out {tmp_path}/run", capsys)
    run = fp.Record.load(tmp_path / "run" / "record.nc").run()
    assert found["engine"] == "jax" and isinstance(run.method, fp.Replicas) and run.method.n == 4


@pytest.fixture
def of_a_file(tmp_path, capsys, monkeypatch):
    """The words of a run that learned x.csv of the current folder."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("x.csv", np.eye(4), "%d", ",")
    words = "train rbm --data x.csv --hidden 2 --length 2 --records 1 --phases 4"
    go(f"{words} --out run", capsys)
    return words


def test_a_run_is_not_planned_for_other_data(of_a_file, capsys):
    np.savetxt("x.csv", 1 - np.eye(4), "%d", ",")
    error = go("plan run", capsys, code=2)
    assert "are not what they were: source.data" in error and error.count("\n") == 1


def test_data_that_are_in_the_record_are_not_loaded_again(of_a_file, tmp_path, capsys):
    (tmp_path / "x.csv").unlink()
    assert "rbm" in go("ledger run --phases 2", capsys).lower()
    assert "there is no data 'x.csv'" in go("plan run", capsys, code=2)


@pytest.mark.parametrize(
    ("words", "average"),
    [
        ("rbm --average 0", 0),
        ("rbm --average none", None),
        ("rbm", 0.5),
        ("energy --averaged", 0.5),
        ("energy", None),
        ("run", 0),
    ],
)
def test_the_average_that_is_planned_for(words, average, of_a_file, capsys, monkeypatch):
    """Zero is one, too: it averages over the whole of training."""
    go(f"{of_a_file} --average 0 --resume --out run2", capsys)
    asked = []
    monkeypatch.setattr("flexphase.theory.ahead.plan_run", lambda *_, **named: asked.append(named))
    go(f"plan {words.replace('run', 'run2')}", capsys)
    assert [named["average"] for named in asked] == [average]
