"""flexphase ledger RUN...: what each rule has to store, which signals it needs, what it costs."""

import argparse
from typing import Any

from ..catalogue.arguments import count, did_you_mean, number, whole
from . import options
from .common import say, show
from .records import Kept, figure_file, load, named

COSTS = ("read", "write", "operation")


def costs(text: str) -> dict[str, float]:
    """read=1e-12,write=1e-11,operation=1e-13 as numbers."""
    given = {}
    for word in text.split(","):
        name, equals, value = word.partition("=")
        if name not in COSTS or not equals or name in given:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no cost; give read, write and operation, each once, as in "
                f"read=1e-12,write=1e-11{did_you_mean(name, COSTS)}"
            )
        if (cost := number(value)) < 0:
            raise argparse.ArgumentTypeError(f"the cost of a {name} must not be negative")
        given[name] = cost
    return given


def add(subparsers: Any) -> None:
    text = (
        "What a rule has to store, which signals it needs and what an update costs: derived from "
        "the parts of the run, and counted in a short run from its trained parameters."
    )
    p = subparsers.add_parser("ledger", help="memory, signals and costs of runs", description=text)
    p.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run, or its record.nc")
    p.add_argument("--phases", type=count, default=20, help="length of the counted run")
    p.add_argument(
        "--lane", type=whole, default=0, help="which of the trained networks, counted from 0"
    )
    p.add_argument(
        "--costs",
        type=costs,
        metavar="WORDS",
        help="energies such as read=1e-12,write=1e-11,operation=1e-13, for an estimate of all",
    )
    options.figure_out(p, "a figure with the learning curves, .png, .svg or .pdf")
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    figure = figure_file(args.out, args.force) if args.out is not None else None
    kept = [load(path) for path in args.runs]
    names = named(kept)
    from ..costs.ledger import Ledger, ledger, table

    found: dict[str, Ledger] = {}
    for name, one in zip(names, kept, strict=True):
        params = one.record.parameters(lane=args.lane)
        found[name] = ledger(one.run(args.lane), args.phases, params=params)
    say(table(found, args.costs))
    if figure:
        draw(figure, dict(zip(names, kept, strict=True)), found, args.force)
        say(f"{figure}")
    if args.json:
        rows = [{"run": k} | v.as_dict(args.costs) for k, v in found.items()]
        show({"runs": rows, "out": figure})


def draw(path: Any, kept: dict[str, Kept], found: dict[str, Any], over: bool) -> None:
    """Learning curves, numbers stored per synapse, writes per synapse and phase."""
    from matplotlib.figure import Figure

    from .. import plot
    from ..drawing import PALETTE, verbatim

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    curves, stored, writes = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    plot.curves({verbatim(name): one.record for name, one in kept.items()}, ax=curves)
    for i, one in enumerate(found.values()):
        colour = PALETTE[i % len(PALETTE)]
        each = one.words("synapse"), one.counts["writes_per_synapse_and_phase"]
        for axes, value in zip((stored, writes), each, strict=True):
            axes.bar_label(axes.bar(i, value, color=colour), fmt="%.3g")
    stored.set(title="stored beside the weight", ylabel="numbers per synapse", xticks=[])
    writes.set(title="writes", ylabel="per synapse and phase", xticks=[], yscale="log")
    plot.save(curves, path, over)
