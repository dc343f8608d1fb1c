"""flexphase train METHOD: train a learner under a rule, and keep the record in a folder."""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from . import common
from .common import count, number, positive, probability, say, seed, show

RULES = ("cd", "two-term", "isd", "aol", "aol-random")
ENGINES = ("auto", "jax", "native")
STARTS = ("carry", "data", "persistent", "random")
BERNOULLI = ("rbm", "boltzmann")


class Defaults(NamedTuple):
    """What a method is trained on, and how, when nothing is said."""

    words: str
    data: str
    hidden: Any
    rule: str
    length: int
    lr: float
    optimiser: str
    records: int


METHODS = {
    "rbm": Defaults("restricted Boltzmann machine", "bas", None, "aol", 100, 0.005, "sgd", 50),
    "boltzmann": Defaults(
        "Boltzmann machine with lateral weights", "bas:3", 8, "aol", 50, 0.005, "sgd", 50
    ),
    "forward-forward": Defaults(
        "Forward-Forward network", "digits", [500, 500], "isd", 1, 0.01, "adam", 20
    ),
    "equilibrium-propagation": Defaults(
        "network by equilibrium propagation", "digits", [32], "two-term", 20, 0.03, "sgd", 20
    ),
}
HELP = {method: defaults.words for method, defaults in METHODS.items()}


def add(subparsers: Any) -> None:
    text = (
        "Train a two-term contrastive learner; the record, its curve and a checkpoint go to a "
        "folder."
    )
    train = subparsers.add_parser("train", help="train a learner", description=text)
    methods = train.add_subparsers(dest="method", metavar="METHOD", required=True)
    for method, words in HELP.items():
        p = methods.add_parser(method, help=words, description=f"Train a {words}.")
        p.set_defaults(func=run)
        model(p, method)
        rule(p, method)
        training(p, method)
        output(p)


def model(p: argparse.ArgumentParser, method: str) -> None:
    defaults = METHODS[method]
    group = p.add_argument_group("data and model")
    group.add_argument(
        "--data",
        default=defaults.data,
        help="bas, bas:SIDE, digits, mnist, or a .npy, .npz or .csv file",
    )
    group.add_argument(
        "--side",
        type=count,
        help="side of Bars and Stripes, where the data are just bas (default: 4)",
    )
    if method in BERNOULLI:
        words = "number of hidden units" + (
            " (default: 128 for mnist, else 16)" if defaults.hidden is None else ""
        )
        group.add_argument("--hidden", type=count, default=defaults.hidden, help=words)
        group.add_argument(
            "--binarise",
            type=number,
            metavar="THRESHOLD",
            help="pixels above it are on (default: 0.5 for digits and mnist)",
        )
        group.add_argument(
            "--no-visible-bias", action="store_true", help="visible units have no bias"
        )
        words = "where a negative phase begins (default: data for cd and two-term, else carry)"
        group.add_argument("--negative-start", choices=STARTS, help=words)
    else:
        group.add_argument(
            "--hidden",
            type=count,
            nargs="+",
            default=defaults.hidden,
            metavar="N",
            help="units of each hidden layer",
        )
    if method == "forward-forward":
        group.add_argument("--threshold", type=positive, default=2.0, help="of the goodness")
    if method == "equilibrium-propagation":
        group.add_argument(
            "--beta", type=positive, default=0.5, help="strength of the nudge in positive phases"
        )
        group.add_argument(
            "--centred", action="store_true", help="nudge negative phases too, by -beta"
        )


def rule(p: argparse.ArgumentParser, method: str) -> None:
    defaults = METHODS[method]
    group = p.add_argument_group("learning rule")
    words = "both terms in turn (cd, two-term), one random phase (isd), always on (aol, aol-random)"
    group.add_argument("--rule", choices=RULES, default=defaults.rule, help=words)
    group.add_argument(
        "--b",
        type=probability,
        default=0.5,
        help="probability of a positive phase (isd, aol, aol-random)",
    )
    group.add_argument(
        "--length",
        type=positive,
        default=defaults.length,
        metavar="T",
        help="ticks of a phase; their mean for aol-random",
    )
    group.add_argument(
        "--lr",
        type=positive,
        default=defaults.lr,
        metavar="ETA",
        help="learning rate; per phase for aol and aol-random",
    )
    group.add_argument(
        "--optimiser",
        choices=("sgd", "adam"),
        default=defaults.optimiser,
        help="what takes the steps",
    )


def training(p: argparse.ArgumentParser, method: str) -> None:
    group = p.add_argument_group("training")
    budget = group.add_mutually_exclusive_group()
    budget.add_argument(
        "--phases", type=count, metavar="N", help="phases to train for (default: 20000)"
    )
    budget.add_argument(
        "--updates",
        type=count,
        metavar="N",
        help="parameter updates to train for: 2 phases each for cd, a tick for aol",
    )
    budget.add_argument("--ticks", type=count, metavar="N", help="network time steps to train for")
    group.add_argument(
        "--seeds", type=count, default=1, metavar="S", help="number of seeds, trained side by side"
    )
    group.add_argument("--seed", type=seed, default=0, metavar="BASE", help="the first seed")
    group.add_argument(
        "--records",
        type=count,
        default=METHODS[method].records,
        help="how often the metrics are taken",
    )
    group.add_argument(
        "--engine", choices=ENGINES, default="auto", help="auto takes the fastest that fits"
    )
    group.add_argument(
        "--threads", type=count, help="threads of the native engine (default: all cores)"
    )


def output(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("output")
    group.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the results, new or empty (default: runs/METHOD-DATA-RULE-TIME)",
    )
    group.add_argument("--resume", action="store_true", help="go on with what is in --out")
    group.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )


def run(args: argparse.Namespace) -> int:
    if args.resume and not args.out:
        raise ValueError("--resume needs --out, the folder to go on with.")
    if args.side and args.data != "bas":
        raise ValueError(
            f"--side {args.side} is for --data bas, and the data are {args.data}; give one of the "
            "two."
        )
    from ..engines import pick, train
    from ..lanes import lanes
    from ..log import budget
    from . import inputs, learners

    data = inputs.load(args.data, args.side)
    task = learners.MAKE[args.method](args, data)
    ticks = budget(1, learners.ticks(args, task.run.process), None)
    pick(
        args.engine, task.run, args.threads
    )  # what has to be refused is refused before a folder is made
    learners.fits_in_memory(task.run, args.seeds, args.records)
    lanes(task.run, args.seeds, args.seed)
    folder = common.fresh_folder(
        args.out or common.run_folder(f"{args.method}-{data.name}-{args.rule}"), args.resume
    )
    options = {
        k: v
        for k, v in vars(args).items()
        if k not in ("func", "command", "words", "json", "resume", "out")
    }
    about = {
        "options": options,
        "command": ["flexphase", *args.words],
        "picture": data.shape,
        "classes": task.classes,
    }
    if not (folder / "config.json").exists():
        write(folder / "config.json", about)
    with common.stoppable(), common.progress_bar(f"{args.method} {args.rule}") as progress:
        record = train(
            task.run,
            ticks=ticks,
            seeds=args.seeds,
            seed=args.seed,
            metrics=task.metrics,
            records=args.records,
            engine=args.engine,
            threads=args.threads,
            progress=progress,
            checkpoint=folder / "checkpoint.npz",
        )
    record.attrs.update(
        label=label(args),
        options=json.dumps(options),
        picture=list(data.shape),
        classes=task.classes,
    )
    with common.undisturbed():
        keep(record, folder, about)
    return report(args, record, folder)


def label(args: argparse.Namespace) -> str:
    """What a legend calls this run."""
    names = {
        "cd": "CD",
        "two-term": "two-term",
        "isd": "ISD",
        "aol": "AoL",
        "aol-random": "AoL random T",
    }
    words = [names[args.rule] + (f"-{args.length:g}" if args.rule == "cd" else "")]
    if args.rule != "cd" and args.length > 1:
        words.append(f"{'mean ' * (args.rule == 'aol-random')}T = {args.length:g}")
    if args.rule not in ("cd", "two-term"):
        words.append(f"b = {args.b:g}")
    return ", ".join(words)


def write(path: Path, content: Any) -> None:
    from ..record import replacing

    with replacing(path) as part:
        part.write_text(json.dumps(common.plain(content), indent=2, allow_nan=False) + "\n")


def keep(record: Any, folder: Path, about: dict[str, Any]) -> None:
    """record.nc, config.json, curve.csv and the curve as a figure."""
    from .. import plot
    from ..record import replacing

    record.save(folder / "record.nc")
    write(
        folder / "config.json",
        about | {"resolved": record.config, "versions": json.loads(record.attrs["versions"])},
    )
    with replacing(folder / "curve.csv") as part:
        record.to_dataframe().to_csv(part, index=False)
    ax = plot.curves({record.attrs["label"]: record})
    for kind in ("png", "svg"):
        plot.save(ax, folder / f"curve.{kind}")


def summary(record: Any) -> dict[str, Any]:
    """Mean, sd and values over the seeds at the end; the mean is that of the seeds that did not
    diverge.
    """
    import numpy as np

    values = np.asarray(record.final(), float)
    fine = values[np.isfinite(values)]
    mean, sd = (fine.mean() if len(fine) else None), (fine.std(ddof=1) if len(fine) > 1 else None)
    return {"mean": mean, "sd": sd, "values": values}


def report(args: argparse.Namespace, record: Any, folder: Path) -> int:
    final, metric = summary(record), record.metrics[0]
    clocks = {
        name: round(float(record[name].isel(record=-1).mean()))
        for name in ("ticks", "phases", "updates")
    }
    times = {name: round(record.attrs[name], 3) for name in ("seconds", "metric_seconds")}
    lost = int((record["diverged_at"] >= 0).sum())
    if lost:
        say(f"{lost} of {args.seeds} seeds diverged: try a smaller --lr.")
    spread = "" if final["sd"] is None else f" +- {final['sd']:.4g}"
    mean = "diverged" if final["mean"] is None else f"{final['mean']:.6g}{spread}"
    say(
        f"{metric} {mean} after {clocks['phases']:,} phases in {times['seconds']:.1f} s "
        f"({record.attrs['engine']} engine); see {folder}"
    )
    if args.json:
        result = {
            "method": args.method,
            "rule": args.rule,
            "metric": metric,
            "final": final,
            **clocks,
            **times,
        }
        show(result | {"engine": record.attrs["engine"], "out": folder})
    if record.attrs["interrupted"]:
        say(f"interrupted; what was recorded is kept: go on with --resume --out {folder}")
        return 130
    return 0
