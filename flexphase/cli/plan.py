"""flexphase plan RUN, or flexphase plan METHOD with the words of train: which b, tau and eta this
learner should take, and why.
"""

import argparse
from pathlib import Path
from typing import Any

from ..catalogue import METHODS, Task
from ..catalogue.arguments import count, did_you_mean, positive, seed, whole
from . import options as groups
from .common import say, show
from .records import Kept, load
from .train import fits_in_memory, task_of, ticks_of

LOSS = 0.05
FEWER = "units, lanes or pilots"


def add(subparsers: Any) -> None:
    text = (
        "Advise b, tau and eta for a run: short runs at several learning rates, then the moments "
        "and the mixing of the machine that they trained. LEARNER is the folder of a run of "
        f"flexphase train, or a method ({', '.join(METHODS)}) followed by the words of "
        "flexphase train. The work is that of about 20 trained networks, more where they disagree "
        "or another b or tau is tried."
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


def measuring(p: argparse.ArgumentParser) -> None:
    """The options of `plan` itself."""
    group = p.add_argument_group("measuring")
    group.add_argument(
        "--bias", type=positive, default=0.1, help="share of an update that its bias may have"
    )
    group.add_argument(
        "--pilots", type=count, default=4, metavar="S", help="networks for each short run"
    )
    group.add_argument("--seed", type=seed, default=0, help="seed of the measurement")
    group.add_argument(
        "--lanes", type=count, default=32, help="chains that are measured side by side"
    )
    groups.json_out(group)
    group = p.add_argument_group(
        "at a checkpoint", "Advice that holds for the parameters of a run as they are."
    )
    group.add_argument(
        "--checkpoint", action="store_true", help="no short runs: measure at the run's parameters"
    )
    group.add_argument(
        "--loss",
        type=positive,
        help="loss per sample that the noise of the updates may cost in the long run (default: "
        f"{LOSS})",
    )
    group.add_argument(
        "--lane", type=whole, help="which of the trained networks, counted from 0 (default: 0)"
    )
    group.add_argument(
        "--averaged",
        action="store_true",
        help="the slow weights of the run: plan for them, or measure at them",
    )


def run(args: argparse.Namespace) -> int:
    if args.learner not in METHODS and not Path(args.learner).exists():
        near = did_you_mean(args.learner, METHODS) or "."
        raise ValueError(f"there is no record at {args.learner}, and no such method{near}")
    options = options_of(args)
    if args.learner in METHODS:
        if options.checkpoint:
            raise ValueError("--checkpoint is for a run that was trained; give its folder.")
        options.method = args.learner
        refuse_for_checkpoints(options)
        advice = for_task(task_of(options), options, options)
    else:
        advice = for_record(load(args.learner), options)
    say(str(advice))
    if options.json:
        show({"learner": args.learner} | as_json(advice))
    return 0


def options_of(args: argparse.Namespace) -> argparse.Namespace:
    """All options: those before the learner hold unless one after it says otherwise."""
    p = args.parser(prog=f"flexphase plan {args.learner}")
    measuring(p)
    if args.learner in METHODS:
        groups.data_and_model(p, METHODS[args.learner])
        groups.learning_rule(p, METHODS[args.learner])
        groups.length(p.add_argument_group("training"), METHODS[args.learner])
    return p.parse_args(args.more, argparse.Namespace(**vars(args)))


def refuse_for_checkpoints(options: argparse.Namespace) -> None:
    """Short runs train networks of their own: no loss is asked of them, no lane is chosen."""
    for name in ("lane", "loss"):
        if getattr(options, name) is not None:
            raise ValueError(
                f"--{name} is for advice at the parameters of a run; give --checkpoint as well."
            )


def for_task(task: Task, words: argparse.Namespace, options: argparse.Namespace) -> Any:
    """Advice for the run that these words of train describe. Its result is read from the slow
    weights if it has them or --averaged asks for them, else from the last iterate.
    """
    from ..classification import Wrong
    from ..theory.ahead import most_lanes, plan_run

    average = 0.5 if words.average is None and options.averaged else words.average
    fits_in_memory(task.run, max(most_lanes(options.pilots), options.lanes), 1, FEWER)
    metric = next(iter(task.metrics.values()))
    return plan_run(
        task.run,
        Wrong(metric) if METHODS[words.method].higher_is_better else metric,
        ticks_of(words, task.run.process),
        average=average,
        bias=options.bias,
        seeds=options.pilots,
        lanes=options.lanes,
        seed=options.seed,
        say=say,
    )


def for_record(kept: Kept, options: argparse.Namespace) -> Any:
    """Advice for another run like this one, or at its parameters (--checkpoint). A record made in
    Python does not hold its metric, so its advice is always at its parameters.
    """
    if not options.checkpoint and "options" in kept.record.attrs:
        refuse_for_checkpoints(options)
        return for_task(kept.task, kept.options, options)
    from ..theory.plan import plan

    lane = options.lane or 0
    run = kept.run(lane)
    params = kept.record.parameters(options.averaged, lane=lane)
    fits_in_memory(run, options.lanes, 1, FEWER)
    advice = plan(
        run,
        params,
        loss=LOSS if options.loss is None else options.loss,
        bias=options.bias,
        lanes=options.lanes,
        seed=options.seed,
    )
    if not options.checkpoint:
        say("The record was made in Python: this advice holds at its parameters only.")
    return advice


def as_json(advice: Any) -> dict[str, Any]:
    """The advice as data; moments and autocorrelation where they are known."""
    found = {name: getattr(advice, name) for name in ("b", "tau", "eta", "reasons", "expected")}
    if advice.moments is not None:
        m = advice.moments
        found["moments"] = dict(zip(m._fields[:6], m[:6], strict=True))
        found["autocorrelation"] = [
            advice.memory.positive.autocorrelation,
            advice.memory.negative.autocorrelation,
        ]
    return found
