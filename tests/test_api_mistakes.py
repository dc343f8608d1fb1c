"""Plausible mistakes in a call get a ValueError that says what to write instead, and not an error
from deep inside a library.
"""

import jax
import numpy as np
import pytest
from on_jax import train

from flexphase import NLL, RBM, Optimiser, Rows, Run, cd, grid, isd, ledger, plan, plan_run, tape
from flexphase.theory.moments import moments

BITS = np.eye(4, dtype=np.float32)
KEY = jax.random.key(0)
RULE = isd(0.5, 2)


def a_run(b=0.5):
    return Run(RBM(4, 2), *isd(b, 2), Rows(BITS), Optimiser(0.1))


RUN, GRID = a_run(), grid(a_run, b=[0.3, 0.5])
PARAMS = RUN.method.init(KEY)[0]


def go(**options):
    return train(RUN, **({"ticks": 4} | options))


REFUSED = {
    "a plan of a grid": (lambda: plan(GRID, PARAMS), "a run is needed, not a Grid"),
    "a plan of a run of a grid": (lambda: plan_run(GRID, NLL(BITS), 9), "a run is needed"),
    "moments of a grid": (lambda: moments(GRID, PARAMS), "a run is needed, not a Grid"),
    "a ledger of a grid": (lambda: ledger(GRID), "a run is needed, not a Grid"),
    "a plan of a class": (lambda: plan(RUN._replace(method=RBM), PARAMS), "the class RBM itself"),
    "a loss in words": (lambda: plan(RUN, PARAMS, loss="a"), "loss must be a number, not 'a'"),
    "a bias in words": (lambda: plan(RUN, PARAMS, bias="a"), "bias must be a number, not 'a'"),
    "a bias of a run in words": (
        lambda: plan_run(RUN, NLL(BITS), 9, bias="a"),
        "bias must be a number, not 'a'",
    ),
    "a length in words": (lambda: plan_run(RUN, NLL(BITS), "a"), "ticks must be a whole number"),
    "lanes in words": (lambda: plan(RUN, PARAMS, lanes="a"), "lanes must be a whole number"),
    "no phases": (lambda: moments(RUN, PARAMS, phases=None), "phases must be a whole number"),
    "an axis that the function does not take": (
        lambda: grid(lambda b: a_run(b), eta=[0.1]),
        r"an argument for each axis, here eta, .*'b'.*write grid\(lambda b, eta: ",
    ),
    "an axis too few": (lambda: grid(lambda b, T: a_run(b), b=[0.1]), "here b, .*'T'"),
    "a grid of a run": (
        lambda: grid(RUN, b=[0.1]),
        r"a function that makes a run, not a Run: write grid\(lambda b: Run",
    ),
    "a tape of a rule": (lambda: tape(RULE, KEY, 5), "process needs the functions init and step"),
    "a tape of a class": (lambda: tape(type(RULE.process), KEY, 5), "process needs the functions"),
    "a tape with a seed": (lambda: tape(RULE.process, 0, 5), r"such as jax.random.key\(0\), not 0"),
    "a tape with many keys": (
        lambda: tape(RULE.process, jax.random.split(KEY), 5),
        "key must be a random key",
    ),
    "half a phase": (lambda: tape(RULE.process, KEY, 2.5), "phases must be a whole number"),
    "stop at a number": (lambda: go(stop=3), "stop must be a function of the record so far, not 3"),
    "progress by a number": (lambda: go(progress=3), "progress must be True.*not 3"),
    "an optimiser as an average": (
        lambda: go(average=Optimiser(0.1)),
        "an average begins after a fraction of training",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_answered_with_advice(name):
    call, advice = REFUSED[name]
    with pytest.raises(ValueError, match=advice):
        call()


def test_a_missing_folder_is_named_before_training(tmp_path, monkeypatch):
    """A folder is no file either; nothing was computed, and nothing is left behind."""
    monkeypatch.setattr("flexphase.training.lanes", None)  # what comes next
    with pytest.raises(ValueError, match=f"there is no folder {tmp_path / 'no'} for x.npz; make"):
        go(checkpoint=tmp_path / "no" / "x.npz")
    with pytest.raises(ValueError, match=f"{tmp_path} is a folder; give the name of a file in it"):
        go(checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_record_is_saved_in_a_folder_that_is_there(tmp_path, monkeypatch):
    record = go()
    with pytest.raises(ValueError, match=f"there is no folder {tmp_path / 'no'} for x.nc; make"):
        record.save(tmp_path / "no" / "x.nc")
    with pytest.raises(ValueError, match=f"{tmp_path} is a folder; give the name of a file in it"):
        record.save(tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    assert record.save("x.nc").exists()


@pytest.mark.parametrize("number", ["0", 1.5, -1, True])
def test_the_number_of_a_network_is_a_whole_one(number):
    record = go(seeds=2)
    for call in (record.lane, lambda n: record.parameters(lane=n)):
        with pytest.raises(ValueError, match="number of a network must be a whole number, at leas"):
            call(number)
    assert record.lane(np.int64(1))["seed"] == 1


def test_what_is_right_is_taken():
    """Functions of every kind make runs; keys of the older kind draw phases; silence is False."""

    class Maker:
        def __call__(self, b, **rest):
            return a_run(b)

    assert len(grid(Maker(), b=[0.3, 0.5], T=[1]).runs) == 2
    assert len(grid(dict, b=[0.3]).runs) == 1  # it does not say which arguments it takes
    assert len(tape(cd(1).process, jax.random.PRNGKey(0), np.int64(3)).sign) == 3
    assert go(stop=None, progress=False)["ticks"][0, -1] == 4
