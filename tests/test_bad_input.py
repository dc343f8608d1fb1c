"""What has no meaning is refused with a ValueError whose sentence says what to do instead, before
anything is compiled.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_jax import train

from flexphase import Device, OnDevice, estimators
from flexphase.ais import Bracket, Estimate
from flexphase.core import Optimiser, Run
from flexphase.data import LabelContrast, Rows, append_labels, overlay
from flexphase.lanes import grid
from flexphase.likelihood import NLL
from flexphase.methods import RBM, BoltzmannMachine, EquilibriumPropagation, ForwardForward
from flexphase.methods.binary import sample
from flexphase.methods.equilibrium_propagation import Accuracy
from flexphase.methods.helmholtz import HelmholtzMachine, HelmholtzNLL
from flexphase.methods.rbm import Params
from flexphase.methods.units import BinaryUnits
from flexphase.metrics import AtEnd, OverLanes
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Phases
from flexphase.rules import aol, aol_random, cd, isd
from flexphase.unit_likelihood import UnitNLL

BITS = np.eye(4, dtype=np.float32)
PAIRS = Rows((BITS, BITS[:, :2]))
LAYERS = EquilibriumPropagation((4, 3, 2))


FLAT = Estimate(*jnp.zeros(3))


def a_run(method=None, rule=None, source=None, eta=0.1):
    return Run(method or RBM(4, 2), *(rule or aol(0.5, 2)), source or Rows(BITS), Optimiser(eta))


def with_rule(rule):
    return a_run(rule=rule)


def limited(noise):
    """A run on a device with or without noise."""
    optimiser = OnDevice(Optimiser(0.1), Device(range=1.0, noise=noise))
    return a_run()._replace(optimiser=optimiser)


class Silent(OverLanes):
    """A metric of all lanes that is no number."""

    def __call__(self, params):
        return {"a": 1.0}


def go(**options):
    return train(a_run(), **({"ticks": 4} | options))


REFUSED = {
    "b = 0": (lambda: Bernoulli(0.0), "between 0 and 1.*0.5"),
    "b = 1": (lambda: isd(1), "between 0 and 1"),
    "b that rounds to 1": (lambda: isd(1 - 1e-9), "between 0 and 1"),
    "b that rounds to 0": (lambda: isd(1e-46), "single precision"),
    "b = nan": (lambda: aol(float("nan")), "finite"),
    "b is a word": (lambda: aol("half"), "must be a number"),
    "b is a boolean": (lambda: aol(True), "must be a number"),
    "one bad b of a sweep": (lambda: Bernoulli(np.array([0.5, 1.5])), "between 0 and 1"),
    "tau < 1": (lambda: Geometric(0.5), "at least 1 tick"),
    "tau negative": (lambda: aol_random(0.5, -3), "at least 1 tick"),
    "tau too large": (lambda: aol_random(0.5, 1e12), "at most 10"),
    "T = 0": (lambda: cd(0), "at least 1 tick"),
    "T broken": (lambda: Fixed(2.5), "whole number of ticks.*Geometric"),
    "T is a boolean": (lambda: Fixed(True), "must be a number"),
    "T is None": (lambda: Fixed(None), "must be a number"),
    "eta negative": (lambda: Optimiser(-0.1), "must not be negative"),
    "eta is a word": (lambda: Optimiser("fast"), "must be a number"),
    "eta that rounds to infinity": (lambda: Optimiser(1e39), "single precision"),
    "eta that rounds to 0": (lambda: Optimiser(1e-50), "single precision"),
    "one vanishing eta of a sweep": (lambda: Optimiser(np.array([0.1, 1e-50])), "single precision"),
    "eta is infinite": (lambda: Optimiser(np.inf), "finite"),
    "data with three axes": (lambda: Rows(np.zeros((2, 2, 2))), r"\(rows, features\)"),
    "data with one axis": (lambda: Rows(np.zeros(3)), r"\(rows, features\)"),
    "no rows": (lambda: Rows(np.zeros((0, 4))), "non-empty"),
    "no columns": (lambda: Rows(np.zeros((4, 0))), "non-empty"),
    "nan in the data": (lambda: Rows([[0.0, np.nan]]), "NaN or infinite.*drop or fill"),
    "words as data": (lambda: Rows([["a", "b"]]), "real numbers"),
    "ragged data": (lambda: Rows([[1.0], [1.0, 0.0]]), "array of numbers"),
    "pairs that do not pair": (lambda: Rows((BITS, BITS[:2])), "same number of rows"),
    "no visible unit": (lambda: RBM(0, 2), "visible must be a whole number, at least 1"),
    "a boolean number of units": (lambda: RBM(4, True), "hidden must be a whole number"),
    "a broken number of units": (lambda: RBM(4.0, 2), "visible must be a whole number"),
    "an unknown start": (lambda: RBM(4, 2, negative_start="cd"), "carry, data, persistent, random"),
    "an unknown sweep": (
        lambda: BoltzmannMachine(4, 2, sweep="random"),
        "sequential, chequerboard",
    ),
    "a mask of another size": (lambda: BoltzmannMachine(4, 2, np.ones((4, 4))), r"\(6, 6\)"),
    "a mask that is not symmetric": (lambda: BoltzmannMachine(2, 0, [[0, 1], [0, 0]]), "symmetric"),
    "a mask with a diagonal": (
        lambda: BoltzmannMachine(2, 0, [[1, 1], [1, 1]]),
        "symmetric with an empty diagonal",
    ),
    "an odd cycle": (lambda: BoltzmannMachine(4, 2, sweep="chequerboard"), "sequential"),
    "one layer": (lambda: EquilibriumPropagation((4,)), "at least one layer"),
    "an empty layer": (
        lambda: EquilibriumPropagation((4, 0, 2)),
        "layer's size must be a whole number",
    ),
    "beta = 0": (lambda: EquilibriumPropagation((4, 2), beta=0), "above 0"),
    "dt > 1": (lambda: EquilibriumPropagation((4, 2), dt=2), "at most 1"),
    "a threshold that rounds to infinity": (
        lambda: ForwardForward((4, 2), classes=2, threshold=1e39),
        "single precision",
    ),
    "two terms, random phases": (
        lambda: train(
            Run(
                RBM(4, 2),
                Phases(Bernoulli(0.5), Fixed(2)),
                estimators.two_term,
                Rows(BITS),
                Optimiser(0.1),
            ),
            ticks=4,
        ),
        "phases that alternate.*estimators.isd or flexphase.always_on",
    ),
    "grey data for a Bernoulli model": (
        lambda: train(a_run(source=Rows(BITS / 2)), ticks=4),
        r"zeros and ones.*binarise\(",
    ),
    "grey data for a Boltzmann machine": (
        lambda: train(a_run(BoltzmannMachine(4, 1), source=Rows(BITS - 1)), ticks=4),
        "zeros and ones",
    ),
    "one grey row in a grid": (
        lambda: train(
            grid(lambda x: a_run(source=Rows(np.vstack([BITS, [[x, 0, 0, 0]]]))), x=[1.0, 0.5]),
            ticks=4,
        ),
        "zeros and ones",
    ),
    "wide data": (
        lambda: train(a_run(RBM(3, 2)), ticks=4),
        "4 columns and the model 3 visible units.*visible=4",
    ),
    "narrow data": (lambda: train(a_run(BoltzmannMachine(5, 2)), ticks=4), "visible=4"),
    "no pairs": (
        lambda: train(a_run(EquilibriumPropagation((4, 2))), ticks=4),
        r"Rows\(\(inputs, targets\)\)",
    ),
    "targets that do not fit": (
        lambda: train(a_run(EquilibriumPropagation((4, 3)), source=PAIRS), ticks=4),
        "targets have 2 columns",
    ),
    "images that do not fit": (
        lambda: train(
            a_run(ForwardForward((5, 3), 2), source=LabelContrast(BITS, [0, 1, 0, 1], 2)), ticks=4
        ),
        "5 inputs.*4",
    ),
    "neither ticks nor phases": (lambda: train(a_run()), "either ticks= or phases="),
    "ticks and phases": (lambda: go(phases=3), "either ticks= or phases="),
    "no ticks": (lambda: go(ticks=0), "ticks must be a whole number, at least 1"),
    "negative ticks": (lambda: go(ticks=-5), "ticks must be a whole number"),
    "broken ticks": (lambda: go(ticks=2.5), "ticks must be a whole number"),
    "true ticks": (lambda: go(ticks=True), "ticks must be a whole number"),
    "too many ticks": (lambda: go(ticks=2**31), "fewer than 2.31"),
    "broken phases": (lambda: go(ticks=None, phases=1.5), "phases must be a whole number"),
    "phases in words": (lambda: go(ticks=None, phases="many"), "phases must be a whole number"),
    "no records": (lambda: go(records=0), "records must be a whole number, at least 1"),
    "broken records": (lambda: go(records=1.5), "records must be a whole number"),
    "no seeds": (lambda: go(seeds=0), "seeds must be a whole number, at least 1"),
    "seeds in words": (lambda: go(seeds="8"), "seeds must be a whole number"),
    "negative seed": (lambda: go(seed=-1), "base seed must be a whole number, at least 0"),
    "a seed beyond": (lambda: go(seed=2**31), "2.31 - seeds"),
    "an empty axis": (lambda: grid(lambda b: a_run(), b=[]), "list of at least one value"),
    "an axis that is a number": (
        lambda: grid(lambda b: a_run(), b=0.5),
        "list of at least one value",
    ),
    "a ragged axis": (
        lambda: grid(lambda b: a_run(), b=[[1], [1, 2]]),
        "list of at least one value",
    ),
    "an axis of words": (
        lambda: grid(lambda name: a_run(), name=["low", "high"]),
        "axis 'name' of the grid must hold numbers or booleans.*0, 1, 2",
    ),
    "an axis of nothing": (lambda: grid(lambda b: a_run(), b=[None, 0.5]), "numbers or booleans"),
    "rows of different shape in a grid": (
        lambda: train(grid(lambda n: a_run(source=Rows(BITS[: int(n)])), n=[2, 3]), ticks=4),
        r"arrays of the shapes \(2, 4\) and \(3, 4\)",
    ),
    "a number that only one run of a grid has": (
        lambda: train(grid(lambda n: limited(None if n else 0.1), n=[0, 1]), ticks=4),
        "differ in numbers only",
    ),
    "an axis called seed": (
        lambda: grid(lambda seed: a_run(), seed=[1]),
        "cannot be called 'seed'",
    ),
    "samples of nothing": (
        lambda: sample(RBM(4, 2), jax.random.key(0), RBM(4, 2).init(jax.random.key(0))[0], rows=0),
        "rows must be",
    ),
    "a mask without values": (
        lambda: sample(
            RBM(4, 2), jax.random.key(0), RBM(4, 2).init(jax.random.key(0))[0], clamped=[True] * 4
        ),
        "together, or neither",
    ),
    "a short mask": (
        lambda: sample(
            RBM(4, 2),
            jax.random.key(0),
            RBM(4, 2).init(jax.random.key(0))[0],
            x=jnp.zeros(4),
            clamped=[True],
        ),
        r"clamped \(4,\)",
    ),
    "grey values held": (
        lambda: sample(
            RBM(2, 2),
            jax.random.key(0),
            RBM(2, 2).init(jax.random.key(0))[0],
            x=[0.5, 0],
            clamped=[True, False],
        ),
        "zeros and ones",
    ),
    "nll of grey data": (lambda: NLL([[0.5, 1.0]]), "zeros and ones"),
    "nll of grey data for binary units": (
        lambda: UnitNLL(BinaryUnits(2), [[0.5, 1.0]]),
        "zeros and ones",
    ),
    "nll of grey data from a bracket": (
        lambda: Bracket(FLAT, FLAT, True).nll(Params(*map(np.zeros, ((2, 1), 2, 1))), [[0.5, 1.0]]),
        "zeros and ones",
    ),
    "nll of negative data": (lambda: NLL([[-1.0, 1.0]]), "zeros and ones"),
    "data of words": (lambda: Rows([["0", "1"]]), "real numbers"),
    "data of objects": (lambda: Rows(np.array([[0, 1]], object)), "real numbers"),
    "data of dates": (lambda: Rows(np.zeros((2, 2), "M8[D]")), "real numbers"),
    "data of complex numbers": (lambda: Rows(np.zeros((2, 2), complex)), "real numbers"),
    "classes that are a fraction": (lambda: append_labels([[0, 1]], [0], 3.0), "whole number"),
    "classes of an overlay": (lambda: overlay([[0, 1, 0, 1]], [0], 3.0), "whole number"),
    "classes of a source": (lambda: LabelContrast([[0, 1, 0, 1]], [0], 3.0), "whole number"),
    "several learning rates": (lambda: train(a_run(eta=[0.1, 0.2]), ticks=4), "use grid"),
    "several b": (lambda: train(with_rule(aol(b=np.array([0.3, 0.5]))), ticks=4), "use grid"),
    "several T": (lambda: train(with_rule(isd(T=[2, 3])), ticks=4), "use grid"),
    "a metric that asks for a value": (
        lambda: go(metrics={"m": lambda p: float(p.W.sum())}),
        "the metric 'm' asks for the value of an array.*leave numbers as arrays",
    ),
    "a metric that branches": (
        lambda: go(metrics={"m": lambda p: 1.0 if p.W.sum() > 0 else 0.0}),
        r"the metric 'm' asks for the value of an array.*jnp.where",
    ),
    "a metric in NumPy": (
        lambda: go(metrics={"m": lambda p: np.linalg.svd(p.W)[1].max()}),
        "the metric 'm' uses NumPy",
    ),
    "a metric of two arguments": (
        lambda: go(metrics={"m": lambda p, q: p.W.sum()}),
        "the metric 'm' does not take what it is given.*'q'",
    ),
    "a metric of another size": (
        lambda: go(metrics={"m": lambda p: (p.a + np.zeros(7)).sum()}),
        "the metric 'm' does not take what it is given.*sizes of its arrays",
    ),
    "a metric whose end is a number": (
        lambda: go(metrics={"m": AtEnd(NLL(BITS), 3)}),
        "the metric 'm' is a int, not a function",
    ),
    "an end of an end": (
        lambda: go(metrics={"m": AtEnd(NLL(BITS), AtEnd(NLL(BITS), NLL(BITS)))}),
        "the metric 'm' is a AtEnd, not a function",
    ),
    "nll of data with more columns": (
        lambda: go(metrics={"m": NLL(np.eye(9))}),
        "9 columns.*4 visible units.*rows of 4 columns",
    ),
    "nll of data with more columns than units": (
        lambda: train(a_run(BoltzmannMachine(4, 3)), ticks=4, metrics={"m": NLL(np.eye(9))}),
        "9 columns",
    ),
    "nll of units for data with more columns": (
        lambda: go(metrics={"m": UnitNLL(BinaryUnits(9), np.eye(9))}),
        "(does not take what it is given|other visible units)",
    ),
    "nll of a Helmholtz machine for data with more columns": (
        lambda: train(
            a_run(HelmholtzMachine(4, 3), isd(0.5, 1)),
            ticks=4,
            metrics={"m": HelmholtzNLL(np.eye(9))},
        ),
        "the metric 'm' does not take what it is given",
    ),
    "accuracy on inputs with more columns": (
        lambda: train(
            a_run(LAYERS, cd(2), PAIRS),
            ticks=4,
            metrics={"m": Accuracy(LAYERS, np.eye(9), [0] * 9)},
        ),
        "the metric 'm' does not take what it is given",
    ),
    "a metric of nothing": (lambda: go(metrics={"m": lambda p: None}), "one real number"),
    "a metric that is a dict": (lambda: go(metrics={"m": lambda p: {"a": 1.0}}), "one real number"),
    "a complex metric": (lambda: go(metrics={"m": lambda p: p.W.sum() + 1j}), "one real number"),
    "a metric of words": (lambda: go(metrics={"m": lambda p: "low"}), "one real number"),
    "a metric of nothing at the end": (
        lambda: go(metrics={"m": AtEnd(lambda p: p.W.sum(), Silent())}),
        "one real number",
    ),
    "a metric of all lanes that is a dict": (
        lambda: go(metrics={"m": Silent()}),
        "one real number",
    ),
    "nll of nothing": (lambda: NLL(np.zeros((0, 4))), "non-empty"),
    "not a checkpoint": (lambda: go(checkpoint=__file__), "not a checkpoint"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_advice(name):
    call, advice = REFUSED[name]
    with pytest.raises(ValueError, match=advice):
        call()


def test_what_looks_odd_but_has_a_meaning_is_taken():
    """NumPy numbers, a list of lists, boolean data, tau = 1, a learning rate of 0."""
    run = Run(
        RBM(2, 1),
        Phases(Alternating(), Geometric(np.float64(1))),
        estimators.two_term,
        Rows([[True, False]]),
        Optimiser(0),
    )
    record = train(run, ticks=np.int64(4), seeds=np.int32(1), records=np.int64(1))
    assert record["updates"].isel(record=-1) == 2


@pytest.mark.parametrize(
    "tamper",
    [
        {"state0": None},
        {"state0": np.zeros(3)},
        {"curve.ticks": np.zeros((1, 1))},
        {"times": np.zeros(1)},
    ],
)
def test_a_checkpoint_that_was_tampered_with_is_refused(tamper, tmp_path):
    path = tmp_path / "checkpoint.npz"
    go(checkpoint=path, records=2)
    with np.load(path) as file:
        kept = dict(file) | tamper
    np.savez(path, **{name: array for name, array in kept.items() if array is not None})
    with pytest.raises(ValueError, match="not a checkpoint of flexphase"):
        go(checkpoint=path, records=2)


def test_no_more_records_than_ticks_are_planned():
    """A mark for each of 10^15 records would not fit into any memory."""
    assert go(records=10**15)["ticks"].values.tolist() == [[0, 1, 2, 3, 4]]
