"""flexphase plan RUN, or flexphase plan METHOD with the words of train: which b, tau and eta this
learner should take, and why.
"""

import argparse
from pathlib import Path
from typing import Any

from ..catalogue import METHODS
from ..catalogue.arguments import count, did_you_mean, positive, seed, whole
from . import options as groups
from .common import say, show
from .records import load
from .train import task_of


def add(subparsers: Any) -> None:
    text = (
        "Measure a learner's moments and mixing with its parameters frozen, and advise b, tau and "
        "eta. LEARNER is the folder of a run of "
        f"flexphase train, or a method ({', '.join(METHODS)}) followed by the words of "
        "flexphase train; it is then trained for --phases."
    )
    p = subparsers.add_parser("plan", help="advice on b, tau and eta", description=text)
    measuring(p)
    p.add_argument("learner", metavar="LEARNER", help="folder of a run, its record.nc, or a method")
    p.add_argument(
        "more",
        metavar="...",
        nargs=argparse.REMAINDER,
        help="words of flexphase train, and the options above",
    )
    p.set_defaults(func=run, parser=type(p))


def measuring(p: argparse.ArgumentParser, **given: Any) -> None:
    group = p.add_argument_group("measuring")
    group.add_argument(
        "--bias", type=positive, default=0.1, help="share of an update that its bias may have"
    )
    group.add_argument(
        "--loss",
        type=positive,
        default=0.05,
        help="loss per sample that the noise of the updates may cost in the long run",
    )
    group.add_argument(
        "--lane", type=whole, default=0, help="which of the trained networks, counted from 0"
    )
    group.add_argument(
        "--averaged", action="store_true", help="measure at the slow weights of the run"
    )
    group.add_argument("--seed", type=seed, default=0, help="seed of the measurement")
    group.add_argument(
        "--lanes", type=count, default=32, help="chains that are measured side by side"
    )
    group.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )
    p.set_defaults(**given)


def run(args: argparse.Namespace) -> int:
    if args.learner not in METHODS and not Path(args.learner).exists():
        near = did_you_mean(args.learner, METHODS) or "."
        raise ValueError(f"there is no record at {args.learner}, and no such method{near}")
    names = ("bias", "loss", "lane", "averaged", "seed", "lanes", "json")
    known = {name: getattr(args, name) for name in names}
    p = args.parser(prog=f"flexphase plan {args.learner}")
    measuring(p, **known)
    if args.learner in METHODS:
        groups.data_and_model(p, METHODS[args.learner])
        groups.learning_rule(p, METHODS[args.learner])
        p.add_argument(
            "--phases", type=count, default=2000, help="phases to train for before measuring"
        )
    options = p.parse_args(args.more)

    from ..theory.plan import plan

    learner, params = (
        fresh(args.learner, options)
        if args.learner in METHODS
        else trained(args.learner, options.lane, options.averaged)
    )
    advice = plan(
        learner,
        params,
        loss=options.loss,
        bias=options.bias,
        lanes=options.lanes,
        seed=options.seed,
    )
    say(str(advice))
    if options.json:
        m = dict(zip(advice.moments._fields[:6], advice.moments[:6], strict=True))
        show(
            {
                "learner": args.learner,
                "b": advice.b,
                "tau": advice.tau,
                "eta": advice.eta,
                "reasons": advice.reasons,
                "expected": advice.expected,
                "moments": m,
                "autocorrelation": [
                    advice.memory.positive.autocorrelation,
                    advice.memory.negative.autocorrelation,
                ],
            }
        )
    return 0


def trained(path: str, lane: int, averaged: bool) -> tuple[Any, Any]:
    """The run in a folder and the final parameters of one of its lanes."""
    kept = load(path)
    return kept.run(lane), kept.record.parameters(averaged, lane=lane)


def fresh(method: str, options: argparse.Namespace) -> tuple[Any, Any]:
    """The run that the words describe, and its parameters after --phases."""
    from ..training import train

    options.method = method
    learner = task_of(options).run
    record = train(learner, phases=options.phases, seed=options.seed, records=1)
    return learner, record.parameters()
