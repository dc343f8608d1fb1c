"""What was measured, on three clocks, with its provenance: an xarray Dataset that is saved as
netCDF, never as a pickle.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

CLOCKS = {"ticks": "network time steps", "phases": "phases", "updates": "parameter updates"}
NOTES = (
    "config",
    "versions",
    "metrics",
    "engine",
    "interrupted",
    "seconds",
    "metric_seconds",
)  # what a record says of itself


@dataclass(frozen=True)
class Record:
    """`dataset` has a dimension for each swept quantity (seed, b, ...) and `record`; clocks,
    metrics, final parameters are variables.
    """

    dataset: xr.Dataset

    def __getitem__(self, name: str) -> xr.DataArray:
        return self.dataset[name]

    @property
    def attrs(self) -> dict[str, Any]:
        return self.dataset.attrs

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return json.loads(self.attrs["config"])

    @property
    def metrics(self) -> list[str]:
        return json.loads(self.attrs["metrics"])

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The final parameters by name, lane dimensions first."""
        return {
            name[len("params.") :] or "theta": np.asarray(v)
            for name, v in self.dataset.items()
            if str(name).startswith("params")
        }  # type: ignore[index]

    def final(self, metric: str | None = None) -> xr.DataArray:
        """A metric at the end, in every lane: measured for good (`AtEnd`) where it was, else the
        last point of its curve.
        """
        name = metric or self.metrics[0]
        return (
            self[f"final.{name}"] if f"final.{name}" in self.dataset else self[name].isel(record=-1)
        )

    def to_dataframe(self):
        """Tidy: a row for each lane and record, with the clocks and the metrics as columns (needs
        pandas, which xarray brings).
        """
        return self.dataset[[*CLOCKS, *self.metrics]].to_dataframe().reset_index()

    def save(self, path: str | Path) -> Path:
        """Write netCDF, whole or not at all."""
        path = Path(path)
        with replacing(path) as part:
            self.dataset.to_netcdf(part, engine="h5netcdf")
        return path

    @staticmethod
    def load(path: str | Path) -> "Record":
        try:
            with xr.open_dataset(path, engine="h5netcdf") as ds:
                ds.load()
            record = Record(ds)
            parts = {*NOTES, *CLOCKS, *record.metrics} - {*ds.attrs, *ds}
            if parts or "run" not in record.config:
                raise ValueError(f"it has no {min(parts, default='configuration')}")
        except FileNotFoundError:
            raise ValueError(f"there is no record at {path}.") from None
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is not a record of flexphase ({error}); give a netCDF file that "
                "Record.save wrote."
            ) from None
        return record


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A sibling to write to, which takes the place of `path` at once when the block ends well."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def pack(tree: Any) -> list[np.ndarray]:
    """The leaves of a state as plain arrays; random keys as their bits."""
    return [
        np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        for leaf in jax.tree.leaves(tree)
    ]


def describe(value: Any) -> Any:
    """A configuration as JSON: modules by their fields, small arrays by value, large ones by shape
    and digest.
    """
    if isinstance(value, eqx.Module):
        fields = value.__dataclass_fields__
        return {"kind": type(value).__name__} | {
            name: describe(getattr(value, name)) for name in fields
        }
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        return {name: describe(v) for name, v in zip(names, value, strict=True)}
    if isinstance(value, dict):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = pack(value)[0]
        if array.size <= 64:
            return (
                array.astype(str).astype(float).tolist()
                if array.dtype.kind == "f"
                else array.tolist()
            )  # 0.1, not 0.10000000149
        return {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
    if isinstance(value, functools.partial):
        return {
            "kind": "partial",
            "func": describe(value.func),
            "args": describe(value.args),
            "keywords": describe(value.keywords),
        }
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def versions() -> dict[str, str]:
    names = ("jax", "jaxlib", "equinox", "optax", "numpy", "xarray")
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        n: metadata.version(n) for n in names
    }
