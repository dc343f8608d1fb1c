"""Positive and negative phases in blocks: where does separation start to hurt, what mends it?

Forward-Forward on MNIST with n updates on positive data, then n on negative data, and so on. A
phase is one pass with one update, so a block is n phases of a sign.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import xarray as xr
from jax import Array
from scipy import stats

from ..classification import ForwardForwardError
from ..core import Optimiser, Phase, Process, PyTree, Run, where
from ..data import mnist
from ..data.mnist import fetch_mnist
from ..data.transforms import every
from ..estimators import Weighted, isd
from ..methods import ForwardForward
from ..metrics import AtEnd
from ..phases import Blocks, Fixed, Phases
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, points
from ..rules import cd
from ..rules import isd as random_order
from ..sweep import Sweep, cells, matching
from .claims import (
    SLIGHT,
    Seeds,
    all_of,
    decide,
    fails,
    is_worse,
    mean_sd,
    p_value,
    verdict,
    within,
    worse,
)
from .mnist import contrast

TITLE = "Positive and negative phases in blocks: Forward-Forward on MNIST"
DATA = fetch_mnist
PLAIN = ("forward-forward", 784, 100, 100)
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
BLOCKS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]  # real numbers, so that they share a loop
UNEQUAL = 3.0  # negative phases for each positive one, where importance weights matter
UNTRAINED = 90.0  # test error in per cent
# Updates are a multiple of 1001 and records of an odd number, so that records and slow weights are
# taken at every place of a cycle of blocks, whose length is a power of two.
SIZES = {
    "quick": {
        "units": 64,
        "updates": 6 * 1001,
        "seeds": 2,
        "blocks": [1.0, 4.0, 16.0, 64.0, 128.0],
        "unequal": [1.0, 16.0],
        "etas": [0.003, 0.01],
        "records": 6,
        "shown": 500,
    },
    "full": {
        "units": 100,
        "updates": 20 * 1001,
        "seeds": 4,
        "blocks": BLOCKS,
        "unequal": [1.0, 4.0, 16.0, 64.0],
        "etas": [0.003, 0.01],
        "records": 20,
        "shown": 1000,
    },
}
#: Accuracy in per cent by updates in a block, and without separation, in the README of the public
#: study (arXiv 2310.18647): 784-500-500-500, threshold 1.5, Adam 1e-3, batches of 512 images, 50
#: updates with each.
PUBLIC = {1: 89, 2: 88, 4: 81, 8: 63, 16: 35, 32: 11, 64: 10, 128: 9}
PUBLIC_UNSEPARATED = 97.7
#: The optimisers and weights that are compared.
RULES = {
    "one": "one Adam, weights",
    "one-plain": "one Adam, no weights",
    "each": "an Adam for each sign, weights after it",
    "each-plain": "an Adam for each sign, no weights",
}
AXIS = "updates of a sign in a row"
ERROR = "test error (%)"


class PerSign(eqx.Module):
    """A state of the optimiser for each sign: the term of a phase is made a step by its own state.

    step = |weight| transform_sign(sign g), where weight = 1 / (2 prob) if it is asked for: an
    importance weight that comes before Adam would be divided out by it. The learning rate
    is that of `Optimiser(eta)`, which takes the step as it is. Remembers both states.

    Args:
        weighs: are steps weighted by 1 / (2 prob)?
        make: makes the transformation, such as optax.scale_by_adam.
    """

    weighs: bool = eqx.field(static=True)
    make: Any = eqx.field(static=True, default=optax.scale_by_adam)

    def check(self, process: Process) -> None:
        """Every process will do."""

    def init(self, params: PyTree) -> tuple[PyTree, PyTree]:
        """-> states of positive and of negative phases."""
        state = self.make().init(params)
        return state, state

    def update(self, phase: Phase, g: PyTree, memory: PyTree) -> tuple[PyTree, Array, PyTree]:
        plus, minus = memory
        positive, apply = phase.sign > 0, phase.last & (phase.sign != 0)
        signed = jax.tree.map(lambda term: phase.sign * term, g)
        step, state = self.make().update(signed, where(positive, plus, minus))
        weight = 0.5 / phase.prob if self.weighs else 1.0
        step = jax.tree.map(lambda part: weight * part, step)
        plus = where(apply & positive, state, plus)
        return step, apply, (plus, where(apply & ~positive, state, minus))


def weigh_plain(phase: Phase) -> tuple[Array, Array]:
    """The term of the phase as it is, whatever its probability."""
    return phase.sign * phase.last, phase.last & (phase.sign != 0)


plain = Weighted(weigh_plain)


def build(rule: str, eta: float, units: int, block: float = 1, ratio: float = 1, **_: Any) -> Run:
    """The run of a cell.

    `rule` is a key of RULES, `two-term` or `random`; `block` positive phases are followed by
    `ratio` times as many negative ones.
    """
    net, adam = ForwardForward((784, units, units)), Optimiser(eta, optax.adam)
    blocks = Phases(Blocks(block, ratio * block), Fixed(1))
    match rule:
        case "two-term":
            return Run(net, *cd(1), contrast(True), adam)
        case "random":
            return Run(net, *random_order(0.5, 1), contrast(False), adam)
        case "one":
            return Run(net, blocks, isd, contrast(False), adam)
        case "one-plain":
            return Run(net, blocks, plain, contrast(False), adam)
        case "each" | "each-plain":
            return Run(net, blocks, PerSign(rule == "each"), contrast(False), Optimiser(eta))
    raise ValueError(f"there is no rule {rule!r}.")


def metrics(shown: int, **_: Any) -> dict[str, Any]:
    """Test error on about `shown` images, at the end on all of them."""
    test = mnist().test
    error = AtEnd(ForwardForwardError(*every(shown, *test)), ForwardForwardError(*test))
    return {"error": error}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Equal blocks, unequal blocks, and two rules without separation."""
    shared = {"eta": size["etas"], "units": size["units"], "shown": size["shown"]}
    shared |= {"ticks": size["updates"]}
    one_rate = shared | {"eta": size["etas"][-1]}
    grid = cells(rule="one", block=size["blocks"], ratio=1.0, **shared)
    grid += cells(rule=list(RULES), block=size["unequal"], ratio=UNEQUAL, **one_rate)
    grid += cells(rule="each", block=size["blocks"], ratio=1.0, **one_rate)
    apart = cells(rule="random", **shared)
    apart += cells(rule="two-term", **shared | {"ticks": 2 * size["updates"]})
    sweep = partial(
        Sweep, build=BUILD, metrics=METRICS, seeds=size["seeds"], records=size["records"]
    )
    return {
        "blocks": sweep("separation", cells=grid, average=0.5, lanes=16, cost=500),
        "mixed": sweep("separation-mixed", cells=apart, average=0.5, cost=500),
    }


def errors(dataset: xr.Dataset, averaged: bool = False, **chosen: Any) -> np.ndarray:
    """Test error of the seeds in per cent.

    Of the last iterate it is the mean over the second half of the records, which were taken at
    many places of the cycle of blocks; of the slow weights that at the end, on all test images.
    """
    run = matching(dataset, **chosen).isel(cell=0)
    if averaged:
        return 100 * run["averaged.final.error"].values
    records = run["error"].values
    return 100 * records[:, records.shape[1] // 2 :].mean(1)


def over_blocks(
    size: dict[str, Any], dataset: xr.Dataset, name: str, averaged: bool = False, **chosen: Any
) -> Series:
    """Mean and sd of the test error against the length of a block."""
    style = {key: chosen.pop(key) for key in ("colour", "line") if key in chosen}
    blocks = size["blocks"] if chosen["ratio"] == 1 else size["unequal"]
    values = [errors(dataset, averaged, block=block, **chosen) for block in blocks]
    return points(name, np.log2(blocks).tolist(), values, **style)


def level(name: str, value: float, **style: Any) -> Series:
    """A level line."""
    return Series(name, np.array([0.0, len(BLOCKS) - 1]), np.full(2, value), **style)


def panel(title: str, label: str, series: list[Series]) -> Panel:
    """Test error against the length of a block, an equal step for each doubling."""
    names = [f"{block:g}" for block in BLOCKS]
    return Panel(title, label, ERROR, series, ylim=(0, 95), names=names)


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Test error against the length of a block."""
    return Findings(
        [equal(size, data), slower(size, data), unequal(size, data)],
        claims(size, data["blocks"], data["mixed"]),
        remarks(size, data),
        columns=3,
    )


def equal(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Panel:
    """As many negative as positive phases: optimisers and slow weights, beside the public study."""
    eta, series = size["etas"][-1], []
    for i, (rule, label) in enumerate((("one", "one Adam"), ("each", "an Adam for each sign"))):
        for line, (words, averaged) in enumerate((("", False), (", slow weights", True))):
            chosen = {"rule": rule, "eta": eta, "ratio": 1.0, "colour": i, "line": line}
            series.append(over_blocks(size, data["blocks"], f"{label}{words}", averaged, **chosen))
    mixed = float(errors(data["mixed"], rule="random", eta=eta).mean())
    public = 100 - np.array(list(PUBLIC.values()), float)
    series += [
        level("random order", mixed, colour=2, line=2),
        Series("public study", np.arange(len(PUBLIC)), public, colour=6, kind="points"),
        level("public study, not separated", 100 - PUBLIC_UNSEPARATED, colour=6, line=2),
    ]
    return panel(f"A  equal blocks, eta {eta:g}", AXIS, series)


def slower(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Panel:
    """The same with one Adam and a lower learning rate."""
    series = []
    for i, eta in enumerate(size["etas"]):
        for line, averaged in enumerate((False, True)):
            name = f"eta {eta:g}{', slow weights' if averaged else ''}"
            chosen = {"rule": "one", "eta": eta, "ratio": 1.0, "colour": 3 + i, "line": line}
            series.append(over_blocks(size, data["blocks"], name, averaged, **chosen))
    return panel("B  one Adam, two rates", AXIS, series)


def unequal(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Panel:
    """Three negative phases for each positive one: importance weights."""
    chosen = {"eta": size["etas"][-1], "ratio": UNEQUAL}
    series = [
        over_blocks(size, data["blocks"], name, rule=rule, colour=i // 2, line=i % 2, **chosen)
        for i, (rule, name) in enumerate(RULES.items())
    ]
    title = f"C  {UNEQUAL:g} negative phases for each positive one"
    return panel(title, "positive updates in a row", series)


def claims(size: dict[str, Any], blocks: xr.Dataset, mixed: xr.Dataset) -> list[Claim]:
    """What separation does, and what mends it."""
    eta, longest = size["etas"][-1], size["blocks"][-1]
    ends = size["blocks"][0], longest

    def at_ends(averaged: bool = False, **chosen: Any) -> list[np.ndarray]:
        chosen = {"eta": eta, "ratio": 1.0} | chosen
        return [errors(blocks, averaged, block=block, **chosen) for block in ends]

    def seeds(name: str, dataset: xr.Dataset = blocks, averaged: bool = False, **chosen: Any):
        return Seeds(name, errors(dataset, averaged, **({"eta": eta} | chosen)))

    one = {"rule": "one", "ratio": 1.0}
    apart = seeds(f"blocks of {longest:g}", block=longest, **one)
    order = seeds("random order", mixed, rule="random")
    last = at_ends(rule="one")
    slow, each = at_ends(True, rule="one"), at_ends(rule="each")
    low = at_ends(rule="one", eta=size["etas"][0])
    many = {"block": size["unequal"][-1], "ratio": UNEQUAL}
    raw, weighted = (seeds(RULES[rule], rule=rule, **many) for rule in ("one-plain", "one"))
    raw_each, after = (seeds(RULES[rule], rule=rule, **many) for rule in ("each-plain", "each"))
    share = f"{UNEQUAL:g} negative phases for each positive one"
    where_at = f"Blocks of {longest:g}"
    return [
        onset(size, blocks, mixed),
        fails(f"{where_at} fail with one Adam (as in the public study).", apart, order, UNTRAINED),
        mends(f"{where_at}: slow weights mend it.", ends, last, slow),
        mends(f"{where_at}: an Adam for each sign mends it.", ends, last, each),
        mends(f"{where_at}: a lower learning rate mends it.", ends, last, low),
        is_worse(f"{share}: importance weights help one Adam.", raw, weighted),
        is_worse(f"{share}: weights after Adam help an Adam for each sign.", raw_each, after),
    ]


def mends(
    words: str, ends: tuple[float, float], before: list[np.ndarray], after: list[np.ndarray]
) -> Claim:
    """Is the error lower at the longest block, and is more gained there than at the shortest?

    What gains as much at the shortest block helps, but mends no separation. `before` and `after`
    hold the seeds at both `ends`.
    """
    short, long = (a - b for a, b in zip(before, after, strict=True))
    lower = worse(before[1], after[1])
    more = p_value(stats.ttest_rel, long, short, alternative="greater")
    share = np.mean(long - short) / np.mean(before[1] - before[0])
    return Claim(
        words,
        f"{mean_sd(before[1])} becomes {mean_sd(after[1])}, p(lower) = {lower:.2g}; gains "
        f"{mean_sd(long)} at blocks of {ends[1]:g} and {mean_sd(short)} at blocks of "
        f"{ends[0]:g}, p(more) = {more:.2g}: {share:.0%} of the loss by separation is mended",
        all_of(decide(lower), decide(more)),
        "Welch t-test over seeds, one-sided, for lower; paired t-test over seeds, one-sided, of "
        "what is gained at the longest and the shortest block, for more",
    )


def onset(size: dict[str, Any], blocks: xr.Dataset, mixed: xr.Dataset) -> Claim:
    """The first block that is significantly worse than phases in random order; it fails where no
    block can be more than slightly worse.
    """
    eta = size["etas"][-1]
    order = errors(mixed, rule="random", eta=eta)
    runs = {n: errors(blocks, rule="one", ratio=1.0, eta=eta, block=n) for n in size["blocks"]}
    p = {n: len(runs) * worse(run, order) for n, run in runs.items()}
    hurt = [n for n in runs if decide(p[n]) == "pass"]
    limit = SLIGHT * (UNTRAINED - float(order.mean()))
    harmless = all(within(run, order, limit) == "pass" for run in runs.values())
    found = f"first at blocks of {hurt[0]:g}: {mean_sd(runs[hurt[0]])}" if hurt else "nowhere"
    return Claim(
        "One Adam: separation starts to hurt.",
        f"{found}, against {mean_sd(order)} in random order",
        verdict(bool(hurt), harmless),
        "Welch t-test over seeds, one-sided, times the number of blocks (Bonferroni); fail: at "
        f"every block the 90 % interval of the gap is below {SLIGHT:.0%} of the improvement",
    )


def remarks(size: dict[str, Any], data: dict[str, xr.Dataset]) -> list[str]:
    eta = size["etas"][-1]
    mixed = {
        name: mean_sd(errors(data["mixed"], rule=rule, eta=eta))
        for rule, name in (("random", "random order"), ("two-term", "two terms, one update"))
    }
    return [
        f"784-{size['units']}-{size['units']}, threshold 2, batch size 1, one update to a pass, "
        f"{size['updates']} updates, {size['seeds']} seeds. The last iterate is the mean over the "
        "second half of the records, which lie at many places of a cycle of blocks.",
        f"Without separation: {', '.join(f'{name} {v} %' for name, v in mixed.items())}.",
        f"Public study (arXiv 2310.18647): {PUBLIC_UNSEPARATED} % accuracy without separation; "
        "784-500-500-500, threshold 1.5, Adam 1e-3, batches of 512, 50 updates with each batch.",
        "With equal blocks b = 1/2, importance weights are a common factor, and Adam divides it "
        "out; C has blocks of n positive and 3n negative phases, b = 1/4. An Adam for each sign "
        "divides out the weight of its sign as well, so there it is applied after Adam.",
    ]
