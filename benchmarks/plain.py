"""The loops that a user would write instead: NumPy, and lax.scan by hand. Always-on learning of an
RBM without visible bias (eq. 4).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def numpy_aol(
    data: Any,
    phases: int,
    T: int,
    b: float = 0.5,
    eta: float = 0.005,
    hidden: int = 16,
    seed: int = 0,
) -> tuple[np.ndarray, ...]:
    """One lane, one tick after the other -> W, a, c."""
    rng = np.random.default_rng(seed)
    data = np.asarray(data)
    visible = data.shape[1]
    W, c = rng.normal(0, 0.01, (visible, hidden)), np.zeros(hidden)
    h = (rng.random(hidden) < 0.5).astype(float)
    for _ in range(phases):
        positive = rng.random() < b
        x = data[rng.integers(len(data))]
        rate = eta / T / b if positive else -eta / T / (1 - b)
        for _ in range(T):
            v = x if positive else (rng.random(visible) < sigmoid(W @ h)).astype(float)
            h = (rng.random(hidden) < sigmoid(c + v @ W)).astype(float)
            W += rate * np.outer(v, h)
            c += rate * h
    return W, np.zeros(visible), c


def scan_aol(
    data: Any, ticks: int, lanes: int, T: int, b: float = 0.5, eta: float = 0.005, hidden: int = 16
) -> Any:
    """A straight lax.scan over ticks for all lanes, fixed T, nothing general -> a jitted function
    of a key that gives W, a, c.
    """
    data = jnp.asarray(data)
    visible = data.shape[1]

    def tick(carry: Any, t: Any) -> Any:
        key, W, c, h, x, positive = carry
        begins = t % T == 0
        k_sign, k_row, k_noise = jax.random.split(jax.random.fold_in(key, t), 3)
        positive = jnp.where(begins, jax.random.uniform(k_sign) < b, positive)
        x = jnp.where(begins, data[jax.random.randint(k_row, (), 0, len(data))], x)
        u = jax.random.uniform(k_noise, (visible + hidden,))
        v = jnp.where(positive, x, (u[:visible] < jax.nn.sigmoid(W @ h)).astype(jnp.float32))
        h = (u[visible:] < jax.nn.sigmoid(c + v @ W)).astype(jnp.float32)
        rate = eta / T * jnp.where(positive, 1 / b, -1 / (1 - b))
        return (key, W + rate * jnp.outer(v, h), c + rate * h, h, x, positive), None

    def lane(key: Any) -> Any:
        W = 0.01 * jax.random.normal(key, (visible, hidden))
        carry = (key, W, jnp.zeros(hidden), jnp.zeros(hidden), data[0], jnp.bool_(False))
        (_, W, c, _, _, _), _ = jax.lax.scan(tick, carry, jnp.arange(ticks))
        return W, jnp.zeros(visible), c

    return jax.jit(lambda key: jax.vmap(lane)(jax.random.split(key, lanes)))
