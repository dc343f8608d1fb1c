"""Optimisers beside those of optax: functions of eta, for `Optimiser(eta, make)`."""

import dataclasses
from typing import Any

import jax
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
