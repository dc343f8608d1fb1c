"""What does generality cost? The JAX engine against a hand-written lax.scan of the same update and
a plain NumPy loop, NLL beside each.

    python benchmarks/core.py

16 x 16 RBM, AoL, b = 0.5, T = 100, 100 lanes; CPU seconds of this process, best of three.
"""

import time
from typing import Any

import jax
import numpy as np
from plain import numpy_aol, scan_aol

import flexphase as fp
from flexphase.engines.jax import JaxEngine
from flexphase.lanes import lanes
from flexphase.methods.rbm import Params

DATA, LANES, TICKS, T = fp.bars_and_stripes(4), 100, 4_000, 100


def best(f: Any, repeats: int = 3) -> tuple[float, Any]:
    value, seconds = jax.block_until_ready(f()), np.inf  # compiles
    for _ in range(repeats):
        began = time.process_time()
        value = jax.block_until_ready(f())
        seconds = min(seconds, time.process_time() - began)
    return seconds / TICKS / LANES, value


def main() -> None:
    run = fp.Run(
        fp.RBM(16, 16, visible_bias=False), *fp.aol(0.5, T), fp.Rows(DATA), fp.Optimiser(0.005)
    )
    every = lanes(run, LANES, 0)
    start = JaxEngine().start(every)
    ours, state = best(lambda: JaxEngine().advance(every, start, TICKS, lambda n: None))
    scan = scan_aol(DATA, TICKS, LANES, T)
    theirs, params = best(lambda: scan(jax.random.key(0)))
    began, plain = time.process_time(), numpy_aol(DATA, phases=TICKS // T, T=T)
    loop = (time.process_time() - began) / TICKS
    nll = fp.NLL(DATA)
    print(
        f"JAX engine          {ours * 1e9:9.0f} ns per tick and lane   NLL "
        f"{np.mean(nll(state.params)):.1f}"
    )
    print(
        f"lax.scan by hand    {theirs * 1e9:9.0f} ns per tick and lane   NLL "
        f"{np.mean(nll(Params(*params))):.1f}"
    )
    print(
        f"plain NumPy loop    {loop * 1e9:9.0f} ns per tick            NLL "
        f"{float(nll(Params(*plain))):.1f}"
    )
    print(
        f"the engine costs {ours / theirs:.2f} times the hand-written scan (goal 2) and is "
        f"{loop / ours:.0f} times as fast as NumPy"
    )


if __name__ == "__main__":
    main()
