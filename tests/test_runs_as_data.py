"""A record is a run: descriptions tell any two runs apart, and lead back to the run."""

import collections
import functools
import importlib
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from test_conformance import ESTIMATORS, METHODS, PROCESSES, six_units, triples

import flexphase as fp
from flexphase import estimators
from flexphase.describe import describe, described, digest
from flexphase.optimisers import LayerRates
from flexphase.rebuild import Builder, _is_part

ROWS = fp.bars_and_stripes(2)


def a_run(estimator=fp.always_on, b=0.4, make=optax.sgd, source=None):
    process = fp.Phases(fp.Bernoulli(b), fp.Fixed(5))
    source = fp.Rows(ROWS) if source is None else source
    return fp.Run(fp.RBM(4, 3), process, estimator, source, fp.Optimiser(0.1, make))


def noisy(bits):
    return lambda eta: optax.chain(optax.clip(1 / 2**bits), optax.sgd(eta))


BITS = 4


def by_a_global(eta):
    return optax.chain(optax.clip(1 / 2**BITS), optax.sgd(eta))


def differ(*things):
    digests = [digest(describe(thing)) for thing in things]
    return len(set(digests)) == len(digests)


def test_any_two_runs_are_told_apart():
    """The rule, a lambda by its code, a closure by what it closes over, partials, data, numbers."""
    assert differ(
        a_run(),
        a_run(estimators.isd),
        a_run(fp.Baseline(0.1)),
        a_run(fp.Baseline(0.2)),
        a_run(fp.Weighted(lambda p: (p.sign, p.last))),
        a_run(fp.Weighted(lambda p: (2 * p.sign, p.last))),
        a_run(fp.Weighted(lambda p: (p.sign, p.first))),
        a_run(make=noisy(4)),
        a_run(make=noisy(8)),
        a_run(make=optax.adam),
        a_run(make=functools.partial(optax.sgd, momentum=0.9)),
        a_run(b=0.41),
        a_run(source=fp.Rows(ROWS[:6])),
        a_run(source=fp.Rows(1 - ROWS[:6])),
    )
    assert not differ(a_run(make=noisy(4)), a_run(make=noisy(4)))


def decayed(schedule):
    return lambda eta: optax.chain(optax.sgd(eta), optax.scale_by_schedule(schedule))


class Clip:
    """A callable object of the plainest kind."""

    scale = 1.0

    def __init__(self, most, name=""):
        self.most, self.name = most, name

    def __call__(self, eta):
        return optax.chain(optax.clip(self.most * self.scale), optax.sgd(eta))


class Named(Clip):
    def __repr__(self):
        return "Clip"


class Plain:
    """It cannot be called, and says nothing of itself."""

    def __init__(self, n=1):
        self.n = n


class Slots:
    """An object without a dictionary."""

    __slots__ = ("most",)

    def __init__(self, most):
        self.most = most

    def __call__(self, eta):
        return optax.chain(optax.clip(self.most), optax.sgd(eta))


def scaled(by):
    def around(make):
        @functools.wraps(make)
        def wrapper(eta):
            return make(eta * by)

        return wrapper

    return around


def test_what_a_librarys_function_closes_over_counts():
    """Two schedules of optax have one name; so have two wrappers of one function."""
    slow, fast = (optax.exponential_decay(1.0, 100, rate) for rate in (0.9, 0.5))
    again = optax.exponential_decay(1.0, 100, 0.9)
    assert differ(a_run(make=decayed(slow)), a_run(make=decayed(fast)))
    assert not differ(a_run(make=decayed(slow)), a_run(make=decayed(again)))
    assert differ(optax.sgd(0.1), optax.sgd(0.2), optax.sgd(slow), optax.sgd(fast))
    assert differ(*(a_run(make=make) for make in (optax.sgd, scaled(2)(optax.sgd))))
    assert differ(*(a_run(make=scaled(by)(by_a_global)) for by in (2, 3)))
    assert not differ(*(a_run(make=scaled(2)(by_a_global)) for _ in range(2)))


def test_what_a_plain_object_holds_counts(monkeypatch):
    for kind in (Clip, Named, Slots):
        assert differ(*(a_run(make=make) for make in (kind(0.1), kind(0.2))))
        assert differ(*(a_run(make=make.__call__) for make in (kind(0.1), kind(0.2))))
        assert not differ(a_run(make=kind(0.1)), a_run(make=kind(0.1)))
    assert differ(*(a_run(make=lambda eta, c=clip: c(eta)) for clip in (Clip(0.1), Clip(0.2))))
    assert differ(Plain(1), Plain(2))
    one = Clip(0.1)
    one.name = one  # objects may hold themselves
    before = digest(describe(one))
    monkeypatch.setattr(Clip, "scale", 2.0)
    assert digest(describe(one)) != before


class Mute:
    """An object that says nothing of what it holds."""

    def __init__(self, k):
        self.k = k

    def __repr__(self):
        return "Mute()"

    def metric(self, params):
        return self.k * params.W.sum()


def long(last):
    """More numbers than a repr shows."""
    return np.array([*range(5000), last, *range(5000)], float)


def table(last):
    dates = pd.date_range("2020-01-01", periods=100)
    numbers = [*range(50), last, *range(49)]
    return pd.DataFrame({"x": numbers, "word": list("ab") * 50}, dates)


def sparse(last, kind=scipy.sparse.csr_matrix):
    return kind(np.diag([1.0, 2.0, last]))


HIDES = {
    "a table": table,
    "its dates": lambda last: table(0).set_index(table(0).index + pd.Timedelta(int(last), "D")),
    "a column of categories": lambda last: pd.Series([*"ab" * 50, str(last)], dtype="category"),
    "a sparse matrix": sparse,
    "a sparse matrix of lists": lambda last: sparse(last, scipy.sparse.lil_matrix),
    "a namespace": lambda last: types.SimpleNamespace(a=long(last)),
    "a deque": lambda last: collections.deque([long(last)]),
    "a method of an object that is mute": lambda last: Mute(last).metric,
    "a mute object in a list": lambda last: [Mute(long(last))],
    "a moment": lambda last: pd.Timestamp(2020, 1, int(last), tz="UTC"),
    "an array of pandas": lambda last: pd.array([1, None, int(last)]),
    "a pattern": lambda last: re.compile("a" * 300 + str(last)),
    "random numbers": lambda last: np.random.default_rng(int(last)),
    "bytes": lambda last: bytes([0, int(last)]),
    "a path": lambda last: pathlib.Path(str(last)),
    "a complex number": lambda last: np.array([1j * last]),
    "an array of objects": lambda last: np.array([None, last, "a"], object),
}


@pytest.mark.parametrize("name", HIDES)
def test_what_a_repr_leaves_out_counts(name):
    make = HIDES[name]
    first, same, other = (json.loads(json.dumps(describe(make(n)))) for n in (3.0, 3.0, 4.0))
    assert first == same != other


def test_what_a_library_remembers_of_an_object_does_not_count():
    """Caches of pandas and of scipy come with use, and are no change."""
    frame, matrix = table(0), sparse(3.0)
    before = describe([frame, matrix])
    assert frame.loc["2020-02-01", "x"] == 31 and frame.index.is_unique and matrix.max() == 3
    assert describe([frame, matrix]) == before


def test_nothing_known_is_the_same_as_itself():
    """NaN differs from itself, in JSON too."""
    for value in (np.nan, [1.0, np.nan], np.array([1.0, np.nan]), Plain(np.nan)):
        assert json.loads(json.dumps(describe(value))) == describe(value)
    assert differ(np.array([1.0, np.nan]), np.array([np.nan, 1.0]), np.array([1.0, 2.0]))


@pytest.mark.parametrize("name", ["a table", "a sparse matrix", "a namespace"])
def test_a_checkpoint_of_a_metric_that_was_changed_is_refused(name, tmp_path):
    def metric(held):
        return lambda params: params.W.sum() + 0.0 * (held is None)

    def go(last, ticks):
        metrics = {"m": metric(HIDES[name](last))}
        return fp.train(a_run(), ticks=ticks, metrics=metrics, checkpoint=tmp_path / "c")

    go(3.0, 4)
    assert go(3.0, 8)["ticks"].max() == 8
    with pytest.raises(ValueError, match="another configuration"):
        go(4.0, 12)


def test_a_plain_object_comes_back_if_it_is_the_same():
    record = fp.train(a_run(make=Clip(0.1)), ticks=4, records=1)
    made = Clip(0.1)
    assert record.run(allow=[made]).optimiser.make is made
    for other in (Clip(0.2), Clip):
        with pytest.raises(ValueError, match="not what it was"):
            record.run(allow=[other])


def test_a_global_that_a_function_names_counts(monkeypatch):
    four = digest(describe(a_run(make=by_a_global)))
    monkeypatch.setitem(globals(), "BITS", 8)
    assert digest(describe(a_run(make=by_a_global))) != four


class Mine(fp.RBM):
    """A user's own method."""

    def step(self, key, params, z, x, sign):
        return fp.RBM.step(self, key, params, z, x, sign)


def test_code_of_a_users_class_counts(monkeypatch):
    before = digest(describe(Mine(4, 3)))
    assert "code" in describe(Mine(4, 3)) and "code" not in describe(fp.RBM(4, 3))

    def step(self, key, params, z, x, sign):
        return z

    monkeypatch.setattr(Mine, "step", step)
    assert digest(describe(Mine(4, 3))) != before


def test_digests_do_not_depend_on_the_process():
    """Neither on the hash seed nor on where objects lie in memory."""
    code = textwrap.dedent(
        """
        import optax
        import flexphase as fp
        from flexphase.describe import describe, digest
        import pandas, scipy.sparse, types
        words = {"a", "b", "c"}
        frame = pandas.DataFrame({"x": range(100), "y": list("ab") * 50})
        held = types.SimpleNamespace(frame=frame, matrix=scipy.sparse.eye(3), more=words)
        make = lambda eta: optax.sgd(eta) if "a" in {"a", "b", "c"} else (words, held, object())
        rows = fp.Rows(fp.bars_and_stripes(2))
        print(digest(describe(fp.Run(fp.RBM(4, 3), *fp.isd(), rows, fp.Optimiser(1, make)))))
        """
    )
    env = {"PYTHONHASHSEED": "1", "JAX_PLATFORMS": "cpu"}
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=env | {"PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(seen) == 1


def back(run):
    made = described(run)
    written = json.loads(json.dumps(made.run))
    return Builder(made.swept.get, made.large, [Mine, *ALLOWED]).build(written)


ALLOWED = [type(PROCESSES["sticky"]), ESTIMATORS["at first sight"].weigh, triples, six_units]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("process", PROCESSES)
def test_every_part_comes_back(method, process):
    learner, source = METHODS[method]
    for estimator in ESTIMATORS.values():
        optimiser = fp.Optimiser(0.1, functools.partial(optax.sgd, momentum=0.5))
        run = fp.Run(learner, PROCESSES[process], estimator, source, optimiser)
        again = back(run)
        assert describe(again) == describe(run)
        leaves = zip(*map(jax.tree.leaves, (again, run)), strict=True)
        assert all(np.array_equal(a, b) for a, b in leaves)


@given(st.floats(0.05, 0.95), st.floats(1.0, 50.0), st.floats(1e-6, 1.0))
def test_numbers_come_back_to_the_bit(b, tau, eta):
    run = a_run()._replace(
        process=fp.Phases(fp.Bernoulli(b), fp.Geometric(tau)), optimiser=fp.Optimiser(eta)
    )
    again = back(run)
    assert again.process.b == run.process.b and again.optimiser.eta == run.optimiser.eta
    assert again.process.mean_length == run.process.mean_length


@pytest.fixture(scope="module")
def record():
    def run(b, eta):
        return a_run(b=b)._replace(optimiser=fp.Optimiser(eta))

    lanes = fp.grid(run, b=[0.3, 0.6], eta=[0.1, 0.2])
    return fp.train(lanes, ticks=40, seeds=2, records=2, metrics={"nll": fp.NLL(ROWS)}, average=0.5)


def test_a_record_gives_its_run_back_and_it_trains_to_the_same_bits(record, tmp_path):
    loaded = fp.Record.load(record.save(tmp_path / "r.nc"))
    run = loaded.sel(b=0.6, eta=0.2).run()
    again = fp.train(run, ticks=40, seeds=2, records=2, metrics={"nll": fp.NLL(ROWS)}, average=0.5)
    chosen = record.sel(b=0.6, eta=0.2)
    for name in ("params.W", "averaged.params.c", "nll", "averaged.nll", "phases"):
        np.testing.assert_array_equal(again[name], chosen[name])


def test_parameters_of_a_lane_are_the_methods_own(record):
    params = record.sel(b=0.3, eta=0.1, seed=1).parameters()
    assert type(params).__name__ == "Params" and params.W.shape == (4, 3)
    np.testing.assert_array_equal(params.W, record.params["W"][0, 0, 1])
    slow = record.parameters(averaged=True, lane=3)
    np.testing.assert_array_equal(slow.c, record.averaged_params["c"][0, 1, 1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.run(), "several runs, which differ in process.selection.b.*record.sel"),
        (lambda r: r.parameters(), "8 networks; choose one"),
        (lambda r: r.parameters(lane=8), "8 trained networks.*no 8"),
        (lambda r: r.sel(b=0.5), "has no .*0.5.*it has"),
        (lambda r: r.observed("trace"), "no observer 'trace'"),
    ],
)
def test_what_a_record_cannot_give_is_a_sentence(record, call, words):
    with pytest.raises(ValueError, match=words):
        call(record)


def test_an_object_of_the_plainest_kind_is_no_part_that_comes_back():
    what = describe(Plain())
    with pytest.raises(ValueError, match="Plain is no part of a run"):
        Builder({}.get, {}, [Plain]).build(what)


def test_own_classes_are_built_only_if_they_are_allowed():
    run = a_run()._replace(method=Mine(4, 3))
    record = fp.train(run, ticks=4, records=1)
    with pytest.raises(
        ValueError, match=r"names .*Mine, which is none of flexphase's own parts of a run; allow it"
    ):
        record.run()
    assert isinstance(record.run(allow=[Mine]).method, Mine)
    assert record.parameters(allow=Mine).W.shape == (4, 3)


FOREIGN = "none of flexphase's own parts of a run"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"class": "os.system"}, FOREIGN),
        ({"class": "flexphase.__main__.main"}, FOREIGN),
        ({"class": "flexphase.sweep.executors.Local"}, FOREIGN),
        ({"class": "flexphase.rebuild.Builder"}, FOREIGN),
        ({"class": "flexphase.phases.recorded.Recorded", "table": "phases.csv"}, "not NoneType"),
        ({"class": "flexphase.phases.Bernoulli", "b": 0.5}, FOREIGN),
        ({"class": "flexphase.methods.RBM", "visible": 4, "hidden": 3}, "there is no"),
        ({"class": "flexphase.methods.rbm.Units"}, "there is no"),
        ({"class": "flexphase.methods.rbm.RBX"}, "there is no"),
        ({"class": "flexphase.methods.rbm.RBM", "visible": -1, "hidden": 3}, "visible must be"),
        ({"class": "flexphase.methods.rbm.RBM"}, "cannot be made from its fields"),
        ({"function": "os.system"}, FOREIGN),
        ({"function": "jax.numpy.save"}, FOREIGN),
        ({"function": "flexphase.folder.write"}, FOREIGN),
        ({"function": "flexphase.plot.replacing"}, FOREIGN),
        ({"function": "flexphase.data.mnist_sources.store"}, FOREIGN),
        ({"function": "flexphase.phases.tables.read"}, FOREIGN),
        ({"function": "flexphase.phases.recorded.read"}, "there is no"),
        ({"int17": [1]}, "no run has"),
        ({"float32": {"shape": [9], "sha256": "0"}}, r"by their digest only.*data="),
    ],
)
def test_a_forged_run_is_refused_and_nothing_is_executed(record, damage, words):
    dataset = record.sel(b=0.3, eta=0.1).dataset.copy()
    config = record.config
    config["run"]["method"] = damage
    dataset.attrs = dataset.attrs | {"config": json.dumps(config)}
    with pytest.raises(ValueError, match=f"cannot be rebuilt \\(.*{words}"):
        fp.Record(dataset).run()


def forged(record, **parts):
    """The record of one run, with other parts."""
    dataset = record.sel(b=0.3, eta=0.1).dataset.copy()
    config = record.config
    config["run"] |= parts
    dataset.attrs = dataset.attrs | {"config": json.dumps(config)}
    return fp.Record(dataset)


@pytest.mark.parametrize("module", ["", ".progress", ".export", ".catalogue", ".methods"])
def test_what_a_module_of_flexphase_imports_is_no_part_of_it(record, module, monkeypatch):
    """`import_module` is a function of Python with a digest that anybody can compute."""
    monkeypatch.setattr("flexphase.methods.import_module", importlib.import_module, raising=False)
    code = describe(importlib.import_module)["code"]
    function = {"function": f"flexphase{module}.import_module", "code": code}
    start = {"partial": function, "args": ["evil"], "keywords": {}}
    method = describe(fp.deep_energy_model((4, 3))) | {"start": start}
    with pytest.raises(ValueError, match=f"cannot be rebuilt \\(.*({FOREIGN}|there is no)"):
        forged(record, method=method).parameters(lane=0)


def test_every_part_of_the_library_may_be_named():
    """Parts are found by the module that defines them; a new one must be among those."""
    public = [getattr(fp, name) for name in fp.__all__]
    classes = [thing for thing in public if isinstance(thing, type) and _is_part(thing)]
    parts = [c for c in classes if any(callable(getattr(c, f, None)) for f in ("step", "update"))]
    parts += [fp.Rows, fp.Held, fp.LabelContrast, fp.ImagePairs, fp.Fixed, fp.Empirical]
    parts += [fp.Markov, fp.Blocks, fp.Optimiser, fp.Device, fp.OnDevice]
    assert len(parts) > 40
    for part in parts:
        assert Builder({}.get, {}).find(describe(part), "class") is part


@pytest.mark.parametrize(
    "field", [{"scale": None}, {"scale": "x"}, {"visible_bias": "x"}, {"visible_bias": [1, 2]}]
)
def test_a_run_whose_parts_do_not_work_is_a_sentence(record, field):
    """A well-formed description of what `RBM` cannot compute with."""
    bad = forged(record, method=describe(fp.RBM(4, 3)) | field)
    with pytest.raises(ValueError, match=r"the run of this record cannot be rebuilt \(.+\)\.$"):
        bad.run()
    if "scale" in field:
        with pytest.raises(ValueError, match=r"the method of this record cannot be rebuilt \("):
            bad.parameters(lane=0)


def test_recorded_phases_in_a_record_are_checked(record):
    process = {"class": "flexphase.phases.recorded.Recorded", "after": "repeat", "block": 20}
    none = {"sign": {"float32": []}, "ticks": {"int32": []}}
    with pytest.raises(ValueError, match=r"cannot be rebuilt \(recorded phases need"):
        forged(record, process=process | none).run()
    fine = {"sign": {"float32": [1, -1]}, "ticks": {"int32": [2, 3]}}
    assert forged(record, process=process | fine).run().process.mean_length == 2.5


def test_data_that_are_not_those_of_their_digest_are_refused(tmp_path):
    rows = np.tile(ROWS, (4, 1))
    record = fp.train(a_run(source=fp.Rows(rows)), ticks=4, records=1)
    np.testing.assert_array_equal(record.run().source.data, rows)
    (name,) = (n for n in record.dataset if str(n).startswith("data."))
    data = record[name]
    for other in (1 - data, data.T, data[:-1].rename({data.dims[0]: "few"}), data.astype("f8")):
        path = fp.Record(record.dataset.assign({name: other})).save(tmp_path / "r.nc")
        with pytest.raises(ValueError, match=r"rebuilt \(its data of shape .* are not those"):
            fp.Record.load(path).run()


def test_the_default_run_of_equilibrium_propagation_comes_back(tmp_path):
    """Its optimiser has a rate for each layer: `LayerRates`, a plain dataclass."""
    targets = np.eye(2, dtype=np.float32)[np.arange(len(ROWS)) % 2]
    method = fp.EquilibriumPropagation((4, 3, 2))
    optimiser = fp.Optimiser(0.1, LayerRates((1.0, 0.3), momentum=0.5))
    run = fp.Run(method, *fp.cd(4), fp.Rows((ROWS, targets)), optimiser)
    record = fp.train(run, ticks=16, records=1)
    again = fp.Record.load(record.save(tmp_path / "r.nc")).run()
    assert again.optimiser.make == optimiser.make
    np.testing.assert_array_equal(fp.train(again, ticks=16).params["0.W"], record.params["0.W"])


def test_large_data_are_named_by_their_digest_and_can_be_given(monkeypatch):
    monkeypatch.setattr("flexphase.record_of.KEPT_DATA", 10)
    rows = np.tile(ROWS, (4, 1))
    record = fp.train(a_run(source=fp.Rows(rows)), ticks=4, records=1)
    with pytest.raises(ValueError, match="by their digest only"):
        record.run()
    np.testing.assert_array_equal(record.run(data=jnp.asarray(rows)).source.data, rows)
