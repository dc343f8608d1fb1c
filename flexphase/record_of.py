"""The record of a run: all that its log holds, as variables and notes of one dataset."""

import json
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr

from .describe import Described, digest
from .lanes import Lanes
from .record import Record, leaf_name, versions
from .record_schema import CLOCKS

if TYPE_CHECKING:
    from .log import Log

KEPT_DATA = 2**20  # numbers: smaller data are kept in the record, larger ones by their digest


def record_of(log: "Log") -> Record:
    """What was recorded so far."""
    lanes, state, slow = log.lanes, log.state, log.slow
    shape, dims = lanes.shape, list(lanes.dims)
    data: dict[str, Any] = {}
    for name, curve in log.curves.items():
        values = np.moveaxis(np.stack(curve), 0, -1).reshape(*shape, -1)
        data[name] = ([*dims, "record"], np.array(values))
    data |= {name: (dims, values.reshape(shape)) for name, values in log.finals.items()}
    data |= variables(lanes, "params", state.params)
    if slow is not None and slow.taken:
        data |= variables(lanes, "averaged.params", slow.params(state.params))
    for name, observer in log.observers.items():
        seen = jax.vmap(observer.result)(state.seen[name])
        data |= variables(lanes, f"observed.{name}", seen)
    data |= provenance(dims, log.described)
    about = {"long_name": "ticks at which a parameter was found not finite; -1: never"}
    data["diverged_at"] = (dims, log.diverged_at.reshape(shape), about)
    dataset = xr.Dataset(data, coords=dict(lanes.dims))
    for clock, words in CLOCKS.items():
        dataset[clock].attrs["long_name"] = words
    for metric, value in log.optima.items():
        dataset[metric].attrs["optimum"] = value
    dataset.attrs = {
        "config": json.dumps(log.config),
        "digest": digest(log.identity()),
        "versions": json.dumps(versions()),
        "metrics": json.dumps(list(log.metrics)),
        "engine": log.config["engine"],
        "interrupted": int(log.interrupted),
        "stopped": int(log.stopped),
    } | log.times
    return Record(dataset)


def variables(lanes: Lanes, prefix: str, tree: Any) -> dict[str, Any]:
    """The leaves of a tree of all lanes as variables of the record."""
    named = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = f"{prefix}.{leaf_name(path)}" if path else prefix
        array = np.asarray(leaf).reshape(*lanes.shape, *leaf.shape[1:])
        named[name] = with_dims(name, list(lanes.dims), array)
    return named


def provenance(dims: list[str], run: Described) -> dict[str, Any]:
    """Swept numbers, and data that are small enough to be kept."""
    swept = [dim for dim in dims if dim != "seed"]
    arrays = {f"swept.{path}": (swept, array) for path, array in run.swept.items()}
    small = {sha256: array for sha256, array in run.large.items() if array.size <= KEPT_DATA}
    arrays |= {f"data.{sha256}": ([], array) for sha256, array in small.items()}
    return {name: with_dims(name, *known) for name, known in arrays.items()}


def with_dims(name: str, dims: list[str], array: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The dimensions of a variable, of which `dims` come first, and its array."""
    return [*dims, *(f"{name}_{i}" for i in range(array.ndim - len(dims)))], array
