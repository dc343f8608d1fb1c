"""Devices named after what they imitate, each with its source. Plain data: nothing is imported."""

from typing import Any, NamedTuple

RANGE = 4.0  # the largest weight, where nothing else is said


class Preset(NamedTuple):
    """Numbers of a `Device`.

    `numbers` are taken as they are; those of `relative` are shares of the range.
    """

    words: str
    source: str
    numbers: dict[str, Any]
    relative: dict[str, float]

    def fields(self, **changes: Any) -> dict[str, Any]:
        """Arguments of `Device`, with some of them changed."""
        if not self.numbers and not self.relative:
            return changes
        size = {"range": RANGE} | {k: v for k, v in changes.items() if k == "range"}
        scaled = {name: share * size["range"] for name, share in self.relative.items()}
        return size | self.numbers | scaled | changes


PRESETS = {
    "ideal": Preset("no limits at all", "the definition", {}, {}),
    "digital8": Preset(
        "signed integers of 8 bits with stochastic rounding",
        "symmetric int8; rounding after Gupta et al., Deep learning with limited numerical "
        "precision, ICML 2015, arXiv:1502.02551",
        {"bits": 8, "rounding": "stochastic"},
        {},
    ),
    "rram": Preset(
        "1,000 pulses across the range, soft bounds, strong variation from pulse to pulse",
        "HfO2 RRAM of Gong et al., Nature Communications 9, 2102 (2018), as fitted by the soft "
        "bounds model of IBM's aihwkit (ReRamSBPresetDevice): pulse 0.002 on a range of 1, 30 % "
        "between devices, 375 % between pulses; its noise of the state and the spread of its "
        "bounds are left out",
        {"rounding": "stochastic", "nonlinearity": 1.0, "proportional": 3.75, "spread": 0.3},
        {"pulse": 0.002},
    ),
    "pcm": Preset(
        "about 20 pulses across the range, saturating, 60 % variation from pulse to pulse",
        "Ge2Sb2Te5 cells of Nandakumar et al., Frontiers in Neuroscience 14, 406 (2020); 60 % "
        "between pulses and 20 % between devices as in aihwkit (PCMPresetDevice). The number of "
        "pulses is an order of magnitude, a pair of cells is taken as one weight, resets and drift "
        "are left out",
        {"rounding": "stochastic", "nonlinearity": 1.0, "proportional": 0.6, "spread": 0.2},
        {"pulse": 0.1},
    ),
}
