"""What holds for learners, grids and records of every shape, and not only of those that the other
tests chose.
"""

import json
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import flexphase as fp
from flexphase import estimators
from flexphase.core import init, tick
from flexphase.describe import describe
from flexphase.lanes import lanes
from flexphase.methods.boltzmann import two_colours
from flexphase.record import Record
from flexphase.record_schema import CLOCKS

units, flags, seeds = st.integers(1, 5), st.booleans(), st.integers(0, 2**31 - 9)
starts = st.sampled_from(["carry", "data", "persistent", "random"])
probabilities, means, rates = st.floats(0.01, 0.99), st.floats(1, 6), st.floats(1e-6, 1)
durations = st.one_of(st.builds(fp.Fixed, st.integers(1, 6)), st.builds(fp.Geometric, means))
TICKS = 30


def numbers(draw, *shape):
    return np.random.default_rng(draw(st.integers(0, 99))).random(shape, np.float32)


def masks(draw, n):
    upper = np.triu(numbers(draw, n, n) < 0.6, 1)
    return upper | upper.T


def rbm(draw):
    visible, hidden = draw(units), draw(units)
    return fp.RBM(visible, hidden, draw(flags), draw(starts), 0.5), fp.Rows(
        numbers(draw, draw(units), visible).round()
    )


def boltzmann(draw):
    visible, hidden = draw(units), draw(st.integers(0, 4))
    mask, sweep = (
        masks(draw, visible + hidden),
        draw(st.sampled_from(["sequential", "chequerboard"])),
    )
    if sweep == "chequerboard":  # visible to hidden only: two colours
        mask[:visible, :visible] = mask[visible:, visible:] = False
    method = fp.BoltzmannMachine(visible, hidden, mask, sweep, draw(flags), draw(starts), 0.5)
    return method, fp.Rows(numbers(draw, draw(units), visible).round())


def forward_forward(draw):
    pixels, rows = draw(st.integers(3, 8)), draw(units)
    classes, layers = (
        draw(st.integers(2, pixels - 1)),
        draw(st.lists(units, min_size=1, max_size=3)),
    )
    source = fp.LabelContrast(
        numbers(draw, rows, pixels), np.arange(rows) % classes, classes, draw(flags)
    )
    return fp.ForwardForward((pixels, *layers), classes, draw(st.floats(0.1, 3))), source


def equilibrium_propagation(draw):
    sizes, rows = draw(st.lists(units, min_size=2, max_size=4)), draw(units)
    method = fp.EquilibriumPropagation(
        sizes,
        draw(st.floats(0.1, 1)),
        draw(st.floats(0.1, 1)),
        centred=draw(flags),
        reset=draw(flags),
    )
    return method, fp.Rows((numbers(draw, rows, sizes[0]), numbers(draw, rows, sizes[-1])))


@eqx.filter_jit
def watch(run, key):
    """The state before the first tick, and after every one; `scan` itself insists that shapes and
    types stay.
    """

    def body(state, _):
        new = tick(run, state)
        return new, new._replace(key=())

    start = init(run, key)
    return start._replace(key=()), jax.lax.scan(body, start, None, TICKS)[1]


@pytest.mark.parametrize("kind", [rbm, boltzmann, forward_forward, equilibrium_propagation])
@settings(max_examples=4)
@given(st.data())
def test_learners_of_every_shape_keep_the_rules(kind, data):
    """Clocks, updates, memory and units after every tick, from the definitions of eqs. 1, 2 and
    4.
    """
    method, source = kind(data.draw)
    selection = data.draw(
        st.one_of(st.just(fp.Alternating()), st.builds(fp.Bernoulli, probabilities))
    )
    process = fp.Phases(selection, data.draw(durations), data.draw(durations))
    estimator = data.draw(
        st.sampled_from(["isd", "always_on"] + ["two_term"] * selection.alternates)
    )
    run = fp.Run(method, process, getattr(estimators, estimator), source, fp.Optimiser(0.05))
    start, seen = jax.tree.map(np.asarray, watch(run, jax.random.key(data.draw(seeds))))

    phase, last = seen.phase, seen.phase.left == 0
    assert (seen.ticks == 1 + np.arange(TICKS)).all()
    assert (seen.ticks == np.cumsum(last * phase.ticks) + ~last * (phase.ticks - phase.left)).all()
    assert (seen.phases == np.cumsum(last)).all()
    applied = {"two_term": last & (phase.sign < 0), "isd": last, "always_on": np.full(TICKS, True)}[
        estimator
    ]
    assert (seen.updates == np.cumsum(applied)).all()
    for first, p in zip(*map(jax.tree.leaves, (start.params, seen.params)), strict=True):
        assert np.isfinite(p).all()
        assert np.array_equal(p[~applied], np.concatenate([first[None], p[:-1]])[~applied])
    memory = jax.tree.leaves(seen.memory)
    assert bool(memory) == (estimator == "two_term")
    assert not any(g_plus[applied].any() for g_plus in memory)
    if isinstance(method, (fp.RBM, fp.BoltzmannMachine)):
        assert np.isin(seen.z.v, (0, 1)).all() and np.isin(seen.z.h, (0, 1)).all()
        assert np.array_equal(seen.z.v[phase.sign > 0], seen.x[phase.sign > 0])
    if isinstance(method, fp.BoltzmannMachine):
        W = seen.params.W
        assert np.array_equal(W, W.swapaxes(1, 2)) and not W[:, ~np.asarray(method.mask)].any()


@given(st.integers(1, 8), st.data())
def test_two_colours_are_found_exactly_where_no_cycle_is_odd(n, data):
    """A graph has an odd closed walk, a diagonal entry of an odd power of its matrix, unless it has
    two colours.
    """
    mask = masks(data.draw, n)
    if any(np.linalg.matrix_power(mask.astype(int), k).trace() for k in range(1, n + 1, 2)):
        with pytest.raises(ValueError, match="odd cycle"):
            two_colours(mask)
    else:
        colour = two_colours(mask)
        assert np.isin(colour, (0, 1)).all() and not (mask & (colour[:, None] == colour)).any()


@given(st.floats(1, 1e8, width=32), st.floats(0, 1, exclude_max=True, width=32))
def test_a_geometric_length_is_the_inverse_of_its_distribution_function(tau, u):
    """P(T < k) <= u <= P(T <= k) in float64, with k allowed to be off by the float32 rounding of
    the two logarithms.
    """

    def below(k):
        return -np.expm1(k * np.log1p(-1 / tau)) if tau > 1 else float(k >= 1)

    k = int(fp.Geometric(tau).draw(jnp.float32(u)))
    slack = 4 * np.finfo(np.float32).eps * (k + tau)
    assert k >= 1 and below(max(k - 1 - slack, 0)) <= u + 1e-7 and u <= below(k + slack) + 1e-7


def a_run(b=0.4, tau=3.0, eta=0.05):
    return fp.Run(
        fp.RBM(4, 3), *fp.aol_random(b, tau), fp.Rows(fp.bars_and_stripes(2)), fp.Optimiser(eta)
    )


some = partial(st.lists, min_size=1, max_size=3)
axes = st.fixed_dictionaries(
    {}, optional={"b": some(probabilities), "tau": some(means), "eta": some(rates)}
)


@given(axes, units, seeds, st.data())
def test_every_lane_has_the_numbers_and_the_key_of_its_place_in_the_grid(axes, n, seed, data):
    made = lanes(fp.grid(a_run, **axes), n, seed)
    assert made.shape == (*map(len, axes.values()), n) and list(made.dims) == [*axes, "seed"]
    lane = data.draw(st.integers(0, len(made.keys) - 1))
    *point, i = np.unravel_index(lane, made.shape)
    alone = a_run(**{name: axis[p] for (name, axis), p in zip(axes.items(), point, strict=True)})
    assert (
        jnp.array_equal(made.keys[lane], jax.random.key(seed + i))
        and made.dims["seed"][i] == seed + i
    )
    its = jax.tree.map(
        lambda leaf, axis: leaf if axis is None else leaf[lane],
        eqx.filter(made.run, eqx.is_array),
        made.axes,
    )
    assert eqx.tree_equal(its, eqx.filter(alone, eqx.is_array))


@pytest.mark.codegen
@settings(max_examples=3)
@given(axes, st.integers(1, 3), seeds, st.data())
def test_a_lane_alone_is_itself_among_any_others(axes, n, seed, data):
    """Bit for bit."""
    many = fp.train(fp.grid(a_run, **axes), ticks=40, seeds=n, seed=seed, records=2, engine="jax")
    point = {name: data.draw(st.integers(0, len(axis) - 1)) for name, axis in axes.items()}
    i = data.draw(st.integers(0, n - 1))
    run = a_run(**{name: axes[name][p] for name, p in point.items()})
    alone = fp.train(run, ticks=40, seed=seed + i, records=2, engine="jax")
    among = many.dataset.isel(**point, seed=[i])
    assert set(alone.dataset) == set(among)
    for name, value in alone.dataset.items():
        assert np.array_equal(value, among[name]), name


def size(params):
    return params.W.sum()


letters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/.")
taken = (*CLOCKS, "record", "diverged_at", "seed")
words = st.text(letters, min_size=1, max_size=8).filter(
    lambda word: word not in taken and not word.startswith("params")
)


@settings(max_examples=12)
@given(
    st.lists(rates, min_size=2, max_size=2), st.lists(words, min_size=2, max_size=2, unique=True)
)
def test_records_with_any_names_come_back_from_disk_as_they_were(tmp_path_factory, eta, names):
    axis, metric = names
    sweep = fp.grid(lambda **at: a_run(eta=at[axis]), **{axis: eta})
    record = fp.train(sweep, ticks=2, records=1, metrics={metric: size}, engine="jax")
    back = Record.load(record.save(tmp_path_factory.mktemp("records") / "record.nc"))
    xr.testing.assert_identical(back.dataset, record.dataset)
    assert (
        back.config == record.config
        and back.metrics == [metric]
        and back.final().dims == (axis, "seed")
    )


single = st.builds(np.float32, st.floats(-9, 9, width=32))
leaves = st.one_of(
    st.none(), flags, st.integers(), st.floats(allow_nan=False), st.text(max_size=3), single
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@given(trees)
def test_descriptions_survive_json(tree):
    assert json.loads(json.dumps(describe(tree))) == describe(tree)
