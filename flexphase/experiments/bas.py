"""RBM 16 x 16 on Bars and Stripes, no visible bias: what Figs. 1, 2 B/D and 3 A train."""

from functools import cache
from typing import Any

from ..core import Optimiser, Run
from ..data import Rows, bars_and_stripes
from ..likelihood import NLL
from ..methods import RBM
from ..methods.binary import NegativeStart
from ..rules import Rule, aol, aol_random, cd, isd

SIDE, HIDDEN = 4, 16
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
LABEL = "NLL (nats, sum over 32 rows)"
UNTRAINED = 354.891  # NLL of a uniform model, summed over the 32 rows, in nats: 32 * 16 * log 2
OPTIMUM = 108.131  # NLL of the data's own distribution


def rule(name: str, length: int, b: float) -> Rule:
    """The rule with this name: cd, isd, aol or aol-random. cd has no b."""
    match name:
        case "cd":
            return cd(length)
        case "isd":
            return isd(b, length)
        case "aol":
            return aol(b, length)
        case "aol-random":
            return aol_random(b, length)
    raise ValueError(f"there is no rule {name!r}.")


def build(
    name: str, length: int, eta: float, b: float = 0.5, start: NegativeStart = "carry"
) -> Run:
    """The run of a cell: a rule's `name`, the (mean) length of its phases, eta and b.

    `start` is where a negative phase begins. For CD-k, whose phases alternate, `carry` goes on from
    the h that was just sampled given the data: CD as Hinton has it, without a second draw of h.
    """
    method = RBM(SIDE**2, HIDDEN, visible_bias=False, negative_start=start)
    return Run(method, *rule(name, length, b), source(), Optimiser(eta))


def metrics(**_: Any) -> dict[str, Any]:
    """The exact NLL, whatever the cell."""
    return {"nll": NLL(bars_and_stripes(SIDE))}


@cache
def source() -> Rows:
    """One object for all cells, so that lanes share its data."""
    return Rows(bars_and_stripes(SIDE))
