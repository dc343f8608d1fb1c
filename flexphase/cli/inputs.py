"""The data that `--data` names: a word, or a file of numbers."""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..plot import picture_shape

WORDS = "bas, bas:SIDE, digits, mnist, or a .npy, .npz or .csv file"


class Input(NamedTuple):
    """Rows of pixels; labels and a test set where the data have them; the height and width of a
    picture.
    """

    name: str
    images: np.ndarray
    shape: tuple[int, int]
    labels: np.ndarray | None = None
    test: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def classes(self) -> int:
        return 0 if self.labels is None else max(int(self.labels.max()) + 1, 2)


def load(word: str, side: int | None = None) -> Input:
    """The data by its word or path."""
    if word == "bas":
        return bars(str(side or 4))
    if word.startswith("bas:"):
        return bars(word.removeprefix("bas:"))
    if word == "digits":
        from ..data import digits

        images, labels = digits()
        cut = (
            len(images) * 4 // 5
        )  # in the order given, so that the test set has writers of its own
        return Input(word, images[:cut], (8, 8), labels[:cut], (images[cut:], labels[cut:]))
    if word == "mnist":
        from ..data.mnist import mnist

        train, test = mnist()
        return Input(word, train.images, (28, 28), train.labels, (test.images, test.labels))
    return read(Path(word))


def bars(side: str) -> Input:
    from ..data import bars_and_stripes

    if not (side.isascii() and side.isdecimal() and len(side) < 4):
        raise ValueError(f"bas:SIDE needs a whole number, such as bas:4, not bas:{side}.")
    return Input("bas", bars_and_stripes(int(side)), (int(side), int(side)))


def read(path: Path) -> Input:
    """A file of rows (or of pictures: rows, height, width); an .npz may hold labels too."""
    if not path.is_file():
        raise ValueError(f"there is no data {str(path)!r}; give {WORDS}.")
    try:
        match path.suffix.lower():
            case ".npy":
                images, labels = np.load(path, allow_pickle=False), None
            case ".npz":
                images, labels = read_npz(path)
            case ".csv":
                images, labels = read_csv(path), None
            case _:
                raise ValueError("the name must end in .npy, .npz or .csv")
        if images.dtype.kind not in "biuf":
            raise ValueError(f"it holds {images.dtype}, not numbers")
        images = images.astype(np.float32)
    except (ValueError, TypeError, EOFError, KeyError, UnicodeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as data ({error}).") from None
    if images.ndim not in (2, 3) or 0 in images.shape:
        raise ValueError(
            f"{path} must hold a non-empty array of shape (rows, features) or (rows, height, "
            f"width), not {images.shape}."
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


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    with np.load(path, allow_pickle=False) as file:
        images = next(
            (name for name in ("images", "x", "data", *file.files) if name in file.files), None
        )
        labels = next(
            (name for name in ("labels", "y") if name in file.files and name != images), None
        )
        if images is None:
            raise ValueError("the archive is empty")
        return file[images], file[labels] if labels else None


def read_csv(path: Path) -> np.ndarray:
    """Numbers between commas; a first line of words is skipped."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    if not lines:
        raise ValueError("the file is empty")
    try:
        [float(word) for word in lines[0].split(",")]
    except ValueError:
        lines = lines[1:]
    return np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.float32)
