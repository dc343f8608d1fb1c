"""Fig. 1: the phase dynamics of a real run, standard beside AoL random T.

The paper's traces are drawn by hand; these are measured.
"""

from typing import Any

import numpy as np
import xarray as xr

from ..core import Run, State
from ..observers import Trace
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series
from ..sweep import Sweep
from ..training import train
from .bas import build

TITLE = "Phase dynamics: a standard learner beside always-on learning with random phase lengths"
DATA = None
UNIT = 5  # the visible unit that is drawn, with one of its weights
STANDARD = {"name": "cd", "length": 20, "eta": 0.05}
AOL = {"name": "aol-random", "length": 20, "eta": 0.05, "b": 0.5}
SIZES = {"quick": {"settle": 3_000, "ticks": 200}, "full": {"settle": 3_000, "ticks": 200}}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """None: two short runs of `show` are all that is needed."""
    return {}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Three panels for each of the two learners."""
    titles = {"A  standard, CD-20": STANDARD, "B  AoL random T, mean 20": AOL}
    traces = {title: trace(build(**cell), **size) for title, cell in titles.items()}
    drawn = [panel for title, t in traces.items() for panel in panels(title, t)]
    remark = "All traces are of one trained lane, seed 0; the paper's are illustrations."
    return Findings(drawn, claims(*traces.values()), [remark], columns=3)


def panels(title: str, t: dict[str, np.ndarray]) -> list[Panel]:
    """When learning is on, one unit and one weight, from the trace `t` of a learner."""
    ticks = np.arange(len(t["sign"]))
    weight = t["w"][:, np.ptp(t["w"], axis=0).argmax()]  # of unit UNIT, the one that moves most
    change, yes_or_no = weight - weight[0], (-0.05, 1.15)
    drawn = [
        ("learning on", "learning rate is on (0 or 1)", t["learns"], yes_or_no, 0),
        ("one unit", f"state of visible unit {UNIT}", t["v"], yes_or_no, 1),
        ("one weight", "change of the weight since tick 0", change, None, 3),
    ]
    time, ribbon = "network time steps (ticks); grey: negative phase", shaded(t["sign"], t["first"])
    return [
        Panel(
            f"{title}: {what}",
            time,
            label,
            [Series("", ticks, y, colour=colour, kind="steps")],
            shade=ribbon,
            ylim=ylim,
        )
        for what, label, y, ylim, colour in drawn
    ]


def claims(standard: dict[str, np.ndarray], aol: dict[str, np.ndarray]) -> list[Claim]:
    """What must be remembered, and when learning is on."""
    memory = [float(np.mean(t["remembers"])) for t in (standard, aol)]
    learning = [float(np.mean(t["learns"])) for t in (standard, aol)]
    return [
        Claim(
            "The standard learner must carry g+ through the negative phase; "
            "the other remembers nothing.",
            f"the accumulator is not empty at {memory[0]:.0%} of tick boundaries (standard) "
            f"and at {memory[1]:.0%} (AoL random T)",
            "pass" if memory[0] > 0 and memory[1] == 0 else "fail",
            "counted over the ticks drawn; exactly zero is asked of AoL",
        ),
        Claim(
            "Learning is switched on at the ends of phase pairs only; with AoL it is always on.",
            f"the learning rate is on at {learning[0]:.1%} of ticks (standard) "
            f"and at {learning[1]:.0%} (AoL random T)",
            "pass" if learning[0] < 0.05 and learning[1] == 1 else "fail",
            "counted over the ticks drawn",
        ),
    ]


def shaded(sign: np.ndarray, first: np.ndarray) -> list[tuple[float, float]]:
    """The stretches of negative phases, with a gap where one follows another."""
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(sign))
    return [
        (a + 0.4, b - 0.4)
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        if sign[a] < 0
    ]


def trace(run: Run, settle: int, ticks: int) -> dict[str, np.ndarray]:
    """Train one lane for `settle` ticks, then watch `ticks` more.

    Returns what `Trace` sees (sign, first, learns, remembers), one unit `v` and its weights `w`.
    """
    observer = Trace(ticks, one_unit, start=settle)
    record = train(run, ticks=settle + ticks, records=1, observers={"trace": observer})
    seen = record.observed("trace")
    return {name: values.values[0].astype(float) for name, values in seen.items()}


def one_unit(state: State) -> dict[str, Any]:
    """The unit that is drawn, and its weights."""
    return {"v": state.z.v[UNIT], "w": state.params.W[UNIT]}
