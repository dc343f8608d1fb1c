"""Types of arguments for argparse: a text becomes a number of the right kind, or one sentence says
what is wrong with it.
"""

import argparse
import difflib
import math
import os
from collections.abc import Iterable


def not_empty(text: str) -> str:
    """A word that is not empty; an unset variable of the shell gives an empty one."""
    if not text:
        raise argparse.ArgumentTypeError("an empty word names nothing; give a name or leave it out")
    return text


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    if (value := number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def from_zero(text: str) -> float:
    """A number that is not negative."""
    if (value := number(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return value


def fraction(text: str) -> float:
    """A number from 0 up to, but not including, 1."""
    if not 0 <= (value := number(text)) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be at least 0 and below 1; 0.5 is the second half of training"
        )
    return value


def fraction_or_none(text: str) -> float | None:
    """Such a number, or the word none."""
    return None if text == "none" else fraction(text)


def share(text: str) -> float:
    """A probability that may be 0, and is below 1."""
    if not 0 <= (value := number(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be at least 0 and below 1")
    return value


def probability(text: str) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < (value := number(text)) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} must lie strictly between 0 and 1, or one of the two terms is never seen; "
            "try 0.5"
        )
    return value


def whole(text: str) -> int:
    """A whole number from 0 up; 1e5 is one too."""
    value = number(text)
    if value < 0 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text) if text.strip().isdecimal() else int(value)


def seed(text: str) -> int:
    """A whole number that JAX takes as a seed."""
    if (value := whole(text)) >= 2**31:
        raise argparse.ArgumentTypeError(f"a seed must lie between 0 and 2^31 - 1, not {text!r}")
    return value


def count(text: str) -> int:
    """A whole number from 1 up."""
    if (value := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return value


def units(text: str) -> int:
    """How many units a layer has; the weights between two such layers can still be counted."""
    if (value := count(text)) > 2**30:
        raise argparse.ArgumentTypeError(f"{text!r} is more units than any memory holds")
    return value


def legible(name: object) -> str:
    """The name of a file as text; bytes of it that are no UTF-8 become a question mark."""
    return os.fsencode(str(name)).decode("utf-8", "replace")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean WORD?" with the nearest of the known words, or nothing if none is near.
    The dashes of an option do not count: --colour is not near to --lr.
    """
    bare = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.lstrip("-"), list(bare), n=1)
    return f"; did you mean {bare[near[0]]}?" if near else ""
