"""The ledger against runs that are counted tick by tick in NumPy, against closed forms, and against
what the paper says of each rule.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import flexphase as fp
from flexphase import estimators, ledger
from flexphase.catalogue import RULES as NAMED
from flexphase.core import init, tick
from flexphase.costs.ledger import ALWAYS, table
from flexphase.costs.meter import Meter
from flexphase.costs.operations import operations
from flexphase.costs.signals import of_estimator

T = 4
DATA = fp.bars_and_stripes(2)
SOURCE = fp.Rows(DATA[DATA.any(1)])  # rows of zeros have a term of zeros, which looks like none
#: Every rule that `--rule` names.
RULES = {name: rule.build(argparse.Namespace(b=0.5, length=T)) for name, rule in NAMED.items()}
TWO_TERM = {"phase_sign", "phase_end", "learning_switch", "alternation", "clock"}
#: What eqs. 1, 2, 4 and 5 ask for, in the paper's own words: memory, alternation, a switch, an end.
NEEDS = {
    "cd": TWO_TERM,
    "two-term": TWO_TERM,
    "isd": {"phase_sign", "phase_end", "learning_switch", "clock", "random_sign", "knows_b"},
    "aol": {"phase_sign", "clock", "random_sign", "knows_b", "knows_tau"},
    "aol-random": {"phase_sign", "random_sign", "random_length", "knows_b", "knows_tau"},
}


def run(rule, optimiser=None):
    method = fp.RBM(4, 3, scale=0.5)
    return fp.Run(method, *rule, SOURCE, optimiser or fp.Optimiser(0.1))


@pytest.fixture(scope="module")
def ledgers():
    return {name: ledger(run(rule), ticks=240) for name, rule in RULES.items()}


def instrumented(one, ticks, seed=0):
    """Parameters, memory and clocks after every tick, as arrays; nothing of the ledger is used."""

    def body(state, _):
        new = tick(one, state)
        flat = [jnp.ravel(leaf) for leaf in jax.tree.leaves(new.memory)]
        memory = jnp.concatenate(flat) if flat else jnp.zeros(1)
        params = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(new.params)])
        return new, (params, memory, new.updates, new.phases, new.phase.left)

    start = init(one, jax.random.key(seed))
    begin = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(start.params)])
    seen = jax.jit(lambda s: jax.lax.scan(body, s, None, ticks)[1])(start)
    return begin, *map(np.asarray, seen)


@pytest.mark.parametrize("name", RULES)
def test_counts_are_those_of_an_instrumented_run(name, ledgers):
    begin, params, memory, updates, phases, left = instrumented(run(RULES[name]), 240)
    writes = (np.diff(np.vstack([begin[None], params]), axis=0) != 0).sum(0)
    held = (memory != 0).any(1)
    stretches = "".join("x" if h else " " for h in held).split()
    counts = ledgers[name].counts
    assert (counts["updates"], counts["phases"]) == (updates[-1], phases[-1])
    assert counts["writes_per_synapse"] == pytest.approx(writes[writes > 0].mean())
    assert counts["most_writes"] == writes.max()
    assert counts["longest_held"] == max(map(len, stretches), default=0)
    assert counts["phase_ends_crossed"] == (held & (left == 0)).sum()
    assert ledgers[name].per_tick["writes"] == pytest.approx(writes.sum() / 240)


@pytest.mark.parametrize("name", RULES)
def test_signals_are_those_of_the_paper(name, ledgers):
    needed = {signal for signal, needs in ledgers[name].signals.items() if needs}
    assert needed == NEEDS[name] | {"random_units"}
    per_update = {"pair": 2 * T, "phase": T, "tick": 1}[NAMED[name].update]
    assert ledgers[name].counts["ticks_per_update"] == pytest.approx(per_update)


def test_two_term_stores_one_term_per_synapse_for_a_whole_phase(ledgers):
    """And crosses the end of every positive phase; ISD and always-on learning store nothing."""
    (stored,) = (s for s in ledgers["cd"].stores if s.what == "memory of TwoTerm")
    assert (stored.per, stored.words, stored.held) == ("synapse", 1, T)
    assert ledgers["cd"].counts["phase_ends_crossed"] == ledgers["cd"].counts["phases"] / 2
    for name in ("isd", "aol", "aol-random"):
        assert ledgers[name].words("synapse") == 0
        assert ledgers[name].counts["longest_held"] == 0
        assert [s.what for s in ledgers[name].stores] == ["weight", "activity"]


def test_writes_to_stores_are_counted_beyond_32_bits():
    """A memory of 2^20 numbers that changes at each of 2,100 ticks is written 2^20 x 2,100 times,
    more than 2^31.
    """
    start, n, ticks = init(run(RULES["cd"]), jax.random.key(0)), 2**20, 2100
    start = start._replace(memory=jnp.zeros(n), opt=())
    meter = Meter()

    def see(i, carry):
        return meter.see(carry, start._replace(memory=jnp.full(n, 1.0 + i % 2)))

    carry = jax.jit(lambda carry: jax.lax.fori_loop(0, ticks, see, carry))(meter.init(start))
    seen = meter.result(carry)
    assert np.asarray(seen["store_writes"]).sum(dtype=np.int64) == n * ticks
    assert int(seen["longest"]) == ticks


def test_store_writes_of_adam():
    """Always on, both moments of every synapse change at every tick, and so does the count; the
    rows have no unit that is always off, and the terms of a tick no exact zero mean.
    """
    one = ledger(run(RULES["aol"], fp.Optimiser(0.01, optax.adam)), ticks=240)
    kept = 2 * one.synapses + 1
    assert 0.9 * kept < one.per_tick["store_writes"] <= kept


def test_memories_of_other_parts():
    """Adam keeps two numbers per synapse and one count; a delay of 3 ticks three changes; a chain
    is a second state; a baseline and the last term are one number per synapse.
    """
    adam = ledger(run(RULES["isd"], fp.Optimiser(0.01, optax.adam)), ticks=40)
    kept = {s.per: s.words for s in adam.stores if s.what == "state of the optimiser"}
    assert kept == {"synapse": 2, "chip": 1}
    late = fp.OnDevice(fp.Optimiser(0.1), fp.Device(delay=3, pulse=0.1, rounding="stochastic"))
    delayed = ledger(run(RULES["aol"], late), ticks=40)
    assert delayed.words("synapse") == 3 and delayed.signals["random_writes"]
    chain = run(RULES["aol"])._replace(method=fp.RBM(4, 3, negative_start="persistent"))
    assert ledger(chain, ticks=40).words("neuron") == 1
    base = run(RULES["isd"])._replace(estimator=fp.Baseline(0.1))
    (mean,) = (s for s in ledger(base, ticks=40).stores if s.what == "memory of Baseline")
    assert mean.words == 1
    change = run(RULES["aol"])._replace(estimator=estimators.differential)
    found = {s.per: s for s in ledger(change, ticks=40).stores if "Differential" in s.what}
    assert found["synapse"].words == 1 and found["synapse"].held == ALWAYS
    assert found["chip"].words == 1  # is there a last term yet?


def test_operations_of_known_programs():
    """An RBM reads V H weights for each layer and draws a number per unit; a sweep over n joined
    units reads n^2; equilibrium propagation draws nothing.
    """
    key = jax.random.key(0)
    rbm, machine = fp.RBM(6, 5), fp.BoltzmannMachine(4, 3)
    for method, reads, units in ((rbm, 60, 11), (machine, 49, 7)):
        params, z = method.init(key)
        x, sign = jnp.ones(method.visible), jnp.float32(-1)
        counted = operations(method.step, key, params, z, x, sign)
        assert (counted.reads, counted.random) == (reads, units)
    ep = fp.EquilibriumPropagation((6, 5, 3))
    params, z = ep.init(key)
    counted = operations(ep.step, key, params, z, (jnp.ones(6), jnp.ones(3)), jnp.float32(1))
    assert counted.random == 0 and counted.reads == 6 * 5 + 2 * 5 * 3  # the last layer both ways


def test_energy_is_the_sum_of_what_is_done(ledgers):
    one = ledgers["cd"]
    energy = one.energy(read=2.0, write=3.0, operation=0.5)
    done = one.per_tick
    tick = 2 * done["reads"] + 3 * (done["writes"] + done["store_writes"])
    tick += 0.5 * done["operations"]
    assert energy["tick"] == pytest.approx(tick)
    assert energy["update"] == pytest.approx(tick * 2 * T)
    with pytest.raises(ValueError, match="cost of a write must be at least 0"):
        one.energy(write=-1)
    with pytest.raises(ValueError, match="phases must be a whole number, at least 1, not 0"):
        ledger(run(RULES["cd"]), 0)


def test_a_table_shows_them_side_by_side(ledgers):
    text = table(ledgers, {"read": 1, "write": 1, "operation": 1})
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in text.splitlines()}
    assert rows["memory of TwoTerm, numbers per synapse"][0] == f"1, up to {T} ticks"
    assert rows["memory of TwoTerm, numbers per synapse"][2] == "-"
    assert rows["learning is switched on and off"][:4] == ["yes", "yes", "yes", "-"]
    assert "energy per update" in rows


def test_only_the_two_term_rule_needs_phases_that_alternate():
    """`phase_change` refuses phases of one tick, whatever their order; that is another matter."""
    own = [estimators.two_term, estimators.isd, estimators.always_on]
    own += [estimators.differential, estimators.phase_change]
    assert [of_estimator(each)["alternation"] for each in own] == [True, *[False] * 4]
