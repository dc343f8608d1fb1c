"""Fig. 1: the phase dynamics of a real run, standard beside AoL random T. The paper's traces are
drawn by hand; these are measured.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ..core import Run, State, init, tick
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series
from ..sweep import Sweep
from ..theory.frozen import answer
from .bas import build

TITLE = "Phase dynamics: a standard learner beside always-on learning with random phase lengths"
DATA = None
UNIT = 5  # the visible unit that is drawn, with one of its weights
STANDARD = {"name": "cd", "length": 20, "eta": 0.05}
AOL = {"name": "aol-random", "length": 20, "eta": 0.05, "b": 0.5}
SIZES = {"quick": {"settle": 3_000, "ticks": 200}, "full": {"settle": 3_000, "ticks": 200}}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    return {}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    panels, memory, learning = [], [], []
    for title, cell in (("A  standard, CD-20", STANDARD), ("B  AoL random T, mean 20", AOL)):
        t = trace(build(**cell), **size)
        x = np.arange(size["ticks"])
        time, ribbon = (
            "network time steps (ticks); grey: negative phase",
            shaded(t["sign"], t["first"]),
        )
        weight = t["w"][:, np.ptp(t["w"], axis=0).argmax()]  # of unit UNIT, the one that moves most
        drawn = [
            ("learning on", "learning rate is on (0 or 1)", t["learns"], (-0.05, 1.15)),
            ("one unit", f"state of visible unit {UNIT}", t["v"], (-0.05, 1.15)),
            ("one weight", "change of the weight since tick 0", weight - weight[0], None),
        ]
        panels += [
            Panel(
                f"{title}: {what}",
                time,
                label,
                [Series("", x, y, colour=(0, 1, 3)[i], kind="steps")],
                shade=ribbon,
                ylim=ylim,
            )
            for i, (what, label, y, ylim) in enumerate(drawn)
        ]
        memory.append(float(np.mean(t["memory"])))
        learning.append(float(np.mean(t["learns"])))
    claims = [
        Claim(
            "The standard learner must carry g+ through the negative phase; the other remembers "
            "nothing.",
            f"the accumulator is not empty at {memory[0]:.0%} of tick boundaries (standard) and "
            f"at {memory[1]:.0%} (AoL random T)",
            "pass" if memory[0] > 0 and memory[1] == 0 else "fail",
            "counted over the ticks drawn; exactly zero is asked of AoL",
        ),
        Claim(
            "Learning is switched on at the ends of phase pairs only; with AoL it is always on.",
            f"the learning rate is on at {learning[0]:.1%} of ticks (standard) and at "
            f"{learning[1]:.0%} (AoL random T)",
            "pass" if learning[0] < 0.05 and learning[1] == 1 else "fail",
            "counted over the ticks drawn",
        ),
    ]
    return Findings(
        panels,
        claims,
        ["All traces are of one trained lane, seed 0; the paper's are illustrations."],
        3,
    )


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
    """Tick by tick: sign, is learning on, one unit, one weight, is anything remembered?"""

    def one(s: State, _: Any) -> tuple[State, dict[str, Any]]:
        s = tick(run, s)
        now = s.phase._replace(left=s.phase.left + 1)  # as it was during the tick
        remembered = jnp.any(jnp.stack([jnp.any(a != 0) for a in jax.tree.leaves(s.acc)]))
        return s, {
            "sign": now.sign,
            "first": now.first,
            "learns": answer(run, now)[1],
            "v": s.z.v[UNIT],
            "w": s.params.W[UNIT],
            "memory": remembered,
        }

    s = init(run, jax.random.key(0))
    s = jax.jit(partial(jax.lax.fori_loop, 0, settle, lambda _, s: tick(run, s)))(s)
    return {k: np.asarray(v, float) for k, v in jax.lax.scan(one, s, None, ticks)[1].items()}
