"""Small learners on which the claims are measured: one of each kind, on Bars and Stripes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Optimiser, Run
from ..data import LabelContrast, Rows, bars_and_stripes
from ..methods import (
    RBM,
    BoltzmannMachine,
    EquilibriumPropagation,
    ForwardForward,
    HelmholtzMachine,
)
from ..methods.binary import Units
from ..methods.rbm import Params
from ..rules import Rule, cd, isd
from . import chains
from .chains import Chain
from .frozen import Starts, repeated


class Learner(NamedTuple):
    """A method at some parameters, its stimuli, and a phase length T in which it settles."""

    name: str
    method: Any
    params: Any
    source: Any
    T: int

    def run(self, rule: Rule) -> Run:
        """This learner under a rule."""
        return Run(self.method, *rule, self.source, Optimiser(0.0))

    def two_term(self) -> Run:
        """Eq. 1 for this learner."""
        return self.run(cd(self.T))

    def isd(self, b: float) -> Run:
        """Eq. 2 for this learner."""
        return self.run(isd(b, self.T))


def learners() -> list[Learner]:
    """One of each kind: sampled, relaxing, one pass, and with terms that share no parameter."""
    small, large = bars_and_stripes(2), bars_and_stripes(4)
    kind = np.repeat([0, 1], 16)  # bars, stripes
    pairs = (small, np.eye(2)[np.repeat([0, 1], 4)])
    relaxing = EquilibriumPropagation((4, 5, 2), activation=jax.nn.sigmoid)
    forward, contrast = ForwardForward((16, 8, 8), classes=2), LabelContrast(large, kind, classes=2)
    made = [
        ("RBM 4x3", RBM(4, 3, scale=0.7), Rows(small), 12),
        ("Boltzmann machine 4+2", BoltzmannMachine(4, 2, scale=0.7), Rows(small), 12),
        ("equilibrium propagation 4-5-2", relaxing, Rows(pairs), 20),
        ("Forward-Forward 16-8-8", forward, contrast, 1),
        ("Helmholtz machine 4+3", HelmholtzMachine(4, 3, scale=0.7), Rows(small), 1),
    ]
    return [
        Learner(name, method, method.init(jax.random.key(1))[0], source, T)
        for name, method, source, T in made
    ]


class Walk(NamedTuple):
    """A learner's negative phase twice: as a chain, for exact numbers, and as the method, if there
    is one, for simulation from the same state.
    """

    name: str
    chain: Chain
    start: int
    method: Any = None
    params: Any = None

    def starts(self, lanes: int) -> Starts:
        """The binary state number `start`, in every lane."""
        v = self.method.visible
        z = jnp.asarray([(self.start >> i) & 1 for i in range(v + self.method.hidden)], jnp.float32)
        return repeated(Units(z[:v], z[v:]), jnp.zeros(v), lanes)


def walks() -> list[Walk]:
    """Fast and slow chains.

    The slow RBM has two deep minima, all off and all on; the lazy one moves once in fifty ticks.
    """
    fast, slow = RBM(2, 2, scale=1.0), RBM(2, 2)
    machine = BoltzmannMachine(2, 1, scale=1.0)
    at_fast, at_machine = fast.init(jax.random.key(3))[0], machine.init(jax.random.key(3))[0]
    at_slow = Params(4 * jnp.ones((2, 2)), -4 * jnp.ones(2), -4 * jnp.ones(2))
    on = 15  # all four units on
    return [
        Walk("RBM 2x2", chains.rbm(at_fast), on, fast, at_fast),
        Walk("Boltzmann machine 2+1", chains.boltzmann(at_machine), 7, machine, at_machine),
        Walk("slow RBM 2x2", chains.rbm(at_slow), on, slow, at_slow),
        Walk("lazy RBM 2x2", chains.lazy(chains.rbm(at_fast), 0.02), on),
        Walk("walker on a ring", chains.ring(8, 1.0), 4),
    ]
