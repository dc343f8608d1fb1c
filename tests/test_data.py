"""Data that needs no network: digits, binarisation, overlay, appended labels, and the sources of
Forward-Forward and of pairs of images.
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexphase.data import (
    ImagePairs,
    LabelContrast,
    Rows,
    append_labels,
    bars_and_stripes,
    binarise,
    digits,
    overlay,
)
from flexphase.data.digits import rows
from flexphase.data.transforms import every
from flexphase.progress import say


def test_digits_are_scikit_learns():
    images, labels = digits()
    assert images.shape == (1797, 64) and images.dtype == np.float32 and labels.shape == (1797,)
    assert images.min() == 0 and images.max() == 1
    # Class counts as printed in scikit-learn's description of the dataset (UCI optical recognition,
    # test part).
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_without_scikit_learn_name_the_extra(monkeypatch):
    monkeypatch.setattr(sys.modules[rows.__module__], "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"flexphase\[digits\]"):
        digits()


def test_digits_whose_file_lies_elsewhere_come_from_scikit_learn(tmp_path):
    images, labels = digits()
    table = rows(tmp_path)
    np.testing.assert_array_equal(table, np.column_stack([16 * images, labels]))


def test_control_characters_do_not_reach_the_terminal(capsys):
    """A name in a forged record could move the cursor, or change the terminal's title."""
    say("a\x1b]0;b\x07\tc")
    assert capsys.readouterr().err == "a\\x1b]0;b\\x07\tc\n"


def test_binarise_by_hand():
    assert binarise([[0.0, 0.5, 0.51, 1.0]]).tolist() == [[0, 0, 1, 1]]
    assert binarise([[0.0, 0.5, 0.51, 1.0]], threshold=0.8).tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: binarise([[0.0, 255.0]]), "divide 8-bit"),
        (lambda: binarise([[0.2]], threshold=1.0), "threshold"),
        (lambda: binarise([[0.2]], threshold=-0.1), "threshold"),
        (lambda: binarise([[np.nan]]), "NaN"),
        (lambda: overlay(np.zeros((2, 10)), [0, 1]), "leaves nothing"),
        (lambda: overlay(np.zeros((2, 4)), [0, 1], classes=1), "at least 2 classes"),
        (lambda: overlay(np.zeros((2, 20)), [0, 10]), "0 to 9"),
        (lambda: overlay(np.zeros((2, 20)), [0, -1]), "0 to 9"),
        (lambda: overlay(np.zeros((2, 20)), [0, 0.5]), "0 to 9"),
        (lambda: overlay(np.zeros((2, 20)), [0, np.nan]), "0 to 9"),
        (lambda: overlay(np.zeros((2, 20)), ["a", "b"]), "0 to 9"),
        (lambda: overlay(np.zeros((2, 20)), [0, 1, 2]), "need 2 labels"),
        (lambda: append_labels(np.zeros((2, 20)), [[0, 1]]), "need 2 labels"),
        (lambda: append_labels(np.zeros((2, 20)), [0, 3], classes=3), "0 to 2"),
        (lambda: LabelContrast(np.zeros((0, 20)), []), "non-empty"),
        (lambda: LabelContrast(np.zeros((2, 20)), [0, 11]), "0 to 9"),
        (lambda: LabelContrast(np.zeros((2, 9)), [0, 1]), "leaves nothing"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def images(seed, rows=5, pixels=12):
    return np.random.default_rng(seed).random((rows, pixels), dtype=np.float32)


seeds, sizes = st.integers(0, 2**32 - 1), st.integers(1, 9)


@given(seeds, sizes, sizes, st.floats(0, 1, exclude_max=True, width=32))
def test_binarised_images_are_on_exactly_above_the_threshold(seed, rows, pixels, threshold):
    given = images(seed, rows, pixels)
    given.flat[0] = threshold
    binary = binarise(given, threshold)
    assert (
        binary.dtype == np.float32
        and np.array_equal(binary == 1, given > np.float32(threshold))
        and np.isin(binary, (0, 1)).all()
    )
    assert np.array_equal(binarise(binary, threshold), binary)


@pytest.mark.parametrize("side", range(1, 13))
def test_bars_and_stripes_of_every_size(side):
    """2^side bars and as many stripes, all different but the empty and the full square, which are
    both.
    """
    rows = bars_and_stripes(side)
    bars, stripes = np.split(rows.reshape(-1, side, side), 2)
    assert (
        (bars == bars[:, :1]).all()
        and (stripes == stripes[:, :, :1]).all()
        and np.isin(rows, (0, 1)).all()
    )
    assert len(np.unique(np.packbits(rows.astype(bool), axis=1), axis=0)) == 2 * 2**side - 2


@pytest.mark.parametrize("side", [0, 13, 2.0, True, "4"])
def test_a_side_that_is_none_gets_a_sentence(side):
    with pytest.raises(ValueError, match="side must"):
        bars_and_stripes(side)


@given(seeds, sizes)
def test_rows_that_belong_together_are_shown_together(seed, rows):
    """A positive phase shows a row of the data, a negative one keeps what there was."""
    pairs = Rows((images(seed, rows, 3), np.arange(rows)[:, None]))
    x = pairs.init(jax.random.key(seed % 2**31))
    fresh, kept = (pairs(jax.random.key(1), jnp.float32(sign), x) for sign in (1, -1))
    assert all(np.array_equal(a, b) for a, b in zip(kept, x, strict=True))
    assert all(np.array_equal(image, pairs.data[0][int(row[0])]) for image, row in (x, fresh))


@given(st.integers(2, 6), seeds)
def test_overlay_and_append_put_the_label_where_it_belongs(classes, seed):
    pixels, labels = images(seed), np.random.default_rng(seed).integers(0, classes, 5)
    shown, joined = overlay(pixels, labels, classes), append_labels(pixels, labels, classes)
    assert np.array_equal(pixels, images(seed))  # what was given is left alone
    assert np.array_equal(shown[:, classes:], pixels[:, classes:])
    assert np.array_equal(shown[:, :classes].argmax(1), labels) and np.array_equal(
        shown[:, :classes].sum(1), np.ones(5)
    )
    assert np.array_equal(joined[:, :12], pixels) and np.array_equal(
        joined[:, 12:], shown[:, :classes]
    )


def drawn(source: Any, sign: float, n: int, x: Any) -> Any:
    return jax.vmap(lambda key: source(key, jnp.float32(sign), x))(
        jax.random.split(jax.random.key(1), n)
    )


def test_positives_show_the_true_label_and_every_row():
    images = np.random.default_rng(0).random((7, 16), dtype=np.float32)
    labels = np.array([0, 1, 2, 3, 4, 4, 4])
    source = LabelContrast(images, labels, classes=5)
    x = drawn(source, +1, 7000, source.init(jax.random.key(0)))
    assert np.array_equal(np.asarray(x.label).argmax(1), labels[x.row])
    assert np.array_equal(np.asarray(x.image), images[x.row])
    z = (np.bincount(np.asarray(x.row)) - 1000) / np.sqrt(
        7000 / 7 * 6 / 7
    )  # uniform rows: binomial counts
    assert np.abs(z).max() < 4


@pytest.mark.parametrize("paired", [True, False])
def test_negatives_show_a_wrong_label_drawn_uniformly(paired):
    images, labels = np.eye(7, 16, dtype=np.float32), np.array([0, 1, 2, 3, 4, 4, 4])
    source = LabelContrast(images, labels, classes=5, paired=paired)
    before = source.init(jax.random.key(0))
    x = drawn(source, -1, 8000, before)
    shown, truth = np.asarray(x.label).argmax(1), labels[x.row]
    assert (shown != truth).all()
    assert (
        (np.unique(x.row).size == 1 and int(x.row[0]) == int(before.row))
        if paired
        else np.unique(x.row).size == 7
    )
    offsets = np.bincount((shown - truth) % 5, minlength=5)[1:]
    assert (
        np.abs((offsets - 2000) / np.sqrt(8000 / 4 * 3 / 4)).max() < 4
    )  # the four wrong labels alike: binomial counts


SHOWN, LABELS = np.random.default_rng(0).random((7, 16), dtype=np.float32), np.arange(7) % 5


@pytest.mark.parametrize(
    "source",
    [
        LabelContrast(SHOWN, LABELS, classes=5, paired=True),
        LabelContrast(SHOWN, LABELS, classes=5, paired=False),
        ImagePairs(SHOWN, paired=True),
        ImagePairs(SHOWN, paired=False),
    ],
    ids=["labels paired", "labels", "pairs paired", "pairs"],
)
def test_a_phase_without_plasticity_keeps_the_image(source):
    """So that the negative phase after a pause sees the image of the positive one before it."""
    before = source.init(jax.random.key(3))
    x = drawn(source, 0, 200, before)
    assert (np.asarray(x.row) == int(before.row)).all()
    assert (np.asarray(x.image) == np.asarray(before.image)).all()


@given(rows=st.integers(2, 500), n=st.integers(1, 200))
def test_a_cheaper_test_set_is_fair_to_rows_that_alternate(rows, n):
    kind = np.arange(rows) % 2
    chosen = every(n, kind[:, None], kind)
    assert (
        np.array_equal(chosen.images[:, 0], chosen.labels)
        and min(n, rows) / 2 <= len(chosen.labels) <= 2 * n
    )
    assert (
        abs(int(chosen.labels.sum()) - len(chosen.labels) / 2) <= 0.5
    )  # as many of either kind, by counting
