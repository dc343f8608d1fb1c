"""From images and labels to what a network sees: binarisation, label overlay, labels as visible
units.
"""

from typing import Any, NamedTuple

import numpy as np

from ..checks import count, matrix, whole_labels


class Images(NamedTuple):
    """Images as rows of pixels in [0, 1], and their labels.

    Args:
        images: (rows, pixels), float32.
        labels: (rows,), int32: whole numbers from 0.
    """

    images: np.ndarray
    labels: np.ndarray


class Split(NamedTuple):
    """A dataset in two parts: `(train_images, train_labels), (test_images, test_labels) = split`.

    Args:
        train: images to learn from, with their labels.
        test: images to judge by, with their labels.
    """

    train: Images
    test: Images


def every(n: int, images: Any, labels: Any) -> Images:
    """About n of them, evenly spaced: an unbiased subset. The step is odd, because neat and
    careless writers alternate in MNIST.
    """
    step = max(1, len(labels) // n) | 1
    return Images(images[::step], labels[::step])


def binarise(data: Any, threshold: float = 0.5) -> np.ndarray:
    """1 where a pixel exceeds the threshold, else 0.

    Args:
        data: (rows, pixels), in [0, 1].
        threshold: in [0, 1).
    """
    if not 0 <= threshold < 1:
        raise ValueError(
            f"the threshold must lie in [0, 1), the range of the pixels, not {threshold!r}; divide "
            "8-bit images by 255 first."
        )
    pixels = np.asarray(matrix(data))
    if pixels.min() < 0 or pixels.max() > 1:
        raise ValueError(
            f"pixels must lie in [0, 1], not in [{pixels.min():g}, {pixels.max():g}]; divide 8-bit "
            "images by 255 first."
        )
    return (pixels > threshold).astype(np.float32)


def overlay(images: Any, labels: Any, classes: int = 10) -> np.ndarray:
    """The first `classes` pixels replaced by the label, one-hot: how Forward-Forward is shown a
    label.

    Args:
        images: (rows, pixels).
        labels: whole numbers from 0, one for each row.
        classes: number of labels, at least 2 and fewer than pixels.
    """
    pixels = np.array(matrix(images))
    room_for_overlay(pixels.shape[1], classes)
    pixels[:, :classes] = np.eye(classes, dtype=np.float32)[
        whole_labels(labels, len(pixels), classes)
    ]
    return pixels


def append_labels(images: Any, labels: Any, classes: int = 10) -> np.ndarray:
    """The labels, one-hot, as `classes` more visible units after the pixels: what a labelled RBM is
    trained on.

    Args:
        images: (rows, pixels).
        labels: whole numbers from 0, one for each row.
        classes: number of labels.

    Returns: (rows, pixels + classes).
    """
    pixels = np.asarray(matrix(images))
    rows = whole_labels(labels, len(pixels), classes)
    return np.concatenate([pixels, np.eye(classes, dtype=np.float32)[rows]], axis=1)


def room_for_overlay(pixels: int, classes: int) -> None:
    count(classes, "classes")
    if classes < 2:
        raise ValueError(f"a label needs at least 2 classes, not {classes!r}.")
    if classes >= pixels:
        raise ValueError(
            f"an overlay of {classes} classes leaves nothing of an image of {pixels} pixels; use "
            "larger images or fewer classes."
        )
