"""flexphase theory variance|lengths|bias|claims: the paper's lemmas and theorems as figures and as
a table of measurements.
"""

import argparse
import csv
import io
import time
from pathlib import Path
from typing import Any

from ..catalogue.arguments import not_empty
from ..files import write
from .common import fresh_folder, run_folder, say, show
from .options import json_out
from .program import draw_plainly

WORDS = {
    "variance": "variance of the two-term and the ISD estimator against b (Fig. 3B), and as "
    "measured on small learners",
    "lengths": "moments of random phase lengths",
    "bias": "bias of always-on learning on small Markov chains (Theorem 1), exact and simulated",
    "claims": "every proposition, lemma and theorem: predicted, measured, uncertainty, pass or "
    "fail; takes about two minutes",
}


def add(subparsers: Any) -> None:
    text = "The theory as measurements: figures (.png and .svg) and numbers go to a folder."
    parts = subparsers.add_parser(
        "theory", help="variance, bias and a table of the paper's claims", description=text
    ).add_subparsers(dest="part", metavar="PART", required=True)
    for name, words in WORDS.items():
        p = parts.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        p.add_argument(
            "--out",
            type=not_empty,
            metavar="DIR",
            help=f"folder for the results, new or empty (default: runs/theory-{name}-TIME)",
        )
        json_out(p)
        p.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    draw_plainly()
    folder = fresh_folder(args.out or run_folder(f"theory-{args.part}"))
    parts = {"variance": variance, "lengths": lengths, "bias": bias, "claims": claims}
    result = parts[args.part](folder)
    say(f"see {folder}")
    if args.json:
        show({"part": args.part, "out": folder} | result)
    return 0


def variance(folder: Path) -> dict[str, Any]:
    """Fig. 3B, and traces against b of small learners; a row of moments for each learner."""
    import numpy as np

    from ..theory import figures
    from ..theory.claims import B
    from ..theory.moments import moments
    from ..theory.streams import stream
    from ..theory.variance import best_b, saving, trace_two_term
    from ..theory.zoo import learners

    curves, rows = {}, []
    for learner in learners():
        say(f"measuring {learner.name}")
        m = moments(learner.two_term(), learner.params, phases=500, lanes=512)
        traces = np.array(
            [stream(learner.isd(b), learner.params, seed=i).trace() for i, b in enumerate(B)]
        )
        curves[learner.name] = (m, B, traces[:, 0], traces[:, 1], float(trace_two_term(m)))
        named = {
            f"{k}{end}": float(v)
            for end, of in (("", m), ("_se", m.se))
            for k, v in zip(m._fields[:6], of[:6], strict=True)
        }
        best = {
            "best_b": float(best_b(m)),
            "best_b_se": float(m.error(best_b)),
            "saving_over_half": float(saving(m)),
        }
        rows.append(
            {"learner": learner.name, **named, **best, "trace_two_term": float(trace_two_term(m))}
        )
    axes = figures.panels(2)
    figures.fig_3b(axes[0])
    figures.measured_traces(axes[1], curves)
    return keep(folder, "variance", axes[0], rows)


def lengths(folder: Path) -> dict[str, Any]:
    """Moments of random lengths and the share of short phases; a row for each formula."""
    from ..theory import figures
    from ..theory.claims import length_claims

    axes = figures.panels(2)
    figures.length_moments(axes[0])
    figures.short_phases(axes[1])
    return keep(folder, "lengths", axes[0], [claim._asdict() for claim in length_claims()])


def bias(folder: Path) -> dict[str, Any]:
    """Transient and feedback bias against tau; a row for each claim about them."""
    from ..theory import figures
    from ..theory.claims_bias import bias_claims
    from ..theory.zoo import walks

    axes = figures.panels(2)
    figures.bias_curves(axes, walks())
    return keep(folder, "bias", axes[0], [claim._asdict() for claim in bias_claims()])


def claims(folder: Path) -> dict[str, Any]:
    """All claims as claims.md and as rows, without a figure; how many pass and fail."""
    from ..theory.claims import markdown, table

    began = time.perf_counter()
    say("all claims: this takes about two minutes")
    rows = table(lambda part: say(f"measuring {part} ({time.perf_counter() - began:.0f} s so far)"))
    write(folder / "claims.md", markdown(rows))
    failed = sum(not row.passed for row in rows)
    spent = time.perf_counter() - began
    say(f"{len(rows) - failed} of {len(rows)} claims pass; measured in {spent:.0f} s")
    return keep(folder, "claims", None, [row._asdict() for row in rows]) | {
        "passed": len(rows) - failed,
        "failed": failed,
    }


def keep(folder: Path, name: str, ax: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The figure as .png and .svg, the rows as .csv; the rows for --json."""
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    write(folder / f"{name}.csv", table.getvalue())
    if ax is not None:
        from .. import plot

        for kind in ("png", "svg"):
            plot.save(ax, folder / f"{name}.{kind}")
    return {"rows": rows}
