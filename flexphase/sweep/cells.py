"""A sweep is a list of cells, each the settings of one run.

Cells that differ in real numbers only become lanes, and lanes are cut into chunks.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from ..record import Record

Cell = dict[str, Any]


class Sweep(NamedTuple):
    """What to train, as words and numbers alone, so that it can be sent and compared.

    `build` and `metrics` name functions as "module:function": build(**cell) gives the Run of a
    cell, metrics(**cell) what to record. A cell's `ticks` is its length of training and is not
    passed on.
    """

    name: str
    build: str
    metrics: str
    cells: list[Cell]
    seeds: int
    seed: int = 0
    records: int = 50
    engine: str = "auto"
    lanes: int = 40  # at most so many in a chunk, however many workers there are
    keep_params: bool = False  # of the trained lanes, in the record
    average: float | None = None  # slow weights from this fraction of training on
    cost: float = 1.0  # relative cost per tick; used for the time estimate only


class Chunk(NamedTuple):
    """Cells number `cells` of a sweep, `seeds` seeds each: one call of `train`."""

    sweep: Sweep
    number: int
    cells: list[int]
    seed: int
    seeds: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.sweep.name}-{self.number:03d}"

    @property
    def ticks(self) -> int:
        """Ticks of each lane."""
        return int(self.sweep.cells[self.cells[0]]["ticks"])

    @property
    def work(self) -> int:
        """Ticks of all lanes."""
        return self.ticks * len(self.cells) * self.seeds

    def task(self) -> dict[str, Any]:
        """The chunk as plain JSON values, with the cells it needs and no others."""
        chosen = [self.sweep.cells[i] for i in self.cells]
        return self._asdict() | {
            "sweep": self.sweep._replace(cells=[])._asdict(),
            "chosen": chosen,
            "name": self.name,
        }


def cells(**axes: Any) -> list[Cell]:
    """Every combination of the values; one that is no list, tuple or array is the same in all.

    `cells(rule=["isd", "aol"], b=[0.2, 0.5], T=100)` gives 4 cells.
    """
    several = (list, tuple, np.ndarray)
    lists = {name: list(v) if isinstance(v, several) else [v] for name, v in axes.items()}
    if empty := [name for name, values in lists.items() if not values]:
        raise ValueError(
            f"the axis {empty[0]!r} of the sweep is empty; give it at least one value."
        )
    plain = {
        name: [v.item() if isinstance(v, np.generic) else v for v in values]
        for name, values in lists.items()
    }
    return [dict(zip(plain, point, strict=True)) for point in itertools.product(*plain.values())]


def _even(n: int, most: int) -> Iterator[range]:
    """n things in as few pieces as possible, of at most `most` and of nearly equal size."""
    pieces = -(-n // most)
    edges = [round(i * n / pieces) for i in range(pieces + 1)]
    yield from (range(a, b) for a, b in itertools.pairwise(edges))


def chunks(sweep: Sweep) -> list[Chunk]:
    """The sweep in chunks of at most `sweep.lanes` lanes.

    Lanes of a chunk may differ in floats; everything else (words, whole numbers, ticks) splits.
    """
    groups: dict[str, list[int]] = {}
    for i, cell in enumerate(sweep.cells):
        same = repr(sorted((k, v) for k, v in cell.items() if not isinstance(v, float)))
        groups.setdefault(same, []).append(i)
    cut = [
        ([group[i] for i in some], sweep.seed + seeds.start, len(seeds))
        for group in groups.values()
        for some in _even(len(group), max(1, sweep.lanes // sweep.seeds))
        for seeds in _even(sweep.seeds, sweep.lanes)
    ]
    return [Chunk(sweep, n, *part) for n, part in enumerate(cut)]


def matching(dataset: xr.Dataset, **values: Any) -> xr.Dataset:
    """The cells with these settings: `matching(data, name="isd", b=0.5)`."""
    mask = np.ones(dataset.sizes["cell"], bool)
    for name, value in values.items():
        mask &= dataset[name].values == value
    if not mask.any():
        raise ValueError(f"the sweep has no cell with {values}.")
    return dataset.isel(cell=mask)


def learning_rates(low: float, high: float, n: int = 10) -> list[float]:
    """n values from low to high in equal steps on a log10 scale (the paper's line search)."""
    if not 0 < low <= high:
        raise ValueError(f"learning rates must satisfy 0 < low <= high, not {low!r} and {high!r}.")
    return np.geomspace(low, high, n).tolist()


def best(dataset: xr.Dataset, error: str) -> xr.Dataset:
    """The cell with the lowest final `error`, mean over seeds (the paper's line search).

    A diverged lane rules its cell out.
    """
    final = Record(dataset).final(error).mean("seed", skipna=False).values
    if not np.isfinite(final).any():
        raise ValueError(
            f"no cell of the line search ended with a finite {error}; search lower learning rates."
        )
    return dataset.isel(cell=int(np.nanargmin(np.where(np.isfinite(final), final, np.nan))))
