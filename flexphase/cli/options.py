"""Groups of options that several commands share, with choices, defaults and help texts from the
catalogue.
"""

import argparse
from itertools import groupby
from typing import Any, NoReturn

from ..catalogue import METHODS, RULES, MethodEntry, datasets, devices
from ..catalogue.arguments import (
    count,
    fraction_or_none,
    from_zero,
    not_empty,
    positive,
    probability,
    seed,
    share,
)
from ..catalogue.common import OPTIMISERS
from ..catalogue.phases import CV, DURATIONS, KAPPA, SELECTIONS

ENGINES = ("auto", "jax", "native")


def rules_where(**fields: object) -> list[str]:
    """The names of the rules whose entries have these values."""
    return [
        name
        for name, rule in RULES.items()
        if all(getattr(rule, field) == value for field, value in fields.items())
    ]


def data_and_model(p: argparse.ArgumentParser, method: MethodEntry) -> None:
    """`--data`, `--side` and the method's own options."""
    group = p.add_argument_group("data and model")
    group.add_argument("--data", default=method.data, help=datasets.known_words())
    group.add_argument(
        "--side",
        type=count,
        help="side of Bars and Stripes, where the data are just bas (default: 4)",
    )
    method.options(group)


def figure_out(p: Any, words: str) -> None:
    """`--out`, `--force` and `--json` of a command that writes one figure."""
    p.add_argument("--out", type=not_empty, metavar="FILE", help=words)
    p.add_argument("--force", action="store_true", help="replace --out if it exists")
    json_out(p)


def json_out(p: Any) -> None:
    """`--json`."""
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def phases(p: argparse.ArgumentParser, rule: str, length: float) -> None:
    """`--rule`, b and the length of its phases, and phases of one's own."""
    kinds = groupby(RULES.values(), key=lambda rule: rule.words)
    words = ", ".join(f"{text} ({', '.join(r.name for r in rules)})" for text, rules in kinds)
    group = p.add_argument_group("learning rule")
    group.add_argument("--rule", choices=tuple(RULES), default=rule, help=words)
    group.add_argument(
        "--b",
        type=probability,
        default=0.5,
        help=f"probability of a positive phase ({', '.join(rules_where(uses_b=True))})",
    )
    group.add_argument(
        "--length",
        type=positive,
        default=length,
        metavar="T",
        help="ticks of a phase; their mean where they are random",
    )
    own_phases(p)


def own_phases(p: argparse.ArgumentParser) -> None:
    """`--select`, `--duration` or `--recorded`, with the numbers that they take, and `--hold`."""
    group = p.add_argument_group(
        "phases of your own", "With one of these the rule names the estimator alone."
    )
    selection(group)
    duration(group)
    group.add_argument(
        "--recorded",
        type=not_empty,
        metavar="FILE",
        help="phases from a table with onset, duration or offset, and type (.csv, .tsv, .nwb)",
    )
    group.add_argument(
        "--rate",
        type=positive,
        metavar="TICKS_PER_SECOND",
        help="of the record (default: 1)",
    )
    group.add_argument(
        "--hold",
        type=count,
        metavar="N",
        help="ticks for which a stimulus is held, whatever the phases do (default: the source "
        "decides when a phase begins: rows of data change in positive phases only)",
    )


def selection(group: Any) -> None:
    """`--select` and its numbers."""
    group.add_argument(
        "--select", choices=tuple(SELECTIONS), help="how the sign of a phase is chosen"
    )
    group.add_argument(
        "--stay",
        type=share,
        nargs=2,
        metavar=("P_PLUS", "P_MINUS"),
        help="probability that a positive, a negative phase is followed by another one (markov)",
    )
    group.add_argument(
        "--kappa",
        type=from_zero,
        metavar="K",
        help="how strongly an imbalance of the signs is corrected, from 0 on (homeostatic; "
        f"default: {KAPPA:g})",
    )
    group.add_argument(
        "--block",
        type=count,
        nargs=2,
        metavar=("N_PLUS", "N_MINUS"),
        help="positive, negative phases in a row (blocks)",
    )


def duration(group: Any) -> None:
    """`--duration` and its number."""
    group.add_argument("--duration", choices=tuple(DURATIONS), help="the law of phase lengths")
    group.add_argument(
        "--cv",
        type=positive,
        metavar="C",
        help="standard deviation of the lengths over their mean (gamma, lognormal, weibull; "
        f"default: {CV:g})",
    )


def learning_rule(p: argparse.ArgumentParser, method: MethodEntry) -> None:
    """`--rule` with its phases, and the numbers that go with it."""
    phases(p, method.rule, method.length)
    group = p.add_argument_group("learning")
    group.add_argument(
        "--lr",
        type=positive,
        default=method.lr,
        metavar="ETA",
        help="learning rate; per phase for " + " and ".join(rules_where(update="tick")),
    )
    group.add_argument(
        "--batch",
        type=count,
        default=method.batch,
        metavar="N",
        help="stimuli at a time: N copies of the network share their synapses and their phase",
    )
    group.add_argument(
        "--optimiser",
        choices=OPTIMISERS,
        default=method.optimiser,
        help="what takes the steps",
    )
    group.add_argument("--device", type=devices.words, metavar="WORDS", help=devices.HELP)


def length(group: argparse._ArgumentGroup, method: MethodEntry) -> None:
    """How long a run is, and how its result is read."""
    budget = group.add_mutually_exclusive_group()
    budget.add_argument(
        "--phases",
        type=count,
        metavar="N",
        help=f"phases to train for (default: {method.phases})",
    )
    pair, tick = (" and ".join(rules_where(update=update)) for update in ("pair", "tick"))
    budget.add_argument(
        "--updates",
        type=count,
        metavar="N",
        help=f"parameter updates to train for: 2 phases each for {pair}, a tick for {tick}",
    )
    budget.add_argument("--ticks", type=count, metavar="N", help="network time steps to train for")
    group.add_argument(
        "--average",
        type=fraction_or_none,
        default=method.average,
        metavar="FRACTION",
        help="slow weights: average the parameters from this fraction of training on, such as "
        "0.5; none for no average",
    )


def training(p: argparse.ArgumentParser, method: MethodEntry) -> None:
    """How long, how often, how many and on which engine."""
    group = p.add_argument_group("training")
    length(group, method)
    group.add_argument(
        "--seeds",
        type=count,
        default=method.seeds,
        metavar="S",
        help="number of seeds, trained side by side",
    )
    group.add_argument("--seed", type=seed, default=0, metavar="BASE", help="the first seed")
    group.add_argument(
        "--records", type=count, default=method.records, help="how often the metrics are taken"
    )
    group.add_argument(
        "--engine", choices=ENGINES, default="auto", help="auto takes the fastest that fits"
    )
    group.add_argument(
        "--threads", type=count, help="threads of the native engine (default: all cores)"
    )


class Options(argparse.ArgumentParser):
    """The options of `flexphase train NAME` that say what is trained; errors are ValueErrors."""

    def __init__(self, name: str):
        super().__init__(allow_abbrev=False, add_help=False)
        for group in (data_and_model, learning_rule, training):
            group(self, METHODS[name])
        self.set_defaults(method=name)

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def options_of(name: str, given: dict[str, Any] | None = None) -> argparse.Namespace:
    """The options of `flexphase train NAME` with these values, which may come from a file: they are
    parsed and checked like the words of a command line. An option that is not given, because an
    earlier version did not know it, has its default.
    """
    p = Options(name)
    values = {key: value for key, value in (given or {}).items() if key != "method"}
    known = {action.dest: action for action in p._actions}
    if strange := values.keys() - known.keys():
        raise ValueError(f"there is no option {min(strange)}")
    return p.parse_args([word for key in values for word in words(known[key], values[key])])


def words(action: argparse.Action, value: Any) -> list[str]:
    """What one writes on the command line so that an option has this value."""
    name, *off = action.option_strings  # --no-NAME, where there is one
    if repr(value) == repr(action.default):
        return []
    if action.nargs == 0 and not isinstance(value, bool):
        raise ValueError(f"{name} is yes or no, not {value!r}")
    if action.nargs == 0:
        return [name] if value else off
    if action.nargs is None:
        return [f"{name}={'none' if value is None else value}"]
    return [name, *map(str, value if isinstance(value, list) else [value])]
