"""The ledger: what a rule has to store, which signals it needs, what an update costs.

Stores come from the shapes of the state, signals from trying estimator and process, operations
from their jaxprs, and writes are counted in a real run.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from ..checks import count, from_zero
from ..contract import check, complete
from ..core import Run, State, init
from ..training import train
from .meter import Meter
from .operations import Operations, operations
from .signals import SIGNALS, signals
from .stores import ALWAYS, Store, neurons, size, stores

#: Numbers of a table, in words.
COUNTS = {
    "ticks_per_update": "ticks per update",
    "writes_per_synapse_and_phase": "writes per synapse and phase",
    "reads": "weights read per tick",
    "operations": "other operations per tick",
    "random": "random numbers per tick",
}


class Ledger(NamedTuple):
    """What a run needs; made by `ledger`, shown by `table`."""

    synapses: int
    neurons: int
    stores: list[Store]
    signals: dict[str, bool]  # by the names of `SIGNALS`
    counts: dict[str, float]  # of the counted run, and per phase, update and synapse
    per_tick: dict[str, float]  # weights read, operations, random numbers, writes

    def words(self, per: str = "synapse") -> float:
        """Numbers to be stored for each, beside the weight or the activity itself."""
        own = ("weight", "activity")
        return sum(s.words for s in self.stores if s.per == per and s.what not in own)

    def energy(self, read: float = 0, write: float = 0, operation: float = 0) -> dict[str, float]:
        """Energy per tick, phase and update.

        Args:
            read: what it costs to read a weight, in any unit, such as joule.
            write: to write a number, be it a weight or a store.
            operation: to do any other operation.
        """
        costs = {"read": read, "write": write, "operation": operation}
        for name, cost in costs.items():
            from_zero(cost, f"the cost of a {name}")
        done = self.per_tick
        each = read * done["reads"] + operation * done["operations"]
        each += write * (done["writes"] + done["store_writes"])
        return {
            "tick": each,
            "phase": each * self.counts["ticks_per_phase"],
            "update": each * self.counts["ticks_per_update"],
        }

    def as_dict(self, costs: dict[str, float] | None = None) -> dict[str, Any]:
        """Plain values, for JSON, with the energy if costs are given."""
        plain = self._asdict() | {"stores": [store._asdict() for store in self.stores]}
        return plain if costs is None else plain | {"energy": self.energy(**costs)}


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

    Returns: a `Ledger` with `synapses`, `neurons`, `stores`, `signals`, `counts` and `per_tick`;
    its functions `words` and `energy` add them up.

    Example: `ledger(run).signals["learning_switch"]`, `ledger(run).energy(write=1e-11)["update"]`.
    """
    complete(run)
    check(run)
    length = run_length(run, phases) if ticks is None else count(ticks, "ticks")
    how = {"seed": seed, "params": params, "records": 1, "engine": "jax"}
    record = train(run, ticks=length, observers={"meter": Meter()}, **how)
    seen = {name: np.asarray(v)[0] for name, v in record.observed("meter").items()}
    clocks = {name: int(record[name].values[0, -1]) for name in ("ticks", "phases", "updates")}
    state = jax.eval_shape(lambda key: init(run, key), jax.random.key(0))
    network, optimiser = work(run, state)
    drawn = {"random_units": network.random > 0, "random_writes": optimiser.random > 0}
    longest = float(seen["longest"])
    return Ledger(
        synapses=size(state.params),
        neurons=neurons(run, state),
        stores=stores(run, state, ALWAYS if longest >= clocks["ticks"] - 1 else longest),
        signals=signals(run) | drawn,
        counts=counted(clocks, seen),
        per_tick=per_tick(network, optimiser, clocks, seen),
    )


def run_length(run: Run, phases: int) -> int:
    """Ticks of the counted run: enough to see something, and no more than are counted in time."""
    ticks = count(phases, "phases") * float(run.process.mean_length)
    return int(np.clip(round(ticks), 200, 20_000))


def work(run: Run, state: State) -> tuple[Operations, Operations]:
    """What is computed at a tick (network, term and estimator), and more at an update."""
    args = (state.params, state.z, state.x, state.phase.sign)
    g = jax.eval_shape(run.method.grad, *args)
    always = operations(run.method.step, state.key, *args) + operations(run.method.grad, *args)
    always += operations(run.estimator.update, state.phase, g, state.memory)
    return always, operations(run.optimiser.update, g, state.opt, state.params)


def counted(clocks: dict[str, int], seen: dict[str, Any]) -> dict[str, float]:
    """The numbers of the run; writes are the mean over the synapses that were written at all."""
    ticks, phases, updates = (max(clocks[name], 1) for name in ("ticks", "phases", "updates"))
    written = seen["writes"][seen["writes"] > 0]
    mean = float(written.mean()) if len(written) else 0.0
    return {
        **clocks,
        "ticks_per_phase": ticks / phases,
        "ticks_per_update": ticks / updates,
        "writes_per_synapse": mean,
        "most_writes": int(seen["writes"].max()),
        "writes_per_synapse_and_phase": mean / phases,
        "writes_per_synapse_and_update": mean / updates,
        "longest_held": int(seen["longest"]),
        "phase_ends_crossed": int(seen["crossings"]),
    }


def per_tick(
    network: Operations, optimiser: Operations, clocks: dict[str, int], seen: dict[str, Any]
) -> dict[str, float]:
    """Averages over the run: the optimiser works at updates only."""
    ticks = clocks["ticks"]
    share = clocks["updates"] / ticks
    return {
        "reads": float(network.reads),
        "operations": network.others + share * optimiser.others,
        "random": network.random + share * optimiser.random,
        "writes": float(seen["writes"].sum(dtype=np.int64)) / ticks,
        "store_writes": float(seen["store_writes"].sum(dtype=np.int64)) / ticks,
    }


def table(ledgers: dict[str, Ledger], costs: dict[str, float] | None = None) -> str:
    """The ledgers side by side, as Markdown; with the energy if costs are given."""
    every = list(ledgers.values())
    rows = [["", *ledgers], ["---"] * (len(every) + 1)]
    kinds = dict.fromkeys((s.what, s.per) for one in every for s in one.stores)
    for what, per in kinds:
        rows.append([f"{what}, numbers per {per}", *(stored(one, what, per) for one in every)])
    for name, words in SIGNALS.items():
        rows.append([words, *("yes" if one.signals[name] else "-" for one in every)])
    for name, words in COUNTS.items():
        rows.append([words, *(f"{(one.counts | one.per_tick)[name]:.3g}" for one in every)])
    for name in ("tick", "phase", "update") if costs is not None else ():
        spent = (one.energy(**costs or {})[name] for one in every)
        rows.append([f"energy per {name}", *(f"{energy:.3g}" for energy in spent)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def stored(one: Ledger, what: str, per: str) -> str:
    """A cell of the table."""
    for store in one.stores:
        if (store.what, store.per) == (what, per):
            held = "always" if store.held == ALWAYS else f"up to {store.held:.0f} ticks"
            return f"{store.words:.3g}, {held}"
    return "-"
