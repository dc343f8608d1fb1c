"""Mini-batches: a method made of a method, and a source made of a source."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .checks import count
from .core import Key, Method, PyTree, Source, declares


class Replicas(eqx.Module):
    """n copies of the state that share their synapses and their phase and see n stimuli.

    The term is the mean over the copies, so that eta means the same as for one copy. With it the
    classical mini-batch baselines are runs like any other.

    Args:
        method: the method that is copied.
        n: how many copies; the source must show n stimuli at once: `Batches(source, n)`.

    Example: `Run(Replicas(RBM(16, 16), 20), *cd(1), Batches(Rows(data), 20), Optimiser(0.05))`.
    """

    method: Method
    n: int = eqx.field(static=True)

    def __check_init__(self):
        count(self.n, "the number of replicas")

    @property
    def graded(self) -> bool:
        """Whether the method can follow signs between -1 and 1."""
        return declares(self.method, "graded")

    def check(self, x: PyTree) -> None:
        sizes = {leaf.shape[1] if leaf.ndim > 1 else 0 for leaf in jax.tree.leaves(x)}
        if sizes != {self.n}:
            raise ValueError(
                f"{self.n} replicas need {self.n} stimuli at once: write "
                f"Batches(source, {self.n}) for the source."
            )
        self.method.check(jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), x))

    def init(self, key: Key) -> tuple[PyTree, PyTree]:
        """The parameters are those that the method alone would begin with."""
        params, _ = self.method.init(key)
        return params, jax.vmap(lambda k: self.method.init(k)[1])(jax.random.split(key, self.n))

    def enter(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        each = jax.vmap(self.method.enter, (0, None, 0, 0, None))
        return each(jax.random.split(key, self.n), params, z, x, sign)

    def step(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        each = jax.vmap(self.method.step, (0, None, 0, 0, None))
        return each(jax.random.split(key, self.n), params, z, x, sign)

    def grad(self, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        terms = jax.vmap(self.method.grad, (None, 0, 0, None))(params, z, x, sign)
        return jax.tree.map(mean, terms)


def mean(terms: Array) -> Array:
    """The mean over the first axis, by halves.

    On a CPU, XLA's own reduction of that axis is up to 30 times slower where the rest is wide.
    """
    total = terms
    while len(total) > 1:
        half = len(total) // 2
        total = jnp.concatenate([total[:half] + total[half : 2 * half], total[2 * half :]])
    return total[0] / len(terms)


class Batches(eqx.Module):
    """n stimuli at once, each drawn by the source as if it were alone.

    Args:
        source: where each stimulus comes from.
        n: how many; as rows are drawn at random, it need not divide their number.
    """

    source: Source
    n: int = eqx.field(static=True)

    def __check_init__(self):
        count(self.n, "the number of stimuli in a batch")
        if declares(self.source, "clocked"):
            raise ValueError(
                "the stimuli of a batch are held together: write Held(Batches(source, n), ...)."
            )

    @property
    def stimuli(self) -> PyTree:
        """All of them, n at a time; the last batch is filled up with the first ones."""

        def batched(a: Array) -> Array:
            at = np.arange(-(-len(a) // self.n) * self.n) % len(a)
            return a[at].reshape(-1, self.n, *a.shape[1:])

        return jax.tree.map(batched, self.source.stimuli)

    def init(self, key: Key) -> PyTree:
        return jax.vmap(self.source.init)(jax.random.split(key, self.n))

    def __call__(self, key: Key, sign: Array, x: PyTree) -> PyTree:
        return self._each(self.source, key, sign, x)

    def fresh(self, key: Key, sign: Array, x: PyTree) -> PyTree:
        """n new stimuli, for `Held`."""
        return self._each(self.source.fresh, key, sign, x)  # type: ignore[attr-defined]

    def again(self, key: Key, sign: Array, x: PyTree) -> PyTree:
        """The same n stimuli in a phase of this sign, for `Held`."""
        return self._each(self.source.again, key, sign, x)  # type: ignore[attr-defined]

    def _each(self, ask: Callable[..., PyTree], key: Key, sign: Array, x: PyTree) -> PyTree:
        return jax.vmap(ask, (0, None, 0))(jax.random.split(key, self.n), sign, x)
