"""Errors of labelled RBMs against enumeration of tiny machines, and pictures of what they
imagine.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from flexphase import AtEnd, Optimiser, Run, grid, train
from flexphase.classification import (
    ForwardForwardError,
    FreeEnergyError,
    SampledError,
    class_samples,
    jax_scores,
    label_activity,
    label_free_energies,
)
from flexphase.data import Rows, append_labels, binarise, digits
from flexphase.kernels import MISSING, forward_forward_scores
from flexphase.methods import RBM, ForwardForward
from flexphase.methods.rbm import Params, free_energy
from flexphase.metrics import check_values
from flexphase.plot import class_pictures
from flexphase.rules import cd

PIXELS, CLASSES, HIDDEN = 4, 3, 3


@pytest.fixture(scope="module")
def machine() -> Params:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = ((PIXELS + CLASSES, HIDDEN), (PIXELS + CLASSES,), (HIDDEN,))
    return Params(*(jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=True)))


def joint(machine: Params) -> tuple[np.ndarray, np.ndarray]:
    """All visible states and their probabilities, by enumeration."""
    v = np.array(list(itertools.product((0, 1), repeat=PIXELS + CLASSES)), np.float32)
    p = np.exp(-np.asarray(free_energy(machine, jnp.asarray(v)), np.float64))
    return v, p / p.sum()


IMAGES = np.array(list(itertools.product((0, 1), repeat=PIXELS)), np.float32)


def test_label_free_energies_differ_by_those_of_the_whole_rows(machine):
    ours = np.asarray(label_free_energies(machine, jnp.asarray(IMAGES), CLASSES))
    whole = np.stack(
        [
            free_energy(
                machine, jnp.asarray(append_labels(IMAGES, np.full(len(IMAGES), k), CLASSES))
            )
            for k in range(CLASSES)
        ],
        1,
    )
    np.testing.assert_allclose(ours - ours[:, :1], whole - whole[:, :1], atol=2e-5)


def test_free_energy_error_is_that_of_the_enumerated_posterior(machine):
    v, p = joint(machine)
    labels = np.zeros(len(IMAGES), int)
    wrong = 0
    for image in IMAGES:
        posterior = [p[(v == [*image, *np.eye(CLASSES)[k]]).all(1)].sum() for k in range(CLASSES)]
        wrong += np.argmax(posterior) != 0
    assert 0 < wrong < len(IMAGES)
    assert float(FreeEnergyError(IMAGES, labels, CLASSES)(machine)) == pytest.approx(
        wrong / len(IMAGES)
    )


def test_label_activity_is_the_enumerated_marginal(machine):
    """Chains are correlated in time, so 200 copies of each image give the standard error; z below
    4.5 for 48 numbers.
    """
    v, p = joint(machine)
    copies = jnp.asarray(np.repeat(IMAGES, 200, axis=0))
    activity = np.asarray(
        label_activity(jax.random.key(1), machine, copies, CLASSES, 200, 50)
    ).reshape(len(IMAGES), 200, CLASSES)
    mean, error = activity.mean(1), activity.std(1) / np.sqrt(200)
    for image, m, e in zip(IMAGES, mean, error, strict=True):
        here = (v[:, :PIXELS] == image).all(1)
        exact = (p[here] / p[here].sum()) @ v[here, PIXELS:]
        assert (np.abs(m - exact) / e).max() < 4.5


def test_sampled_error_reads_the_most_active_label(machine):
    v, p = joint(machine)
    best = []
    for image in IMAGES:
        here = (v[:, :PIXELS] == image).all(1)
        best.append(((p[here] / p[here].sum()) @ v[here, PIXELS:]).argmax())
    assert float(SampledError(IMAGES, np.array(best), CLASSES, steps=20000)(machine)) == 0


def test_class_samples_follow_the_enumerated_conditional(machine):
    """P(pixel | h) averaged over 4000 independent chains against P(pixel | label); z below 4.5 for
    12 numbers.
    """
    v, p = joint(machine)
    samples = np.asarray(class_samples(jax.random.key(2), machine, CLASSES, each=4000, steps=60))
    assert samples.shape == (CLASSES, 4000, PIXELS)
    for k in range(CLASSES):
        here = (v[:, PIXELS:] == np.eye(CLASSES)[k]).all(1)
        exact = (p[here] / p[here].sum()) @ v[here, :PIXELS]
        z = (samples[k].mean(0) - exact) / (samples[k].std(0) / np.sqrt(4000))
        assert np.abs(z).max() < 4.5


def test_the_picture_has_a_row_for_each_class():
    samples = np.zeros((3, 5, 16))
    samples[1] = 1
    ax = class_pictures(samples)
    sheet = ax.images[0].get_array()
    assert sheet.shape == (12, 20) and sheet[4:8].all() and not sheet[:4].any()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="square"):
        class_pictures(np.zeros((3, 5, 15)))


def test_a_labelled_rbm_learns_real_digits():
    """Guessing misses 90 % of the held-out digits; by free energy and by sampling it must do far
    better, and alike.
    """
    images, labels = binarise(digits().images, 0.5), digits().labels
    data = append_labels(images[:1400], labels[:1400])
    held_out = images[1400:], labels[1400:]
    metrics = {"test_error": FreeEnergyError(*held_out), "sampled_error": SampledError(*held_out)}
    record = train(
        Run(RBM(74, 64), *cd(1), Rows(data), Optimiser(0.05)),
        phases=40000,
        metrics=metrics,
        records=1,
    )
    exact, sampled = float(record.final("test_error")[0]), float(record.final("sampled_error")[0])
    assert exact < 0.3 and abs(sampled - exact) < 0.1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_parameters_that_are_not_finite_have_no_error(bad):
    """A diverged lane must not look like one that guesses; the other lane is as it is alone."""
    data = append_labels(IMAGES, np.zeros(len(IMAGES), int), CLASSES)
    method = RBM(PIXELS + CLASSES, HIDDEN)
    metrics = {
        "error": FreeEnergyError(IMAGES, np.zeros(len(IMAGES), int), CLASSES),
        "sampled": AtEnd(
            lambda params: params.W.sum() > 0,
            SampledError(IMAGES, np.zeros(len(IMAGES), int), CLASSES, steps=3),
        ),
    }

    def spoil(eta):
        return optax.stateless(
            lambda g, params: jax.tree.map(lambda p: jnp.where(eta > 0, bad, 0.0 * p), params)
        )

    def make(eta):
        return Run(method, *cd(1), Rows(data), Optimiser(eta, spoil))

    options = {"phases": 8, "records": 2, "metrics": metrics, "average": 0.5, "engine": "jax"}
    record = train(grid(make, eta=[0.0, 1.0]), **options)
    alone = train(make(0.0), **options)
    assert record["diverged_at"].values.tolist() == [[-1], [4]]  # at the first record
    for averaged in (False, True):
        for name in metrics:
            fine, diverged = record.final(name, averaged).values[:, 0]
            assert np.isnan(diverged) and fine == alone.final(name, averaged).values[0]
    assert np.isnan(record["error"].values[1, 0, 1:]).all()
    assert np.isfinite(record["error"].values[1, 0, 0])  # before the first tick


@pytest.mark.parametrize("layer", [0, 1])
def test_label_scores_of_broken_layers_are_not_numbers(layer):
    """The compiled kernel like JAX, which keeps a NaN through its rectifier."""
    method = ForwardForward((20, 16, 12), 3)
    params = jax.vmap(lambda key: method.init(key)[0])(jax.random.split(jax.random.key(0), 2))
    c = np.array(params[layer].c)
    c[1, 5] = np.nan
    params = tuple(p._replace(c=c) if i == layer else p for i, p in enumerate(params))
    images = np.random.default_rng(0).random((9, 20)).astype(np.float32)
    fine, broken = ForwardForwardError(images, np.zeros(9, int), 3)(params)
    assert np.isfinite(fine) and np.isnan(broken)
    if not MISSING:
        native = forward_forward_scores(params, images, 3)
        np.testing.assert_array_equal(
            np.isnan(native), np.isnan(jax_scores(params, jnp.asarray(images), 3))
        )


@pytest.mark.parametrize(
    ("pixels", "classes"), [pytest.param(20, 10, id="classes"), pytest.param(15, 2, id="pixels")]
)
@pytest.mark.parametrize("at_end", [False, True])
def test_an_error_over_other_classes_than_the_networks_is_refused(pixels, classes, at_end):
    """With the default of 10 classes a network of 2 would be right by no label at all."""
    method = ForwardForward((20, 6), 2)
    params = jax.vmap(lambda key: method.init(key)[0])(jax.random.split(jax.random.key(0), 2))
    labels = np.arange(9) % 2
    fine = ForwardForwardError(np.zeros((9, 20)), labels, 2)
    other = ForwardForwardError(np.zeros((9, pixels)), labels, classes)
    check_values({"error": AtEnd(fine, fine)}, params, method)
    with pytest.raises(ValueError, match=r"network of 2 classes and 20 pixels.*classes=2"):
        check_values({"error": AtEnd(fine, other) if at_end else other}, params, method)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: FreeEnergyError(IMAGES, np.zeros(16, int), 4)(m), "append_labels"),
        (lambda m: SampledError(IMAGES, np.zeros(16, int), 2)(m), "append_labels"),
        (lambda m: FreeEnergyError(IMAGES + 0.5, np.zeros(16, int), 3), "zeros and ones"),
        (lambda m: FreeEnergyError(IMAGES, np.full(16, 3), 3), "0 to 2"),
        (lambda m: SampledError(IMAGES, np.zeros(16, int), 3, steps=0), "at least 1 step"),
    ],
)
def test_bad_input_gets_a_sentence(machine, call, words):
    with pytest.raises(ValueError, match=words):
        call(machine)
