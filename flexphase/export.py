"""Trained parameters in other libraries' forms, and back: NumPy arrays by name, PyTorch state
dicts. Records in the form that ArviZ reads.

A name is the path of a leaf, as in a record: W, or 0.W for the first layer. For PyTorch, layers
with a weight matrix W (inputs, units) and a bias c become those of `torch.nn.Linear`, weight
(units, inputs) and bias, with `linear=True`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from .core import Method
from .record import CLOCKS, Record, leaf_name

__all__ = ["from_numpy", "from_torch", "to_arviz", "to_numpy", "to_torch"]
#: Our names of a layer's leaves, and those of torch.nn.Linear.
LINEAR = {"W": "weight", "c": "bias"}


def to_numpy(params: Any) -> dict[str, np.ndarray]:
    """Parameters of one network as arrays by name; `numpy.savez(path, **to_numpy(params))`.

    Args:
        params: as `record.parameters()` gives them.

    Example: `to_numpy(record.sel(seed=0).parameters())["W"]`
    """
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    return {(name := leaf_name(path) or "theta"): numbers(name, leaf) for path, leaf in leaves}


def from_numpy(method: Method, arrays: Mapping[str, Any]) -> Any:
    """Parameters in the method's own form, to start from: `train(..., params=...)`.

    Args:
        method: whose parameters they are.
        arrays: by name, as `to_numpy` gives them; an open .npz file will do.
    """
    like = jax.eval_shape(lambda: method.init(jax.random.key(0))[0])
    paths, form = jax.tree_util.tree_flatten_with_path(like)
    shapes = {leaf_name(path) or "theta": leaf for path, leaf in paths}
    if set(arrays) != set(shapes):
        raise ValueError(
            f"{type(method).__name__} has parameters named {', '.join(shapes)}, not "
            f"{', '.join(map(str, arrays))}."
        )
    return jax.tree.unflatten(form, [fitting(name, arrays[name], shapes[name]) for name in shapes])


def numbers(name: str, given: Any) -> np.ndarray:
    """An array of real numbers."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):  # a dataset, or rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"{name} must be an array of real numbers, not {kind_of(given)}; the parameters of a "
            "record are record.parameters(), or record.parameters(lane=0) of several networks."
        )
    return array


def kind_of(given: Any) -> str:
    """A few words for an error message."""
    return f"an array of {given.dtype}" if hasattr(given, "dtype") else f"a {type(given).__name__}"


def fitting(name: str, array: Any, like: Any) -> jax.Array:
    """The array, if it has the shape that the method asks for."""
    array = numbers(name, array)
    if array.shape != like.shape:
        raise ValueError(f"{name} has the shape {array.shape}; the method needs {like.shape}.")
    return jnp.asarray(array, like.dtype)


def to_torch(params: Any, linear: bool = False) -> dict[str, Any]:
    """Parameters of one network as a PyTorch state dict, copied to the CPU.

    Args:
        params: as `record.parameters()` gives them.
        linear: name and transpose W and c as torch.nn.Linear does: 0.W becomes 0.weight.

    Example: `torch.nn.ModuleList([torch.nn.Linear(784, 500), torch.nn.Linear(500, 500)])
    .load_state_dict(to_torch(params, linear=True))` for Forward-Forward.
    """
    torch = import_module("torch")  # not a dependency: who asks for this has it

    def named(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
        head, dot, last = name.rpartition(".")
        if not linear or last not in LINEAR:
            return name, array
        return f"{head}{dot}{LINEAR[last]}", array.T if last == "W" else array

    renamed = dict(named(name, array) for name, array in to_numpy(params).items())
    return {name: torch.tensor(np.ascontiguousarray(array)) for name, array in renamed.items()}


def from_torch(method: Method, state: Mapping[str, Any], linear: bool = False) -> Any:
    """Parameters in the method's own form from a PyTorch state dict; the inverse of `to_torch`."""
    ours = {theirs: name for name, theirs in LINEAR.items()}

    def named(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
        head, dot, last = name.rpartition(".")
        if not linear or last not in ours:
            return name, array
        return f"{head}{dot}{ours[last]}", array.T if last == "weight" else array

    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
    return from_numpy(method, dict(named(name, array) for name, array in arrays.items()))


def to_arviz(record: Record) -> xr.DataTree:
    """The curves in the groups and dimensions of ArviZ: seeds are chains, records are draws.

    Group `posterior` has the metrics, `sample_stats` the clocks; swept quantities stay dimensions
    of their own. ArviZ is not needed for it. Of a stretch where learning has settled, `arviz.rhat`
    then says whether the seeds agree, and `arviz.ess` how much they know.

    Example: `arviz.summary(to_arviz(record).isel(draw=slice(25, None)))`
    """
    averaged = [f"averaged.{name}" for name in record.metrics if record.averaged]

    def group(names: list[str]) -> xr.Dataset:
        part = record.dataset[names].drop_attrs(deep=False)
        part = part if "seed" in part.dims else part.expand_dims("seed")
        part = part.rename(seed="chain", record="draw").transpose("chain", "draw", ...)
        return part.assign_coords(draw=np.arange(part.sizes["draw"]))

    curves, clocks = group([*record.metrics, *averaged]), group([*CLOCKS])
    return xr.DataTree.from_dict({"posterior": curves, "sample_stats": clocks})
