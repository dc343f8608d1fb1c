"""The loop against closed forms: a toy method whose terms are known, so that eqs. 1, 2, 4 and 5 can
be summed by hand.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from on_jax import train

from flexphase import estimators
from flexphase.core import Optimiser, Run
from flexphase.core import init as start
from flexphase.data import Rows
from flexphase.lanes import grid
from flexphase.methods import RBM
from flexphase.metrics import OverLanes
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Phases, tape
from flexphase.rules import aol, aol_random, cd, isd


class Counter(eqx.Module):
    """z counts the ticks of the phase, and both terms are z: in phase n the term is 1, 2, ...,
    T_n.
    """

    def check(self, x):
        pass

    def init(self, key):
        return jnp.float32(0), jnp.float32(0)

    def enter(self, key, params, z, x, sign):
        return jnp.float32(0)

    def step(self, key, params, z, x, sign):
        return z + 1

    def grad(self, params, z, x, sign):
        return z


SOURCE = Rows(np.ones((1, 1)))


@pytest.mark.parametrize("name", ["two_term", "isd", "always_on"])
def test_the_sum_of_all_updates(name):
    """eta x sum over phases of sign T (eq. 1), sign T / p (eq. 2), sign T (T + 1) / 2 / (p tau)
    (eqs. 4, 5), in NumPy along the tape.
    """
    selection = Alternating() if name == "two_term" else Bernoulli(0.3)
    process = Phases(selection, Geometric(3.0), Fixed(2))
    run = Run(Counter(), process, getattr(estimators, name), SOURCE, Optimiser(0.5))
    told = jax.tree.map(
        lambda a: np.asarray(a, float), tape(process, start(run, jax.random.key(4)).key, 200)
    )
    T, ends = told.ticks, np.cumsum(told.ticks).astype(int)
    whole = 150  # an even number of phases
    terms = {
        "two_term": T,
        "isd": T / told.prob,
        "always_on": T * (T + 1) / 2 / (told.prob * told.length),
    }[name]
    record = train(run, ticks=int(ends[whole - 1]), seed=4, records=1)
    assert record.params["theta"][0] == pytest.approx(
        -0.5 * np.sum(told.sign[:whole] * terms[:whole]), rel=1e-4
    )
    clocks = {
        name: int(record[name].isel(record=-1, seed=0)) for name in ("ticks", "phases", "updates")
    }
    updates = {"two_term": whole // 2, "isd": whole, "always_on": int(ends[whole - 1])}[name]
    assert clocks == {"ticks": int(ends[whole - 1]), "phases": whole, "updates": updates}


@pytest.mark.parametrize(
    "rule, alternates, name, length",
    [
        (cd(3), True, "two_term", 3),
        (isd(0.2, 4), False, "isd", 4),
        (aol(0.2, 5), False, "always_on", 5),
        (aol_random(0.2, 6.5), False, "always_on", 6.5),
    ],
)
def test_the_named_rules(rule, alternates, name, length):
    process, estimator = rule
    assert (
        process.alternates is alternates
        and estimator is getattr(estimators, name)
        and process.mean_length == length
    )
    assert process.selection.b == pytest.approx(0.5 if alternates else 0.2)


def test_any_optimiser_of_optax():
    """Adam's first step is eta in size, whatever the gradient; SGD's is eta x gradient."""
    for make, step in ((optax.sgd, 0.2), (optax.adam, 0.1)):
        run = Run(
            Counter(), *isd(0.5, 2), SOURCE, Optimiser(0.1 / (1 if make is optax.adam else 2), make)
        )
        theta = train(run, ticks=2, records=1).params["theta"][0]
        assert abs(theta) == pytest.approx(step, rel=1e-4)


class Mean(OverLanes):
    def __call__(self, params):
        return params - params.mean()


def test_metrics_see_one_lane_or_all():
    run = Run(Counter(), *isd(0.5, 2), SOURCE, Optimiser(0.1))
    record = train(
        run, phases=11, seeds=4, records=4, metrics={"one": lambda theta: 2 * theta, "all": Mean()}
    )
    theta = record.params["theta"]
    assert np.allclose(record.final("one"), 2 * theta) and np.allclose(
        record.final("all"), theta - theta.mean(), atol=1e-6
    )
    assert record["ticks"].isel(seed=0).values.tolist() == [0, 6, 11, 16, 22]
    assert record.metrics == ["one", "all"] and record.attrs["metric_seconds"] > 0


def test_phases_are_ticks_over_the_mean_length():
    run = Run(
        Counter(),
        Phases(Alternating(), Fixed(2), Fixed(4)),
        estimators.two_term,
        SOURCE,
        Optimiser(0.1),
    )
    record = train(run, phases=10, records=1)
    assert record["ticks"].isel(record=-1) == 30 and record["phases"].isel(record=-1) == 10
    sweep = grid(
        lambda b: Run(Counter(), *aol(b, 7), SOURCE, Optimiser(0.1)), b=np.linspace(0.05, 0.95, 19)
    )
    assert (train(sweep, phases=3, records=1)["ticks"].isel(record=-1) == 21).all()
    with pytest.raises(ValueError, match=r"different mean phase lengths.*ticks="):
        train(
            grid(lambda T: Run(Counter(), *aol(0.5, T), SOURCE, Optimiser(0.1)), T=[2, 3]), phases=3
        )


def test_a_grid_shares_its_data():
    """Data made anew for each point is still one array for all lanes; what is swept has a lane
    axis.
    """
    from flexphase.lanes import lanes

    made = lanes(
        grid(lambda b: Run(RBM(2, 1), *isd(b), Rows(np.eye(2)), Optimiser(0.1)), b=[0.2, 0.3]), 3, 0
    )
    assert made.run.source.data.shape == (2, 2) and made.axes.source.data is None
    assert made.run.process.selection.b.shape == (6,) and made.shape == (2, 3)
    with pytest.raises(ValueError, match="numbers only"):
        lanes(
            grid(lambda n: Run(RBM(2, n), *isd(0.5), Rows(np.eye(2)), Optimiser(0.1)), n=[1, 2]),
            1,
            0,
        )
