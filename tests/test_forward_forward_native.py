"""The compiled Forward-Forward engine against a float64 loop in NumPy, against the JAX engine, and
against itself.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from flexphase import kernels, rules, train
from flexphase.core import Optimiser, Run
from flexphase.data import LabelContrast, Rows, digits
from flexphase.engines import choose
from flexphase.engines import forward_forward as engine
from flexphase.engines.jax import JaxEngine
from flexphase.estimators import Differential
from flexphase.lanes import grid, lanes
from flexphase.methods import RBM, ForwardForward
from flexphase.methods.forward_forward import label_scores
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Phases

pytestmark = pytest.mark.skipif(
    bool(kernels.MISSING), reason="installed without the compiled engines"
)
ISAS = kernels._native.isas() if not kernels.MISSING else [""]
SIZES = (64, 37, 50, 16)  # of which only one fills its vectors


def make_run(rule="isd", optimiser=optax.adam, eta=0.01, sizes=SIZES, source=None, b=0.4):
    chosen = {"two-term": rules.cd(1), "isd": rules.isd(b, 1), "aol": rules.aol(b, 1)}[rule]
    return Run(
        ForwardForward(sizes),
        *chosen,
        source or LabelContrast(*digits(), paired=rule == "two-term"),
        Optimiser(eta, optimiser),
    )


def quiet(ticks):
    pass


def numpy_loop(every, state, ticks, lane=0):
    """Everything again, dense and in float64, from the drawn phases and stimuli alone: parameters
    after `ticks` ticks.
    """
    phase, _, *rest = engine.next_passes(every, state)
    sign, weight, apply, rows, labels = (np.asarray(part)[lane] for part in (phase.sign, *rest))
    source = every.run.source
    theta, eta = (
        float(np.ravel(np.asarray(number))[0])
        for number in (every.run.method.threshold, every.run.optimiser.eta)
    )  # lanes alike
    adam = every.run.optimiser.make is optax.adam
    params = [[np.asarray(part, np.float64)[lane] for part in layer] for layer in state.params]
    mu, nu, acc = ([[np.zeros_like(p) for p in layer] for layer in params] for _ in range(3))
    count = 0
    for t in range(ticks):
        x = np.asarray(source.images[rows[t]], np.float64)
        x[:10] = np.eye(10)[labels[t]]
        for (W, c), a in zip(params, acc, strict=True):
            y = x / (np.linalg.norm(x) + 1e-4)
            x = np.maximum(y @ W + c, 0)
            slope = -2 / len(x) * x / (1 + np.exp(-sign[t] * (theta - (x**2).mean())))
            a[0] += weight[t] * np.outer(y, slope)
            a[1] += weight[t] * slope
        if apply[t]:
            count += 1
            for layer, m, v, a in zip(params, mu, nu, acc, strict=True):
                for k in range(2):
                    m[k] = 0.9 * m[k] + 0.1 * a[k]
                    v[k] = 0.999 * v[k] + 0.001 * a[k] ** 2
                    step = m[k] / (1 - 0.9**count) / (np.sqrt(v[k] / (1 - 0.999**count)) + 1e-8)
                    layer[k] = layer[k] - eta * (step if adam else a[k])
                    a[k] = np.zeros_like(a[k])
    return params


def rms(params, exact, lane=0):
    """Root mean square difference, array by array."""
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(exact), strict=True)
    return np.array([np.sqrt(np.mean((np.asarray(p)[lane] - e) ** 2)) for p, e in pairs])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("rule", ["two-term", "isd", "aol"])
@pytest.mark.parametrize("optimiser", [optax.adam, optax.sgd])
def test_against_a_dense_float64_loop(rule, optimiser, isa):
    """Adam magnifies rounding where a gradient is nearly zero, so the yardstick is the JAX engine,
    which is float32 as well.
    """
    every = lanes(make_run(rule, optimiser, eta=0.01 if optimiser is optax.adam else 1.0), 1, 3)
    start = JaxEngine().start(every)
    exact = numpy_loop(every, start, 600)
    ours = rms(engine.advance(every, start, 600, quiet, 1, isa).params, exact)
    theirs = rms(JaxEngine().advance(every, start, 600, quiet).params, exact)
    moved = rms(start.params, exact)
    assert (ours < 3 * theirs + 1e-7).all(), (ours, theirs)
    assert (ours < 1e-3 * moved + 1e-7).all(), (ours, moved)


def test_resting_rows_pay_their_steps_in_closed_form():
    """Pixels that speak once in a while, for the first time before and after the step where the
    closed form takes over.
    """
    rng = np.random.default_rng(0)
    images = np.where(rng.random((40, 64)) < 0.03, rng.random((40, 64)), 0).astype(np.float32)
    every = lanes(
        make_run(
            source=LabelContrast(images, np.arange(40) % 10, paired=False), sizes=(64, 20, 20)
        ),
        1,
        0,
    )
    start = JaxEngine().start(every)
    for ticks in (90, 300, 2000):
        exact = numpy_loop(every, start, ticks)
        ours = rms(engine.advance(every, start, ticks, quiet, 1).params, exact)
        theirs = rms(JaxEngine().advance(every, start, ticks, quiet).params, exact)
        assert (ours < 3 * theirs + 1e-6).all(), (ticks, ours, theirs)


@pytest.mark.parametrize("rule", ["two-term", "isd"])
def test_states_can_be_handed_from_engine_to_engine(rule):
    """An odd number of ticks leaves the two-term rule between its phases: what is remembered must
    come along.
    """
    every = lanes(make_run(rule, optax.sgd, eta=0.5), 2, 0)
    start = JaxEngine().start(every)
    half = engine.advance(every, start, 101, quiet, 2)
    theirs = JaxEngine().advance(every, start, 101, quiet)
    assert jax.tree.structure(half) == jax.tree.structure(theirs)
    for a, b in zip(
        jax.tree.leaves(half._replace(key=0)), jax.tree.leaves(theirs._replace(key=0)), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-5)
    if rule == "two-term":
        assert np.abs(half.memory[0].W).max() > 1e-4
    ends = [
        JaxEngine().advance(every, half, 102, quiet),
        engine.advance(every, theirs, 102, quiet, 1),
        engine.advance(every, start, 203, quiet, 1),
        JaxEngine().advance(every, start, 203, quiet),
    ]
    for end in ends[:-1]:
        for a, b in zip(
            jax.tree.leaves(end._replace(key=0)),
            jax.tree.leaves(ends[-1]._replace(key=0)),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_same_bits_alone_among_many_and_on_more_threads():
    source = LabelContrast(*digits(), paired=False)
    many = grid(
        lambda b, eta: make_run("isd", eta=eta, source=source, b=b), b=[0.3, 0.5], eta=[0.002, 0.01]
    )
    every = lanes(many, 2, 5)
    alone = lanes(make_run("isd", eta=0.01, source=source, b=0.3), 1, 6)
    one = engine.advance(alone, JaxEngine().start(alone), 300, quiet, 1)
    for threads in (1, 3):
        state = engine.advance(every, JaxEngine().start(every), 300, quiet, threads)
        for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(state.params), strict=True):
            assert np.array_equal(a[0], b[3])


def test_every_lane_has_its_own_threshold_and_images():
    images, labels = digits()

    def make(theta):
        source = LabelContrast(images * theta, labels, paired=False)
        return Run(
            ForwardForward((64, 20), threshold=theta), *rules.isd(0.5, 1), source, Optimiser(0.5)
        )

    every = lanes(grid(make, theta=[0.5, 1.0]), 1, 0)
    start = JaxEngine().start(every)
    ours, theirs = (
        engine.advance(every, start, 200, quiet, 2),
        JaxEngine().advance(every, start, 200, quiet),
    )
    np.testing.assert_allclose(ours.params[0].W, theirs.params[0].W, atol=1e-5)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("sizes", "classes"),
    [((64, 37, 50, 16), 10), ((30, 16), 3), ((40, 50, 33), 13), ((784, 500, 500), 10)],
)
def test_scores_of_labels(sizes, classes, isa):
    """Against methods.forward_forward.label_scores, which test_forward_forward.py checks against
    overlaying.
    """
    method = ForwardForward(sizes, classes)
    params = jax.vmap(lambda key: method.init(key)[0])(jax.random.split(jax.random.key(0), 2))
    params = jax.tree.map(lambda p: p - 0.01, params)
    rng = np.random.default_rng(0)
    images = np.where(rng.random((70, sizes[0])) < 0.3, rng.random((70, sizes[0])), 0).astype(
        np.float32
    )
    ours = kernels.forward_forward_scores(params, images, classes, 2, isa)
    theirs = jax.vmap(lambda p: label_scores(p, jnp.asarray(images), classes))(params)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-8)


def test_a_lane_that_diverges_leaves_the_others_alone():
    source = LabelContrast(*digits(), paired=False)
    record = train(
        grid(lambda eta: make_run("isd", optax.sgd, eta, source=source), eta=[0.1, 1e38]),
        ticks=100,
        records=2,
        engine="native",
        threads=1,
    )
    assert record["diverged_at"].values[0, 0] == -1 and record["diverged_at"].values[1, 0] > 0


def test_auto_takes_it_and_resumes_to_the_same_bits(tmp_path):
    run = make_run("two-term")
    assert isinstance(choose("auto", run), engine.ForwardForwardEngine)
    whole = train(run, ticks=4200, records=4, engine="native", threads=1)

    def stop(done, total, latest):
        if done > 2100:
            raise KeyboardInterrupt

    options = {
        "ticks": 4200,
        "records": 4,
        "checkpoint": tmp_path / "state.npz",
        "engine": "native",
        "threads": 1,
    }
    assert train(run, progress=stop, **options).attrs["interrupted"]
    resumed = train(run, **options)
    assert whole.attrs["engine"] == "native"
    assert np.array_equal(whole.params["0.W"], resumed.params["0.W"])


REFUSED = [
    (make_run()._replace(method=RBM(64, 5)), "does not know RBM"),
    (make_run()._replace(source=Rows(digits().images)), "LabelContrast"),
    (make_run()._replace(process=Phases(Bernoulli(0.5), Fixed(2))), "one tick"),
    (make_run()._replace(process=Phases(Alternating(), Fixed(1), Geometric(1.5))), "one tick"),
    (make_run()._replace(estimator=Differential()), "memory of its own"),
    (make_run(optimiser=optax.rmsprop), "optax.adam and optax.sgd"),
]


@pytest.mark.parametrize(("run", "words"), REFUSED)
def test_what_it_cannot_do_it_refuses_with_a_sentence(run, words):
    assert words in (engine.ForwardForwardEngine(1).refuses(run) or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": np.full((1, 3), 1797, np.int32)}, "image or a label"),
        ({"label": np.full((1, 3), -1, np.int32)}, "image or a label"),
        ({"row": np.zeros((1, 3), np.int64)}, "row must be"),
        ({"weight": np.zeros((1, 2), np.float32)}, "weight must be"),
        ({"1.W": np.zeros((1, 21, 20), np.float32)}, "do not fit"),
        ({"images": np.zeros((1, 5, 63), np.float32)}, "images must be"),
        ({"apply": np.zeros((1, 3), bool)}, "at most two terms"),
    ],
)
def test_the_kernel_checks_what_it_is_given(change, words):
    every = lanes(make_run(sizes=(64, 20, 20)), 1, 0)
    arrays = engine.to_arrays(JaxEngine().start(every), adam=True)
    arrays |= {
        "images": np.asarray(every.run.source.images)[None],
        "eta": np.ones(1, np.float32),
        "theta": np.ones(1, np.float32),
    }
    arrays |= {
        name: np.zeros((1, 3), kind)
        for name, kind in {
            "row": np.int32,
            "label": np.int32,
            "sign": np.float32,
            "weight": np.float32,
        }.items()
    }
    arrays |= {"apply": np.ones((1, 3), bool), "weight": np.ones((1, 3), np.float32)}
    kernels._native.forward_forward(arrays, 2, 10, True, 1)
    with pytest.raises(ValueError, match=words):
        kernels._native.forward_forward(arrays | change, 2, 10, True, 1)
