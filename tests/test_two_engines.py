"""Two engines, one answer: means over 64 seeds of the compiled engines and of JAX agree.

The list of engines is that of `flexphase.engines.compiled`: one that has no example here fails the
first test. JAX is the reference, with seeds of its own, so that both means are independent; the
difference is below 4 standard errors.
"""

import functools
import itertools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_conformance import METHODS

from flexphase import (
    NLL,
    RBM,
    Baseline,
    Batches,
    BoltzmannMachine,
    ContrastiveHebbian,
    Device,
    EquilibriumPropagation,
    ForwardForward,
    Held,
    LabelContrast,
    OnDevice,
    Optimiser,
    Replicas,
    Rows,
    Run,
    aol,
    aol_random,
    bars_and_stripes,
    catalogue,
    cd,
    isd,
    phase_change,
    train,
)
from flexphase.engines import compiled
from flexphase.engines.tapes import unheld
from flexphase.kernels import MISSING
from flexphase.methods.binary import NegativeStart
from flexphase.methods.boltzmann import lattice

pytestmark = pytest.mark.skipif(bool(MISSING), reason="built without a compiler")
STARTS = get_args(NegativeStart)
SEEDS, TICKS = 64, 600
DATA = bars_and_stripes(3)
WIDE = np.tile(DATA, (1, 8))[:, :70]
RULES = {"cd": cd, "isd": isd, "aol": aol, "aol-random": aol_random}


def boltzmann():
    for start in STARTS:
        yield f"RBM 9x7 {start}", RBM(9, 7, negative_start=start), Rows(DATA)
        yield f"RBM 70x12 {start}", RBM(70, 12, negative_start=start), Rows(WIDE)
        machine = BoltzmannMachine(9, 4, negative_start=start)
        yield f"BoltzmannMachine 9+4 {start}", machine, Rows(DATA)
    machine = BoltzmannMachine(9, 3, lattice(3, 4), sweep="chequerboard")
    yield "BoltzmannMachine 3x4 chequerboard", machine, Rows(DATA)


def forward_forward():
    images, labels = np.tile(DATA, (1, 2)), np.arange(len(DATA)) % 3
    for paired in (True, False):
        source = LabelContrast(images, labels, 3, paired)
        yield f"ForwardForward paired={paired}", ForwardForward((18, 12, 8), 3), source


def layered():
    targets = np.eye(3, dtype=np.float32)[np.arange(len(DATA)) % 3]
    source = Rows((DATA, targets))
    for reset in (False, True):  # does a phase begin where the last one ended, or at rest?
        for centred in (True, False):
            method = EquilibriumPropagation((9, 8, 3), centred=centred, reset=reset)
            yield f"EquilibriumPropagation centred={centred} reset={reset}", method, source
        for feedback in (1.0, 0.5):
            method = ContrastiveHebbian((9, 8, 3), feedback, reset=reset)
            yield f"ContrastiveHebbian feedback={feedback} reset={reset}", method, source


#: Runs of each compiled engine: (name, method with its start, source).
EXAMPLES = {
    "BoltzmannEngine": boltzmann,
    "ForwardForwardEngine": forward_forward,
    "LayeredEngine": layered,
}


def parts():
    """Estimators, sources and optimisers that a compiled engine takes, besides the usual ones."""
    boltzmann = Run(RBM(9, 7), *aol(0.5, 3), Rows(DATA), Optimiser(0.02))
    device = Device(bits=6, range=2.0, rounding="stochastic", noise=0.01, asymmetry=0.1)
    yield "a device", boltzmann._replace(optimiser=OnDevice(Optimiser(0.02), device))
    yield "held for ticks", boltzmann._replace(source=Held(Rows(DATA), ticks=4))
    _, method, source = next(forward_forward())
    yield "Adam", Run(method, *isd(0.5, 1), source, Optimiser(0.02, optax.adam))
    _, method, source = next(layered())
    usual = Run(method, *isd(0.5, 3), source, Optimiser(0.02))
    yield "Baseline", usual._replace(estimator=Baseline(0.1))
    yield "phase_change", usual._replace(estimator=phase_change)
    yield "a batch", usual._replace(method=Replicas(method, 3), source=Batches(source, 3))
    momentum = functools.partial(optax.sgd, momentum=0.5)
    yield "momentum", usual._replace(optimiser=Optimiser(0.02, momentum))


def rule(name, length):
    make = RULES[name]
    return make(length) if name == "cd" else make(0.5, length)


def runs():
    """Every method x start x rule that a compiled engine takes."""
    for kind, examples in EXAMPLES.items():
        length = 1 if kind == "ForwardForwardEngine" else 3
        for (words, method, source), name in itertools.product(examples(), RULES):
            if name == "aol-random" and length == 1:
                continue  # lengths of mean 1 are not random
            run = Run(method, *rule(name, length), source, Optimiser(0.02, optax.sgd))
            yield pytest.param(kind, run, id=f"{words}, {name}")
    for words, run in parts():
        kind = next(type(engine).__name__ for engine in compiled() if not engine.refuses(run))
        yield pytest.param(kind, run, id=f"{kind}, {words}")


def engine_of(kind):
    return next(engine for engine in compiled() if type(engine).__name__ == kind)


def test_every_compiled_engine_is_compared():
    assert {type(engine).__name__ for engine in compiled()} == EXAMPLES.keys()


def test_every_rule_is_compared():
    """`two-term` is `cd` by another name."""
    assert RULES.keys() == catalogue.RULES.keys() - {"two-term"}


def test_every_method_that_an_engine_takes_is_compared():
    compared = {type(run.method) for _, run in (case.values for case in runs())}
    tried = [Run(one, *isd(0.5, 1), source, Optimiser(0.1)) for one, source in METHODS.values()]
    taken = {type(run.method) for run in tried for one in compiled() if one.refuses(run) is None}
    assert len(taken) == 5 and taken <= compared


@pytest.mark.parametrize(("kind", "run"), list(runs()))
def test_the_engine_takes_the_run(kind, run):
    assert engine_of(kind).refuses(run) is None


def mean(params):
    return jnp.mean(jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(params)]))


def square(params):
    return jnp.mean(jnp.concatenate([leaf.ravel() ** 2 for leaf in jax.tree.leaves(params)]))


def finals(run, engine, seed):
    metrics = {"mean": mean, "square": square}
    if isinstance(run.method, (RBM, BoltzmannMachine)):
        metrics["nll"] = NLL(unheld(run.source).data)
    record = train(
        run, ticks=TICKS, seeds=SEEDS, seed=seed, metrics=metrics, records=1, engine=engine
    )
    assert record.attrs["engine"] == engine
    return {name: np.asarray(record.final(name), float) for name in metrics}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "run"), list(runs()))
def test_native_and_jax_agree(kind, run):
    native, jaxes = finals(run, "native", 0), finals(run, "jax", 10_000)
    for name, a in native.items():
        b = jaxes[name]
        z = (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / SEEDS)
        assert abs(z) < 4, (name, z)
