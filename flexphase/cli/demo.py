"""flexphase demo: three rules on one small problem, as a table and a curve, in seconds."""

import argparse
import sys
import time
from typing import Any

from .chart import Curve, chart
from .common import say, show, status

PHASES, LENGTH, ETA, SEEDS = 80_000, 20, 0.01, 4
WORDS = {
    "two-term": "both phases in turn, one update for a pair",
    "ISD": "one random phase, one update",
    "always on": "random phases, an update at every tick",
}


def add(subparsers: Any) -> None:
    text = (
        "Train an RBM on Bars and Stripes under three rules: the classical one, one random phase "
        "at a time (ISD), and learning that is never switched off (AoL). Takes seconds."
    )
    p = subparsers.add_parser("demo", help="three rules side by side, in seconds", description=text)
    p.add_argument("--json", action="store_true", help="print one JSON object instead")
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    began = time.perf_counter()
    with status("starting JAX"):
        records = trained()
    rows = [row(name, record) for name, record in records.items()]
    if args.json:
        return show({"rows": rows, "seconds": time.perf_counter() - began})
    first = next(iter(records.values()))
    print(table(rows))
    curves = {name: curve_of(record) for name, record in records.items()}
    print("\nNLL of the slow weights (the last iterate before) against phases\n")
    print(chart(curves, colour=sys.stdout.isatty()))
    best = first.optimum()
    say(
        f"\nThe negative log-likelihood in nats, mean and sd of {SEEDS} seeds; an untrained "
        f"machine has {first.untrained():.0f}, a perfect one {best:.0f}. {PHASES:,} phases of "
        f"{LENGTH} ticks, eta {ETA}; {time.perf_counter() - began:.0f} s in all. "
        "Next: flexphase train rbm"
    )
    return None


def trained() -> dict[str, Any]:
    """A record for each rule."""
    from ..core import Optimiser, Run
    from ..data import Rows, bars_and_stripes
    from ..likelihood import NLL
    from ..methods import RBM
    from ..rules import aol, cd, isd
    from ..training import train

    data = bars_and_stripes(4)
    rules = {"two-term": cd(LENGTH), "ISD": isd(0.5, LENGTH), "always on": aol(0.5, LENGTH)}
    method = RBM(16, 16, visible_bias=False)
    return {
        name: train(
            Run(method, *rule, Rows(data), Optimiser(ETA)),
            phases=PHASES,
            seeds=SEEDS,
            metrics={"nll": NLL(data)},
            average=0.5,
            records=40,
            progress=True,
        )
        for name, rule in rules.items()
    }


def row(name: str, record: Any) -> dict[str, Any]:
    """Mean and sd over seeds of the last and of the slow weights, and the updates it took."""
    last, slow = record.final(), record.final(averaged=True)
    return {
        "rule": name,
        "last": float(last.mean()),
        "last_sd": float(last.std(ddof=1)),
        "averaged": float(slow.mean()),
        "averaged_sd": float(slow.std(ddof=1)),
        "updates": int(record["updates"].isel(record=-1).mean()),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in columns."""
    lines = [f"{'rule':<10} {'last weights':>14} {'slow weights':>14} {'updates':>9}"]
    for r in rows:
        last = f"{r['last']:.1f} +- {r['last_sd']:.1f}"
        slow = f"{r['averaged']:.1f} +- {r['averaged_sd']:.1f}"
        lines.append(
            f"{r['rule']:<10} {last:>14} {slow:>14} {r['updates']:>9,}  {WORDS[r['rule']]}"
        )
    return "\n".join(lines)


def curve_of(record: Any) -> Curve:
    """The mean over seeds: of the slow weights from where they begin, of the last ones before."""
    import numpy as np

    last, slow = record["nll"].mean("seed").values, record["averaged.nll"].mean("seed").values
    phases = record["phases"].mean("seed").values
    return Curve(phases.tolist(), np.where(np.isfinite(slow), slow, last).tolist())
