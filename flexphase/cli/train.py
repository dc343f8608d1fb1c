"""flexphase train METHOD: train a learner under a rule, and keep the record in a folder."""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from ..catalogue import METHODS, RULES, Task, datasets
from ..catalogue.arguments import not_empty
from ..catalogue.phases import label_of
from ..drawing import verbatim
from ..files import write as write_file
from ..machine import check_memory
from ..progress import Display, display
from ..stopping import STOPPING
from . import common, options, program
from .common import say, show


def add(subparsers: Any) -> None:
    text = (
        "Train a two-term contrastive learner; the record, its curve and a checkpoint go to a "
        "folder."
    )
    train = subparsers.add_parser("train", help="train a learner", description=text)
    methods = train.add_subparsers(dest="method", metavar="METHOD", required=True)
    for name, method in METHODS.items():
        article = "an" if method.words[0] in "aeiou" else "a"
        text = f"Train {article} {method.words}."
        p = methods.add_parser(name, help=method.words, description=text)
        p.set_defaults(func=run)
        options.data_and_model(p, method)
        options.learning_rule(p, method)
        options.training(p, method)
        output(p)


def output(p: argparse.ArgumentParser) -> None:
    """`--out`, `--resume` and `--json`."""
    group = p.add_argument_group("output")
    group.add_argument(
        "--out",
        type=not_empty,
        metavar="DIR",
        help="folder for the results, new or empty (default: runs/METHOD-DATA-RULE-TIME)",
    )
    group.add_argument("--resume", action="store_true", help="go on with what is in --out")
    options.json_out(group)


def run(args: argparse.Namespace) -> int:
    if args.resume and args.out is None:
        raise ValueError("--resume needs --out, the folder to go on with.")
    from ..averages import average_of
    from ..checks import budget
    from ..contract import check
    from ..describe import described
    from ..engines import choose
    from ..folder import RunFolder
    from ..lanes import lanes
    from ..log import configuration

    with common.status("starting JAX and checking the run"):
        data = datasets.load(args.data, args.side)
        task = METHODS[args.method].build(args, data)
        ticks = budget(1, ticks_of(args, task.run.process), None)
        # What has to be refused is refused before a folder is made.
        program.check_drawing()
        check(task.run)
        engine = choose(args.engine, task.run, args.threads).name
        fits_in_memory(task.run, args.seeds, args.records)
        every = lanes(task.run, args.seeds, args.seed)
    parts = {"metrics": task.metrics, "observers": {}, "average": average_of(args.average)}
    plan = configuration(every.dims, described(every.settings), engine, parts)
    out = args.out or common.run_folder(f"{args.method}-{data.name}-{args.rule}")
    with RunFolder(out, plan, args.resume) as folder:
        return go(args, task, data, ticks, folder.path)


def go(args: argparse.Namespace, task: Task, data: Any, ticks: int, folder: Path) -> int:
    """Train, and write the results to the folder, which this process has locked."""
    from ..training import train

    checkpoint = folder / "checkpoint.npz"
    if (folder / "record.nc").exists() and not checkpoint.exists():
        raise ValueError(
            f"{folder} holds a record without its checkpoint, so there is nothing to go on from; "
            "choose another folder."
        )
    given = to_keep(args)
    about = {
        "options": given,
        "command": ["flexphase", *args.words],
        "picture": data.shape,
        "classes": task.classes,
    }
    if not (folder / "config.json").exists():
        write(folder / "config.json", about)
    title = f"{args.method} {args.rule}"
    with STOPPING.stoppable():
        with display(True, title) as bar:
            record = train(
                task.run,
                ticks=ticks,
                seeds=args.seeds,
                seed=args.seed,
                metrics=task.metrics,
                records=args.records,
                average=args.average,
                engine=args.engine,
                threads=args.threads,
                progress=Stoppable(bar),
                checkpoint=checkpoint,
            )
        record.attrs.update(
            label=label(args),
            options=json.dumps(given),
            picture=list(data.shape),
            classes=task.classes,
        )
        with STOPPING.undisturbed():
            keep(record, folder, about)
    return report(args, record, folder)


class Stoppable(NamedTuple):
    """A bar at whose every step the command may be stopped."""

    bar: Display

    def stage(self, words: str) -> None:
        self.bar.stage(words)

    def __call__(self, done: int, total: int, latest: dict[str, float]) -> None:
        STOPPING.safe_point()
        self.bar(done, total, latest)


def to_keep(args: argparse.Namespace) -> dict[str, Any]:
    """The options that say what is trained; `options.options_of` reads them again."""
    rest = ("func", "command", "words", "json", "resume", "out")
    return {name: value for name, value in vars(args).items() if name not in rest}


def task_of(options: argparse.Namespace) -> Task:
    """The task that these options of train describe."""
    return METHODS[options.method].build(options, datasets.load(options.data, options.side))


def ticks_of(args: argparse.Namespace, process: Any) -> int:
    """The length of training in ticks, from --ticks, --phases or --updates."""
    from ..core import declares

    if args.ticks:
        return args.ticks
    update = RULES[args.rule].update
    if args.updates and declares(process, "rests"):
        raise ValueError(
            "some of the recorded phases have no update; give --phases or --ticks, not --updates."
        )
    if args.updates and update == "tick":
        return args.updates
    phases = args.phases or METHODS[args.method].phases
    if args.updates:
        phases = args.updates * (2 if update == "pair" else 1)
    return round(phases * float(process.mean_length))


def fits_in_memory(
    run: Any, seeds: int, records: int, fewer: str = "seeds, units or records"
) -> None:
    """Refuse what needs more memory than the machine has; states are copied while they are
    advanced, hence the factor of 3.
    """
    import jax

    from ..core import init

    state = jax.eval_shape(lambda key: init(run, key), jax.random.key(0))
    need = 4 * seeds * (3 * sum(leaf.size for leaf in jax.tree.leaves(state)) + 5 * records)
    check_memory(need, fewer)


def label(args: argparse.Namespace) -> str:
    """What a legend calls this run: the method, its rule and its device."""
    device = f", {args.device}" if args.device else ""
    return f"{METHODS[args.method].label}, {label_of(args)}{device}"


def write(path: Path, content: Any) -> None:
    """The content as strict JSON."""
    write_file(path, json.dumps(common.plain(content), indent=2, allow_nan=False) + "\n")


def keep(record: Any, folder: Path, about: dict[str, Any]) -> None:
    """record.nc, config.json, curve.csv and the curve as a figure."""
    from ..files import replacing

    record.save(folder / "record.nc")
    program.draw_plainly()
    from .. import plot

    write(
        folder / "config.json",
        about | {"resolved": record.config, "versions": json.loads(record.attrs["versions"])},
    )
    with replacing(folder / "curve.csv") as part:
        record.to_dataframe().to_csv(part, index=False)
    ax = plot.curves({verbatim(record.attrs["label"]): record})
    if record.averaged:
        plot.curves({"slow weights": record}, ax=ax, averaged=True)
    for kind in ("png", "svg"):
        plot.save(ax, folder / f"curve.{kind}")


def summary(record: Any, averaged: bool = False) -> dict[str, Any]:
    """Mean, sd and values over the seeds at the end; the mean is that of the seeds that did not
    diverge. With `averaged`, of the slow weights.
    """
    import numpy as np

    values = np.asarray(record.final(averaged=averaged), float)
    fine = values[np.isfinite(values)]
    mean, sd = (fine.mean() if len(fine) else None), (fine.std(ddof=1) if len(fine) > 1 else None)
    return {"mean": mean, "sd": sd, "values": values}


def mean_and_sd(values: dict[str, Any]) -> str:
    """A summary in words."""
    spread = "" if values["sd"] is None else f" +- {values['sd']:.4g}"
    return "diverged" if values["mean"] is None else f"{values['mean']:.6g}{spread}"


def where_it_lies(record: Any) -> tuple[dict[str, Any], str]:
    """What an untrained and a perfect learner score, for --json and in words."""
    untrained, optimum = record.untrained(), record.optimum()
    known = {} if optimum is None else {"optimum": optimum}
    best = "" if optimum is None else f", a perfect one {optimum:.4g}"
    return {"untrained": untrained} | known, f"(an untrained one has {untrained:.4g}{best})"


def report(args: argparse.Namespace, record: Any, folder: Path) -> int:
    """Print the result, with --json as one object too; the exit code, 130 where interrupted."""
    final, metric = summary(record), record.metrics[0]
    clocks = {
        name: round(float(record[name].isel(record=-1).mean()))
        for name in ("ticks", "phases", "updates")
    }
    times = {name: round(record.attrs[name], 3) for name in ("seconds", "metric_seconds")}
    lost = int((record["diverged_at"] >= 0).sum())
    if lost:
        say(f"{lost} of {args.seeds} seeds diverged: try a smaller --lr.")
    averaged = {"averaged": summary(record, averaged=True)} if record.averaged else {}
    slow = "".join(f", averaged {mean_and_sd(values)}" for values in averaged.values())
    scale, words = where_it_lies(record)
    say(
        f"{metric} {mean_and_sd(final)}{slow} {words} after {clocks['phases']:,} phases in "
        f"{times['seconds']:.1f} s of training ({record.attrs['engine']} engine); see {folder}"
    )
    if args.json:
        result = {
            "method": args.method,
            "rule": args.rule,
            "metric": metric,
            "final": final,
            **averaged,
            **scale,
            **clocks,
            **times,
        }
        show(result | {"engine": record.attrs["engine"], "out": folder})
    if record.attrs["interrupted"]:
        say(f"interrupted; what was recorded is kept: go on with --resume --out {folder}")
        return 130
    return 0
