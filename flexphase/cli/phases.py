"""flexphase phases: see the phases before a network is trained."""

import argparse
from typing import Any

from ..catalogue.arguments import count, seed
from ..catalogue.phases import composed, label_of, rule_of, words_of
from ..drawing import verbatim
from ..machine import check_memory
from . import options
from .common import say, show
from .records import figure_file


def add(subparsers: Any) -> None:
    text = (
        "Draw phases with the words of flexphase train: a raster, the distribution of their "
        "lengths, runs of a sign, the spectrum of the sign and the share of positive phases."
    )
    p = subparsers.add_parser("phases", help="see phases before training", description=text)
    options.phases(p, "aol", 100)
    group = p.add_argument_group("output")
    group.add_argument(
        "--phases", type=count, default=10_000, metavar="N", help="how many phases are drawn"
    )
    group.add_argument("--seed", type=seed, default=0, help="the seed of the lane")
    options.figure_out(group, "the figure, .png, .svg or .pdf (default: phases.png)")
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    from .. import plot
    from ..phase_figure import figure
    from ..phases.statistics import drawn, statistics

    process, estimator = rule_of(args)
    estimator.check(process)
    file = figure_file(args.out or "phases.png", args.force, named=args.out is not None)
    check_memory(64 * args.phases, "phases")  # some columns of 8 bytes, and copies of them
    sign, ticks = drawn(process, args.phases, args.seed)
    title = words_of(args) if composed(args) else label_of(args)
    plot.save(figure(sign, ticks, verbatim(title), args.hold), file, over=args.force)
    seen = statistics(sign, ticks)
    say(
        f"{title}: b = {seen.b:.4g}, mean length {seen.mean_length:.6g} ticks (cv "
        f"{seen.cv_length:.3g}), the sign changes {seen.switch_rate:.3g} times a phase; see {file}"
    )
    if args.json:
        show(seen._asdict())
