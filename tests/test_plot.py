"""What is drawn is what was recorded: the numbers in the axes against NumPy's own mean and standard
deviation.
"""

import json

import numpy as np
import pytest
import xarray as xr

import flexphase as fp
from flexphase import plot
from flexphase.describe import describe
from flexphase.methods import BoltzmannMachine
from flexphase.record import Record


def made_up(seeds=3, records=4, b=None, metrics=("nll",)):
    """A record with known numbers."""
    rng = np.random.default_rng(0)
    dims = ("b", "seed", "record") if b else ("seed", "record")
    shape = (len(b), seeds, records) if b else (seeds, records)
    clocks = {
        name: (dims, np.broadcast_to(np.arange(records) * step, shape).copy())
        for name, step in (("ticks", 100), ("phases", 10), ("updates", 5))
    }
    values = {name: (dims, rng.random(shape)) for name in metrics}
    coords = {"seed": np.arange(seeds)} | ({"b": list(b)} if b else {})
    lanes = {"diverged_at": (dims[:-1], np.full(shape[:-1], -1))}
    weights = {
        "params.W": (("seed", "v", "h"), rng.normal(size=(seeds, 6, 2))),
        "params.a": (("seed", "v"), np.zeros((seeds, 6))),
    }
    attrs = {"metrics": json.dumps(metrics), "config": "{}"}
    return Record(xr.Dataset(clocks | values | lanes | ({} if b else weights), coords, attrs))


@pytest.mark.parametrize(("clock", "last"), [("ticks", 300), ("phases", 30), ("updates", 15)])
def test_curves_are_mean_and_sd_against_the_clock(clock, last):
    record = made_up()
    ax = plot.curves(record, x=clock)
    (line,), (band,) = ax.lines, ax.collections
    values = record["nll"].values
    assert np.allclose(line.get_ydata(), values.mean(0)) and line.get_xdata()[-1] == last
    low, high = band.get_datalim(ax.transData).intervaly
    assert low == pytest.approx((values.mean(0) - values.std(0, ddof=1)).min())
    assert high == pytest.approx((values.mean(0) + values.std(0, ddof=1)).max())
    assert "nats" in ax.get_ylabel() and ax.get_xlabel()


def test_bands_are_standard_errors_or_quartiles_of_the_seeds_that_did_not_diverge():
    """Against NumPy's own mean, standard deviation and quantiles."""
    record = made_up(seeds=5)
    record["nll"].values[0] = np.inf
    values = record["nll"].values[1:]
    sem = values.std(0, ddof=1) / 2  # the root of four seeds
    quartiles = np.quantile(values, [0.25, 0.75], axis=0)
    expected = {
        "sem": (values.mean(0), values.mean(0) - sem, values.mean(0) + sem),
        "quantiles": (np.median(values, axis=0), *quartiles),
    }
    for band, (middle, low, high) in expected.items():
        ax = plot.curves(record, band=band)  # type: ignore[arg-type]
        assert np.allclose(ax.lines[0].get_ydata(), middle)
        edges = ax.collections[0].get_datalim(ax.transData).intervaly
        assert edges == pytest.approx([low.min(), high.max()])


@pytest.mark.parametrize(
    ("band", "seeds", "says"),
    [
        ("sd", 3, "mean and sd over 3 seeds"),
        ("sem", 3, "mean and standard error over 3 seeds"),
        ("quantiles", 3, "median and quartiles over 3 seeds"),
        ("sd", 1, "one seed"),
    ],
)
def test_the_legend_says_what_a_band_is_even_of_one_curve_without_a_name(band, seeds, says):
    legend = plot.curves(made_up(seeds=seeds), band=band).get_legend()
    assert legend.get_title().get_text() == says and not legend.get_texts()


@pytest.mark.parametrize(
    ("log", "scales"),
    [
        (None, ("linear", "linear")),
        ("x", ("log", "linear")),
        ("y", ("linear", "log")),
        ("both", ("log", "log")),
    ],
)
def test_logarithmic_axes(log, scales):
    ax = plot.curves(made_up(), log=log)
    ax.figure.canvas.draw()  # ticks and their labels are made here
    assert (ax.get_xscale(), ax.get_yscale()) == scales


def test_records_that_measure_different_things_share_no_axis():
    nll, error = made_up(), made_up(metrics=("test_error", "nll"))
    with pytest.raises(ValueError, match=r"different things \(nll, test_error\)"):
        plot.curves([nll, error])
    assert "nats" in plot.curves([nll, error], "nll").get_ylabel()


def test_a_legend_names_the_label_or_the_method_of_several_records():
    one, two = made_up(), made_up()
    one.attrs["label"] = "RBM, CD-2"
    machine = describe(BoltzmannMachine(4, 2))
    two.attrs["config"] = json.dumps({"run": {"method": machine}})
    texts = plot.curves([one, two]).get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["RBM, CD-2", "BoltzmannMachine"]


def test_a_part_of_a_record_can_be_drawn():
    """One seed of a record, one setting, or both: the numbers are the record's own."""
    record = made_up(b=[0.25, 0.5])
    values = record["nll"].values
    ax = plot.curves(record.sel(seed=2))
    for line, expected in zip(ax.lines, values[:, 2], strict=True):
        assert np.array_equal(line.get_ydata(), expected)
    assert ax.get_legend().get_title().get_text() == "one seed"
    (line,) = plot.curves(record.sel(b=0.5, seed=2), band="quantiles").lines
    assert np.array_equal(line.get_ydata(), values[1, 2])
    (line,) = plot.curves(record.sel(b=0.5)).lines
    assert np.allclose(line.get_ydata(), values[1].mean(0))
    (bars,) = plot.against(record.sel(seed=2), "b").containers
    assert np.array_equal(bars.lines[0].get_ydata(), values[:, 2, -1])
    ax = plot.curves({"all": record.sel(b=0.5), "one": record.sel(b=0.5, seed=1)})
    assert ax.get_legend().get_title().get_text() == "mean and sd over 1 or 3 seeds"


def test_several_records_and_settings_share_the_axes_given():
    ax = plot.axes()
    plot.curves({"one": made_up()}, ax=ax)
    assert plot.curves({"two": made_up(b=[0.25, 0.5])}, ax=ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "one",
        "two, b = 0.25",
        "two, b = 0.5",
    ]
    assert [line.get_color() for line in ax.lines] == list(plot.PALETTE[:3])


def test_a_notebook_shows_a_figure_without_pyplot():
    assert plot.curves(made_up()).figure._repr_png_().startswith(b"\x89PNG")


def test_diverged_seeds_are_left_out_of_the_mean():
    record = made_up(seeds=2)
    record["nll"].values[0, 2:] = np.nan
    assert np.array_equal(plot.curves(record).lines[0].get_ydata()[2:], record["nll"].values[1, 2:])


def test_errors_are_shown_in_per_cent():
    record = made_up(metrics=("test_error",))
    ax = plot.curves(record)
    assert (
        np.allclose(ax.lines[0].get_ydata(), 100 * record["test_error"].values.mean(0))
        and ax.get_ylabel() == "test error (%)"
    )


def test_against_a_swept_dimension():
    record = made_up(b=[0.2, 0.5, 0.8])
    ax = plot.against(record, "b")
    (bars,) = ax.containers
    assert np.allclose(bars.lines[0].get_xdata(), [0.2, 0.5, 0.8])
    assert np.allclose(bars.lines[0].get_ydata(), record["nll"].values[..., -1].mean(1))
    with pytest.raises(ValueError, match="select the others"):
        plot.against(record, "eta")


def test_tiles_put_every_pixel_where_it_belongs():
    canvas = plot.tiles(np.arange(12).reshape(3, 4), columns=2)
    expected = [
        [0, 1, np.nan, 4, 5],
        [2, 3, np.nan, 6, 7],
        [np.nan] * 5,
        [8, 9, np.nan, np.nan, np.nan],
        [10, 11, np.nan, np.nan, np.nan],
    ]
    assert np.array_equal(canvas, np.array(expected, float), equal_nan=True)
    assert plot.tiles(np.zeros((1, 6)), (2, 3)).shape == (2, 3) and plot.picture_shape(6) == (1, 6)
    for rows, shape in ((np.zeros((2, 4)), (3, 2)), (np.zeros((0, 4)), None), (np.zeros(4), None)):
        with pytest.raises(ValueError, match="picture"):
            plot.tiles(rows, shape)


def test_receptive_fields_are_the_columns_of_w():
    record = made_up()
    ax = plot.receptive_fields(record, lane=1, shape=(2, 3))
    shown = np.asarray(ax.images[0].get_array())
    assert np.allclose(shown[:, :3], record.params["W"][1, :, 0].reshape(2, 3))
    for lane in (-1, 99):
        with pytest.raises(ValueError, match="number"):
            plot.receptive_fields(record, lane=lane)
    with pytest.raises(ValueError, match="RBM"):
        plot.receptive_fields(made_up(b=[0.5]))


def test_receptive_fields_of_slow_weights():
    """They are those of the parameters that were averaged, and other ones than the last."""
    run = fp.Run(fp.RBM(4, 3), *fp.aol(), fp.Rows(fp.bars_and_stripes(2)), fp.Optimiser(0.1))
    record = fp.train(run, ticks=60, average=0.5)
    for averaged, params in ((False, record.params), (True, record.averaged_params)):
        ax = plot.receptive_fields(record, shape=(2, 2), averaged=averaged)
        assert np.allclose(ax.images[0].get_array()[:2, :2], params["W"][0, :, 0].reshape(2, 2))
    assert not np.allclose(record.params["W"], record.averaged_params["W"])


def test_bad_requests_get_a_sentence(tmp_path):
    record = made_up()
    for bad, words in (
        (lambda: plot.curves(record, x="hours"), "clock"),  # type: ignore[arg-type]
        (lambda: plot.curves(record, band="iqr"), "sd, sem, quantiles"),  # type: ignore[arg-type]
        (lambda: plot.curves(record, log="z"), "x, y, both"),  # type: ignore[arg-type]
        (lambda: plot.curves([]), "at least one record"),
        (lambda: plot.curves(record, "beauty"), "choose from nll"),
        (lambda: plot.curves(made_up(metrics=())), "no metric"),
        (lambda: plot.save(plot.curves(record), tmp_path / "figure.docx"), "end the name"),
    ):
        with pytest.raises(ValueError, match=words):
            bad()
    assert not list(tmp_path.iterdir())


def test_a_figure_is_written_whole_and_twice_alike(tmp_path):
    for kind in ("svg", "png", "pdf"):
        first, second = (
            plot.save(plot.curves(made_up()), tmp_path / f"{i}.{kind}").read_bytes()
            for i in range(2)
        )
        assert first == second and len(first) > 1000
    assert len(list(tmp_path.iterdir())) == 6


def test_pyplot_is_left_alone():
    import subprocess
    import sys

    code = (
        "import sys, numpy; from flexphase import plot; plot.pictures(numpy.eye(4)); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "False"
    )
