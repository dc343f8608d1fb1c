"""The experiments: one description each here, one file each beside it.

Nothing heavy is imported here: the command line makes its choices and its help from these tables.

A file of an experiment has
    TITLE           its heading in the report
    SIZES           {"quick": settings, "full": settings}
    DATA            what fetches its data, called with `say`; None if nothing has to be fetched
    PLAIN           the plain loop its training is timed against (a key of `report.machine.PLAIN`,
                    then the sizes of the network), or None; only where there are sweeps
    sweeps(size)    {name: Sweep}, what is trained
    show(size, data)    Findings, from {name: dataset} of those sweeps
"""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class Experiment(NamedTuple):
    """A word of the command line and what it stands for."""

    name: str
    title: str  # a few words, for the help
    modules: tuple[str, ...]  # files of this package, in the order of the report


#: The figures of the paper.
FIGURES = {
    experiment.name: experiment
    for experiment in (
        Experiment("fig1", "phase dynamics of a real run", ("fig1",)),
        Experiment(
            "fig2", "the rules compared, on Bars and Stripes and MNIST", ("fig2_bas", "fig2_mnist")
        ),
        Experiment("fig3", "performance and variance against b", ("fig3",)),
        Experiment("appendix", "labelled MNIST: error against b, samples", ("appendix",)),
    )
}

#: Experiments beyond the paper.
STUDIES = {
    experiment.name: experiment
    for experiment in (
        Experiment("processes", "which order of phases can learning live with?", ("processes",)),
        Experiment(
            "slow",
            "last iterate against slow weights, for every rule and eta",
            ("slow", "slow_mnist"),
        ),
        Experiment("family", "every method under every rule: what fails, and why", ("family",)),
        Experiment("separation", "phases in blocks: where it hurts, what mends", ("separation",)),
        Experiment(
            "equilibrium", "local rules for equilibrium propagation on MNIST", ("equilibrium",)
        ),
        Experiment(
            "hardware",
            "bits, range, noise and asymmetry of devices that each rule survives",
            ("hardware", "hardware_mnist", "hardware_ep"),
        ),
        Experiment("b", "the effect of b, with power to decide", ("b", "b_own", "b_few")),
        Experiment("phases", "which statistics of the phases matter?", ("phases",)),
        Experiment("locality", "what is it worth to remember?", ("locality",)),
        Experiment("b-mnist", "the effect of b on labelled MNIST", ("b_mnist",)),
    )
}


def figure(module: str) -> ModuleType:
    """The file of an experiment: `figure("fig2_bas").SIZES`. This import is slow."""
    return import_module(f"{__name__}.{module}")


def figures_in(word: str) -> list[str]:
    """The files that a word of the command line stands for: `fig2` -> fig2_bas, fig2_mnist.

    `all` stands for all figures of the paper, `studies` for all studies.
    """
    if word in ("all", "studies"):
        known = FIGURES if word == "all" else STUDIES
        return [module for experiment in known.values() for module in experiment.modules]
    known = FIGURES | STUDIES
    if word not in known:
        raise ValueError(f"there is no figure {word!r}; choose from {', '.join(known)} or all.")
    return list(known[word].modules)
