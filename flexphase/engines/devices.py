"""Devices for the Boltzmann kernels: what they know, and its numbers as arrays."""

from typing import Any

import numpy as np

from ..core import Optimiser
from ..hardware.device import Device
from ..hardware.on_device import OnDevice
from ..kernels import owned

#: What a device may have in the kernels, by the names of the arrays there.
KNOWN = {
    "range": "range",
    "noise": "write_noise",
    "proportional": "proportional",
    "asymmetry": "asymmetry",
}
UNKNOWN = ("nonlinearity", "spread", "leak", "dead", "stuck")


def refuses(optimiser: Any) -> str | None:
    """Why the kernels cannot write as this optimiser does; None if they can."""
    if type(optimiser) is Optimiser:
        return None
    if type(optimiser) is not OnDevice:
        return f"the native Boltzmann engine does not know {type(optimiser).__name__}."
    device = optimiser.device
    for part, known in ((optimiser.optimiser, Optimiser), (device, Device)):
        if type(part) is not known:
            return f"the native Boltzmann engine does not know {type(part).__name__}."
    beyond = [name for name in UNKNOWN if getattr(device, name) is not None]
    beyond += ["delay"] if device.delay else []
    if beyond:
        return (
            "the native Boltzmann engine knows range, bits, pulse, rounding, asymmetry and write "
            f"noise of a device, not {beyond[0]}."
        )
    return None


def draws(optimiser: Any) -> bool:
    """Does a write need random numbers?"""
    return type(optimiser) is OnDevice and optimiser.device.draws


def arrays(optimiser: Any, lanes: int) -> dict[str, np.ndarray]:
    """The numbers of the devices of every lane."""
    if type(optimiser) is not OnDevice:
        return {}
    device = optimiser.device
    named = {ours: getattr(device, name) for name, ours in KNOWN.items()} | {"step": device.step}
    given = {name: value for name, value in named.items() if value is not None}
    return {k: owned(np.broadcast_to(np.asarray(v), (lanes,))) for k, v in given.items()}


def options(optimiser: Any) -> dict[str, bool]:
    """How the kernels round."""
    if type(optimiser) is not OnDevice:
        return {}
    device = optimiser.device
    return {"stochastic": device.rounding == "stochastic", "levels": device.bits is not None}
