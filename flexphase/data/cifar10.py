"""CIFAR-10, binary version, where the user has it: nothing is fetched, and no pickle is read."""

import os
from pathlib import Path

import numpy as np

from ..files import content, understood
from .transforms import Images, Split

TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
TEST = ("test_batch.bin",)
ROWS = 10_000  # images in each file
PIXELS = 3 * 32 * 32


def parse(raw: bytes) -> Images:
    """Records of a label and 3 planes of 32 x 32 pixels: red, green, blue. Out come rows of 3,072
    numbers in [0, 1], pixel by pixel with its three colours, so that the first half of a row is the
    upper half of the picture.
    """
    table = np.frombuffer(raw, np.uint8).reshape(-1, 1 + PIXELS)
    planes = table[:, 1:].reshape(-1, 3, 32 * 32)
    return Images(
        planes.transpose(0, 2, 1).reshape(len(table), -1) / np.float32(255),
        table[:, 0].astype(np.int32),
    )


def folder() -> Path:
    """Where the six files are."""
    advice = (
        "put the six .bin files of its binary version (cifar-10-batches-bin) into a folder and "
        "name that in FLEXPHASE_DATA."
    )
    if not (named := os.environ.get("FLEXPHASE_DATA")):
        raise ValueError(f"CIFAR-10 is not fetched; {advice}")
    for place in (Path(named) / sub for sub in ("cifar-10-batches-bin", "cifar10", "")):
        if (place / TEST[0]).is_file():
            return place
    raise ValueError(f"there is no CIFAR-10 in {named} (FLEXPHASE_DATA); {advice}")


def read(path: Path) -> Images:
    """One file; a ValueError if it is not whole."""
    with understood(f"{path} cannot be read"):
        raw = content(path, ROWS * (1 + PIXELS) + 1)
    if len(raw) != ROWS * (1 + PIXELS) or max(raw[:: 1 + PIXELS]) > 9:
        raise ValueError(
            f"{path} is not a whole file of CIFAR-10: {ROWS:,} records of 3,073 bytes, the first "
            "of which is a label from 0 to 9."
        )
    return parse(raw)


def cifar10() -> Split:
    """`(train_images, train_labels), (test_images, test_labels) = cifar10()`: 50,000 and 10,000
    rows of 3,072 numbers in [0, 1].
    """
    place = folder()

    def together(names: tuple[str, ...]) -> Images:
        parts = [read(place / name) for name in names]
        return Images(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    return Split(together(TRAIN), together(TEST))
