"""The words of `--device`: a preset, then numbers, such as `rram,range=2` or
`bits=8,range=4,rounding=stochastic`.
"""

import argparse
from typing import TYPE_CHECKING, Any

from ..hardware.presets import PRESETS
from .arguments import count, did_you_mean, number, whole

if TYPE_CHECKING:
    from ..core import Method, Optimiser, Updater

SYNAPSE = {
    "bits": count,
    "range": number,
    "rounding": str,
    "pulse": number,
    "noise": number,
    "proportional": number,
    "asymmetry": number,
    "nonlinearity": number,
    "spread": number,
    "leak": number,
    "rest": number,
    "dead": number,
    "stuck": number,
    "delay": whole,
}
UNIT = {"read_noise": number, "activity_bits": count, "activity_range": number}
HELP = (
    f"synapses as hardware has them: a preset ({', '.join(PRESETS)}) or words such as "
    "bits=8,range=4,rounding=stochastic; also " + ", ".join([*SYNAPSE][3:]) + ", and for the "
    "network " + ", ".join(UNIT)
)


def words(text: str) -> str:
    """The text, if it can be read; a type of argument for argparse."""
    read(text)
    return text


def read(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `Device` and of `Circuit`."""
    first, *rest = text.split(",")
    preset = PRESETS["ideal"]
    if "=" not in first:
        if first not in PRESETS:
            near = did_you_mean(first, PRESETS)
            known = ", ".join(PRESETS)
            raise argparse.ArgumentTypeError(
                f"there is no device {first!r}; choose from {known}, or give words such as "
                f"bits=8,range=4{near}"
            )
        preset = PRESETS[first]
    else:
        rest = [first, *rest]
    given: dict[str, Any] = {}
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in SYNAPSE | UNIT:
            near = did_you_mean(name, SYNAPSE | UNIT)
            raise argparse.ArgumentTypeError(
                f"a device has no {name!r}; its words are {', '.join(SYNAPSE | UNIT)}{near}"
            )
        if not equals or name in given:
            raise argparse.ArgumentTypeError(f"give {name} one number, as in {name}=4")
        given[name] = _value(name, value)
    circuit = {name: value for name, value in given.items() if name in UNIT}
    own = {name: value for name, value in given.items() if name in SYNAPSE}
    return preset.fields(**own), circuit


def _value(name: str, text: str) -> Any:
    try:
        return (SYNAPSE | UNIT)[name](text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{name} of a device: {error}") from None


def built(text: str | None, method: "Method", optimiser: "Optimiser") -> "tuple[Method, Updater]":
    """The method and the optimiser with the hardware that the words describe."""
    if text is None:
        return method, optimiser
    from ..hardware.circuit import Circuit
    from ..hardware.device import Device
    from ..hardware.on_device import OnDevice

    synapse, unit = read(text)
    network = Circuit(method, **unit) if unit else method
    return network, OnDevice(optimiser, Device(**synapse))
