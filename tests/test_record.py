"""Records: what is in them, and what comes back from disk."""

import functools
import json
import re

import numpy as np
import optax
import pytest
import xarray as xr
from on_jax import train

from flexphase import record_view, shown
from flexphase.cli.plot import finals
from flexphase.core import Optimiser, Run
from flexphase.data import Rows, bars_and_stripes
from flexphase.describe import describe
from flexphase.files import replacing
from flexphase.lanes import grid
from flexphase.likelihood import NLL
from flexphase.methods import RBM
from flexphase.metrics import AtEnd, OverLanes
from flexphase.record import Record
from flexphase.rules import aol

ROWS = bars_and_stripes(2)


def a_run(b, eta=0.1):
    return Run(RBM(4, 3), *aol(b, 5), Rows(ROWS), Optimiser(eta))


@pytest.fixture(scope="module")
def record():
    return train(
        grid(a_run, b=[0.3, 0.6], eta=[0.1, 0.2]),
        ticks=40,
        seeds=3,
        seed=5,
        records=4,
        metrics={"nll": NLL(ROWS)},
    )


def test_dimensions_clocks_parameters_and_provenance(record):
    assert dict(record["nll"].sizes) == {"b": 2, "eta": 2, "seed": 3, "record": 5}
    assert record["seed"].values.tolist() == [5, 6, 7] and record["b"].values.tolist() == [0.3, 0.6]
    assert record["ticks"].isel(b=0, eta=0, seed=0).values.tolist() == [0, 10, 20, 30, 40]
    assert (record["phases"].isel(record=-1) == 8).all() and (
        record["updates"] == record["ticks"]
    ).all()
    assert {name: value.shape for name, value in record.params.items()} == {
        "W": (2, 2, 3, 4, 3),
        "a": (2, 2, 3, 4),
        "c": (2, 2, 3, 3),
    }
    run = record.config["run"]
    assert run["method"] == {
        "class": "flexphase.methods.rbm.RBM",
        "visible": 4,
        "hidden": 3,
        "visible_bias": True,
        "negative_start": "carry",
        "scale": 0.01,
    }
    assert run["process"]["selection"]["b"] == {"float32": {"swept": "process.selection.b"}}
    assert np.allclose(record["swept.process.selection.b"], [[0.3] * 2, [0.6] * 2])
    assert np.allclose(record["swept.optimiser.eta"], [[0.1, 0.2]] * 2)
    assert run["estimator"]["weigh"] == {"function": "flexphase.estimators.weigh_always_on"}
    assert (
        record.config["dims"]["seed"] == [5, 6, 7]
        and record.config["ticks"] == 40
        and record.config["engine"] == "jax"
    )
    assert {"python", "jax", "equinox", "numpy"} <= set(json.loads(record.attrs["versions"]))
    assert (
        record.attrs["seconds"] > 0
        and record.attrs["metric_seconds"] > 0
        and record.attrs["interrupted"] == 0
    )


def test_the_metric_belongs_to_the_parameters(record):
    from flexphase.methods.rbm import Params

    W, a, c = (record.params[name][1, 0, 2] for name in ("W", "a", "c"))
    assert record.final()[1, 0, 2] == pytest.approx(float(NLL(ROWS)(Params(W, a, c))), rel=1e-6)


def test_saved_and_loaded(record, tmp_path):
    path = record.save(tmp_path / "record.nc")
    back = Record.load(path)
    xr.testing.assert_identical(back.dataset, record.dataset)
    assert back.config == record.config and back.metrics == ["nll"]
    assert [p.name for p in tmp_path.iterdir()] == ["record.nc"]


@pytest.mark.parametrize("ask", [Record.final, Record.untrained, Record.optimum])
def test_a_metric_that_is_not_there_is_a_sentence(record, ask):
    with pytest.raises(ValueError, match=r"no metric 'nnl'; choose from nll"):
        ask(record, "nnl")
    with pytest.raises(ValueError, match=r"no metric; train with metrics="):
        ask(train(a_run(0.5), ticks=4))


def polylines(html):
    """The curves of a small figure: their titles, colours and heights."""
    found = re.findall(
        r'<polyline points="([^"]*)"[^>]*stroke="([^"]*)".*?<title>(.*?)</title>', html
    )
    return {
        title: (colour, np.array([p.split(",") for p in points.split()], float)[:, 1])
        for points, colour, title in found
    }


def band(html):
    """The height of the band of the only curve, in the units of the axis."""
    (points,) = re.findall(r'<polygon points="([^"]*)"', html)
    ys = np.array([p.split(",") for p in points.split()], float)[:, 1]
    return ys[::-1][: len(ys) // 2] - ys[: len(ys) // 2]


def test_the_curve_in_a_notebook_has_the_band_of_plot_and_of_the_summary():
    """Seeds that diverged are left out, and n - 1 is the divisor: NumPy's own sd of the others. The
    least and the largest number of the figure give the units of its axis.
    """
    record = train(a_run(0.5), ticks=40, seeds=5, records=4, metrics={"nll": NLL(ROWS)})
    record["nll"].values[1, -1] = np.inf
    values = np.delete(record["nll"].values, 1, axis=0)
    mean, sd = values.mean(0), values.std(0, ddof=1)
    before = record["nll"].values[:, :-1]
    mean[:-1], sd[:-1] = before.mean(0), before.std(0, ddof=1)
    optimum = record.optimum()
    top, bottom = (mean + sd).max(), min((mean - sd).min(), optimum)
    height = shown.HEIGHT - shown.BELOW - 8
    drawn = band(record_view.curve(record)) * (top - bottom) / height
    np.testing.assert_allclose(drawn, 2 * sd, atol=0.11 * (top - bottom) / height)


def test_the_curve_of_one_seed_is_drawn():
    record = train(a_run(0.5), ticks=40, records=4, metrics={"nll": NLL(ROWS)})
    assert len(polylines(record_view.curve(record))[""][1]) == 5


def test_a_notebook_shows_every_setting():
    """Nine settings, more than there are colours: each has a line of its own look."""
    b = np.linspace(0.1, 0.9, 9).round(1).tolist()
    record = train(grid(a_run, b=b), ticks=4, records=1, metrics={"nll": NLL(ROWS)})
    html = record_view.curve(record)
    assert list(polylines(html)) == [f"b = {value:g}" for value in b]
    looks = re.findall(r'<polyline points="[^"]*" ([^>]*)>', html)
    assert len({*looks}) == 9


def test_tidy_table(record):
    table = record.to_dataframe()
    assert len(table) == 2 * 2 * 3 * 5 and set(table) == {
        "b",
        "eta",
        "seed",
        "record",
        "ticks",
        "phases",
        "updates",
        "nll",
    }
    row = table[
        (table.b == 0.6) & (table.eta == 0.1) & (table.seed == 6) & (table.record == 3)
    ].iloc[0]
    assert (
        row.nll == float(record["nll"].sel(b=0.6, eta=0.1, seed=6).isel(record=3))
        and row.ticks == 30
    )


def test_files_that_are_no_records(tmp_path):
    with pytest.raises(ValueError, match="no record at"):
        Record.load(tmp_path / "missing.nc")
    (tmp_path / "text.nc").write_text("text")
    with pytest.raises(ValueError, match="not a record of flexphase"):
        Record.load(tmp_path / "text.nc")
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="not a record of flexphase"):
        Record.load(tmp_path / "other.nc")


@pytest.mark.parametrize(
    "damage",
    [
        {"config": "{}"},
        {"config": "{"},
        {"metrics": '["gone"]'},
        {"metrics": "3"},
        {"seconds": None},
    ],
    ids=str,
)
def test_damaged_records(record, damage, tmp_path):
    dataset = record.dataset.copy()
    dataset.attrs = {k: v for k, v in (dataset.attrs | damage).items() if v is not None}
    path = Record(dataset).save(tmp_path / "damaged.nc")
    with pytest.raises(ValueError, match="not a record of flexphase"):
        Record.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"words"])
def test_files_that_are_no_checkpoints(content, tmp_path):
    (tmp_path / "kept").write_bytes(content)
    with pytest.raises(ValueError, match="not a checkpoint of flexphase"):
        train(a_run(0.5), ticks=4, checkpoint=tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == content


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_descriptions_are_json_and_tell_settings_apart():
    """Floats as they were written, partial functions by their arguments, large arrays by a
    digest.
    """
    described = describe(Optimiser(1e-10, functools.partial(optax.sgd, momentum=0.9)))
    assert described["eta"] == {"float32": 1e-10}
    assert described["make"]["partial"] == {"function": "optax.sgd"}
    assert described["make"]["keywords"] == {"momentum": 0.9}
    big, other = np.zeros((20, 20)), np.zeros((20, 20))
    other[3, 3] = 1
    assert describe(big) == describe(big.copy()) != describe(other)
    assert json.loads(json.dumps(described)) == described


def test_an_expensive_metric_is_taken_at_the_end_only():
    expensive = AtEnd(lambda p: p.W.sum() * 0, lambda p: p.W.sum() * 0 + 1)
    record = train(a_run(0.5), phases=10, records=3, metrics={"error": expensive})
    assert (
        np.array_equal(record["error"], [[0, 0, 0, 0]]) and record.final() == 1
    )  # by construction: 0 along the way, 1 at the end
    assert finals("", record, None)[0]["mean"] == 1  # in the table of `flexphase plot`, too


class Interrupts(OverLanes):
    def __call__(self, params):
        raise KeyboardInterrupt


def test_ctrl_c_during_an_expensive_metric_keeps_the_record():
    record = train(
        a_run(0.5),
        phases=10,
        records=3,
        metrics={"error": AtEnd(lambda p: p.W.sum(), Interrupts())},
    )
    assert (
        record.attrs["interrupted"] == 1
        and record.final() == record["error"][0, -1]
        and record["error"].sizes["record"] == 4
    )


@pytest.mark.parametrize(
    "metric",
    ["ticks", "record", "diverged_at", "params.W", "final.nll", "seed", "b", "a/b", "", "."],
)
def test_a_metric_that_no_record_could_hold_is_refused_before_training(metric):
    with pytest.raises(ValueError, match="cannot name an axis or a metric"):
        train(grid(a_run, b=[0.3, 0.6]), ticks=4, metrics={metric: NLL(ROWS)}, progress=pytest.fail)


def test_files_know_an_expensive_metric_by_its_first_name():
    """Checkpoints and folders from before it was moved go on."""
    assert describe(AtEnd(1, 2)) == {"class": "flexphase.log.AtEnd", "along": 1, "end": 2}
