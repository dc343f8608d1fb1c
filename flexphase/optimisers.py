"""Optimisers beside those of optax: functions of eta, for `Optimiser(eta, make)`."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax


@dataclasses.dataclass(frozen=True)
class LayerRates:
    """Gradient descent with a rate of its own for each layer: eta x rates[l], with momentum.

    For methods whose parameters are a tuple of layers, such as equilibrium propagation.

    Args:
        rates: one for each layer, the first layer first; eta is multiplied by them.
        momentum: as in optax.sgd; None for none.

    Example: `Optimiser(0.1, LayerRates((1.0, 0.3)))`.
    """

    rates: tuple[float, ...]
    momentum: float | None = None

    def __call__(self, eta: Any) -> optax.GradientTransformation:
        return optax.chain(optax.sgd(eta, self.momentum), optax.stateless(self._scaled))

    def _scaled(self, updates: Any, params: Any) -> Any:
        if len(updates) != len(self.rates):
            raise ValueError(
                f"LayerRates has {len(self.rates)} rates for {len(updates)} layers; give one for "
                "each layer."
            )
        return tuple(
            jax.tree.map(lambda part, rate=rate: rate * part, layer)
            for rate, layer in zip(self.rates, updates, strict=True)
        )


def conductances(eta: Any, descend: Any = optax.sgd) -> optax.GradientTransformation:
    """Gradient descent that stops at a conductance of 0, for `Optimiser(eta, conductances)`.

    Args:
        eta: the learning rate.
        descend: eta -> optax.GradientTransformation, whose updates are cut. Parameters that are not
            conductances (not called k) are not.
    """
    return optax.chain(
        descend(eta), optax.masked(optax.keep_params_nonnegative(), are_conductances)
    )


def are_conductances(params: Any) -> Any:
    return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].name == "k", params)


def stopped_at_0(make: Any, params: Any) -> Any:
    """Conductances that something else has written, cut at 0 if `make` is `conductances`, perhaps
    with another way to descend; other parameters as they are.
    """
    if getattr(make, "func", make) is not conductances:
        return params
    cut = are_conductances(params)
    return jax.tree.map(lambda one, w: jnp.maximum(w, 0) if one else w, cut, params)
