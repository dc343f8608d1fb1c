"""Many settings x seeds: chunks of lanes that run on an executor, and their records in a folder."""

from ..folder import RunFolder
from .cells import Sweep, best, cells, learning_rates, matching
from .executors import Dask, Local
from .run import collect, execute

__all__ = [
    "Dask",
    "Local",
    "RunFolder",
    "Sweep",
    "best",
    "cells",
    "collect",
    "execute",
    "learning_rates",
    "matching",
]
