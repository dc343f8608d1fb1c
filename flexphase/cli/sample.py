"""flexphase sample RUN: what a trained machine has learned, as pictures."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from ..catalogue import METHODS, MethodEntry
from ..catalogue.arguments import count, seed, whole
from ..machine import check_memory
from . import options
from .common import say, show
from .records import Kept, figure_file, load, picture_of

HALVES = ("top", "bottom", "left", "right")


def add(subparsers: Any) -> None:
    sampled = [entry for entry in METHODS.values() if entry.sample]
    names = ", ".join(entry.name for entry in sampled)
    none = " or ".join(entry.name for entry in sampled if not entry.sweeps)
    text = (
        f"Sample a trained machine ({names}) from random starts; writes a picture, and an .npy "
        "file beside it."
    )
    p = subparsers.add_parser("sample", help="samples of a trained machine", description=text)
    p.add_argument("run", metavar="RUN", help="folder of a run, or its record.nc")
    p.add_argument(
        "--rows",
        type=count,
        default=64,
        help="how many samples; rounded up to as many of each class for --label all",
    )
    p.add_argument(
        "--steps",
        type=count,
        help=f"sweeps of Gibbs sampling (default: {MethodEntry.sweeps}); {none} takes none",
    )
    p.add_argument("--seed", type=seed, default=0, help="seed of the sampling")
    p.add_argument(
        "--lane", type=whole, default=0, help="which of the trained networks, counted from 0"
    )
    p.add_argument("--averaged", action="store_true", help="sample the slow weights of the run")
    what = p.add_mutually_exclusive_group()
    what.add_argument(
        "--label",
        metavar="K",
        help="hold the label units at class K, or at every class, a row of the picture each: all",
    )
    what.add_argument(
        "--clamp",
        choices=HALVES,
        help="hold this half of the picture at rows of the data, and complete the other",
    )
    options.figure_out(
        p, "the picture, .png, .svg or .pdf (default: samples.png in the run's folder)"
    )
    p.set_defaults(func=run)


class Trained(NamedTuple):
    """A machine rebuilt from its record."""

    entry: MethodEntry
    draw: Callable[..., Any]  # its `sample`
    method: Any
    params: Any
    shape: tuple[int, int]
    classes: int


def machine_in(method: Any) -> Any:
    """The machine inside Replicas, Tempered, Centred and Circuit."""
    from ..hardware.circuit import Circuit
    from ..methods import Centred, Tempered
    from ..replicas import Replicas

    while isinstance(method, Replicas | Tempered | Centred | Circuit):
        method = method.method
    return method


def rows_in(source: Any) -> Any:
    """The rows that the source inside Batches and Held shows."""
    from ..data import Held
    from ..replicas import Batches

    while isinstance(source, Batches | Held):
        source = source.source
    return source.stimuli


def rebuild(record: Any, lane: int, averaged: bool) -> Trained:
    """The machine of one lane, from a record that was made by the command line or in Python."""
    from ..pictures import picture_shape

    method = machine_in(record.method())
    kind = type(method).__name__
    sampled = {entry.kind: (entry, entry.sample) for entry in METHODS.values() if entry.sample}
    if kind not in sampled:
        names = " or ".join(entry.name for entry, _ in sampled.values())
        raise ValueError(f"a {kind} has no samples; give the run of a machine that has: {names}.")
    params = record.parameters(averaged, lane=lane)
    if int(record["diverged_at"].values.flat[lane]) >= 0:
        raise ValueError(f"network {lane} of this run diverged; choose another --lane.")
    classes = int(record.attrs.get("classes", 0))
    shape = picture_shape(method.visible - classes, picture_of(record))
    return Trained(*sampled[kind], method, params, shape, classes)


def steps_of(args: argparse.Namespace, entry: MethodEntry) -> int:
    """Sweeps for each sample, as they were asked for or as the method has them."""
    if args.steps and not entry.sweeps:
        raise ValueError(f"a {entry.label} is sampled at once; leave out --steps.")
    return args.steps or entry.sweeps


def held(args: argparse.Namespace, run: Kept, trained: Trained) -> tuple[Any, Any]:
    """What is clamped: values (rows, visible) and a mask of the visible units; (None, None) for
    nothing.
    """
    import numpy as np

    pixels = trained.shape[0] * trained.shape[1]
    x, mask = (
        np.zeros((args.rows, trained.method.visible), np.float32),
        np.zeros(trained.method.visible, bool),
    )
    if args.label is not None:
        words = [str(k) for k in range(trained.classes)]
        if not words or args.label not in (*words, "all"):
            known = (
                f"choose 0 to {trained.classes - 1} or all"
                if words
                else "this machine has no label units"
            )
            raise ValueError(f"there is no label {args.label!r}; {known}.")
        chosen = range(trained.classes) if args.label == "all" else [int(args.label)]
        labels = np.repeat(chosen, args.rows // len(chosen))
        x[np.arange(args.rows), pixels + labels], mask[pixels:] = 1, True
        return x, mask
    if args.clamp:
        rows = np.asarray(rows_in(run.run(args.lane).source))[:, :pixels]
        height, width = trained.shape
        down, across = np.divmod(np.arange(pixels), width)
        half = {
            "top": down < height // 2,
            "bottom": down >= height // 2,
            "left": across < width // 2,
            "right": across >= width // 2,
        }
        mask[:pixels] = half[args.clamp]
        x[:, :pixels] = rows[np.random.default_rng(args.seed).integers(len(rows), size=args.rows)]
        return x, mask
    return None, None


def run(args: argparse.Namespace) -> None:
    import jax
    import numpy as np

    from .. import plot
    from ..files import replacing

    run = load(args.run)
    named = args.out is not None
    picture = figure_file(args.out or run.folder / "samples.png", args.force, named, ".npy")
    trained = rebuild(run.record, args.lane, args.averaged)
    steps = steps_of(args, trained.entry)
    columns = None
    if args.label == "all" and trained.classes:
        columns = -(-args.rows // trained.classes)
        args.rows = columns * trained.classes
    # in single precision while they are drawn, and in double precision as a picture
    check_memory(24 * args.rows * trained.method.visible, "rows")
    x, mask = held(args, run, trained)
    key = jax.random.key(args.seed)
    rows = np.asarray(trained.draw(trained.method, key, trained.params, args.rows, steps, x, mask))
    ax = plot.pictures(rows[:, : trained.shape[0] * trained.shape[1]], trained.shape, columns)
    plot.save(ax, picture, over=args.force)
    array = picture.with_suffix(".npy")
    with replacing(array, over=args.force) as part, open(part, "wb") as file:
        whole = np.isin(rows, (0, 1)).all()
        np.save(file, rows.astype(np.uint8) if whole else rows, allow_pickle=False)
    say(f"{args.rows} samples: {picture} and {array}")
    if args.json:
        show(
            {
                "run": args.run,
                "rows": args.rows,
                "steps": steps,
                "seed": args.seed,
                "lane": args.lane,
                "out": picture,
            }
        )
