"""Appendix: an RBM on labelled, binarised MNIST, always-on learning, classification error against b."""

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr

from ..classification import class_samples
from ..data.mnist import fetch_mnist
from ..methods.rbm import Params
from ..record import Record
from ..report.panels import Panel, curve, points
from ..sweep import Sweep, best, cells
from . import Shown
from .claims import best_is, robust
from .mnist import HIDDEN, MACHINE, VISIBLE

TITLE = "Appendix: labelled binarised MNIST, error of an RBM against b"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
ETA, LENGTH, UNTRAINED = 0.005, 200, 0.9
SIZES = {
    "quick": {"phases": 6_000, "seeds": 3, "bs": [0.2, 0.35, 0.5, 0.65, 0.8], "shown": 500, "records": 6},
    "full": {"phases": 80_000, "seeds": 4, "bs": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "shown": 1000, "records": 20},
}
ERRORS = {"free_energy_error": "exact, by free energy", "sampled_error": "from samples of the label units (the paper's)"}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    grid = cells(eta=ETA, b=size["bs"], length=LENGTH, shown=size["shown"], ticks=LENGTH * size["phases"])
    return {"rbm": Sweep("appendix", *MACHINE, grid, size["seeds"], records=size["records"], lanes=2, keep_params=True, cost=100)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Shown:
    bs, rbm = size["bs"], data["rbm"]
    chosen = best(rbm, "free_energy_error").isel(seed=0)
    samples = class_samples(jax.random.key(0), Params(*(jnp.asarray(chosen[f"params.{name}"].values) for name in Params._fields)))
    final = {name: list(100 * Record(rbm).final(name).values) for name in ERRORS}
    panels = [
        Panel("final error against b", "b, probability of a positive phase", "test error (%)", [
            points(words, bs, final[name], colour=i) for i, (name, words) in enumerate(ERRORS.items())]),
        Panel("error during training, by free energy", "phases", "test error (%)", [
            curve(f"b = {b:g}", rbm.isel(cell=i), "phases", "free_energy_error", 100, colour=i % 6, line=i // 6)
            for i, b in enumerate(bs)]),
        Panel(f"samples given the label, b = {float(chosen.b):g}, one seed", "", "", [], samples=samples),
    ]  # fmt: skip
    claims = [
        best_is("The best b on MNIST is above 0.5 (error from samples).", "above", bs, final["sampled_error"]),
        best_is("The best b on MNIST is above 0.5 (exact error).", "above", bs, final["free_energy_error"]),
        robust("Robust for b from 0.2 to 0.8 (exact error, %).", bs, final["free_energy_error"], 100 * UNTRAINED),
    ]
    return Shown(panels, claims, [
        f"RBM {VISIBLE} x {HIDDEN}, no visible bias, AoL with T = {LENGTH}, eta {ETA}, {size['phases']} phases; "
        f"final errors on all test images, curves on {size['shown']} of them.",
        "Samples: P(pixel | h) after 1,000 Gibbs steps from random h, label units clamped; docs/reproduce.md says why a row may show "
        "another digit.",
    ], columns=3)  # fmt: skip
