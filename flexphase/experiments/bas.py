"""RBM 16 x 16 on Bars and Stripes, no visible bias: what Figs. 1, 2 B/D and 3 A train."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ..core import Optimiser, Run
from ..data import Rows, bars_and_stripes
from ..likelihood import NLL
from ..methods import RBM
from ..methods.binary import NegativeStart
from ..methods.rbm import Params
from ..record import Record
from ..rules import named

SIDE, HIDDEN = 4, 16
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
LABEL = "NLL (nats, sum over 32 rows)"
UNTRAINED = 354.891  # NLL of a uniform model, summed over the 32 rows, in nats: 32 * 16 * log 2
OPTIMUM = 108.131  # NLL of the data's own distribution


def build(
    name: str, length: int, eta: float, b: float = 0.5, start: NegativeStart = "carry"
) -> Run:
    """The run of a cell: a rule's `name`, the (mean) length of its phases, eta and b.

    `start` is where a negative phase begins. For CD-k, whose phases alternate, `carry` goes on from
    the h that was just sampled given the data: CD as Hinton has it, without a second draw of h.
    """
    method = RBM(SIDE**2, HIDDEN, visible_bias=False, negative_start=start)
    return Run(method, *named(name, b, length), source(), Optimiser(eta))


def metrics(**_: Any) -> dict[str, Any]:
    """The exact NLL, whatever the cell."""
    return {"nll": NLL(bars_and_stripes(SIDE))}


def bounded(nll: np.ndarray) -> np.ndarray:
    """A machine that diverged counts as twice an untrained one."""
    return np.minimum(np.nan_to_num(nll, nan=np.inf), 2 * UNTRAINED)


def machine(one: xr.Dataset, averaged: bool = False) -> Params:
    """The parameters of one cell and seed of a record, last or slow weights."""
    record = Record(one)
    kept = record.averaged_params if averaged else record.params
    return Params(**jax.tree.map(jnp.asarray, kept))


@cache
def source() -> Rows:
    """One object for all cells, so that lanes share its data."""
    return Rows(bars_and_stripes(SIDE))
