"""What a record must hold, checked when one is loaded, and the names that it can hold."""

import math
from typing import Any
from unicodedata import category

import numpy as np
import xarray as xr

from .files import plain_json

CLOCKS = {"ticks": "network time steps", "phases": "phases", "updates": "parameter updates"}
#: What a record says of itself, and what it may say.
NOTES = ("config", "versions", "metrics", "engine", "interrupted", "seconds", "metric_seconds")
COUNTS = ("interrupted", "stopped", "classes")
UNFIT = {"Cc", "Cs"}  # categories of characters: control, and halves of a pair
#: Names that begin like this are the record's own.
RESERVED = ("params", "final.", "averaged", "observed.", "swept.", "data.")


def check_names(names: list[Any]) -> None:
    """Axes and metrics become variables of one netCDF file: a name that it cannot hold is refused
    before training, not lost after it.
    """
    for name in names:
        word = name if isinstance(name, str) and not UNFIT & {*map(category, name)} else ""
        taken = word in (*CLOCKS, "record", "diverged_at", "", ".", "..")
        if taken or word.startswith(RESERVED) or names.count(name) > 1 or "/" in word:
            raise ValueError(
                f"{name!r} cannot name an axis or a metric of a record: a name is a text without "
                "control characters that stands for one thing, has no slash, begins with none of "
                f"{', '.join(RESERVED)}, and is none of "
                f"{', '.join(CLOCKS)}, record, diverged_at."
            )


def check_record(dataset: xr.Dataset) -> None:
    """Raise ValueError unless all notes and variables are there, with their types and dimensions:

    - `diverged_at` has the lanes as its dimensions, each with coordinates and at least one entry;
    - clocks and metrics, those of slow weights too, have those and `record`, which has at least one
      entry; clocks count;
    - everything else that belongs to the lanes (parameters, final values) begins with them.
    """
    check_notes(dataset.attrs)
    need("diverged_at" in dataset, "it has no diverged_at")
    lanes = dataset["diverged_at"].dims
    need("record" not in lanes, "its lanes have a dimension called record")
    need(dataset["diverged_at"].dtype.kind in "iu", "its diverged_at is no whole number")
    for name, variable in dataset.variables.items():
        need(variable.dtype.kind in "biuf", f"its {name} holds {variable.dtype}, not numbers")
        need(0 not in variable.shape or own(name), f"its {name} has no entries")
    for lane in lanes:
        need(lane in dataset.coords, f"its dimension {lane} has no values")
    metrics = plain_json(dataset.attrs["metrics"])
    averaged = [f"averaged.{name}" for name in metrics if has_average(dataset)]
    for name in [*CLOCKS, *metrics, *averaged]:
        need(name in dataset, f"it has no {name}")
        check_dims(dataset[name], (*lanes, "record"))
    for name in CLOCKS:
        counts = dataset[name].dtype.kind in "iu" and bool((dataset[name] >= 0).all())
        need(counts, f"its {name} are no whole numbers from 0 on")
    for name, variable in dataset.data_vars.items():
        if str(name).startswith(("params", "averaged.params", "observed.")):
            need(variable.dims[: len(lanes)] == lanes, f"its {name} does not begin with its lanes")
        elif str(name).startswith(("final.", "averaged.final.")):
            check_dims(variable, lanes)
        elif str(name).startswith("averaged."):
            check_dims(variable, (*lanes, "record"))
    for name in metrics:
        best = dataset[name].attrs.get("optimum", 0.0)
        need(is_number(best), f"the optimum of {name} is no number")


def has_average(dataset: xr.Dataset) -> bool:
    """Does it hold slow weights, or at least what was measured on them?

    A sweep that does not keep parameters keeps the metrics of both.
    """
    names = [f"{name}." for name in dataset]
    kept = any(name.startswith("params.") for name in names)
    return any(name.startswith("averaged.params." if kept else "averaged.") for name in names)


def own(name: Any) -> bool:
    """May it be empty? What the method or an observer keeps, such as a layer without biases."""
    return str(name).startswith(("params", "averaged.params", "observed."))


def check_dims(variable: xr.DataArray, dims: tuple[Any, ...]) -> None:
    wanted = ", ".join(map(str, dims)) or "none"
    need(variable.dims == dims, f"its {variable.name} must have the dimensions {wanted}")


def check_notes(notes: dict[str, Any]) -> None:
    """The attributes of a record."""
    for name in NOTES:
        need(name in notes, f"it has no {name}")
    for name in ("config", "versions", "metrics", "engine", "options", "label", "digest"):
        need(isinstance(notes.get(name, ""), str), f"its {name} is no text")
    config, versions = plain_json(notes["config"]), plain_json(notes["versions"])
    need(isinstance(versions, dict), "its versions are damaged")
    need(isinstance(config, dict) and isinstance(config.get("run"), dict), "it has no run")
    need(isinstance(config["run"].get("method", {}), dict), "its method is no description")
    metrics = plain_json(notes["metrics"])
    names = metrics if isinstance(metrics, list) else [None]
    need(all(isinstance(name, str) for name in names), "its metrics are no list of names")
    need(len({*names}) == len(names), "it names a metric twice")
    for name in ("seconds", "metric_seconds"):
        need(is_number(notes[name]), f"its {name} are no number")
    for name in COUNTS:
        count = notes.get(name, 0)
        need(
            isinstance(count, (int, np.integer)) and bool(count >= 0),
            f"its {name} is no whole number",
        )
    need(isinstance(plain_json(notes.get("options", "{}")), dict), "its options are damaged")
    picture = np.asarray(notes.get("picture", [1, 1]))
    whole = picture.dtype.kind in "iu" and picture.shape == (2,)
    need(whole and picture.min() > 0 and picture.max() < 2**20, "its picture has no size")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def need(fine: Any, words: str) -> None:
    if not fine:
        raise ValueError(words)
