"""Kinds of metrics: functions of the parameters, of one lane or of all at once, and how they are
checked and taken.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .contract import explained, what_is
from .record_schema import check_names


class OverLanes(eqx.Module):
    """A metric that takes the parameters of all lanes at once, because that is faster."""

    def __call__(self, params: Any) -> Any:
        raise NotImplementedError


class AtEnd(eqx.Module):
    """An expensive metric, with a cheap proxy.

    Args:
        along: the cheap proxy, taken during training.
        end: the exact metric, taken at the end.
    """

    along: Any
    end: Any


@eqx.filter_jit
def each_lane(metric: Any, params: Any) -> Any:
    """A metric of one lane, over all lanes."""
    return jax.vmap(metric)(params)


def measure(metric: Any, params: Any) -> np.ndarray:
    """A metric's value in every lane."""
    return np.asarray(
        metric(params) if isinstance(metric, OverLanes) else each_lane(metric, params)
    )


def check_metrics(metrics: Any) -> dict[str, Any]:
    """Metrics by name, each a function or an `AtEnd`."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise ValueError(
            f"metrics must be a dict of functions by name, such as {{'nll': NLL(data)}}, not "
            f"{what_is(metrics)}."
        )
    check_names([*metrics])
    for name, metric in metrics.items():
        for part in parts_of(metric):
            if not callable(part):
                raise ValueError(
                    f"the metric {name!r} is {what_is(part)}, not a function of the parameters."
                )
        check_optimum(name, metric)
    return dict(metrics)


def parts_of(metric: Any) -> tuple[Any, ...]:
    """The functions of a metric: of an `AtEnd` the proxy and the exact one."""
    return (metric.along, metric.end) if isinstance(metric, AtEnd) else (metric,)


def check_values(metrics: Mapping[str, Any], params: Any, method: Any = None) -> None:
    """Refuse, before training, a metric that is not one number a lane.

    Args:
        metrics: by name. One that does not suit every method has a function `fits(method)`, which
            raises a ValueError.
        params: of all lanes.
        method: the method whose parameters these are, if it is known.
    """
    lane = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), params)
    for name, metric in metrics.items():
        for part in parts_of(metric):
            if method is not None and callable(fits := getattr(part, "fits", None)):
                fits(innermost(method))
            if not isinstance(part, OverLanes):
                with explained(f"the metric {name!r}"):
                    value = eqx.filter_eval_shape(part, lane)
                one_number(name, value)


def innermost(method: Any) -> Any:
    """The method inside those that wrap one, such as `Replicas` and `Tempered`."""
    while (inner := getattr(method, "method", None)) is not None:
        method = inner
    return method


def one_number(name: str, value: Any) -> None:
    """Refuse a metric that is not one real number for one lane."""
    leaves = jax.tree.leaves(value, is_leaf=lambda leaf: leaf is None)
    single = len(leaves) == 1 and leaves[0] is value
    shape = getattr(value, "shape", ()) if single else None
    dtype = getattr(value, "dtype", None)
    numbers = dtype is not None and (jnp.issubdtype(dtype, jnp.number) or dtype == jnp.bool_)
    real = numbers or (dtype is None and isinstance(value, (int, float)))
    complex_ = dtype is not None and jnp.issubdtype(dtype, jnp.complexfloating)
    if not single or value is None or shape != () or not real or complex_:
        what = f"an array of shape {shape}" if shape else what_is(value)
        what = f"a complex number ({dtype})" if complex_ else what
        raise ValueError(
            f"the metric {name!r} must be one real number for a set of parameters, not {what}; "
            "take a mean, or give several metrics."
        )


def check_optimum(name: str, metric: Any) -> None:
    """Refuse an `optimum` that is no finite number."""
    value = getattr(metric.end if isinstance(metric, AtEnd) else metric, "optimum", None)
    try:
        fine = value is None or np.isfinite(float(value))
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise ValueError(
            f"the optimum of the metric {name!r} must be a finite number, not {value!r}; leave it "
            "out, or None, where a perfect learner's score is not known."
        )


def optima(metrics: Mapping[str, Any]) -> dict[str, float]:
    """What a perfect learner would score, for the metrics that say so by their `optimum`."""
    ends = {name: m.end if isinstance(m, AtEnd) else m for name, m in metrics.items()}
    known = {name: getattr(metric, "optimum", None) for name, metric in ends.items()}
    return {name: float(value) for name, value in known.items() if value is not None}


def finite_in(params: Any) -> np.ndarray:
    """Are all parameters of a lane finite?"""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    return np.all([np.isfinite(leaf).reshape(len(leaf), -1).all(1) for leaf in leaves], axis=0)
