"""Slow weights: against a mean taken by hand, on every engine, across stops and extensions."""

import jax
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flexphase as fp
from flexphase.averages import Slow

ROWS = fp.bars_and_stripes(2)
IMAGES, LABELS = np.random.default_rng(0).random((12, 6)).astype(np.float32), np.arange(12) % 3
METRICS = {"size": lambda params: sum((leaf**2).sum() for leaf in jax.tree.leaves(params))}


def rbm(b=0.5):
    return fp.Run(fp.RBM(4, 3), *fp.aol(b, 3), fp.Rows(ROWS), fp.Optimiser(0.1))


def forward_forward():
    source = fp.LabelContrast(IMAGES, LABELS, classes=3)
    method = fp.ForwardForward((6, 5, 4), classes=3)
    return fp.Run(method, *fp.cd(1), source, fp.Optimiser(0.01, optax.adam))


#: Forward-Forward's engine settles Adam's deferred decay where a call ends, which rounds otherwise.
EXACT = {"rbm": 0, "forward-forward": 2e-6}
RUNS = {"rbm": rbm(), "forward-forward": forward_forward()}


@pytest.mark.parametrize("engine", ["native", "jax"])
@pytest.mark.parametrize("name", RUNS)
def test_the_mean_of_the_parameters_at_the_moments(name, engine):
    """By hand: one run to each moment, and NumPy's mean of where they ended."""
    average = fp.Mean(0.5, 4)
    moments = average.moments(40)
    assert moments.tolist() == [25, 30, 35, 40]
    options = {"seeds": 2, "records": 3, "engine": engine}
    record = fp.train(RUNS[name], ticks=40, metrics=METRICS, average=average, **options)
    ends = [fp.train(RUNS[name], ticks=int(t), **options) for t in moments]
    for leaf, value in record.averaged_params.items():
        mean = np.mean([end.params[leaf].astype(float) for end in ends], axis=0)
        rounding = 2e-7 + EXACT[name]  # to single precision, once
        np.testing.assert_allclose(value, mean, rtol=rounding, atol=rounding)
        np.testing.assert_allclose(record.params[leaf], ends[-1].params[leaf], rtol=EXACT[name])
    mine = [METRICS["size"](record.parameters(averaged=True, lane=i)) for i in range(2)]
    np.testing.assert_allclose(record.final(averaged=True), mine, rtol=1e-6)
    assert np.isnan(record["averaged.size"][:, :2]).all()  # it begins in the second half
    assert np.isfinite(record["averaged.size"][:, -1]).all()


def test_an_average_changes_nothing_else():
    plain, slow = (fp.train(rbm(), ticks=60, metrics=METRICS, average=a) for a in (None, 0.2))
    for name in ("size", "params.W", "ticks", "phases", "updates"):
        np.testing.assert_array_equal(plain[name], slow[name])
    assert slow.averaged and not plain.averaged
    drawn = [record._repr_html_().count("<polyline") for record in (plain, slow)]
    assert drawn == [1, 2]  # a notebook shows the curve of the slow weights too


def test_a_record_in_a_notebook_names_its_band_and_keeps_the_view_of_xarray():
    one, two = (fp.train(rbm(), ticks=60, seeds=n, metrics=METRICS)._repr_html_() for n in (1, 2))
    assert "size, mean and sd over 2 seeds, against phases" in two
    assert "size against phases" in one
    assert "all that was recorded" in two and "xr-wrap" in two


def test_the_exponential_mean_is_the_recursion_of_its_definition():
    """m += max(1/n, 1/count) (theta - m) at every horizon / count ticks."""
    average = fp.Exponential(12, 4)
    record = fp.train(rbm(), ticks=31, records=1, average=average)
    mean, moments = 0.0, average.moments(31)
    assert moments.tolist() == [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]
    for n, t in enumerate(moments, 1):
        W = fp.train(rbm(), ticks=int(t), records=1).params["W"].astype(float)
        mean = mean + max(1 / n, 1 / 4) * (W - mean)
    np.testing.assert_allclose(record.averaged_params["W"], mean, rtol=1e-6, atol=1e-9)


@given(st.integers(1, 300), st.floats(0, 0.99), st.integers(1, 120))
def test_moments_are_whole_ticks_of_the_last_part(total, start, count):
    moments = fp.Mean(start, count).moments(total)
    assert (np.diff(moments) > 0).all() and moments[-1] == total and moments[0] >= 1
    assert len(moments) <= count and moments[0] > start * total - 1e-6


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=30))
def test_the_running_mean_is_the_mean(values):
    slow = Slow.empty(fp.Mean(), np.zeros(1, np.float32))
    for t, value in enumerate(values):
        slow.add(np.array([value], np.float32), t)
    assert slow.mean[0][0] == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)


def interrupted(run, path, **options):
    def ctrl_c(done, total, latest):
        if done > 33:
            raise KeyboardInterrupt

    record = fp.train(run, checkpoint=path, progress=ctrl_c, **options)
    assert record.attrs["interrupted"]


def same(one, two):
    return all(
        np.array_equal(one[name], two[name], equal_nan=True)
        for name in one.dataset
        if not str(name).startswith("data.")
    )


@pytest.mark.codegen
@pytest.mark.parametrize("engine", ["native", "jax"])
def test_the_same_bits_after_a_stop(engine, tmp_path):
    options = {"ticks": 60, "records": 6, "metrics": METRICS, "average": 0.3, "engine": engine}
    interrupted(rbm(), tmp_path / "c.npz", **options)
    resumed = fp.train(rbm(), checkpoint=tmp_path / "c.npz", **options)
    assert same(resumed, fp.train(rbm(), **options))


@pytest.mark.codegen
@pytest.mark.parametrize("engine", ["native", "jax"])
@pytest.mark.parametrize("average", [None, 0.5, fp.Exponential(20, 4)])
def test_a_finished_run_is_extended_to_the_bits_of_the_longer_one(engine, average, tmp_path):
    options = {"records": 5, "metrics": METRICS, "average": average, "engine": engine}
    fp.train(rbm(), ticks=50, checkpoint=tmp_path / "c.npz", **options)
    longer = fp.train(rbm(), ticks=100, checkpoint=tmp_path / "c.npz", **options)
    whole = fp.train(rbm(), ticks=100, **options)
    for name in whole.dataset:
        if "record" not in whole[str(name)].dims:
            np.testing.assert_array_equal(longer[str(name)], whole[str(name)])
    at = [longer["ticks"][0].values.tolist().index(t) for t in whole["ticks"][0].values]
    np.testing.assert_array_equal(longer["size"].isel(record=at), whole["size"])
    assert longer.dataset.sizes["record"] > whole.dataset.sizes["record"]  # nothing is thrown away


def test_extensions_that_cannot_be_exact_are_refused(tmp_path):
    path = tmp_path / "c.npz"
    fp.train(rbm(), ticks=50, records=5, average=0.5, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"would begin at tick 33, which this one has passed"):
        fp.train(rbm(), ticks=60, records=5, average=0.5, checkpoint=path)
    with pytest.raises(ValueError, match=r"already done 50 ticks, more than the 20 asked for"):
        fp.train(rbm(), ticks=20, records=5, average=0.5, checkpoint=path)
    with pytest.raises(ValueError, match=r"another configuration: average"):
        fp.train(rbm(), ticks=50, records=5, average=0.4, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("start", [1, 1.0, -0.1, 2, np.nan, "half", True, None])
def test_an_average_that_cannot_begin(start):
    with pytest.raises(ValueError, match=r"fraction of training, at least 0 and below 1"):
        fp.Mean(start)


def test_more_bad_averages():
    for wrong, words in (((0.5, 0), "number of moments"), ((0.5, 2.5), "number of moments")):
        with pytest.raises(ValueError, match=words):
            fp.Mean(*wrong)
    with pytest.raises(ValueError, match="no room for 20 moments"):
        fp.Exponential(10)
    with pytest.raises(ValueError, match="no slow weights"):
        fp.train(rbm(), ticks=4, metrics=METRICS).final(averaged=True)


def test_a_record_without_parameters_still_says_what_the_average_reached():
    """As a sweep leaves it, which keeps metrics of both and no parameters."""
    record = fp.train(rbm(), ticks=60, metrics=METRICS, average=0.5, seeds=2)
    names = [name for name in record.dataset if "params" in str(name)]
    bare = fp.Record(record.dataset.drop_vars(names))
    assert bare.averaged and not bare.averaged_params
    np.testing.assert_array_equal(bare.final(averaged=True), record.final(averaged=True))
    assert "averaged.size" in bare.to_dataframe()
    with pytest.raises(ValueError, match="holds no parameters"):
        bare.sel(seed=0).parameters(averaged=True)
