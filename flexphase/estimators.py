"""Estimators of g = g_plus - g_minus: Phase -> (weight of the local term, step the optimiser now?)."""

import jax.numpy as jnp

from .core import Estimator

#: Eq. 1: g_plus must be remembered until the negative phase ends.
two_term = Estimator(lambda p: (p.sign * p.last, p.last & (p.sign < 0)), local=False)

#: Eq. 2: one term, over the probability that it was chosen; unbiased for every b and forgotten at
#: once.
isd = Estimator(lambda p: (p.sign / p.prob * p.last, p.last), local=True)

#: Eqs. 4 and 5: eta / tau at every tick; no end of phase has to be known.
always_on = Estimator(lambda p: (p.sign / (p.prob * p.length), jnp.bool_(True)), local=True)
