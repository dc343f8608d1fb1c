"""Given parameters, early stopping, optimisers with noise, observers and replicas."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import flexphase as fp
from flexphase import plot
from flexphase.core import init, tick
from flexphase.folder import RunFolder
from flexphase.inspecting import VERSIONED
from flexphase.methods.nce import Precision, log_normal
from flexphase.record import deciding_versions

ROWS = fp.bars_and_stripes(2)


def rbm(hidden=3, rule=None, make=optax.sgd, eta=0.1):
    process, estimator = rule or fp.aol(0.5, 3)
    source = fp.Rows(ROWS)
    return fp.Run(fp.RBM(4, hidden), process, estimator, source, fp.Optimiser(eta, make))


@pytest.mark.parametrize("engine", ["native", "jax"])
@pytest.mark.parametrize("hidden", [3, 300])
def test_training_starts_from_given_parameters(engine, hidden):
    """With eta = 0 they come back; from the method's own start they give the run without them."""
    given = fp.RBM(4, hidden, scale=1.0).init(jax.random.key(5))[0]
    record = fp.train(rbm(hidden, eta=0.0), ticks=9, seeds=2, params=given, engine=engine)
    for name, leaf in given._asdict().items():
        np.testing.assert_array_equal(record.params[name], np.stack([leaf] * 2))
    own = type(given)(**fp.train(rbm(hidden, eta=0.0), ticks=1, seeds=2, engine=engine).params)
    one, two = (
        fp.train(rbm(hidden), ticks=9, seeds=2, params=p, engine=engine) for p in (own, None)
    )
    np.testing.assert_array_equal(one.params["W"], two.params["W"])


def test_parameters_of_a_record_go_on():
    first = fp.train(rbm(), ticks=9, seeds=2, records=1)
    method = first.method()
    like = method.init(jax.random.key(0))[0]
    params = type(like)(**first.params)
    again = fp.train(rbm(eta=0.0), ticks=3, seeds=2, params=params)
    np.testing.assert_array_equal(again.params["W"], first.params["W"])


def test_given_parameters_have_the_shapes_of_one_lane():
    """A number of the method that its first parameters are made of has no axis of the lanes: the
    parameters that are given are those that come out where nothing is learned.
    """
    start = Precision(jnp.float32(2), jnp.float32(-1))
    noise = fp.GaussianNoise(1.5 * jnp.ones(3))
    method = fp.NCE(log_normal, start, noise)
    run = fp.Run(method, *fp.isd(0.5, 1), fp.Rows(np.ones((4, 3), np.float32)), fp.Optimiser(0.0))
    given = Precision(jnp.float32(3), jnp.float32(-2))
    record = fp.train(run, ticks=3, seeds=2, params=given)
    assert record.params["lam"].tolist() == [3, 3] and record.params["c"].tolist() == [-2, -2]


def test_given_parameters_are_part_of_what_a_run_is(tmp_path):
    """Another start is another run; the same one goes on, however it was given."""
    one, other = (fp.RBM(4, 3).init(jax.random.key(k))[0] for k in (1, 2))
    options = {"ticks": 6, "seeds": 2, "records": 2}
    runs = [fp.train(rbm(), params=params, **options) for params in (None, one, other)]
    assert len({run.attrs["digest"] for run in runs}) == 3
    assert "params" not in runs[0].config
    kept = {"checkpoint": tmp_path / "c"}
    fp.train(rbm(), params=one, **kept, **options)
    for params in (other, None):
        with pytest.raises(ValueError, match="another configuration: params"):
            fp.train(rbm(), params=params, **kept, **options | {"ticks": 12})
    both = jax.tree.map(lambda leaf: np.stack([leaf] * 2), one)
    longer = fp.train(rbm(), params=both, **kept, **options | {"ticks": 12})
    whole = fp.train(rbm(), params=one, **options | {"ticks": 12})
    np.testing.assert_array_equal(longer.params["W"], whole.params["W"])


def test_a_checkpoint_of_another_version_of_a_library_is_refused(tmp_path, monkeypatch):
    """optax and equinox decide what a run is, too. An older checkpoint, which does not name them,
    goes on.
    """
    assert set(VERSIONED) <= deciding_versions().keys()
    options = {"ticks": 6, "records": 2, "checkpoint": tmp_path / "c"}
    older = {k: v for k, v in deciding_versions().items() if k not in ("optax", "equinox")}
    with monkeypatch.context() as patch:
        patch.setattr("flexphase.log.deciding_versions", lambda: older)
        fp.train(rbm(), **options)
    fp.train(rbm(), **options | {"ticks": 12})
    for name in ("optax", "equinox", "jax"):
        changed = deciding_versions() | {name: "0.0"}
        monkeypatch.setattr("flexphase.log.deciding_versions", lambda v=changed: v)
        with pytest.raises(ValueError, match=f"another configuration: versions.{name} was"):
            fp.train(rbm(), **options | {"ticks": 18})


def test_a_folder_of_another_version_of_a_library_is_refused(tmp_path, monkeypatch):
    """As for checkpoints."""
    older = {k: v for k, v in deciding_versions().items() if k not in ("optax", "equinox")}
    with monkeypatch.context() as patch:
        patch.setattr("flexphase.folder.deciding_versions", lambda: older)
        with RunFolder(tmp_path / "older", {"a": 1}):
            pass
    with RunFolder(tmp_path / "older", {"a": 1}, resume=True):
        pass
    with RunFolder(tmp_path / "run", {"a": 1}):
        pass
    newer = deciding_versions() | {"optax": "0.0"}
    monkeypatch.setattr("flexphase.folder.deciding_versions", lambda: newer)
    with (
        pytest.raises(ValueError, match=r"another version: optax .* \(here 0.0\)"),
        RunFolder(tmp_path / "run", {"a": 1}, resume=True),
    ):
        pass


SETTINGS = {
    "jax_enable_x64": True,
    "jax_default_prng_impl": "rbg",
    "jax_threefry_partitionable": False,
}


@pytest.fixture(params=SETTINGS)
def setting(request):
    """The name of a setting of JAX that decides bits, and functions that change it and back."""
    name = request.param
    usual = getattr(jax.config, name)
    yield name, *(lambda v=v: jax.config.update(name, v) for v in (SETTINGS[name], usual))
    jax.config.update(name, usual)


def test_a_run_does_not_go_on_under_other_settings_of_jax(setting, tmp_path):
    """Neither way; a run under the settings with which JAX starts names none of them."""
    name, change, change_back = setting
    options = {"ticks": 2, "records": 1, "engine": "jax"}
    assert name not in fp.train(rbm(), checkpoint=tmp_path / "usual", **options).attrs["versions"]
    with RunFolder(tmp_path / "run", {}):
        pass
    change()
    assert name in fp.train(rbm(), checkpoint=tmp_path / "other", **options).attrs["versions"]
    fp.train(rbm(), checkpoint=tmp_path / "other", **options | {"ticks": 4})
    with pytest.raises(ValueError, match=f"another configuration: versions.{name} was null"):
        fp.train(rbm(), checkpoint=tmp_path / "usual", **options)
    with (
        pytest.raises(ValueError, match=f"another version: {name} its default"),
        RunFolder(tmp_path / "run", {}, resume=True),
    ):
        pass
    with RunFolder(tmp_path / "other run", {}):
        pass
    change_back()
    with pytest.raises(ValueError, match=f"another configuration: versions.{name} was"):
        fp.train(rbm(), checkpoint=tmp_path / "other", **options)
    with (
        pytest.raises(ValueError, match=rf"another version: {name} .*\(here its default\)"),
        RunFolder(tmp_path / "other run", {}, resume=True),
    ):
        pass


def test_a_run_does_not_go_on_under_other_flags_of_xla(tmp_path, monkeypatch):
    """All but those that decide no bits, and ours, which every command sets."""
    options = {"ticks": 2, "records": 1, "engine": "jax"}
    monkeypatch.setenv("XLA_FLAGS", f"{fp.EXACT} --xla_force_host_platform_device_count=2")
    fp.train(rbm(), checkpoint=tmp_path / "usual", **options)
    monkeypatch.setenv("XLA_FLAGS", "--xla_b=1 --xla_dump_to=x --xla_a=2")
    assert fp.train(rbm(), checkpoint=tmp_path / "other", **options).attrs["versions"].count("a=2")
    with pytest.raises(ValueError, match=r"versions.XLA_FLAGS was null .*--xla_a=2 --xla_b=1"):
        fp.train(rbm(), checkpoint=tmp_path / "usual", **options)
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=2 --xla_b=1")
    fp.train(rbm(), checkpoint=tmp_path / "other", **options | {"ticks": 4})
    monkeypatch.delenv("XLA_FLAGS")
    fp.train(rbm(), checkpoint=tmp_path / "usual", **options | {"ticks": 4})
    with pytest.raises(ValueError, match=r"versions.XLA_FLAGS was"):
        fp.train(rbm(), checkpoint=tmp_path / "other", **options)


def test_double_precision_is_not_for_compiled_engines():
    """They would begin in double precision, and could not go on from their own checkpoint."""
    with jax.enable_x64(True):
        assert fp.train(rbm(), ticks=2, records=1).attrs["engine"] == "jax"
        with pytest.raises(ValueError, match="compute in single precision"):
            fp.train(rbm(), ticks=2, engine="native")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (np.zeros(3), "must have the form that RBM.init gives"),
        (fp.RBM(4, 2).init(jax.random.key(0))[0], r"shape \(4, 2\); it must be \(4, 3\)"),
        (
            jax.tree.map(lambda a: a * np.nan, fp.RBM(4, 3).init(jax.random.key(0))[0]),
            "finite numbers",
        ),
    ],
)
def test_parameters_that_do_not_fit(params, words):
    with pytest.raises(ValueError, match=words):
        fp.train(rbm(), ticks=4, params=params)


def test_stopping_early_is_an_argument(tmp_path):
    seen = []

    def stop(record):
        seen.append(record["ticks"].values[0].tolist())
        return record["ticks"].values.max() >= 20

    options = {"ticks": 50, "records": 5, "metrics": {"n": lambda p: p.W.sum()}}
    record = fp.train(rbm(), stop=stop, checkpoint=tmp_path / "c", **options)
    assert seen == [[0, 10], [0, 10, 20]] and record["ticks"].values.tolist() == [[0, 10, 20]]
    assert record.attrs["stopped"] == 1 and record.attrs["interrupted"] == 0
    whole = fp.train(rbm(), checkpoint=tmp_path / "c", **options)  # goes on
    np.testing.assert_array_equal(whole["n"], fp.train(rbm(), **options)["n"])


@pytest.mark.parametrize("key", [0, jax.random.key(0)], ids=["a seed", "a key"])
def test_noise_of_an_optimiser_is_independent_between_lanes(key):
    """With eta = 1 and no gradient the parameters are sums of the noise: over 4,000 numbers the
    correlation of two seeds is 0 with a standard error of 0.016."""

    def make(eta):
        return optax.chain(optax.set_to_zero(), optax.add_noise(0.1, 0.0, key), optax.scale(-1.0))

    run = fp.Run(fp.RBM(4, 1000), *fp.isd(0.5, 1), fp.Rows(ROWS), fp.Optimiser(1.0, make))
    start = fp.train(run._replace(optimiser=fp.Optimiser(0.0)), ticks=1, seeds=3)
    record = fp.train(run, ticks=4, seeds=3, records=1)
    moved = (record.params["W"] - start.params["W"]).reshape(3, -1)
    assert np.std(moved) == pytest.approx(np.sqrt(4 * 0.1), rel=0.05)
    off = np.corrcoef(moved)[np.triu_indices(3, 1)]
    assert np.abs(off).max() < 4 * 0.016
    again = fp.train(run, ticks=4, seeds=3, records=1)
    np.testing.assert_array_equal(again.params["W"], record.params["W"])


def units(state):
    return {"v": state.z.v, "w": state.params.W[0]}


def test_a_trace_is_what_tick_by_tick_would_show():
    run = rbm(rule=fp.cd(2))
    record = fp.train(run, ticks=20, seeds=2, observers={"trace": fp.Trace(8, units, start=5)})
    assert record.attrs["engine"] == "jax"
    seen = record.observed("trace")
    state = init(run, jax.random.key(1))
    for t in range(13):
        new = tick(run, state)
        if t >= 5:
            np.testing.assert_array_equal(seen["v"][1, t - 5], new.z.v)
            np.testing.assert_allclose(seen["w"][1, t - 5], new.params.W[0], rtol=1e-6)
            assert seen["sign"][1, t - 5] == new.phase.sign
            assert bool(seen["learns"][1, t - 5]) == bool(new.updates > state.updates)
            held = any(np.asarray(leaf).any() for leaf in jax.tree.leaves(new.memory))
            assert bool(seen["remembers"][1, t - 5]) == held
        state = new


def test_observers_change_nothing_and_are_part_of_the_checkpoint(tmp_path):
    plain = fp.train(rbm(), ticks=30, records=3, engine="jax")
    observers = {"trace": fp.Trace(30, units), "phases": fp.PhaseStatistics()}

    def ctrl_c(done, total, latest):
        if done > 12:
            raise KeyboardInterrupt

    options = {"ticks": 30, "records": 3, "observers": observers}
    assert fp.train(rbm(), checkpoint=tmp_path / "c", progress=ctrl_c, **options).attrs[
        "interrupted"
    ]
    resumed, whole = (
        fp.train(rbm(), checkpoint=tmp_path / "c", **options),
        fp.train(rbm(), **options),
    )
    np.testing.assert_array_equal(whole.params["W"], plain.params["W"])
    for name, values in whole.observed("trace").items():
        np.testing.assert_array_equal(resumed.observed("trace")[name], values)


def test_statistics_of_phases_against_the_tape():
    process = fp.Phases(fp.Bernoulli(0.3), fp.Geometric(4.0), fp.Fixed(2))
    run = rbm(rule=(process, fp.always_on))
    told = jax.tree.map(np.asarray, fp.tape(process, init(run, jax.random.key(0)).key, 120))
    ticks = int(told.ticks.sum())
    seen = fp.train(run, ticks=ticks, observers={"p": fp.PhaseStatistics()}).observed("p")
    assert float(seen["b"][0]) == pytest.approx((told.sign > 0).mean())
    assert float(seen["mean_length"][0]) == pytest.approx(told.ticks.mean())
    assert float(seen["cv_length"][0]) == pytest.approx(
        told.ticks.std() / told.ticks.mean(), rel=1e-3
    )
    switches = (np.diff(told.sign) != 0).sum()
    assert float(seen["switch_rate"][0]) == pytest.approx(switches / 120)
    assert seen["ticks"][0].values.sum() == ticks


def test_a_raster_has_a_row_for_everything():
    record = fp.train(rbm(), ticks=20, observers={"trace": fp.Trace(20, units)})
    ax = plot.raster(record)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    weights, visible = ([f"{name} {i}" for i in range(n)] for name, n in (("w", 3), ("v", 4)))
    assert labels == ["learns", "remembers", *visible, *weights]
    assert ax.get_xlabel() == "network time steps (ticks)" and ax.get_xlim() == (0, 20)
    with pytest.raises(ValueError, match="numbered from 0; there is no 4"):
        plot.raster(record, lane=4)


def test_replicas_share_their_synapses_and_average_their_terms():
    """One tick by hand: the mean of the terms of three copies, each with its own stimulus."""
    method = fp.Replicas(fp.RBM(4, 3, scale=1.0), 3)
    run = fp.Run(method, *fp.isd(0.5, 1), fp.Batches(fp.Rows(ROWS), 3), fp.Optimiser(0.1))
    start = init(run, jax.random.key(0))
    assert start.z.v.shape == (3, 4) and start.x.shape == (3, 4) and start.params.W.shape == (4, 3)
    new = tick(run, start)
    units = [new.z._replace(v=v, h=h) for v, h in zip(new.z.v, new.z.h, strict=True)]
    each = [fp.RBM(4, 3).grad(start.params, z, None, new.phase.sign).W for z in units]
    weight = new.phase.sign / new.phase.prob
    expected = start.params.W - 0.1 * weight * np.mean(each, axis=0)
    np.testing.assert_allclose(new.params.W, expected, rtol=1e-5, atol=1e-6)


def test_one_replica_is_the_method_in_distribution_and_many_are_less_noisy():
    """The variance of a mean of n independent terms is 1/n of one term's: updates from the same
    start, 600 lanes; the ratio has a relative standard error of about sqrt(2/600) each side."""

    def spread(n):
        method = fp.Replicas(fp.RBM(4, 3), n)
        run = fp.Run(method, *fp.cd(1), fp.Batches(fp.Rows(ROWS), n), fp.Optimiser(1.0))
        record = fp.train(
            run, ticks=2, seeds=600, records=1, params=fp.RBM(4, 3).init(jax.random.key(0))[0]
        )
        return record.params["W"].var(0).sum()

    assert spread(1) / spread(8) == pytest.approx(8, rel=0.15)


def test_replicas_need_as_many_stimuli():
    run = fp.Run(fp.Replicas(fp.RBM(4, 3), 3), *fp.cd(1), fp.Rows(ROWS), fp.Optimiser(0.1))
    with pytest.raises(
        ValueError, match=r"3 replicas need 3 stimuli at once.*Batches\(source, 3\)"
    ):
        fp.train(run, ticks=2)
    with pytest.raises(ValueError, match="3 replicas need 3"):
        fp.train(run._replace(source=fp.Batches(fp.Rows(ROWS), 4)), ticks=2)
    with pytest.raises(ValueError, match="number of replicas"):
        fp.Replicas(fp.RBM(4, 3), 0)
    bad = fp.Batches(fp.Rows(ROWS * 0.5), 3)
    with pytest.raises(ValueError, match="zeros and ones"):
        fp.train(run._replace(source=bad), ticks=2)


def test_random_keys_of_an_optimiser_are_found_by_their_kind():
    from flexphase.core import own_key

    key = jax.random.key(3)
    floats = jnp.ones(2)
    assert own_key(key, floats) is floats and own_key(key, 3) == 3
    typed = own_key(key, jax.random.key(0))
    assert not np.array_equal(jax.random.key_data(typed), jax.random.key_data(jax.random.key(0)))
    several = own_key(key, jax.random.split(jax.random.key(0), 3))
    assert len({tuple(k) for k in np.asarray(jax.random.key_data(several)).tolist()}) == 3
    table = jax.random.split(jax.random.key(0), (2, 3))
    own = own_key(key, table)
    assert own.shape == (2, 3)
    one = jax.random.fold_in(table[1, 2], jax.random.bits(key))
    np.testing.assert_array_equal(jax.random.key_data(own[1, 2]), jax.random.key_data(one))
    raw = own_key(key, jax.random.key_data(table[1, 2]))
    np.testing.assert_array_equal(raw, jax.random.key_data(one))
