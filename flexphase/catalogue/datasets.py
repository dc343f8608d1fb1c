"""The data that `--data` names: a word of the table, or a file of numbers."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import content, npy, npz, text, understood
from .arguments import did_you_mean
from .entries import DatasetEntry, Input

if TYPE_CHECKING:
    import numpy as np

LARGEST = 1e9  # of a number: means of squares stay finite in single precision


def bars_and_stripes(detail: str | None) -> Input:
    from ..data import bars_and_stripes

    side = detail or ("4" if detail is None else "")
    if not (side.isascii() and side.isdecimal() and len(side) < 4):
        raise ValueError(f"bas:SIDE needs a whole number, such as bas:4, not bas:{side}.")
    return Input("bas", bars_and_stripes(int(side)), (int(side), int(side)))


def digits(_: str | None) -> Input:
    """The last fifth, in the order given, is the test set: it has writers of its own."""
    from ..data import digits

    images, labels = digits()
    cut = len(images) * 4 // 5
    return Input("digits", images[:cut], (8, 8), labels[:cut], (images[cut:], labels[cut:]))


def mnist(_: str | None) -> Input:
    from ..data.mnist import mnist

    train, test = mnist()
    return Input("mnist", train.images, (28, 28), train.labels, (test.images, test.labels))


def cifar10(_: str | None) -> Input:
    """Rows of 32 pixels with three colours each, drawn as pictures of 32 x 96."""
    from ..data import cifar10

    train, test = cifar10()
    return Input("cifar10", train.images, (32, 96), train.labels, (test.images, test.labels))


def planar(name: str, detail: str | None) -> Input:
    """2,000 points of a density in the plane, or as many as the detail says."""
    from ..data import planar

    rows = detail or ("2000" if detail is None else "")
    if not (rows.isascii() and rows.isdecimal() and 0 < len(rows) < 8):
        raise ValueError(f"{name}:ROWS needs a whole number, such as {name}:2000.")
    density = {"two-moons": planar.two_moons, "rings": planar.rings, "mixture": planar.mixture}
    return Input(name, density[name]().draw(int(rows)), (1, 2))


def fetch_mnist(say: Callable[[str], None]) -> Path:
    from ..data.mnist import fetch_mnist

    return fetch_mnist(say)


ENTRIES = (
    DatasetEntry(
        name="bas", words="Bars and Stripes of side 4", load=bars_and_stripes, detail="SIDE"
    ),
    DatasetEntry(name="digits", words="8x8 digits of scikit-learn", load=digits, grey=True),
    DatasetEntry(
        name="mnist", words="MNIST, fetched once and kept", load=mnist, grey=True, fetch=fetch_mnist
    ),
    DatasetEntry(name="cifar10", words="CIFAR-10 in FLEXPHASE_DATA", load=cifar10, grey=True),
    *(
        DatasetEntry(name=name, words=words, load=partial(planar, name), detail="ROWS")
        for name, words in (
            ("two-moons", "2,000 points on two half circles"),
            ("rings", "2,000 points on two circles"),
            ("mixture", "2,000 points of eight Gaussians"),
        )
    ),
)
DATASETS = {entry.name: entry for entry in ENTRIES}


def known_words() -> str:
    """What `--data` takes, for help and messages."""
    names = [
        f"{entry.name}, {entry.name}:{entry.detail}" if entry.detail else entry.name
        for entry in ENTRIES
    ]
    *others, last = READERS
    return f"{', '.join(names)}, or a {', '.join(others)} or {last} file"


def load(word: str, side: int | None = None) -> Input:
    """The data by its word, word:detail or path; `side` is the detail of plain bas."""
    if side is not None and word != "bas":
        raise ValueError(
            f"--side {side} is for --data bas, and the data are {word}; give one of the two."
        )
    name, colon, detail = word.partition(":")
    entry = DATASETS.get(name)
    if entry is None or (colon and not entry.detail):
        return read(Path(word))
    plain = None if side is None else str(side)
    return entry.load(detail if colon else plain)._replace(grey=entry.grey)


def read(path: Path) -> Input:
    """A file of rows (or of pictures: rows, height, width); an .npz may hold labels too."""
    import numpy as np

    from ..pictures import picture_shape

    if not os.path.lexists(path) or path.is_dir():
        near = did_you_mean(str(path), DATASETS) or "."
        raise ValueError(f"there is no data {str(path)!r}; give {known_words()}{near}")
    reader = READERS.get(path.suffix.lower())
    with understood(f"{path} cannot be read as data"):
        if reader is None:
            raise ValueError(f"the name must end in {', '.join(READERS)}")
        images, labels = reader(content(path))
        if images.dtype.kind not in "biuf":
            raise ValueError(f"it holds {images.dtype}, not numbers")
        images = images.astype(np.float32)
    if images.ndim not in (2, 3) or 0 in images.shape:
        raise ValueError(
            f"{path} must hold a non-empty array of shape (rows, features) or (rows, height, "
            f"width), not {images.shape}."
        )
    if not (np.abs(images) <= LARGEST).all():
        raise ValueError(
            f"{path} must hold finite numbers of at most {LARGEST:g} in size; drop or fill other "
            "rows, or scale all of them."
        )
    shape = images.shape[1:] if images.ndim == 3 else picture_shape(images.shape[1])
    if labels is not None and (
        labels.shape != images.shape[:1]
        or labels.dtype.kind not in "iu"
        or labels.min() < 0
        or labels.max() > 999
    ):
        raise ValueError(
            f"the labels in {path} must be whole numbers from 0 to 999, one for each of the "
            f"{len(images)} rows."
        )
    return Input(path.stem, images.reshape(len(images), -1), (int(shape[0]), int(shape[1])), labels)


def read_npy(raw: bytes) -> "tuple[np.ndarray, None]":
    return npy(raw), None


def read_npz(raw: bytes) -> "tuple[np.ndarray, np.ndarray | None]":
    """Images under that name, x or data, else the first array; labels under that name or y."""
    file = npz(raw)
    images = next((n for n in ("images", "x", "data", *file) if n in file), None)
    labels = next((n for n in ("labels", "y") if n in file and n != images), None)
    if images is None:
        raise ValueError("the archive is empty")
    return file[images], file[labels] if labels else None


def read_csv(raw: bytes) -> "tuple[np.ndarray, None]":
    """Numbers between commas; a first line without any number, a header, is skipped."""
    import numpy as np

    lines = [line for line in text(raw).splitlines() if line.strip()]
    if not lines:
        raise ValueError("the file is empty")
    first = [is_number(word) for word in lines[0].split(",")]
    if any(first) and not all(first):
        raise ValueError("its first line holds numbers beside what is none; fill or drop that row")
    lines = lines if all(first) else lines[1:]
    return np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.float32), None


def is_number(word: str) -> bool:
    """Is this cell a number, as Python writes it?"""
    try:
        float(word)
    except ValueError:
        return False
    return True


READERS = {".npy": read_npy, ".npz": read_npz, ".csv": read_csv}
