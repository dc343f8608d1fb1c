"""The compiled Boltzmann engine against JAX and a plain NumPy loop: ratios taken in one run, one
thread, with the NLL beside each.

    python benchmarks/native.py [--quick]

Times are CPU seconds of this process (one thread works), the best of several repeats, so that a
busy machine disturbs them less.
"""

import argparse
import os
import time
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false"
)  # one thread for JAX, too; read when jax is imported

import jax
import numpy as np
from plain import numpy_aol

import flexphase as fp
from flexphase.engines.boltzmann import BoltzmannEngine
from flexphase.engines.jax import JaxEngine
from flexphase.lanes import lanes

DATA = fp.bars_and_stripes(4)


def run_16(eta: float = 0.005) -> Any:
    return fp.Run(
        fp.RBM(16, 16, visible_bias=False), *fp.aol(0.5, 100), fp.Rows(DATA), fp.Optimiser(eta)
    )


def run_794() -> Any:
    data = (np.random.default_rng(0).random((500, 794)) < 0.15).astype(
        np.float32
    )  # about as dense as binarised MNIST
    return fp.Run(fp.RBM(794, 128), *fp.aol(0.5, 200), fp.Rows(data), fp.Optimiser(0.005))


def per_tick(
    engine: Any, run: Any, seeds: int, ticks: int, repeats: int, clock: Any = time.process_time
) -> tuple[float, Any]:
    """Seconds per tick and lane, best of the repeats, and the state at the end."""
    every = lanes(run, seeds, 0)
    state = engine.start(every)
    state = engine.advance(every, state, ticks, lambda n: None)  # compiles
    best = np.inf
    for _ in range(repeats):
        began = clock()
        state = jax.block_until_ready(engine.advance(every, state, ticks, lambda n: None))
        best = min(best, clock() - began)
    return best / ticks / seeds, state


def nll(state: Any) -> str:
    values = np.asarray(fp.NLL(DATA)(state.params))
    return f"NLL {values.mean():6.1f} +- {values.std():4.1f} after {int(state.phases[0])} phases"


def drive(state: Any) -> float:
    """c + v W averaged over the data: too wide for an exact NLL, so this is what is compared."""
    p = jax.tree.map(lambda leaf: np.asarray(leaf)[0], state.params)
    return float((np.asarray(run_794().source.data) @ p.W + p.c).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    repeats = 2 if quick else 5
    one = BoltzmannEngine(1)

    print("16 x 16, AoL, b = 0.5, T = 100, learning on, one thread")
    ours, state = per_tick(one, run_16(), 64, 100_000, repeats)
    print(
        f"  native, 64 lanes    {ours * 1e9:9.1f} ns per tick and lane, {32 / ours / 1e9:.2f} unit "
        f"updates per ns   {nll(state)}"
    )
    best = np.inf
    for seeds in (8, 32, 128):
        theirs, state = per_tick(JaxEngine(), run_16(), seeds, 1_000 if quick else 4_000, repeats)
        print(
            f"  JAX, {seeds:3} lanes      {theirs * 1e9:9.1f} ns per tick and lane   {nll(state)}"
        )
        best = min(best, theirs)
    began, (W, a, c) = time.process_time(), numpy_aol(DATA, phases=200, T=100)
    loop = (time.process_time() - began) / 20_000
    value = float(fp.NLL(DATA)(type(state.params)(W, a, c)))
    print(
        f"  plain NumPy loop    {loop * 1e9:9.1f} ns per tick   NLL {value:6.1f} after 200 phases"
    )
    print(
        f"  native is {best / ours:.1f} times JAX at its best lane count (goal 8) and "
        f"{loop / ours:.0f} times the NumPy loop (goal 400)"
    )

    print(
        "the same experiment in both engines: 16 x 16, AoL, T = 10, eta = 0.01, 32 seeds, 20,000 "
        "phases"
    )
    fast = fp.Run(
        fp.RBM(16, 16, visible_bias=False), *fp.aol(0.5, 10), fp.Rows(DATA), fp.Optimiser(0.01)
    )
    for name in ("native", "jax"):
        record = fp.train(
            fast,
            phases=20_000,
            seeds=32,
            metrics={"nll": fp.NLL(DATA)},
            records=1,
            engine=name,
            threads=1,
        )
        values = record.final().values
        print(
            f"  {name:6} NLL {values.mean():.1f} +- {values.std():.1f}, standard error "
            f"{values.std() / 32**0.5:.1f}"
        )

    print("794 x 128, AoL, T = 200, one lane, one thread")
    ours, ours_end = per_tick(one, run_794(), 1, 4_000, repeats)
    theirs, theirs_end = per_tick(JaxEngine(), run_794(), 1, 4_000, 1 if quick else repeats)
    for name, end in (("native", ours_end), ("JAX", theirs_end)):
        print(
            f"  {name:6} mean drive of a hidden unit {drive(end):+.3f} after {int(end.phases[0])} "
            "phases"
        )
    print(
        f"  native {ours * 1e6:.2f} us, JAX {theirs * 1e6:.2f} us per tick: {theirs / ours:.1f} "
        "times (goal 10)"
    )

    print("threads: 64 lanes, 16 x 16, wall time")
    times = {
        n: per_tick(BoltzmannEngine(n), run_16(), 64, 100_000, repeats, time.perf_counter)[0]
        for n in (1, 2)
    }
    print(f"  two threads are {times[1] / times[2]:.2f} times one (goal 1.8; needs two idle cores)")


if __name__ == "__main__":
    main()
