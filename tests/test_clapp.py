"""Local losses without labels: updates against autodiff of the losses, single random phases against
the authors' rule, the pairs and the linear probe against counts and scikit-learn.
"""

import json
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_jax import train
from scipy.stats import chi2
from sklearn.linear_model import Ridge

from flexphase.cli import main
from flexphase.core import Optimiser, Run, init, tick
from flexphase.data import ImagePairs, Rows, cifar10, digits
from flexphase.data.pairs import ImagePair
from flexphase.methods import CLAPP, SelfContrastiveForwardForward
from flexphase.methods.forward_forward import goodness, normalise, respond
from flexphase.phases import tape
from flexphase.probe import LinearProbe
from flexphase.rules import isd

METHOD = CLAPP((6, 5, 4))
GOOD = SelfContrastiveForwardForward((12, 7, 5), threshold=0.4, scale=0.8)
IMAGES = np.random.default_rng(0).random((9, 12), dtype=np.float32)


def answers(W, image):
    return jax.nn.relu(image @ W)


def hinge(params, x, sign):
    """The sum of the layers' losses; what a layer sees is a constant to it."""
    h, k, total = x.image[6:], x.context[:6], jnp.float32(0)
    for W, P in params:
        h, k = (answers(W, jax.lax.stop_gradient(y)) for y in (h, k))
        total += jnp.maximum(0, 1 - sign * (h @ P @ k))
    return total


def logistic(params, x, sign):
    """Layers that see x_1 + x_2, the sum of two copies of the weights' answers, at unit length."""
    h, total = x.image + x.context, jnp.float32(0)
    for layer in params:
        h = respond(layer, normalise(jax.lax.stop_gradient(h)))
        total += jax.nn.softplus(sign * (0.4 - goodness(h)))
    return total


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("method, loss", [(METHOD, hinge), (GOOD, logistic)])
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_the_local_rule_is_autodiff_of_the_losses(method, loss, sign, size):
    """g_plus = grad of the positive loss, g_minus = -grad of the negative one, over 20 pairs; with
    larger weights some hinges are satisfied and silent.
    """
    params, z = method.init(jax.random.key(1))
    params = jax.tree.map(lambda p: size * p, params)
    silent, total = 0, 0.0
    for i in range(20):
        x = ImagePair(*jax.random.uniform(jax.random.key(i), (2, 12)), row=jnp.int32(0))
        s = jnp.float32(sign)
        g = method.grad(params, method.step(jax.random.key(0), params, z, x, s), x, s)
        exact = jax.grad(loss)(params, x, sign)
        for ours, autodiff in zip(jax.tree.leaves(g), jax.tree.leaves(exact), strict=True):
            np.testing.assert_allclose(ours, sign * autodiff, rtol=2e-5, atol=1e-6)
            silent, total = silent + (not autodiff.any()), total + float(jnp.abs(autodiff).sum())
    assert total > 1
    assert silent > 0 or size < 3 or method is GOOD


def test_isd_at_one_half_is_the_random_single_phase_rule_at_twice_the_rate():
    """Illing et al. choose one loss for each sample with probability 1/2 and descend it as it is.
    The same phases and pairs, their gradient by autodiff and twice eta: equal parameters.
    """
    eta, phases = 0.02, 60
    run = Run(METHOD, *isd(0.5, 1), ImagePairs(IMAGES), Optimiser(eta))
    start = init(run, jax.random.key(5))
    signs = np.asarray(tape(run.process, start.key, phases).sign)
    assert 15 < (signs > 0).sum() < 45
    ours, theirs = start, start.params
    for sign in signs:
        ours = tick(run, ours)
        g = jax.grad(hinge)(theirs, ours.x, sign)
        theirs = jax.tree.map(lambda p, d: p - 2 * eta * d, theirs, g)
    for one, other, before in zip(
        *map(jax.tree.leaves, (ours.params, theirs, start.params)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
        assert np.abs(one - before).max() > 0.01


@pytest.mark.parametrize("paired", [False, True])
def test_pairs(paired):
    """A positive phase shows an image twice, a negative one two different images, each other one
    equally often (chi-square at 1e-4); `paired` keeps the image of the phase before.
    """
    source = ImagePairs(IMAGES, paired)
    keys = jax.random.split(jax.random.key(0), 8000)
    x = source.init(jax.random.key(1))
    same, other = (
        jax.vmap(lambda k, s=sign: source(k, jnp.float32(s), x))(keys) for sign in (1, -1)
    )
    assert np.array_equal(same.image, same.context)
    assert np.array_equal(same.image, IMAGES[same.row]) and np.unique(same.row).size == 9
    rows = np.asarray(other.row)
    context = (np.asarray(other.context)[:, None] == IMAGES[None]).all(2).argmax(1)
    assert (rows != context).all() and np.array_equal(other.image, IMAGES[rows])
    assert (rows == x.row).all() == paired
    cells = np.bincount((context - rows) % 9, minlength=9)
    assert cells[0] == 0
    assert ((cells[1:] - 1000) ** 2 / 1000).sum() < chi2.ppf(1 - 1e-4, 7)


def test_nothing_flows_back_from_the_layer_above():
    params, z = METHOD.init(jax.random.key(1))
    changed = (params[0], jax.tree.map(lambda p: -p, params[1]))
    x, sign = (
        ImagePair(jnp.asarray(IMAGES[0]), jnp.asarray(IMAGES[1]), jnp.int32(0)),
        jnp.float32(1),
    )
    one, other = (
        METHOD.grad(p, METHOD.step(jax.random.key(0), p, z, x, sign), x, sign)
        for p in (params, changed)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True))
    assert not np.array_equal(one[1].W, other[1].W)


class Pixels:
    """The data itself as features."""

    def features(self, params, images):
        return images


def test_the_probe_is_ridge_regression():
    """Against scikit-learn's Ridge on the digits: the same labels, so the same error."""
    images, labels = digits()
    fit, test = (images[:1000], labels[:1000]), (images[1000:], labels[1000:])
    centred = fit[0] - fit[0].mean(0)
    alpha = 1e-3 * (centred**2).mean(0).mean() * len(centred)
    theirs = Ridge(alpha=alpha).fit(fit[0].astype(float), np.eye(10)[fit[1]])
    wrong = (theirs.predict(test[0]).argmax(1) != test[1]).mean()
    assert float(LinearProbe(Pixels(), *fit, *test)(None)) == pytest.approx(wrong, abs=1e-6)


@pytest.mark.parametrize(
    ("method", "eta", "before"),
    [
        (CLAPP((32, 16)), 0.0003, 0.20),
        pytest.param(
            SelfContrastiveForwardForward((64, 32), threshold=8.0),
            0.003,
            0.22,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_it_learns_features_of_digits_without_labels(method, eta, before):
    """32 features each: the read-out of random ones misses 20 and 22 % of held-out digits, that of
    learned ones about 15 %, mean of 4 seeds.
    """
    images, labels = digits()
    probe = LinearProbe(method, images[:1437], labels[:1437], images[1437:], labels[1437:])
    run = Run(method, *isd(0.5, 1), ImagePairs(images[:1437]), Optimiser(eta, optax.adam))
    record = train(run, phases=10_000, seeds=4, records=1, metrics={"error": probe})
    assert record["error"].isel(record=0).mean() == pytest.approx(before, abs=0.01)
    assert record.final().mean() < before - 0.03


def test_cifar10_is_read_from_its_binary_files(tmp_path, monkeypatch):
    """Files of 3 records as the publisher describes them: a label, then red, green, blue planes."""
    module = import_module("flexphase.data.cifar10")  # where a function has the same name
    monkeypatch.setattr(module, "ROWS", 3)
    monkeypatch.delenv("FLEXPHASE_DATA", raising=False)
    with pytest.raises(ValueError, match=r"not fetched.*FLEXPHASE_DATA"):
        cifar10()
    monkeypatch.setenv("FLEXPHASE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="there is no CIFAR-10 in"):
        cifar10()
    rng, place = np.random.default_rng(3), tmp_path / "cifar-10-batches-bin"
    place.mkdir()
    for name in (*module.TRAIN, *module.TEST):
        table = rng.integers(0, 256, (3, 3073), dtype=np.uint8)
        table[:, 0] %= 10
        (place / name).write_bytes(table.tobytes())
    train_set, test_set = cifar10()
    assert train_set.images.shape == (15, 3072) and test_set.labels.shape == (3,)
    row, column, colour = 30, 5, 2  # of the last test image
    byte = table[2, 1 + colour * 1024 + row * 32 + column]
    assert test_set.images[2].reshape(32, 32, 3)[row, column, colour] == np.float32(byte / 255)
    assert np.array_equal(test_set.labels, table[:, 0])
    (place / module.TEST[0]).write_bytes(table.tobytes()[:-1])
    with pytest.raises(ValueError, match="not a whole file of CIFAR-10"):
        cifar10()


def command(capsys, *words):
    """Exit code, the object on standard output, what was said on standard error."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


@pytest.mark.parametrize("name", ["clapp", "scff"])
def test_the_command_line_learns_without_labels(name, capsys, tmp_path):
    """The read-out of a network that was hardly trained, on test images; data without labels have
    nothing to read out.
    """
    small = ["--hidden", 4, "--phases", 10, "--records", 1, "--json", "--out", tmp_path / "r"]
    code, told, _ = command(capsys, "train", name, *small)
    assert code == 0 and told["metric"] == "test_error" and 0.2 < told["final"]["mean"] < 0.9
    code, _, err = command(capsys, "train", name, "--data", "bas")
    assert code == 2 and "bas has none" in err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CLAPP((32,)), "at least one layer"),
        (lambda: CLAPP((32, 0)), "a layer's size must be a whole number"),
        (lambda: SelfContrastiveForwardForward((64, 5), threshold=-1.0), "must be above 0"),
        (lambda: ImagePairs(IMAGES[:1]), "at least 2 images"),
        (lambda: LinearProbe(Pixels(), IMAGES, [0] * 9, IMAGES, [10] * 9), "0 to 9"),
    ],
)
def test_bad_settings_get_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("method", "source", "words"),
    [
        (CLAPP((5, 4)), ImagePairs(IMAGES), "12 pixels.*halves of 5"),
        (GOOD, ImagePairs(IMAGES[:, :10]), "10 pixels.*asks for 12"),
        (CLAPP((6, 4)), Rows(IMAGES), r"use ImagePairs\(images\)"),
    ],
)
def test_stimuli_that_do_not_fit_get_a_sentence(method, source, words):
    with pytest.raises(ValueError, match=words):
        train(Run(method, *isd(0.5, 1), source, Optimiser(0.01)), ticks=2)
