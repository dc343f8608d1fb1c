"""Last iterate against slow weights on labelled MNIST: test error, and what samples show.

The machine of the appendix under every rule of `slow`, for the same network time.
"""

from typing import Any

import numpy as np
import xarray as xr

from ..data.mnist import fetch_mnist
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel
from ..sweep import Sweep, cells, learning_rates, matching
from .appendix import AVERAGE, LENGTH, UNTRAINED, pictures_panel, samples
from .claims import READ, Seeds, is_worse, matters_less, mean_sd
from .judge import accuracy, shows_label
from .mnist import ERROR, EXACT_ERROR, HIDDEN, MACHINE, VISIBLE
from .processes import medians
from .seeds import wants_larger
from .slow import Ends, against_eta, at_best, better_at_best

TITLE = "Slow weights: labelled MNIST, errors and samples of every rule"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
LOW, HIGH = 0.00125, 0.02
RULES = {f"CD-{LENGTH}": "cd", "ISD": "isd", "AoL": "aol", "AoL random T": "aol-random"}
PICTURED = ["AoL", "AoL random T"]
SIZES = {
    "quick": {"phases": 1_000, "rates": 2, "seeds": 2, "shown": 500},
    "full": {"phases": 20_000, "rates": 5, "seeds": 4, "shown": 1000},
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Rules x rates, phases of the same mean length."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    shared = {"length": LENGTH, "shown": size["shown"], "ticks": LENGTH * size["phases"]}
    grid = cells(name=list(RULES.values()), eta=rates, **shared)
    how: dict[str, Any] = {"records": 4, "average": AVERAGE, "lanes": 4, "cost": 100}
    how |= {"keep_params": True}
    return {"slow": Sweep("slow-mnist", MACHINE[0], EXACT_ERROR, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against eta, how many samples show their label, and some of the samples."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    runs = {name: matching(data["slow"], name=rule).sortby("eta") for name, rule in RULES.items()}
    ends = {name: {how: errors(run, READ[how]) for how in READ} for name, run in runs.items()}
    drawn = {name: {how: pictures(runs[name], ends, name, how) for how in READ} for name in RULES}
    shown = {
        name: {how: np.array([100 * shows_label(one) for one in each]) for how, each in by.items()}
        for name, by in drawn.items()
    }
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, no visible bias, phases of mean length {LENGTH}, b = 0.5, "
        f"{size['phases']} phases (CD: half as many updates), {size['seeds']} seeds; exact errors "
        "on all test images; the average is over the second half.",
        f"Best eta and test error in % there: {'; '.join(at_best(ends, rates))}.",
        "Samples at the eta of the least error, of each seed: 20 of each class, as in the "
        f"appendix, read by a classifier that reads {accuracy():.0%} of the real test images. "
        f"They show their label, %: {'; '.join(in_words(name, by) for name, by in shown.items())}.",
    ]
    panels = [
        against_eta(ends, rates, "test error (%)"),
        labels_panel(shown),
        *(
            pictures_panel(f"{name}, {how}", drawn[name][how][0])
            for name in PICTURED
            for how in READ
        ),
    ]
    return Findings(panels, claims(ends, shown, rates), remarks)


def errors(runs: xr.Dataset, averaged: bool) -> np.ndarray:
    """(rates, seeds): test error in per cent; a machine that diverged counts as untrained."""
    return 100 * np.nan_to_num(Record(runs).final(ERROR, averaged).values, nan=UNTRAINED)


def pictures(runs: xr.Dataset, ends: Ends, name: str, how: str) -> list[np.ndarray]:
    """Samples of every seed, at the rate where this rule, read this way, errs least."""
    best = runs.isel(cell=int(ends[name][how].mean(1).argmin()))
    return [samples(best, READ[how], seed) for seed in range(best.sizes["seed"])]


def in_words(name: str, shown: dict[str, np.ndarray]) -> str:
    return f"{name} {', '.join(f'{how} {mean_sd(values)}' for how, values in shown.items())}"


def labels_panel(shown: Ends) -> Panel:
    """Share of the samples that show their label, rule by rule."""
    x = np.arange(len(shown))
    series = [
        medians(
            how,
            x + (0.1 if averaged else -0.1),
            [by[how] for by in shown.values()],
            kind="dots",
            colour=int(averaged),
        )
        for how, averaged in READ.items()
    ]
    title = "Samples that show their label"
    return Panel(title, "rule", "share (%)", series, names=list(shown), ylim=(0, 100))


def claims(ends: Ends, shown: Ends, rates: list[float]) -> list[Claim]:
    """Written before the first run; each could come out otherwise."""
    found = []
    for name, each in ends.items():
        larger = f"{name}: slow weights want a larger eta than the last iterate."
        found += [
            wants_larger(larger, rates, each["slow weights"], each["last iterate"]),
            better_at_best(name, each),
            more_labels(name, shown[name]),
        ]
    best = {how: [by[how][by[how].mean(1).argmin()] for by in ends.values()] for how in READ}
    words = "With slow weights the rules differ less, each at its own best eta."
    return [*found, matters_less(words, "rules", best["last iterate"], best["slow weights"])]


def more_labels(name: str, shown: dict[str, np.ndarray]) -> Claim:
    """Do more samples of the slow weights show their label?"""
    last, slow = (Seeds(how, values) for how, values in shown.items())
    words = f"{name}: more samples of the slow weights show their label (%)."
    return is_worse(words, slow, last)
