"""Parameters leave and come back unchanged; what another library makes of them is the same."""

import jax
import numpy as np
import pytest

from flexphase import (
    NLL,
    RBM,
    ForwardForward,
    Optimiser,
    Rows,
    Run,
    aol,
    bars_and_stripes,
    grid,
    train,
)
from flexphase.export import from_numpy, from_torch, to_arviz, to_numpy, to_torch

DATA = bars_and_stripes(4)
METHOD = RBM(16, 6)


def of(run, **options):
    return train(run, phases=200, metrics={"nll": NLL(DATA)}, records=4, **options)


@pytest.fixture(scope="module")
def record():
    rule = aol(0.5, 5)
    return of(Run(METHOD, *rule, Rows(DATA), Optimiser(0.01)), seeds=3, average=0.5)


def test_arrays_by_name_and_back(record, tmp_path):
    params = record.sel(seed=1).parameters()
    np.savez(tmp_path / "params.npz", **to_numpy(params))
    with np.load(tmp_path / "params.npz") as kept:
        assert set(kept) == {"W", "a", "c"}
        again = from_numpy(METHOD, kept)
    jax.tree.map(np.testing.assert_array_equal, again, params)
    more = train(record.run(), phases=1, seeds=1, params=again, metrics={"nll": NLL(DATA)})
    assert more["nll"][0, 0] == pytest.approx(float(record.sel(seed=1).final()), rel=1e-5)


def test_layers_are_numbered():
    params, _ = ForwardForward((12, 5, 4), 3).init(jax.random.key(0))
    assert {n: a.shape for n, a in to_numpy(params).items()} == {
        **{"0.W": (12, 5), "0.c": (5,), "1.W": (5, 4), "1.c": (4,)},
    }


def test_what_does_not_fit_is_refused_with_the_names(record):
    arrays = to_numpy(record.sel(seed=0).parameters())
    with pytest.raises(ValueError, match="has parameters named W, a, c, not W"):
        from_numpy(METHOD, {"W": arrays["W"]})
    with pytest.raises(ValueError, match=r"W has the shape \(6, 16\); the method needs \(16, 6\)"):
        from_numpy(METHOD, arrays | {"W": arrays["W"].T})


def test_only_real_numbers_are_parameters(record):
    """An imaginary part is not dropped in silence; a record is no parameters of one network."""
    arrays = to_numpy(record.sel(seed=0).parameters())
    for wrong, what in (
        (arrays["W"] + 1j, "an array of complex64"),
        (arrays["W"].astype(str), "an array of <U32"),
        ([[1.0], [1.0, 2.0]], "a list"),
    ):
        with pytest.raises(ValueError, match=f"W must be an array of real numbers, not {what}"):
            from_numpy(METHOD, arrays | {"W": wrong})
    for wrong in (record, record.dataset):
        with pytest.raises(ValueError, match=r"not a \w+; the .* record.parameters\(lane=0\)"):
            to_numpy(wrong)


def test_a_record_has_the_groups_and_dimensions_of_arviz(record):
    tree = to_arviz(record)
    assert set(tree.children) == {"posterior", "sample_stats"}
    nll = tree["posterior"]["nll"]
    assert nll.dims == ("chain", "draw") and nll.shape == (3, 5)
    np.testing.assert_array_equal(nll, record["nll"].transpose("seed", "record"))
    assert set(tree["sample_stats"].data_vars) == {"ticks", "phases", "updates"}


def test_swept_quantities_stay_dimensions():
    def run(b):
        return Run(METHOD, *aol(b, 5), Rows(DATA), Optimiser(0.01))

    tree = to_arviz(of(grid(run, b=[0.3, 0.6]), seeds=2))
    assert tree["posterior"]["nll"].dims == ("chain", "draw", "b")


def test_arviz_reads_it(record):
    """R-hat of Gelman and Rubin (1992), computed here: sqrt((B/W + n - 1) / n)."""
    arviz = pytest.importorskip("arviz")
    nll = to_arviz(record)["posterior"].to_dataset()
    chains = record["nll"].transpose("seed", "record").values.astype(float)
    n = chains.shape[1]
    between, within = n * chains.mean(1).var(ddof=1), chains.var(1, ddof=1).mean()
    expected = np.sqrt((between / within + n - 1) / n)
    np.testing.assert_allclose(arviz.rhat(nll, method="identity")["nll"], expected, rtol=1e-5)


def test_torch_state_dicts_and_back():
    torch = pytest.importorskip("torch")
    method = ForwardForward((12, 5, 4), 3)
    params, _ = method.init(jax.random.key(0))
    layers = torch.nn.ModuleList([torch.nn.Linear(12, 5), torch.nn.Linear(5, 4)])
    layers.load_state_dict(to_torch(params, linear=True))
    x = np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32)
    ours = x @ np.asarray(params[0].W) + np.asarray(params[0].c)
    np.testing.assert_allclose(layers[0](torch.tensor(x)).detach(), ours, atol=1e-5)
    for linear in (True, False):
        again = from_torch(method, to_torch(params, linear), linear)
        jax.tree.map(np.testing.assert_array_equal, again, params)
