"""`train` on the JAX engine, whichever other engine would fit."""

from functools import partial

import flexphase

train = partial(flexphase.train, engine="jax")
