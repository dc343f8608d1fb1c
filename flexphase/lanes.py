"""Many settings x seeds as lanes of one compiled loop."""

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .checks import count
from .describe import Swept

PyTree = Any


class Grid(NamedTuple):
    """Runs that differ in numbers only, and the named axes along which they differ.

    Args:
        runs: one for each combination of the values; those of the last axis change fastest.
        dims: the values of each axis, by name.
    """

    runs: Sequence[PyTree]
    dims: dict[str, Sequence[float]]


def grid(make: Callable[..., PyTree], **values: Sequence[float]) -> Grid:
    """`grid(lambda b, eta: Run(...), b=[...], eta=[...])`: every combination, as lanes for one
    `train`.

    Args:
        make: makes the run from one value of each axis, given by name. The runs may differ in
            numbers only, not in methods or sizes.
        values: the values of each axis, a list of numbers or booleans.
    """
    check_makes(make, list(values))
    for name, axis in values.items():
        check_axis(name, axis)
        if name in ("seed", "record", "ticks", "phases", "updates"):
            raise ValueError(
                f"an axis of the grid cannot be called {name!r}, which every record has; choose "
                "another name."
            )
    points = itertools.product(*values.values())
    return Grid([make(**dict(zip(values, point, strict=True))) for point in points], dict(values))


def check_makes(make: Any, axes: list[str]) -> None:
    """Refuse what cannot be called with a value of each axis."""
    if not callable(make):
        raise ValueError(
            f"grid needs a function that makes a run, not a {type(make).__name__}: write "
            "grid(lambda b: Run(...), b=[...])."
        )
    try:
        inspect.signature(make).bind(**dict.fromkeys(axes))
    except TypeError as error:
        raise ValueError(
            f"the function of a grid has an argument for each axis, here {', '.join(axes)}, and "
            f"this one does not ({error}): write grid(lambda b, eta: Run(...), b=[...], eta=[...])."
        ) from None
    except ValueError:  # some functions that are not written in Python do not say
        pass


def check_axis(name: str, axis: Any) -> None:
    """Refuse what a record could not hold as the values of a dimension."""
    try:
        values = np.asarray(axis)
    except ValueError:  # lists of different lengths
        values = np.empty(0)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"the axis {name!r} of the grid must be a list of at least one value, not {axis!r}."
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"the axis {name!r} of the grid must hold numbers or booleans, not {axis!r}; number "
            "the settings 0, 1, 2, ... and look them up in the function."
        )


class Lanes(NamedTuple):
    """One run for all lanes: leaves that the lanes do not share have a leading lane axis (0 in
    `axes`, None where shared).
    """

    run: PyTree
    axes: PyTree
    keys: Array
    dims: dict[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(v) for v in self.dims.values())

    @property
    def settings(self) -> PyTree:
        """The run as it was written: common numbers once, not once a lane, others as `Swept`."""
        dynamic, static = eqx.partition(self.run, eqx.is_array)
        leaves, treedef = jax.tree.flatten(dynamic)
        axes = treedef.flatten_up_to(self.axes)
        written = [self._written(*pair) for pair in zip(leaves, axes, strict=True)]
        numbers = jax.tree.unflatten(treedef, written)
        return eqx.combine(numbers, static, is_leaf=lambda x: x is None or isinstance(x, Swept))

    def _written(self, leaf: Array, axis: int | None) -> Any:
        if axis is None:
            return leaf
        values = np.asarray(leaf).reshape(*self.shape, *leaf.shape[1:])
        values = values[(slice(None),) * (len(self.shape) - 1) + (0,)]  # the same for every seed
        points = values.reshape(-1, *leaf.shape[1:])
        return points[0] if (points == points[:1]).all() else Swept(values)

    def vmap(self, f: Callable, *args: PyTree) -> PyTree:
        """f(run, *args) over the lanes."""
        dynamic, static = eqx.partition(self.run, eqx.is_array)
        return jax.vmap(
            lambda d, *a: f(eqx.combine(d, static), *a), in_axes=(self.axes, *(0,) * len(args))
        )(dynamic, *args)


def lanes(run: PyTree, seeds: int, seed: int) -> Lanes:
    """Grid points x seeds. A lane's key depends on its seed alone, so adding a lane changes no
    other.
    """
    seeds, seed = count(seeds, "seeds"), count(seed, "the base seed", 0)
    if seed > 2**31 - seeds:
        raise ValueError(f"the base seed must lie between 0 and 2^31 - seeds, not {seed!r}.")
    points, dims = run if isinstance(run, Grid) else ([run], {})
    flat = [jax.tree.flatten(eqx.filter(p, eqx.is_array)) for p in points]
    static = [eqx.filter(p, eqx.is_array, inverse=True) for p in points]
    alike = all(eqx.tree_equal(other, static[0]) for other in static[1:])
    if not alike or any(treedef != flat[0][1] for _, treedef in flat):
        raise ValueError(
            "the runs of a grid may differ in numbers only (b, tau, eta, ...); train different "
            "methods or sizes separately."
        )
    leaves, axes = [], []
    for same in zip(*(leaf for leaf, _ in flat), strict=True):
        check_shapes(same)
        # One copy of the data. A number always gets its lane axis, shared or not: XLA rounds
        # divisions by a broadcast number and by an array differently, and a lane's bits must not
        # depend on what is swept beside it.
        shared = same[0].ndim > 0 and all(
            leaf is same[0] or np.array_equal(leaf, same[0]) for leaf in same
        )
        axes.append(None if shared else 0)
        leaves.append(same[0] if shared else repeated(same, seeds))
    treedef = flat[0][1]
    merged = eqx.combine(jax.tree.unflatten(treedef, leaves), static[0])
    numbers = np.arange(seed, seed + seeds)
    keys = jnp.tile(jax.vmap(jax.random.key)(numbers), len(points))
    dims = {name: np.asarray(axis) for name, axis in dims.items()} | {"seed": numbers}
    return Lanes(merged, jax.tree.unflatten(treedef, axes), keys, dims)


def check_shapes(leaves: Sequence[Array]) -> None:
    """The lanes of one program have arrays of one shape."""
    shapes = sorted({leaf.shape for leaf in leaves})
    if len(shapes) > 1:
        raise ValueError(
            f"the runs of a grid hold arrays of the shapes {shapes[0]} and {shapes[1]}, and their "
            "lanes must have the same; train runs with data of different sizes separately."
        )


def repeated(leaves: Sequence[Array], seeds: int) -> Array:
    """The leaves along a new axis, each as often as there are seeds."""
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.repeat(jnp.stack(leaves), seeds, axis=0)
    return jnp.asarray(np.repeat(np.stack(leaves), seeds, axis=0))  # nothing has to be compiled
