"""What the study of hardware trains: rules, each on devices with one limit at a time."""

from typing import NamedTuple

from .. import estimators
from ..core import Optimiser, Updater
from ..devices.device import Device, OnDevice
from ..phases import Alternating, Fixed, Phases
from ..rules import Rule, aol, aol_random, cd, isd

RANGE = 4.0  # the largest weight, where bits are swept


class Trained(NamedTuple):
    """A rule of the study."""

    word: str
    ticks: int  # per step: what the others call a phase, two-term a pair of them
    weight: float  # of a term at b = 0.5, in units of eta


def rules(length: int) -> dict[str, Trained]:
    """The rules with phases of that length; random ones are half as long again, as in the paper."""
    return {
        "two-term": Trained("two-term", 2 * length, 1.0),
        "ISD": Trained("isd", length, 2.0),
        "AoL": Trained("aol", length, 2 / length),
        "AoL random T": Trained("aol-random", 3 * length // 2, 2 / (3 * length // 2)),
        "AoL alternating": Trained("aol-alternating", length, 2 / length),
    }


def rule(word: str, length: int) -> Rule:
    """Process and estimator, at b = 0.5."""
    match word:
        case "two-term":
            return cd(length)
        case "isd":
            return isd(0.5, length)
        case "aol":
            return aol(0.5, length)
        case "aol-random":
            return aol_random(0.5, 3 * length // 2)
        case "aol-alternating":
            return Rule(Phases(Alternating(), Fixed(length)), estimators.always_on)
    raise ValueError(f"there is no rule {word!r}.")


def optimiser(kind: str, value: float, rounding: str, eta: float) -> Updater:
    """Plain descent on devices with one limit: `kind` is a field of `Device`, or none."""
    plain = Optimiser(eta)
    if kind == "none":
        return plain
    fields = {"range": RANGE, "rounding": rounding} if kind == "bits" else {}
    return OnDevice(plain, Device(**fields | {kind: value}))
