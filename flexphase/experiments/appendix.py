"""Appendix: an RBM on labelled, binarised MNIST, always-on learning, classification error against
b.
"""

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr

from ..classification import class_samples
from ..data.mnist import fetch_mnist
from ..methods.rbm import Params
from ..record import Record
from ..report.findings import Findings
from ..report.panels import Panel, curve, points
from ..sweep import Sweep, best, cells
from .claims import best_is, leans, robust
from .mnist import HIDDEN, MACHINE, VISIBLE

TITLE = "Appendix: labelled binarised MNIST, error of an RBM against b"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
ETA, LENGTH, UNTRAINED = 0.005, 200, 0.9
SIZES = {
    "quick": {
        "phases": 6_000,
        "seeds": 3,
        "bs": [0.2, 0.35, 0.5, 0.65, 0.8],
        "shown": 500,
        "records": 6,
    },
    "full": {
        "phases": 80_000,
        "seeds": 4,
        "bs": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "shown": 1000,
        "records": 20,
    },
}
ERRORS = {
    "free_energy_error": "exact, by free energy",
    "sampled_error": "from samples of the label units (the paper's)",
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    shared = {
        "eta": ETA,
        "length": LENGTH,
        "shown": size["shown"],
        "ticks": LENGTH * size["phases"],
    }
    how = {"records": size["records"], "lanes": 2, "keep_params": True, "cost": 100}
    return {
        "rbm": Sweep("appendix", *MACHINE, cells(b=size["bs"], **shared), size["seeds"], **how),
        "standard": Sweep("appendix-standard", *MACHINE, cells(**shared), 1, **how),
    }


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    bs, rbm = size["bs"], data["rbm"]
    chosen, standard = best(rbm, "free_energy_error"), data["standard"].isel(cell=0)
    final = {name: list(100 * Record(rbm).final(name).values) for name in ERRORS}
    panels = [
        Panel(
            "final error against b",
            "b, probability of a positive phase",
            "test error (%)",
            [
                points(words, bs, final[name], colour=i)
                for i, (name, words) in enumerate(ERRORS.items())
            ],
        ),
        Panel(
            "error during training, by free energy",
            "phases",
            "test error (%)",
            [
                curve(
                    f"b = {b:g}",
                    rbm.isel(cell=i),
                    "phases",
                    "free_energy_error",
                    100,
                    colour=i % 6,
                    line=i // 6,
                )
                for i, b in enumerate(bs)
            ],
        ),
        Panel(
            f"samples given the label, AoL, b = {float(chosen.b):g}",
            "",
            "",
            [],
            samples=samples(chosen),
        ),
        Panel(f"samples given the label, CD-{LENGTH}", "", "", [], samples=samples(standard)),
    ]
    exact = final["free_energy_error"]
    claims = [
        best_is(
            "The best b on MNIST is above 0.5 (error from samples).",
            "above",
            bs,
            final["sampled_error"],
        ),
        best_is("The best b on MNIST is above 0.5 (exact error).", "above", bs, exact),
        leans(
            "b above 0.5 does better on MNIST than 1 - b (exact error, %; our reading).",
            "above",
            bs,
            exact,
        ),
        robust("Robust for b from 0.2 to 0.8 (exact error, %).", bs, exact, 100 * UNTRAINED),
    ]
    return Findings(
        panels,
        claims,
        [
            f"RBM {VISIBLE} x {HIDDEN}, no visible bias, AoL with T = {LENGTH}, eta {ETA}, "
            f"{size['phases']} phases; "
            f"final errors on all test images, curves on about {size['shown']} of them.",
            "The standard rule, with as many phases, has a test error of "
            f"{100 * float(Record(standard).final('free_energy_error')[0]):.1f} %.",
            "Samples of one seed: P(pixel | h) after 1,000 Gibbs steps from random h, label units "
            "clamped. Why AoL may show the same few "
            "digits whatever the label, and classify well all the same: docs/reproduce.md.",
        ],
    )


def samples(machine: xr.Dataset) -> Any:
    """Of the first seed."""
    params = Params(**jax.tree.map(jnp.asarray, Record(machine.isel(seed=0)).params))
    return class_samples(jax.random.key(0), params)
