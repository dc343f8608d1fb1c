"""What devices cost in the compiled Boltzmann engine: the speed with a device as a share of the
speed without, taken in turn in one run, one thread.

    python benchmarks/devices.py [--quick]

Times are CPU seconds of this process, the best of several repeats.
"""

import argparse
from typing import Any

import numpy as np

import flexphase as fp
from flexphase.engines.boltzmann import BoltzmannEngine
from native import per_tick, run_16, run_794

DEVICES: dict[str, dict[str, Any]] = {
    "8 bits, stochastic": {"bits": 8, "range": 4, "rounding": "stochastic"},
    "12 bits, stochastic": {"bits": 12, "range": 4, "rounding": "stochastic"},
    "8 bits, nearest": {"bits": 8, "range": 4},
    "range": {"range": 4},
    "write noise": {"noise": 1e-3},
    "proportional noise": {"proportional": 0.5},
    "write noise, range": {"noise": 1e-3, "range": 4},
}
GOAL = 1 / 3  # of the speed without a device, for 8 bits with stochastic rounding on 16 x 16


def on(run: Any, **device: Any) -> Any:
    return run._replace(optimiser=fp.OnDevice(run.optimiser, fp.Device(**device)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    engine = BoltzmannEngine(1)
    cases = {
        "16 x 16, AoL, T = 100, 8 lanes": (run_16(0.01), 8, 20_000 if quick else 100_000),
        "16 x 16, AoL, T = 100, 64 lanes": (run_16(0.01), 64, 5_000 if quick else 20_000),
        "794 x 128, AoL, T = 200, 1 lane": (run_794(), 1, 1_000 if quick else 4_000),
    }
    for title, (plain, lanes, ticks) in cases.items():
        print(title)
        times: dict[str, list[float]] = {}
        for _ in range(3 if quick else 6):  # in turn, so that all see the same busy machine
            for name in ("no device", *DEVICES):
                run = plain if name == "no device" else on(plain, **DEVICES[name])
                times.setdefault(name, []).append(per_tick(engine, run, lanes, ticks, 1)[0])
        best = {name: float(np.min(seconds)) for name, seconds in times.items()}
        for name, seconds in best.items():
            share = best["no device"] / seconds
            each = f"{seconds * 1e9:9.1f} ns per tick and lane"
            print(f"  {name:20} {each}, {share:.2f} of the speed")
    print(f"goal for 8 bits with stochastic rounding on 16 x 16: at least {GOAL:.2f}")


if __name__ == "__main__":
    main()
