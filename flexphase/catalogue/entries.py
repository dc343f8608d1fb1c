"""What the catalogue says of a method, a rule and a dataset.

Light to import: no NumPy, no JAX. A builder or a loader imports what it needs when it is called.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from ..core import Run
    from ..rules import Rule


class Input(NamedTuple):
    """A dataset in memory: rows of pixels (or of other features), with labels and a test set where
    it has them.
    """

    name: str
    images: "np.ndarray"  # (rows, features)
    shape: tuple[int, int]  # height and width of a row as a picture
    labels: "np.ndarray | None" = None  # (rows,), whole numbers from 0
    test: "tuple[np.ndarray, np.ndarray] | None" = None  # images, labels
    grey: bool = False  # pixels in [0, 1], which binary models cut at 0.5 if nothing else is said

    @property
    def classes(self) -> int:
        """Number of classes; 0 without labels."""
        return 0 if self.labels is None else max(int(self.labels.max()) + 1, 2)


class Task(NamedTuple):
    """What `train` needs: the run, its metrics (the first one is the result), and how many of its
    visible units are labels.
    """

    run: "Run"
    metrics: dict[str, Any]
    classes: int = 0


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method as `flexphase train NAME` offers it.

    Defaults are those of the options of the same name. `options(group)` adds the method's own
    options to an argparse group, `build(args, data)` makes the task from all of them, and
    `sample(method, key, params, rows, steps, x, mask)` draws `rows` samples of the visible units
    with those in `mask` held at `x` (None where a method has no samples).
    """

    name: str
    words: str  # for "Train a ..."
    label: str  # for legends
    kind: str  # the class in flexphase.methods
    data: str
    rule: str
    length: float
    lr: float
    optimiser: str = "sgd"
    batch: int = 1
    records: int = 50
    phases: int = 20_000
    seeds: int = 1
    average: float | None = None
    higher_is_better: bool = False  # of the first metric, the result
    options: Callable[[Any], None]
    build: Callable[[argparse.Namespace, Input], Task]
    sample: Callable[..., Any] | None = None
    sweeps: int = 1000  # `steps` where the user does not say; 0 where samples take none


@dataclass(frozen=True, kw_only=True)
class RuleEntry:
    """A learning rule as `--rule NAME` offers it.

    `label` is what a legend shows: `{T}` stands for the length of a phase, `{b}` for the
    probability of a positive one. `update` says what a parameter update takes: a pair of phases,
    a phase or a tick.
    """

    name: str  # as `rules.named` knows it
    words: str  # rules with the same words stand together in the help
    label: str
    update: Literal["pair", "phase", "tick"]
    uses_b: bool
    random_length: bool = False  # --length is then the mean

    def build(self, args: argparse.Namespace) -> "Rule":
        """The process and the estimator."""
        from ..rules import named

        return named(self.name, args.b, args.length)


@dataclass(frozen=True, kw_only=True)
class PhaseEntry:
    """A selection as `--select NAME`, or a duration as `--duration NAME`, offers it.

    `label` is what a legend shows, with the options in braces. `takes` are the options that it
    uses beside --length, `needs` the one that has no default. `build(args)` makes it.
    """

    name: str
    label: str
    build: Callable[[argparse.Namespace], Any]
    takes: tuple[str, ...] = ()
    needs: str = ""


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """A dataset as `--data NAME` offers it.

    With a `detail`, NAME:DETAIL is understood too: `load` gets what follows the colon, or None.
    `fetch(say)` brings the files into the cache and returns their folder, for `flexphase data
    fetch` (None where there is nothing to fetch).
    """

    name: str
    words: str
    load: Callable[[str | None], Input]
    detail: str = ""
    grey: bool = False  # see Input.grey
    fetch: Callable[[Callable[[str], None]], Path] | None = None
