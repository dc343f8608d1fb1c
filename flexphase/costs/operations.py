"""Counts what a function computes, from its jaxpr: nothing is run."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

#: Primitives that move or name numbers without computing any.
LAYOUT = {
    "broadcast_in_dim",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
    "concatenate",
    "copy",
    "iota",
    "convert_element_type",
    "bitcast_convert_type",
    "gather",
    "scatter",
    "dynamic_slice",
    "pad",
    "dynamic_update_slice",
    "stop_gradient",
    "rev",
    "select_n",
    "expand_dims",
    "split",
}


class Operations(NamedTuple):
    """`reads`: multiply-adds of matrix products, a weight read for each; `others`: results of all
    other arithmetic; `random`: random numbers drawn.
    """

    reads: int = 0
    others: int = 0
    random: int = 0

    def __add__(self, more: "Operations") -> "Operations":  # type: ignore[override]
        return Operations(*(a + b for a, b in zip(self, more, strict=True)))

    def times(self, n: int) -> "Operations":
        """Those of n calls."""
        return Operations(*(n * a for a in self))


def operations(function: Callable[..., Any], *args: Any) -> Operations:
    """What one call computes; arguments may be shapes (`jax.eval_shape`)."""
    return _of(jax.make_jaxpr(function)(*args).jaxpr)


def reads_of(function: Callable[..., Any], *args: Any) -> list[list[Any]]:
    """For each argument, those of its leaves on which the result depends."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    needed = {id(var) for var in jaxpr.outvars}
    for eqn in reversed(jaxpr.eqns):
        if any(id(var) in needed for var in eqn.outvars):
            needed |= {id(var) for var in eqn.invars}
    inputs = iter(jaxpr.invars)
    return [[leaf for leaf in jax.tree.leaves(arg) if id(next(inputs)) in needed] for arg in args]


def _of(jaxpr: Any) -> Operations:
    return sum((_equation(eqn) for eqn in jaxpr.eqns), Operations())


def _equation(eqn: Any) -> Operations:
    name, sizes = eqn.primitive.name, [math.prod(v.aval.shape) for v in eqn.outvars]
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        return Operations(reads=sizes[0] * math.prod(shape[d] for d in contracted))
    if name == "random_bits":
        return Operations(random=sizes[0])
    if name == "cond":
        return max((_of(branch.jaxpr) for branch in eqn.params["branches"]), default=Operations())
    inner = [part for part in eqn.params.values() if _is_jaxpr(part)]
    if inner:
        once = sum((_of(getattr(part, "jaxpr", part)) for part in inner), Operations())
        return once.times(eqn.params.get("length", 1) if name == "scan" else 1)
    if name.startswith("random_") or name in LAYOUT or not _computes(eqn):
        return Operations()
    return Operations(others=max(math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars)))


def _is_jaxpr(part: Any) -> bool:
    return isinstance(part, (ClosedJaxpr, Jaxpr))


def _computes(eqn: Any) -> bool:
    """Has it to do with numbers of the network, not with the bits of random numbers?"""
    dtypes = [var.aval.dtype for var in (*eqn.invars, *eqn.outvars)]
    return any(jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes)
