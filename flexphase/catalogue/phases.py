"""The phases that `--select`, `--duration` and `--recorded` name, and stimuli that are held."""

import argparse
from typing import TYPE_CHECKING, Any

from .arguments import legible
from .entries import PhaseEntry
from .rules import RULES, legend

if TYPE_CHECKING:
    from ..rules import Rule


def alternating(args: argparse.Namespace) -> Any:
    from ..phases import Alternating

    return Alternating()


def bernoulli(args: argparse.Namespace) -> Any:
    from ..phases import Bernoulli

    return Bernoulli(args.b)


def markov(args: argparse.Namespace) -> Any:
    from ..phases import Markov

    return Markov(*args.stay)


def pairs(args: argparse.Namespace) -> Any:
    from ..phases import Pairs

    return Pairs()


def homeostatic(args: argparse.Namespace) -> Any:
    from ..phases import Homeostatic

    return Homeostatic(args.b, KAPPA if args.kappa is None else args.kappa)


def blocks(args: argparse.Namespace) -> Any:
    from ..phases import Blocks

    return Blocks(*args.block)


def fixed(args: argparse.Namespace) -> Any:
    from ..phases import Fixed

    return Fixed(args.length)


def geometric(args: argparse.Namespace) -> Any:
    from ..phases import Geometric

    return Geometric(args.length)


def gamma(args: argparse.Namespace) -> Any:
    from ..phases import Gamma

    return spread(Gamma, args)


def lognormal(args: argparse.Namespace) -> Any:
    from ..phases import LogNormal

    return spread(LogNormal, args)


def weibull(args: argparse.Namespace) -> Any:
    from ..phases import Weibull

    return spread(Weibull, args)


def spread(law: Any, args: argparse.Namespace) -> Any:
    """A law of mean and cv; phases of one tick cannot differ."""
    return law(args.length, cv_of(args)) if args.length > 1 else fixed(args)


def matched(args: argparse.Namespace) -> Any:
    from ..phases import Geometric, Matched

    return Matched(Geometric(args.length))


KAPPA, CV = 5.0, 1.0  # where nothing is said
SELECTIONS = {
    entry.name: entry
    for entry in (
        PhaseEntry(name="alternating", label="alternating", build=alternating),
        PhaseEntry(name="bernoulli", label="b = {b:g}", build=bernoulli, takes=("b",)),
        PhaseEntry(
            name="markov", label="Markov {stay}", build=markov, takes=("stay",), needs="stay"
        ),
        PhaseEntry(name="pairs", label="pairs", build=pairs),
        PhaseEntry(
            name="homeostatic",
            label="homeostatic {kappa}, b = {b:g}",
            build=homeostatic,
            takes=("b", "kappa"),
        ),
        PhaseEntry(
            name="blocks", label="blocks {block}", build=blocks, takes=("block",), needs="block"
        ),
    )
}
DURATIONS = {
    entry.name: entry
    for entry in (
        PhaseEntry(name="fixed", label="T = {length:g}", build=fixed),
        PhaseEntry(name="geometric", label="geometric T, mean {length:g}", build=geometric),
        PhaseEntry(name="gamma", label="gamma T, mean {length:g}", build=gamma, takes=("cv",)),
        PhaseEntry(
            name="lognormal", label="lognormal T, mean {length:g}", build=lognormal, takes=("cv",)
        ),
        PhaseEntry(
            name="weibull", label="Weibull T, mean {length:g}", build=weibull, takes=("cv",)
        ),
        PhaseEntry(name="matched", label="matched T, mean {length:g}", build=matched),
    )
}
#: Options, and how they are written.
FORMS = {
    "stay": "--stay P_PLUS P_MINUS",
    "kappa": "--kappa K",
    "block": "--block N_PLUS N_MINUS",
    "cv": "--cv C",
    "rate": "--rate TICKS_PER_SECOND",
    "b": "--b B",
}


def cv_of(args: argparse.Namespace) -> float:
    return CV if args.cv is None else args.cv


def given(args: argparse.Namespace, name: str) -> Any:
    """An option of phases, None where it was not given or is not known here."""
    return vars(args).get(name)


def says_b(args: argparse.Namespace) -> bool:
    """Is there another b than the usual one?"""
    return args.b != 0.5


def composed(args: argparse.Namespace) -> bool:
    """Do the words say which phases, so that --rule names the estimator alone?"""
    return any(given(args, name) is not None for name in ("select", "duration", "recorded"))


def entries(args: argparse.Namespace) -> tuple[PhaseEntry, PhaseEntry]:
    """The selection and the duration that are named, or go with the rule."""
    usual = "alternating" if RULES[args.rule].update == "pair" else "bernoulli"
    return SELECTIONS[given(args, "select") or usual], DURATIONS[given(args, "duration") or "fixed"]


def check_words(args: argparse.Namespace) -> None:
    """Every word must have an effect."""
    own = [name for name in FORMS if name != "b" and given(args, name) is not None]
    b = ["b"] if says_b(args) else []
    if not composed(args):
        if b and not RULES[args.rule].uses_b:
            raise ValueError(
                f"--rule {args.rule} takes a positive and a negative phase in turn, so leave out "
                f"--b; it is for {', '.join(name for name, r in RULES.items() if r.uses_b)}."
            )
        if own:
            raise ValueError(
                f"{FORMS[own[0]].split()[0]} says more about phases that --select, --duration or "
                "--recorded name; give one of these too."
            )
        return
    if given(args, "recorded") is not None:
        said = [name for name in ("select", "duration") if given(args, name) is not None]
        other = [name for name in (*said, *own, *b) if name != "rate"]
        if other:
            raise ValueError(
                f"--recorded tells all of the phases; leave out --{other[0]}, or the record."
            )
    else:
        parts = entries(args)
        takes = {name for part in parts for name in part.takes}
        for name in (*own, *b):
            if name not in takes:
                names = ", ".join(_takers(name)) or "--recorded"
                raise ValueError(f"{FORMS[name].split()[0]} is for {names}.")
        for part in parts:
            if part.needs and given(args, part.needs) is None:
                raise ValueError(f"--select {part.name} needs {FORMS[part.needs]}.")
    if RULES[args.rule].random_length:
        raise ValueError(
            f"--rule {args.rule} names its phases itself; with --select, --duration or --recorded "
            "give --rule aol."
        )


def _takers(name: str) -> list[str]:
    selections = [f"--select {e.name}" for e in SELECTIONS.values() if name in e.takes]
    return selections + [f"--duration {e.name}" for e in DURATIONS.values() if name in e.takes]


def process_of(args: argparse.Namespace) -> Any:
    """The phases that the words compose."""
    from ..phases import Phases, Recorded

    if given(args, "recorded") is not None:
        return Recorded(args.recorded, rate=1.0 if args.rate is None else args.rate)
    selection, duration = entries(args)
    return Phases(selection.build(args), duration.build(args))


def rule_of(args: argparse.Namespace) -> "Rule":
    """The process and the estimator that the words name."""
    from ..rules import Rule

    check_words(args)
    if not composed(args):
        return RULES[args.rule].build(args)
    plain = argparse.Namespace(b=0.5, length=1)
    return Rule(process_of(args), RULES[args.rule].build(plain).estimator)


def words_of(args: argparse.Namespace) -> str:
    """The phases in words, for titles: "Markov 0.9 0.8, gamma T, mean 50, cv 0.5"."""
    if given(args, "recorded") is not None:
        return f"phases of {legible(args.recorded)}"
    selection, duration = entries(args)
    said = {name: _numbers(given(args, name)) for name in ("stay", "block")}
    kappa = KAPPA if given(args, "kappa") is None else args.kappa
    text = f"{selection.label}, {duration.label}".format(
        b=args.b, length=args.length, kappa=f"{kappa:g}", **said
    )
    return f"{text}, cv {cv_of(args):g}" if "cv" in duration.takes else text


def _numbers(values: Any) -> str:
    return " ".join(f"{value:g}" for value in values or ())


def label_of(args: argparse.Namespace) -> str:
    """What a legend calls the rule with its phases."""
    if not composed(args):
        return legend(args)
    name = RULES[args.rule].label.partition("{")[0].rstrip("-")
    return f"{name}, {words_of(args)}"


def held(args: argparse.Namespace, source: Any) -> Any:
    """The source, with a clock of its own if --hold says so."""
    from ..data import Held

    return source if given(args, "hold") is None else Held(source, ticks=args.hold)
