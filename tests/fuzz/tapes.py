"""Tapes and arrays for the compiled kernels, most of them wrong, under AddressSanitizer and UBSan.

python tests/fuzz/tapes.py FOLDER_OF_THE_MODULE [--seconds 60] [--seed 0] [--cases N]
A kernel either runs or refuses with a ValueError or TypeError; anything else ends the process, and
what a kernel that runs is given is printed by the sanitizer.
"""

import argparse
import collections
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import native_abuse

KINDS = ("small", "wide", "machine", "forward_forward", "layered")
NUMBERS = (-(2**31), -1000, -2, -1, 0, 1, 2, 3, 7, 8, 39, 40, 41, 1000, 2**31 - 1)


def spoiled(rng: random.Random, array: Any) -> Any:
    """An array with other values, another shape, another type, or no array."""
    if not isinstance(array, np.ndarray):
        return array
    how, new = rng.randrange(10), array.copy()
    if how < 5 and new.size:  # numbers that point somewhere, and floats that are none
        for _ in range(rng.choice((1, 1, 2, 10))):
            at = rng.randrange(new.size)
            if new.dtype.kind == "f":
                new.flat[at] = rng.choice((np.nan, np.inf, -np.inf, 1e38, -1e38, 0, 1e-45))
            elif new.dtype.kind in "iu":
                info = np.iinfo(new.dtype)
                new.flat[at] = min(max(rng.choice(NUMBERS), info.min), info.max)
            else:
                new.flat[at] = not new.flat[at]
        return new
    if how == 5 and new.ndim:
        return new[..., : rng.randrange(new.shape[-1] + 1)].copy()
    if how == 6 and new.ndim:
        return new[: rng.randrange(new.shape[0] + 1)].copy()
    if how == 7:
        return new.astype(rng.choice(("f4", "f8", "i4", "i8", "u1", "?")))
    if how == 8:
        return new.T if rng.random() < 0.5 else new[None]
    return rng.choice((None, 3, [1.0], np.zeros(0, np.float32), np.flip(new)))


def one(rng: random.Random, module: Any) -> str:
    """Call a kernel with arguments that are more or less wrong; how it went."""
    kind, isa, threads = rng.choice(KINDS), rng.choice(module.isas()), rng.choice((1, 2))
    lanes = rng.choice((1, 2, 5, 17))
    if kind == "forward_forward":
        given = native_abuse.forward_forward(lanes, (19, 9, 5))
    elif kind == "layered":
        given = native_abuse.layered(lanes, (5, 4, 3), 2, seed=rng.randrange(100))
    else:
        sizes = rng.choice(((3, 2), (5, 17), (33, 9)))
        wide, machine = kind == "wide", kind == "machine"
        given = native_abuse.arrays(
            lanes, *sizes, wide=wide, machine=machine, seed=rng.randrange(9)
        )
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        name = rng.choice(list(given))
        given[name] = spoiled(rng, given[name])
    if rng.random() < 0.05:
        del given[rng.choice(list(given))]
    ticks = rng.choice((0, 1, 5, 25, 30, 60, -1, 10**6))
    try:
        if kind == "forward_forward":
            module.forward_forward(given, 2, rng.choice((3, 3, 0, 50)), True, threads, isa)
        elif kind == "layered":
            memory, momentum = rng.randrange(4), rng.choice((0, 0.9, 1.5, float("nan")))
            module.layered(given, (5, 4, 3), ticks, memory, False, momentum, threads, isa)
        else:
            start, remember = rng.randrange(-1, 6), rng.random() < 0.5
            native_abuse.call(module, given, kind, ticks, start, remember, threads, isa)
    except (ValueError, TypeError):
        return f"{kind} refused"
    return f"{kind} ran"


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--cases", type=int, default=10**9)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    module, rng = native_abuse.load(args.folder), random.Random(args.seed)
    ends, began = collections.Counter(), time.monotonic()
    while ends.total() < args.cases and time.monotonic() - began < args.seconds:
        ends[one(rng, module)] += 1
    counts = ", ".join(f"{what} {n}" for what, n in sorted(ends.items()))
    print(f"{ends.total()} tapes, seed {args.seed}, no fault ({counts})")


if __name__ == "__main__":
    main()
