"""flexphase plot RUN...: curves of runs, as a figure and a table."""

import argparse
from pathlib import Path
from typing import Any

from ..catalogue.arguments import not_empty
from ..drawing import verbatim
from . import options
from .common import say, show
from .records import figure_file, load, named, picture_of, unused


def add(subparsers: Any) -> None:
    text = "Draw the curves of runs in one figure, over seeds, with a band that the legend names."
    p = subparsers.add_parser("plot", help="curves of runs", description=text)
    p.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run, or its record.nc")
    p.add_argument(
        "--x",
        choices=("ticks", "phases", "updates"),
        default="phases",
        help="the clock on the x-axis",
    )
    p.add_argument(
        "--metric", metavar="NAME", help="what to draw (default: the first metric of the records)"
    )
    p.add_argument(
        "--band",
        choices=("sd", "sem", "quantiles"),
        default="sd",
        help="the mean with its standard deviation or standard error, or the median with quartiles",
    )
    p.add_argument("--log", choices=("x", "y", "both"), help="axes with a logarithmic scale")
    p.add_argument(
        "--averaged", action="store_true", help="draw the slow weights instead of the last iterate"
    )
    p.add_argument(
        "--fields",
        action="store_true",
        help="draw the weights of each hidden unit of the RBM instead",
    )
    p.add_argument(
        "--out",
        type=not_empty,
        metavar="FILE",
        help="the figure, .png, .svg or .pdf (default: figure.png)",
    )
    p.add_argument(
        "--table",
        type=not_empty,
        metavar="FILE",
        nargs="?",
        const=Path(),
        help="final mean, sd and median of each run, as .csv (without FILE: beside the figure)",
    )
    p.add_argument("--force", action="store_true", help="replace files that exist")
    options.json_out(p)
    p.set_defaults(func=run)


def run(args: argparse.Namespace) -> None:
    from .. import plot

    beside = [".csv"] if args.table == Path() else []
    figure = figure_file(args.out or "figure.png", args.force, args.out is not None, *beside)
    table = None if args.table is None else table_file(args.table, figure, args.force)
    kept = [load(path) for path in args.runs]
    names = named(kept)
    if args.fields:
        if len(kept) > 1:
            raise ValueError("--fields draws one run; give one.")
        record = kept[0].record
        shape = picture_of(record)
        ax = plot.receptive_fields(record, shape=shape, averaged=args.averaged)
    else:
        records = {verbatim(n): k.record for n, k in zip(names, kept, strict=True)}
        ax = plot.curves(
            records, args.metric, args.x, band=args.band, log=args.log, averaged=args.averaged
        )
    rows = [
        row
        for name, k in zip(names, kept, strict=True)
        for row in finals(name, k.record, args.metric, args.averaged)
    ]
    plot.save(ax, figure, over=args.force)
    if table:
        write_table(table, rows, over=args.force)
    say(f"{figure}" + (f" and {table}" if table else ""))
    if args.json:
        show({"out": figure, "table": table, "x": args.x, "runs": rows})


def table_file(given: str | Path, figure: Path, force: bool) -> Path:
    """The table to write: the file that --table names, or one beside the figure."""
    table = unused(
        figure.with_suffix(".csv") if given == Path() else given, force, option="--table"
    )
    if table == figure:
        raise ValueError(
            f"--out and --table both name {figure}; give the table a name of its own, such as "
            f"{figure.with_suffix('.csv')}."
        )
    if table.suffix.lower() != ".csv":
        raise ValueError(f"a table is written as .csv; give --table {table.with_suffix('.csv')}.")
    return table


def finals(
    name: str, record: Any, metric: str | None, averaged: bool = False
) -> list[dict[str, Any]]:
    """A row for each setting of a record: the final mean, sd and median over the seeds that did not
    diverge, and the three clocks.
    """
    from .. import plot
    from ..record import Record

    metric, rows = record.metric_name(metric), []
    for setting, ds in plot.settings(record):
        final = Record(ds).final(metric, averaged)
        mean, sd = plot.over_seeds(final)
        median, _, _ = plot.with_band(final, "quantiles")
        clocks = {
            clock: round(float(ds[clock].isel(record=-1).mean()))
            for clock in ("ticks", "phases", "updates")
        }
        row = {
            "run": name,
            **setting,
            "metric": metric,
            "mean": float(mean),
            "sd": float(sd),
            "median": float(median),
            "seeds": ds.sizes["seed"],
        }
        rows.append(
            row
            | clocks
            | {"diverged": int((ds["diverged_at"] >= 0).sum()), "seconds": record.attrs["seconds"]}
        )
    return rows


def write_table(path: Path, rows: list[dict[str, Any]], over: bool) -> None:
    """The rows as .csv, six digits each."""
    import pandas as pd

    from ..files import replacing

    with replacing(path, over=over) as part:
        pd.DataFrame(rows).to_csv(part, index=False, float_format="%.6g")
