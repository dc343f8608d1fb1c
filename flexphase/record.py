"""What was measured, on three clocks, with its provenance.

A record is an xarray Dataset that is saved as netCDF, never as a pickle, and holds the run as data.
"""

import functools
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from . import EXACT, __version__, files, record_view
from .checks import count
from .contract import check, complete, complete_part
from .core import Method, Run
from .describe import described
from .inspecting import VERSIONED
from .rebuild import Builder
from .record_schema import CLOCKS, check_record, has_average

HARMLESS = ("--xla_force_host_platform_device_count=", "--xla_dump_")  # flags


@dataclass(frozen=True)
class Record:
    """Metrics, parameters and provenance of a run.

    Args:
        dataset: has a dimension for each swept quantity (seed, b, ...) and `record`; clocks,
            metrics, final parameters (`params.*`) and, with slow weights, the same of the averaged
            machine (`averaged.*`) are its variables.
    """

    dataset: xr.Dataset

    def __getitem__(self, name: str) -> xr.DataArray:
        return self.dataset[name]

    @property
    def attrs(self) -> dict[str, Any]:
        """Notes, such as the engine and the versions."""
        return self.dataset.attrs

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration; `config["run"]` is the run as data."""
        return json.loads(self.attrs["config"])

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return json.loads(self.attrs["metrics"])

    def metric_name(self, metric: str | None = None) -> str:
        """The metric of that name, which must be there; the first one if None."""
        if metric in self.dataset:  # also where many records were joined, which list none
            return str(metric)
        if not self.metrics:
            raise ValueError("this record holds no metric; train with metrics={name: function}.")
        if metric is not None:
            raise ValueError(
                f"this record holds no metric {metric!r}; choose from {', '.join(self.metrics)}."
            )
        return self.metrics[0]

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The final parameters by name, lane dimensions first."""
        return self._params("params")

    @property
    def averaged_params(self) -> dict[str, np.ndarray]:
        """The slow weights by name, lane dimensions first; empty without an average."""
        return self._params("averaged.params")

    def _params(self, prefix: str) -> dict[str, np.ndarray]:
        named = {str(name): np.asarray(v) for name, v in self.dataset.items()}
        own = {n: v for n, v in named.items() if n == prefix or n.startswith(f"{prefix}.")}
        return {name[len(prefix) + 1 :] or "theta": value for name, value in own.items()}

    @property
    def averaged(self) -> bool:
        """Does it hold slow weights, or at least what was measured on them?"""
        return has_average(self.dataset)

    def final(self, metric: str | None = None, averaged: bool = False) -> xr.DataArray:
        """A metric at the end, in every lane.

        Args:
            metric: its name (default: the first).
            averaged: of the slow weights instead of the last iterate.

        Returns: the exact value if there is one (`AtEnd`), else the last point of the curve.
        """
        name = self.metric_name(metric)
        if averaged:
            self._need_average()
        prefix = "averaged." if averaged else ""
        exact = f"{prefix}final.{name}"
        return self[exact] if exact in self.dataset else self[prefix + name].isel(record=-1)

    def _need_average(self) -> None:
        if not self.averaged:
            raise ValueError(
                "this record holds no slow weights; train with average=0.5 (--average 0.5)."
            )

    def untrained(self, metric: str | None = None) -> float:
        """The metric at the start of training, mean over the lanes."""
        return float(self[self.metric_name(metric)].isel(record=0).mean())

    def optimum(self, metric: str | None = None) -> float | None:
        """What a perfect learner would score, or None where the metric does not say."""
        return self[self.metric_name(metric)].attrs.get("optimum")

    def summary(self) -> list[dict[str, Any]]:
        """The final numbers: a row for each metric, and for that of the slow weights where there
        are any.

        Returns: rows of `metric`, `mean`, `sd` (n - 1) and `median` over the lanes that did not
        diverge, how many `lanes` those are, and where the metric lies: `untrained`, `optimum`. What
        is not known is None.
        """
        return record_view.summary(self)

    def __repr__(self) -> str:
        return record_view.text(self)

    def _repr_html_(self) -> str:
        return record_view.page(self)

    def sel(self, **chosen: Any) -> "Record":
        """A part of the record, by the values of its dimensions: `record.sel(b=0.5, seed=3)`."""
        try:
            return Record(self.dataset.sel(chosen))
        except KeyError as error:
            known = {d: self[d].values.tolist() for d in map(str, self["diverged_at"].dims)}
            raise ValueError(f"the record has no {chosen} ({error}); it has {known}.") from None

    def lane(self, number: int) -> "Record":
        """One network, by its number counted through all dimensions: `record.lane(3)`."""
        lanes = self["diverged_at"]
        if count(number, "the number of a network", 0) >= lanes.size:
            raise ValueError(
                f"the run has {lanes.size} trained networks, numbered from 0; there is no {number}."
            )
        at = np.unravel_index(number, lanes.shape)
        return Record(self.dataset.isel(dict(zip(lanes.dims, at, strict=True))))

    def observed(self, name: str) -> dict[str, xr.DataArray]:
        """What the observer of that name returned: arrays by name, lane dimensions first."""
        prefix = f"observed.{name}."
        found = {str(k): v for k, v in self.dataset.items() if str(k).startswith(prefix)}
        if not found:
            raise ValueError(f"this record has no observer {name!r}; train with observers={{...}}.")
        return {key[len(prefix) :]: value for key, value in found.items()}

    def run(self, data: Any = (), allow: Iterable[Any] = ()) -> Run:
        """The run that made this record.

        Args:
            data: arrays that the record names by their digest only, because they are large.
            allow: classes and functions of yours that the run uses, or names of modules that may
                be imported for it. Nothing else is built: a record is data, never code.

        Example: `Record.load("run.nc").run()`, `record.sel(b=0.5).run(allow=[MyMethod])`.
        """
        with files.understood("the run of this record cannot be rebuilt"):
            run = self._built(self.config["run"], data, allow)
            complete(run)
            check(run)
            return run

    def method(self, allow: Iterable[Any] = ()) -> Method:
        """The method that was trained; `allow` as in `run`."""
        with files.understood("the method of this record cannot be rebuilt"):
            method = self._built(self.config["run"].get("method"), (), allow)
            complete_part("method", method)
            return method

    def _built(self, description: Any, data: Any, allow: Iterable[Any]) -> Any:
        kept = {str(n)[5:]: v.values for n, v in self.dataset.items() if str(n).startswith("data.")}
        if not isinstance(description, dict) or "class" not in description:
            raise ValueError("it was made by an older version")
        return Builder(self._swept, kept | described(data).large, allow).build(description)

    def _swept(self, path: str) -> Any:
        """The one value that a swept number has in this part of the record."""
        values = self[f"swept.{path}"]
        lanes = [d for d in values.dims if d in self["diverged_at"].dims]
        first = values.isel(dict.fromkeys(lanes, 0))
        if not (values == first).all():
            raise ValueError(
                f"it holds several runs, which differ in {path}; choose one with record.sel(...)"
            )
        return first.values

    def parameters(
        self, averaged: bool = False, allow: Iterable[Any] = (), lane: int | None = None
    ) -> Any:
        """The parameters of one lane, in the form that the method itself gives them.

        Args:
            averaged: the slow weights instead of the last iterate.
            allow: as in `run`.
            lane: number of the lane, counted through all dimensions (default: the only one).

        Example: `record.sel(seed=3).parameters(averaged=True)`.
        """
        if lane is None and (networks := self["diverged_at"].size) > 1:
            raise ValueError(
                f"the record holds {networks} networks; choose one: record.sel(seed=0), or lane=0."
            )
        one = self.lane(0 if lane is None else lane)
        if averaged:
            self._need_average()
        kept = one.averaged_params if averaged else one.params
        if not kept:
            raise ValueError(
                "this record holds no parameters: its sweep did not keep them; "
                "run it with keep_params=True."
            )
        method = one.method(allow)
        with files.understood("the method of this record cannot be rebuilt"):
            like = jax.eval_shape(lambda: method.init(jax.random.key(0))[0])

        def leaf(path: Any, shape: Any) -> jax.Array:
            name = leaf_name(path) or "theta"
            if name not in kept or kept[name].shape != shape.shape:
                raise ValueError("the parameters in this record do not fit its method.")
            return jnp.asarray(kept[name], shape.dtype)

        return jax.tree_util.tree_map_with_path(leaf, like)

    def to_dataframe(self):
        """Tidy: a row for each lane and record, clocks and metrics as columns (a pandas table)."""
        averaged = [f"averaged.{name}" for name in self.metrics if self.averaged]
        columns = self.dataset[[*CLOCKS, *self.metrics, *averaged]]
        return columns.to_dataframe().reset_index()

    def save(self, path: str | Path) -> Path:
        """Write netCDF, whole or not at all, with a checksum behind what netCDF readers read."""
        return files.write(Path(path), files.sealed(files.netcdf_bytes(self.dataset)))

    @staticmethod
    def load(path: str | Path) -> "Record":
        """A record that `save` wrote; anything else is a ValueError with one sentence."""
        if not os.path.lexists(path):
            raise ValueError(f"there is no record at {path}.")
        advice = "; give a netCDF file that Record.save wrote"
        with files.understood(f"{path} is not a record of flexphase", advice):
            dataset = files.netcdf(files.content(path))
            check_record(dataset)
        return Record(dataset)


def leaf_name(path: Any) -> str:
    """W, or 0.W: the name of a leaf of the parameters."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


@functools.cache
def version(package: str) -> str:
    """The version that is installed; looked up once."""
    return metadata.version(package)


def deciding_versions() -> dict[str, str]:
    """The versions that decide the bits of a result, and what the names in a description mean; and
    the settings of JAX and XLA that decide the bits, where they differ from the defaults.
    """
    numbers = {name: __version__ if name == "flexphase" else version(name) for name in VERSIONED}
    return numbers | settings_of_jax() | settings_of_xla()


def settings_of_jax() -> dict[str, str]:
    """The settings that decide bits, where they differ from JAX's defaults."""
    usual = {
        "jax_enable_x64": False,
        "jax_default_prng_impl": "threefry2x32",
        "jax_threefry_partitionable": jax.__version_info__ >= (0, 5),
    }
    here = {name: getattr(jax.config, name) for name in usual}
    return {name: str(value) for name, value in here.items() if value != usual[name]}


def settings_of_xla() -> dict[str, str]:
    """The flags in XLA_FLAGS that may decide bits: all but ours and those of HARMLESS."""
    flags = {*os.environ.get("XLA_FLAGS", "").split()} - {EXACT}
    deciding = sorted(flag for flag in flags if not flag.startswith(HARMLESS))
    return {"XLA_FLAGS": " ".join(deciding)} if deciding else {}


def named_in(then: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """What of now is to be compared with then: older files name fewer versions."""
    return {name: own for name, own in now.items() if name in then or name not in VERSIONED}


def changed(then: dict[str, str], now: dict[str, str]) -> list[str]:
    """All that decides bits and is not what it was, in words."""
    now = named_in(then, now)
    names = [name for name in {**then, **now} if name in now or name.startswith(("jax_", "XLA_"))]
    return [
        f"{name} {then.get(name, 'its default')} (here {now.get(name, 'its default')})"
        for name in names
        if then.get(name) != now.get(name)
    ]


def versions() -> dict[str, str]:
    """All versions that are worth a note."""
    here = {"python": platform.python_version(), "machine": platform.machine()}
    return here | deciding_versions() | {"xarray": version("xarray")}
