"""The ledger: what a rule has to store, which signals it needs, what an update costs.

Nothing is written down by hand: stores come from the shapes of the parts, signals from asking the
estimator and the process, operations from their programs, and writes, stretches and updates are
counted by an observer in a real run.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .checks import between
from .contract import check
from .core import Phase, Run, State, init, phase_keys
from .devices.device import OnDevice
from .operations import Operations, operations, reads_of
from .phases import Bernoulli, Fixed, Phases
from .training import train

ALWAYS = float("inf")


class Store(NamedTuple):
    """Numbers that have to be kept from one tick to the next."""

    what: str
    per: str  # synapse, neuron or chip
    words: float  # numbers for each of them
    held: float  # the longest stretch for which it was needed, in ticks; inf: always
    rewritten: float  # ticks between two changes of it; inf: it never changes


class Costs(NamedTuple):
    """Energy of a weight that is read, of a number that is written (weights and stores), and of
    another operation, all in one unit, such as joule.
    """

    read: float = 0.0
    write: float = 0.0
    operation: float = 0.0


class Tally(NamedTuple):
    """What a tick costs on average."""

    reads: float  # weights read by the network
    operations: float  # everything else that is computed
    random: float  # random numbers for units, phases and devices
    writes: float  # weights that changed
    store_writes: float  # other numbers that changed: memory of the estimator, of the optimiser

    def energy(self, costs: Costs) -> float:
        written = self.writes + self.store_writes
        spent = costs.read * self.reads + costs.write * written
        return spent + costs.operation * self.operations


class Ledger(NamedTuple):
    """What a run needs; see `ledger`."""

    synapses: int
    neurons: int
    stores: list[Store]
    signals: dict[str, bool]
    counts: dict[str, float]
    tick: Tally

    def energy(self, costs: Costs) -> dict[str, float]:
        """Per tick, phase and update, in the unit of the costs."""
        each = self.tick.energy(costs)
        return {
            "tick": each,
            "phase": each * self.counts["ticks_per_phase"],
            "update": each * self.counts["ticks_per_update"],
        }

    def as_dict(self, costs: Costs | None = None) -> dict[str, Any]:
        """Plain values, for JSON."""
        whole = {
            "synapses": self.synapses,
            "neurons": self.neurons,
            "stores": [store._asdict() for store in self.stores],
            "signals": self.signals,
            "counts": self.counts,
            "per_tick": self.tick._asdict(),
        }
        return whole if costs is None else whole | {"energy": self.energy(costs)}

    def words(self, per: str = "synapse") -> float:
        """Numbers to be stored beside the weight or the state itself."""
        own = ("weight", "activity")
        return sum(s.words for s in self.stores if s.per == per and s.what not in own)


#: Signals in words; `ledger` decides which a rule needs.
SIGNALS = {
    "phase_sign": "every synapse knows the sign of the phase",
    "phase_end": "a mark at the end of a phase",
    "learning_switch": "learning is switched on and off",
    "alternation": "phases must alternate",
    "clock": "phases of a fixed length: something counts ticks",
    "random_sign": "random bits choose the sign of a phase",
    "random_length": "random bits choose the length of a phase",
    "knows_b": "the step depends on the probability of a phase",
    "knows_tau": "the step depends on the mean length of a phase",
    "random_units": "units draw random numbers",
    "random_writes": "writes draw random numbers",
}


class Metered(NamedTuple):
    """What `Meter` carries along."""

    before: Any  # parameters, memory, optimiser's state
    writes: Any  # per parameter: ticks at which it changed
    store_writes: Array  # numbers of memory and optimiser that changed
    changes: Array  # (2,): ticks at which memory, optimiser's state changed
    held: Array  # ticks after which the memory holds something
    stretch: Array  # of them in a row, until now
    longest: Array
    crossings: Array  # ends of phases at which it holds something


def kept_by(state: State, on_device: bool) -> tuple[Any, Any]:
    """Memory of the estimator, and what the optimiser remembers; what a device is made of, and
    keys, are no memory.
    """
    opt = (state.opt[0], state.opt[1].queue) if on_device else state.opt
    return state.memory, [leaf for leaf in jax.tree.leaves(opt) if not _is_key(leaf)]


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _differing(a: Any, b: Any) -> Array:
    """How many numbers differ."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return sum((jnp.sum(x != y) for x, y in pairs), jnp.int32(0))


class Meter(eqx.Module):
    """Counts writes of weights, and what estimator and optimiser hold and rewrite."""

    on_device: bool = eqx.field(static=True, default=False)

    def seen(self, state: State) -> tuple[Any, Any, Any]:
        return state.params, *kept_by(state, self.on_device)

    def init(self, state: State) -> Metered:
        zero = jnp.int32(0)
        writes = jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.int32), state.params)
        return Metered(
            self.seen(state), writes, zero, jnp.zeros(2, jnp.int32), zero, zero, zero, zero
        )

    def see(self, carry: Metered, state: State) -> Metered:
        now = params, memory, opt = self.seen(state)
        moved = jnp.stack([_differing(memory, carry.before[1]), _differing(opt, carry.before[2])])
        full = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(memory)]
        holds = jnp.any(jnp.stack(full)) if full else jnp.bool_(False)
        stretch = holds * (carry.stretch + 1)
        return Metered(
            before=now,
            writes=jax.tree.map(
                lambda n, a, b: n + (a != b), carry.writes, params, carry.before[0]
            ),
            store_writes=carry.store_writes + moved.sum(),
            changes=carry.changes + (moved > 0),
            held=carry.held + holds,
            stretch=stretch,
            longest=jnp.maximum(carry.longest, stretch),
            crossings=carry.crossings + (holds & state.during.last),
        )

    def result(self, carry: Metered) -> dict[str, Array]:
        writes = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(carry.writes)])
        rest = carry._asdict()
        return {"writes": writes} | {n: v for n, v in rest.items() if n not in ("before", "writes")}


def ledger(
    run: Run, phases: int = 20, *, params: Any = None, seed: int = 0, ticks: int | None = None
) -> Ledger:
    """What a run stores, which signals it needs and what it costs.

    Args:
        run: the experiment; any method, process, estimator and optimiser.
        phases: how long the counted run is (at least 200 ticks, at most 20,000).
        params: parameters to start from, such as those of a trained machine.
        seed: of the counted run.
        ticks: its length in ticks, in the place of phases.

    Example: `ledger(run).signals["learning_switch"]`, `print(table({"AoL": ledger(run)}))`.
    """
    check(run)
    tau = float(run.process.mean_length)
    length = ticks or int(np.clip(round(phases * tau), 200, 20_000))
    on_device = isinstance(run.optimiser, OnDevice)
    record = train(
        run,
        ticks=length,
        seed=seed,
        params=params,
        records=1,
        engine="jax",
        observers={"meter": Meter(on_device)},
    )
    seen = {name: np.asarray(v)[0] for name, v in record.observed("meter").items()}
    clocks = {name: int(record[name].values[0, -1]) for name in ("ticks", "phases", "updates")}
    state = jax.eval_shape(lambda key: init(run, key), jax.random.key(0))
    work = work_of(run, state)
    n = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    counts = counted(clocks, seen)
    return Ledger(
        synapses=n,
        neurons=neurons(run, state),
        stores=stores(run, state, clocks, seen),
        signals=signals(run)
        | {
            "random_units": work["network"].random > 0,
            "random_writes": work["optimiser"].random > 0,
        },
        counts=counts,
        tick=tally(work, clocks, seen),
    )


def counted(clocks: dict[str, int], seen: dict[str, Any]) -> dict[str, float]:
    """The numbers that were counted, per phase and per update."""
    ticks, phases, updates = (max(clocks[name], 1) for name in ("ticks", "phases", "updates"))
    written = seen["writes"][seen["writes"] > 0]
    mean = float(written.mean()) if len(written) else 0.0
    return clocks | {
        "ticks_per_phase": ticks / phases,
        "ticks_per_update": ticks / updates,
        "writes_per_synapse": mean,
        "most_writes": int(seen["writes"].max()),
        "writes_per_synapse_and_phase": mean / phases,
        "writes_per_synapse_and_update": mean / updates,
        "share_of_time_held": float(seen["held"]) / ticks,
        "longest_held": int(seen["longest"]),
        "phase_ends_crossed": int(seen["crossings"]),
    }


def neurons(run: Run, state: State) -> int:
    """Numbers of the state that the local term depends on."""
    args = (state.params, state.z, state.x, state.phase.sign)
    used = reads_of(run.method.grad, *args)
    before = len(jax.tree.leaves(state.params))
    z = jax.tree.leaves(state.z)
    mine = zip(z, used[before : before + len(z)], strict=True)
    return sum(leaf.size for leaf, reads in mine if reads) or sum(leaf.size for leaf in z)


def stores(run: Run, state: State, clocks: dict[str, int], seen: dict[str, Any]) -> list[Store]:
    """Everything that a tick leaves behind for the next one, from the shapes of the state."""
    on_device = isinstance(run.optimiser, OnDevice)
    opt = state.opt[0] if on_device else state.opt
    units = neurons(run, state)
    ticks, z = clocks["ticks"], sum(leaf.size for leaf in jax.tree.leaves(state.z))
    writes = max(int((seen["writes"] > 0).sum()), 1)
    rate = ALWAYS if not seen["writes"].sum() else ticks * writes / float(seen["writes"].sum())
    found = [Store("weight", "synapse", 1, ALWAYS, rate), Store("activity", "neuron", 1, ALWAYS, 1)]
    if z > units:
        found.append(Store("second state (chain)", "neuron", (z - units) / units, ALWAYS, 1))
    if on_device and run.optimiser.device.delay:
        late = run.optimiser.device.delay
        found.append(Store("changes on their way", "synapse", late, late, 1))
    longest = int(seen["longest"])
    held = ALWAYS if longest >= ticks - 1 else longest
    parts = {
        f"memory of {type(run.estimator).__name__}": (state.memory, held, seen["changes"][0]),
        "state of the optimiser": (opt, ALWAYS, seen["changes"][1]),
        "state of the process": (state.process, ALWAYS, clocks["phases"]),
    }
    for what, (tree, kept, changes) in parts.items():
        often = ticks / changes if changes else ALWAYS
        found += [Store(what, per, words, kept, often) for per, words in sizes(tree, state.params)]
    return found


def sizes(tree: Any, params: Any) -> list[tuple[str, float]]:
    """Numbers per synapse (arrays of the shapes of parameters) and per chip (the others)."""
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    n = sum(leaf.size for leaf in jax.tree.leaves(params))
    leaves = jax.tree.leaves(tree)
    like = sum(leaf.size for leaf in leaves if leaf.shape in shapes)
    others = sum(leaf.size for leaf in leaves if leaf.shape not in shapes)
    counts = {"synapse": like / n, "chip": float(others)}
    return [(per, words) for per, words in counts.items() if words]


def signals(run: Run) -> dict[str, bool]:
    """Which signals estimator and process need: asked, not looked up."""
    steps, applies = asked(run)
    same_sign = asked(run, signs=(1, 1))[0], asked(run, signs=(-1, -1))[0]
    acts = applies | (np.abs(steps) > 0)
    ends, inner = acts[:, -1], acts[:, 1:-1]
    keys = jax.random.split(jax.random.key(0), 64)
    drawn = jax.vmap(lambda k: _first_phases(run, k))(keys)
    sign, ticks = np.asarray(drawn.sign), np.asarray(drawn.ticks)
    return {
        "phase_sign": not np.array_equal(*same_sign),
        "phase_end": bool(
            (ends.any() and not inner.all()) or (applies[:, -1] != applies[:, 1]).any()
        ),
        "learning_switch": not applies[1:].all(),
        "alternation": _needs_alternation(run),
        "clock": bool((ticks == ticks[:1]).all()),
        "random_sign": bool((sign != sign[:1]).any()),
        "random_length": bool((ticks != ticks[:1]).any()),
        "knows_b": not np.array_equal(steps, asked(run, prob=0.25)[0]),
        "knows_tau": not np.array_equal(steps, asked(run, length=50.0)[0]),
    }


def asked(
    run: Run, signs: tuple[int, int] = (1, -1), prob: float = 0.5, length: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """What the estimator makes of two pairs of phases of five ticks, with a term that changes from
    tick to tick: (phases, ticks) sizes of the step and whether it is taken.
    """
    params = jnp.ones(3)
    memory, steps, applies = run.estimator.init(params), [], []
    for i, sign in enumerate(signs * 2):
        for left in range(5, 0, -1):
            numbers = (jnp.float32(v) for v in (sign, prob, length))
            phase = Phase(*numbers, jnp.int32(5), jnp.int32(left))
            g = params * (1 + 0.1 * i + 0.01 * left)
            step, apply, memory = run.estimator.update(phase, g, memory)
            steps.append(float(step.sum()) * bool(apply))
            applies.append(bool(apply))
    return np.array(steps).reshape(4, 5), np.array(applies).reshape(4, 5)


def _first_phases(run: Run, key: Array) -> Phase:
    """Phases 0 to 3 of a lane."""

    def following(state: Any, n: Array) -> tuple[Any, Phase]:
        phase, state = run.process.step(phase_keys(key, n)[0], n, state)
        return state, phase

    return jax.lax.scan(following, run.process.init(key), jnp.arange(4, dtype=jnp.int32))[1]


def _needs_alternation(run: Run) -> bool:
    try:
        run.estimator.check(Phases(Bernoulli(0.5), Fixed(1)))
    except ValueError:
        return True
    return False


def work_of(run: Run, state: State) -> dict[str, Operations]:
    """What a tick of each part computes."""
    key, params, z, x, sign = state.key, state.params, state.z, state.x, state.phase.sign
    g = jax.eval_shape(run.method.grad, params, z, x, sign)
    return {
        "network": operations(run.method.step, key, params, z, x, sign),
        "term": operations(run.method.grad, params, z, x, sign),
        "estimator": operations(run.estimator.update, state.phase, g, state.memory),
        "optimiser": operations(run.optimiser.update, g, state.opt, params),
    }


def tally(work: dict[str, Operations], clocks: dict[str, int], seen: dict[str, Any]) -> Tally:
    """Averages over the counted run: the optimiser works at updates only."""
    ticks = clocks["ticks"]
    share = clocks["updates"] / ticks
    always = work["network"] + work["term"] + work["estimator"]
    return Tally(
        reads=float(always.reads),
        operations=always.others + share * work["optimiser"].others,
        random=always.random + share * work["optimiser"].random,
        writes=float(seen["writes"].sum()) / ticks,
        store_writes=float(seen["store_writes"]) / ticks,
    )


def costs_of(read: Any = 0, write: Any = 0, operation: Any = 0) -> Costs:
    """Costs, checked: none may be negative."""
    given = {"read": read, "write": write, "operation": operation}
    return Costs(**{k: float(between(v, f"the cost of a {k}", 0)) for k, v in given.items()})


def table(ledgers: dict[str, Ledger], costs: Costs | None = None) -> str:
    """The ledgers side by side, as Markdown."""
    rows: list[tuple[str, list[str]]] = []

    def row(words: str, values: list[str]) -> None:
        rows.append((words, values))

    every = list(ledgers.values())
    for per in ("synapse", "neuron", "chip"):
        names = dict.fromkeys(s.what for one in every for s in one.stores if s.per == per)
        for name in names:
            row(f"{name}, numbers per {per}", [_stored(one, name, per) for one in every])
    for name, words in SIGNALS.items():
        row(words, ["yes" if one.signals[name] else "-" for one in every])
    for name, words in {
        "ticks_per_update": "ticks per update",
        "writes_per_synapse_and_phase": "writes per synapse and phase",
    }.items():
        row(words, [f"{one.counts[name]:.3g}" for one in every])
    for name, words in {
        "reads": "weights read per tick",
        "operations": "other operations per tick",
        "random": "random numbers per tick",
    }.items():
        row(words, [f"{getattr(one.tick, name):.3g}" for one in every])
    if costs is not None:
        for name in ("tick", "phase", "update"):
            row(f"energy per {name}", [f"{one.energy(costs)[name]:.3g}" for one in every])
    head = ["", *ledgers]
    lines = [head, ["---"] * len(head), *([words, *values] for words, values in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _stored(one: Ledger, what: str, per: str) -> str:
    for store in one.stores:
        if (store.what, store.per) == (what, per):
            held = "always" if store.held == ALWAYS else f"up to {store.held:.0f} ticks"
            return f"{store.words:.3g}, {held}"
    return "-"
