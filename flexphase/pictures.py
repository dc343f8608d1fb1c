"""Rows of pixels -> pictures: samples, and the weights of hidden units. As in `plot.py`, `ax=None`
makes a figure, and the axes are returned.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import axes

if TYPE_CHECKING:
    from .record import Record


def picture_shape(pixels: int, shape: tuple[int, int] | None = None) -> tuple[int, int]:
    """Height and width of a picture; square where nothing else is said, one row where that does not
    fit.
    """
    if pixels < 1:
        raise ValueError(f"a picture has at least one pixel, not {pixels}.")
    side = round(pixels**0.5)
    height, width = shape or ((side, side) if side * side == pixels else (1, pixels))
    if height * width != pixels:
        raise ValueError(f"{pixels} pixels are no picture of {height} x {width}.")
    return height, width


def tiles(
    rows: Any, shape: tuple[int, int] | None = None, columns: int | None = None
) -> np.ndarray:
    """Rows of pixels as one picture: a grid of tiles with a margin of one pixel of NaN between
    them.
    """
    rows = np.asarray(rows, float)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            "pictures must be rows of pixels, an array of shape (pictures, pixels), not "
            f"{rows.shape}."
        )
    height, width = picture_shape(rows.shape[1], shape)
    columns = columns or int(np.ceil(len(rows) ** 0.5))
    lines = -(-len(rows) // columns)
    canvas = np.full((lines * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for i, row in enumerate(rows):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        canvas[top : top + height, left : left + width] = row.reshape(height, width)
    return canvas


def pictures(
    rows: Any,
    shape: tuple[int, int] | None = None,
    columns: int | None = None,
    ax: Any = None,
    signed: bool = False,
    label: str = "",
) -> Any:
    """Samples (0 white, 1 black), or signed values such as weights (blue below, red above zero), as
    a grid of pictures.
    """
    canvas = tiles(rows, shape, columns)
    ax = axes(ax, *np.clip(np.array(canvas.shape[::-1]) * 0.06, 3, 10))
    top = float(np.nanmax(np.abs(canvas), initial=0)) or 1.0
    from matplotlib import colormaps

    colours = colormaps["RdBu_r" if signed else "Greys"].with_extremes(
        bad="#bdbdbd" if signed else "#b0c4d8"
    )
    image = ax.imshow(
        canvas,
        cmap=colours,
        vmin=-top if signed else 0,
        vmax=top if signed else 1,
        interpolation="nearest",
    )
    if signed:
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label=label or "weight")
    ax.set_axis_off()
    return ax


def class_pictures(samples: Any, ax: Any = None) -> Any:
    """One row of square pictures for each class; the axes."""
    samples = np.asarray(samples)
    classes, each, pixels = samples.shape
    side = round(pixels**0.5)
    if side * side != pixels:
        raise ValueError(
            f"{pixels} pixels are not a square picture; reshape the samples and draw them yourself."
        )
    ax = axes(ax, width=0.6 * each + 0.8, height=0.6 * classes + 0.5)
    sheet = (
        samples.reshape(classes, each, side, side)
        .transpose(0, 2, 1, 3)
        .reshape(classes * side, each * side)
    )
    ax.imshow(sheet, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_yticks((np.arange(classes) + 0.5) * side - 0.5, np.arange(classes))
    ax.set_xticks([])
    ax.set(ylabel="label that is clamped", xlabel="independent chains")
    return ax


def receptive_fields(
    record: "Record",
    lane: int = 0,
    shape: tuple[int, int] | None = None,
    ax: Any = None,
    averaged: bool = False,
) -> Any:
    """The weights of every hidden unit of an RBM to the picture, one lane's; `averaged`: its slow
    weights.
    """
    if "W" not in record.params or "a" not in record.params:
        raise ValueError("receptive fields are drawn for RBMs, whose parameters are W, a and c.")
    one = record.lane(lane)
    W = (one.averaged_params if averaged else one.params)["W"]
    if W.ndim != 2:
        raise ValueError("the weights W of this record are no matrix for each network.")
    fields = W.T[:, : shape[0] * shape[1]] if shape else W.T
    return pictures(fields, shape, ax=ax, signed=True)
