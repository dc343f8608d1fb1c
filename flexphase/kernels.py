"""The compiled kernels, as functions of plain arrays; engines and metrics call them."""

import contextlib
import os
from typing import Any

import numpy as np

from .machine import cores

MOST = 2**16  # threads: the kernels count them in 32 bits, and no machine has so many cores
_native: Any = None
MISSING = (
    "flexphase was installed without its compiled engines (no C++ compiler was found, or the wheel "
    "is one without them, as on Windows); falling back to the JAX engine."
)
with contextlib.suppress(ImportError):
    from . import _native  # type: ignore[attr-defined,no-redef]

    MISSING = ""


def threads(asked: int | None) -> int:
    """Threads to use: as asked, else FLEXPHASE_THREADS, else all cores of this process."""
    named = os.environ.get("FLEXPHASE_THREADS", "") if asked is None else str(asked)
    if not named:
        return cores()
    if not named.isdecimal() or not 1 <= float(named) <= MOST:
        raise ValueError(
            "the number of threads (threads= or FLEXPHASE_THREADS) must be a whole number from 1 "
            f"to {MOST:,}, not {named[:50]!r}."
        )
    return int(named)


def owned(value: Any, dtype: Any = np.float32) -> np.ndarray:
    """A C-contiguous copy that may be written to."""
    return np.array(value, dtype=dtype, order="C")


def rbm_nll(W: Any, a: Any, c: Any, data: Any, asked: int | None = None) -> np.ndarray:
    """Exact NLL in nats, summed over the rows of the data, of the RBM in every lane."""
    out = np.empty(len(W))
    lanes = {"W": owned(W), "a": owned(a), "c": owned(c), "data": owned(data), "nll": out}
    _native.rbm_nll(lanes, threads(asked))
    return out


def forward_forward_scores(
    layers: Any, images: Any, classes: int, asked: int | None = None, isa: str = ""
) -> np.ndarray:
    """Goodness of every label on every image, (lanes, rows, classes); a layer is (W, c)."""
    arrays = {}
    for i, (W, c) in enumerate(layers):
        arrays |= {f"{i}.W": W, f"{i}.c": c}
    arrays = {name: np.ascontiguousarray(part, np.float32) for name, part in arrays.items()}
    arrays["images"] = np.ascontiguousarray(images, np.float32)
    scores = np.empty((len(arrays["0.W"]), len(images), classes), np.float32)
    given = arrays | {"scores": scores}
    _native.forward_forward_scores(given, len(layers), classes, threads(asked), isa)
    return scores
