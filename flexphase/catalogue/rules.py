"""The learning rules that `--rule` names."""

import argparse

from .entries import RuleEntry

ENTRIES = (
    RuleEntry(
        name="cd",
        words="both terms in turn",
        label="CD-{length}",
        update="pair",
        uses_b=False,
    ),
    RuleEntry(
        name="two-term",
        words="both terms in turn",
        label="two-term{T}",
        update="pair",
        uses_b=False,
    ),
    RuleEntry(
        name="isd",
        words="one random phase",
        label="ISD{T}{b}",
        update="phase",
        uses_b=True,
    ),
    RuleEntry(
        name="aol",
        words="always on",
        label="AoL{T}{b}",
        update="tick",
        uses_b=True,
    ),
    RuleEntry(
        name="aol-random",
        words="always on",
        label="AoL random T{T}{b}",
        update="tick",
        uses_b=True,
        random_length=True,
    ),
)
RULES = {entry.name: entry for entry in ENTRIES}


def legend(args: argparse.Namespace) -> str:
    """What a legend calls the rule of these options: "AoL, T = 100, b = 0.5"."""
    rule, length = RULES[args.rule], f"{args.length:g}"
    mean = "mean " if rule.random_length else ""
    T = f", {mean}T = {length}" if args.length > 1 else ""
    return rule.label.format(length=length, T=T, b=f", b = {args.b:g}")
