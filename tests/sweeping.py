"""Small sweeps for the tests of sweeps and kills: an RBM on Bars and Stripes, several chunks."""

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from flexphase.sweep import Sweep, cells, collect
from flexphase.sweep.work import work

BUILD, METRICS = "flexphase.experiments.bas:build", "flexphase.experiments.bas:metrics"


def small(ticks: int = 300, records: int = 6, engine: str = "jax", lanes: int = 4) -> Sweep:
    """Two rules x four learning rates x two seeds."""
    shared = {"length": 5, "eta": [0.01, 0.05], "ticks": ticks}
    grid = cells(name="aol", b=[0.3, 0.5], **shared) + cells(name="isd", **shared)
    return Sweep(
        "small",
        BUILD,
        METRICS,
        grid,
        seeds=2,
        records=records,
        engine=engine,
        lanes=lanes,
        keep_params=True,
    )


def same_bits(a: xr.Dataset, b: xr.Dataset) -> None:
    assert set(a.variables) == set(b.variables)
    for name in a.variables:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=str(name))


def result(sweep: Sweep, folder) -> xr.Dataset:
    return collect(sweep, folder)


class Here:
    """An executor in the place of `Local` that works in this process: nothing has to start."""

    def __init__(self, workers: int | None = None):
        pass

    def run(self, tasks: Sequence[str]) -> Iterator[str | None]:
        """See `Executor`."""
        return map(work, tasks)

    def close(self) -> None:
        """Nothing to do."""
