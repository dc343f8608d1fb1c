"""Coupled learning in a network of resistors (Stern et al. 2021; as hardware Dillavou et al. 2022).

Voltages settle where the dissipated power P(v) = 1/2 sum_ij k_ij (v_i - v_j)^2 is least, given
those that are held: that is Kirchhoff's law. Two equal circuits share their resistors and their
inputs; the free one finds its outputs v_F by itself, in the nudged one they are held at v_C = v_F +
nudge (target - v_F). An edge learns from its own voltage drops, dP/dk = 1/2 drop^2:

    g_plus - g_minus = (1 / nudge) [ 1/2 (drop in the nudged circuit)^2 - 1/2 (in the free one)^2 ]

For nudge -> 0 this is (v_F - target) M dv_F/dk, the gradient of 1/2 |v_F - target|^2 measured with
M, the conductances between the outputs that remain when the inner nodes are eliminated.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import above_zero, count
from ..core import Key
from .layers import Pair, check_pairs


class Resistors(NamedTuple):
    k: Array  # conductance of each edge


class Twins(NamedTuple):
    """The voltages of both circuits, (nodes,) each."""

    free: Array
    nudged: Array


def power(params: Resistors, v: Array, edges: Array) -> Array:
    """P(v)."""
    return 0.5 * params.k @ (v[edges[:, 0]] - v[edges[:, 1]]) ** 2


def layered_edges(*sizes: int) -> np.ndarray:
    """Every node joined to every node of the next layer; nodes are numbered layer by layer.

    Args:
        sizes: the nodes of each layer: `layered_edges(4, 8, 2)`.

    Returns: (edges, 2) node numbers, for `ResistorNetwork`.
    """
    first = np.cumsum([0, *sizes])
    pairs = [
        np.stack(np.meshgrid(a + np.arange(n), b + np.arange(m), indexing="ij"), -1).reshape(-1, 2)
        for a, n, b, m in zip(first, sizes[:-1], first[1:], sizes[1:], strict=False)
    ]
    return np.concatenate(pairs)


class ResistorNetwork(eqx.Module):
    """Two equal circuits, one free and one nudged, that share their resistors and their inputs.

    The stimulus is a pair (input voltages, target voltages): `Rows((inputs, targets))`. A step
    relaxes both circuits, v_i += dt (mean of its neighbours weighted by conductance - v_i), as
    nodes do whose capacitance is proportional to their conductance.

    Args:
        edges: (edges, 2) node numbers from 0, such as `layered_edges` gives.
        inputs: the nodes that are held at the input voltages.
        outputs: the nodes that are nudged; an output is not an input.
        nudge: how far the outputs of the nudged circuit are moved towards the target, in (0, 1].
        dt: step of the relaxation, in (0, 1].
        twins: True: as in the hardware, an edge sees both circuits at once; g_plus is the whole
            difference, which needs no settled network, and negative phases rest (g_minus = 0).
            False: it sees the nudged circuit in positive phases, the free one in negative phases.
        spread: conductances begin uniform within 1 +- spread; in [0, 1).
        least: a conductance below it acts as `least`; above 0.
    """

    edges: Array
    inputs: Array
    outputs: Array
    nodes: int = eqx.field(static=True)
    nudge: Array
    dt: Array
    twins: bool = eqx.field(static=True)
    spread: float = eqx.field(static=True)
    least: float = eqx.field(static=True)

    def __init__(
        self,
        edges: Any,
        inputs: Any,
        outputs: Any,
        nudge: Any = 0.5,
        dt: Any = 1.0,
        twins: bool = True,
        spread: float = 0.5,
        least: float = 1e-3,
    ):
        joined = check_edges(edges)
        self.nodes = int(joined.max()) + 1
        held = [
            check_nodes(n, self.nodes, w) for n, w in ((inputs, "inputs"), (outputs, "outputs"))
        ]
        if np.isin(held[0], held[1]).any():
            raise ValueError("a node cannot be an input and an output; choose other nodes.")
        check_joined(joined, held[0], self.nodes)
        if not 0 <= spread < 1 or least <= 0:
            raise ValueError(
                f"conductances stay above 0: spread must lie in [0, 1), not {spread!r}, and least "
                f"above 0, not {least!r}."
            )
        self.edges, (self.inputs, self.outputs) = jnp.asarray(joined), map(jnp.asarray, held)
        self.nudge = above_zero(nudge, "nudge, the way towards the target,", 1)
        self.dt = above_zero(dt, "dt, the step of the relaxation,", 1)
        self.twins, self.spread, self.least = twins, spread, least

    def check(self, x: Any) -> None:
        check_pairs(x, len(self.inputs), len(self.outputs))

    def init(self, key: Key) -> tuple[Resistors, Twins]:
        u = jax.random.uniform(key, (len(self.edges),), minval=-1)
        return Resistors(1 + self.spread * u), Twins(*jnp.zeros((2, self.nodes)))

    def joined(self, params: Resistors) -> Array:
        """(nodes, nodes): the conductance between each two nodes."""
        k, (a, b) = jnp.maximum(params.k, self.least), self.edges.T
        one_way = jnp.zeros((self.nodes, self.nodes)).at[a, b].add(k)
        return one_way + one_way.T

    def relax(self, joined: Array, v: Array) -> Array:
        """One step of all nodes, the held ones too; v may have leading axes."""
        mean = v @ joined / jnp.broadcast_to(joined.sum(0), v.shape)
        return v + self.dt * (mean - v)

    def enter(self, key: Key, params: Resistors, z: Twins, x: Pair, sign: Array) -> Twins:
        return z

    def step(self, key: Key, params: Resistors, z: Twins, x: Pair, sign: Array) -> Twins:
        volts, target = x
        both = self.relax(self.joined(params), jnp.stack(z)).at[:, self.inputs].set(volts[None])
        found = both[0, self.outputs]
        pulled = found + self.nudge * (target - found)
        return Twins(both[0], both[1].at[self.outputs].set(pulled))

    def grad(self, params: Resistors, z: Twins, x: Pair, sign: Array) -> Resistors:
        """(1 / nudge) dP/dk: in both circuits at once, or in that of the phase."""
        drops = [v[self.edges[:, 0]] - v[self.edges[:, 1]] for v in (z.nudged, z.free)]
        nudged, free = (0.5 / self.nudge * drop**2 for drop in drops)
        if self.twins:
            return Resistors(jnp.where(sign > 0, nudged - free, 0))
        return Resistors(jnp.where(sign > 0, nudged, free))

    def predict(self, params: Resistors, inputs: Array, steps: int = 100) -> Array:
        """The outputs of the free circuit after `steps` from 0 volts, for each row."""

        joined = self.joined(params)
        start = jnp.zeros((len(inputs), self.nodes)).at[:, self.inputs].set(inputs)

        def body(_, v: Array) -> Array:
            return self.relax(joined, v).at[:, self.inputs].set(inputs)

        return jax.lax.fori_loop(0, steps, body, start)[:, self.outputs]


def check_edges(edges: Any) -> np.ndarray:
    joined = np.asarray(edges)
    if joined.ndim != 2 or joined.shape[1] != 2 or not len(joined) or joined.dtype.kind not in "iu":
        raise ValueError(
            "edges must be an array of shape (edges, 2), the numbers of the nodes that a resistor "
            f"joins, not one of shape {joined.shape} and type {joined.dtype}."
        )
    if joined.min() < 0 or (joined[:, 0] == joined[:, 1]).any():
        raise ValueError("an edge joins two different nodes, which are numbered from 0.")
    return joined.astype(np.int32)


def check_nodes(chosen: Any, nodes: int, what: str) -> np.ndarray:
    given = np.asarray(chosen)
    if given.ndim != 1 or not len(given) or not np.isin(given, np.arange(nodes)).all():
        raise ValueError(
            f"{what} must be a list of at least one node between 0 and {nodes - 1}, not {chosen!r}."
        )
    if len(np.unique(given)) < len(given):
        raise ValueError(f"a node stands twice among the {what}; name each once.")
    return given.astype(np.int32)


def check_joined(edges: np.ndarray, inputs: np.ndarray, nodes: int) -> None:
    """Every node must be joined to an input, or its voltage is not defined."""
    reached = np.isin(np.arange(count(nodes, "nodes")), inputs)
    for _ in range(nodes):
        a, b = edges[reached[edges].any(1)].T
        reached[a] = reached[b] = True
    if not reached.all():
        raise ValueError(
            f"node {int(np.argmin(reached))} is joined to no input, not even over other nodes, so "
            "its voltage is not defined; add an edge or number the nodes without gaps."
        )
