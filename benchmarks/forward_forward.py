"""One Forward-Forward update, 784-500-500 with Adam on MNIST: flexphase, the same network in plain
PyTorch, and Adam alone in a C loop.

    pip install ".[bench]" && python benchmarks/forward_forward.py

Everything is timed in turns within one run, the best of several repeats; ratios are what counts.
The error on the first 2,000 test images stands beside each time, after as many updates. The last
lines give the price of evaluating the error while training.
"""

import argparse
import ctypes
import itertools
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import optax

from flexphase import Optimiser, Run, rules
from flexphase.classification import ForwardForwardError
from flexphase.data import LabelContrast, mnist
from flexphase.engines.forward_forward import ForwardForwardEngine
from flexphase.engines.jax import JaxEngine
from flexphase.lanes import lanes
from flexphase.machine import cores
from flexphase.methods import ForwardForward

SIZES, ETA, B = (784, 500, 500), 0.01, 0.5
ADAM = r"""
#include <math.h>
void adam(float *restrict w, float *restrict m, float *restrict v, const float *restrict y,
          const float *restrict s, long rows, long units, float rate, float b) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < units; j++) {
            const long k = i * units + j;
            const float g = y[i] * s[j];
            m[k] = 0.9f * m[k] + 0.1f * g;
            v[k] = 0.999f * v[k] + 0.001f * g * g;
            w[k] -= rate * m[k] / (sqrtf(v[k]) * b + 1e-8f);
        }
}
"""


class Ours:
    def __init__(self, rule, engine, data):
        source = LabelContrast(*data, paired=rule == "two-term")
        phases = rules.cd(1) if rule == "two-term" else rules.isd(B, 1)
        self.lanes = lanes(
            Run(ForwardForward(SIZES), *phases, source, Optimiser(ETA, optax.adam)), 1, 0
        )
        self.state, self.engine, self.ticks = (
            engine.start(self.lanes),
            engine,
            2 if rule == "two-term" else 1,
        )

    def updates(self, n):
        self.state = self.engine.advance(self.lanes, self.state, n * self.ticks, lambda ticks: None)

    def error(self, test):
        return float(ForwardForwardError(*test)(self.state.params)[0])


class Torch:
    """As one would write it: a Linear and an Adam for each layer, the loss on its goodness, inputs
    detached.
    """

    def __init__(self, rule, data, threads):
        import torch

        torch.manual_seed(0)
        self.threads = threads
        self.torch, self.rule, self.rng = torch, rule, np.random.default_rng(0)
        self.images, self.labels = torch.from_numpy(np.array(data[0])), np.asarray(data[1])
        self.layers = [torch.nn.Linear(*shape) for shape in itertools.pairwise(SIZES)]
        for layer in self.layers:
            torch.nn.init.normal_(layer.weight, std=ForwardForward().scale)
            torch.nn.init.zeros_(layer.bias)
        self.optimisers = [torch.optim.Adam(layer.parameters(), lr=ETA) for layer in self.layers]

    def shown(self, row, sign):
        x, truth = self.images[row].clone(), int(self.labels[row])
        x[:10] = 0
        x[truth if sign > 0 else (truth + self.rng.integers(1, 10)) % 10] = 1
        return x

    def updates(self, n):
        self.torch.set_num_threads(self.threads)
        for _ in range(n):
            row = self.rng.integers(len(self.labels))
            signs = [1, -1] if self.rule == "two-term" else [1 if self.rng.random() < B else -1]
            xs = [self.shown(row, sign) for sign in signs]
            for layer, optimiser in zip(self.layers, self.optimisers, strict=True):
                hs = [self.torch.relu(layer(x / (x.norm() + 1e-4))) for x in xs]
                weights = (
                    [1.0] * 2
                    if self.rule == "two-term"
                    else [1 / B if signs[0] > 0 else 1 / (1 - B)]
                )
                terms = zip(signs, weights, hs, strict=True)
                loss = sum(
                    w * self.torch.nn.functional.softplus(sign * (2 - h.square().mean()))
                    for sign, w, h in terms
                )
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                xs = [h.detach() for h in hs]

    def error(self, test):
        with self.torch.no_grad():
            scores = []
            for label in range(10):
                x, score = self.torch.from_numpy(np.array(test[0])), 0
                x[:, :10] = 0
                x[:, label] = 1
                for layer in self.layers:
                    x = self.torch.relu(layer(x / (x.norm(dim=1, keepdim=True) + 1e-4)))
                    score = score + x.square().mean(1)
                scores.append(score)
        return float((self.torch.stack(scores).argmax(0).numpy() != test[1]).mean())


class AdamAlone:
    """Adam's dense update of both layers, fused into one loop, with the gradient y s^T that costs
    nothing to make.
    """

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        source, library = (Path(self.folder.name) / name for name in ("adam.c", "adam.so"))
        source.write_text(ADAM)
        subprocess.run(
            [
                "cc",
                "-O3",
                "-march=native",
                "-ffast-math",
                "-shared",
                "-fPIC",
                "-o",
                library,
                source,
                "-lm",
            ],
            check=True,
        )
        self.loop = ctypes.CDLL(str(library)).adam
        rng = np.random.default_rng(0)
        self.layers = []
        for rows, units in itertools.pairwise(SIZES):
            w, m, v = rng.normal(size=(3, rows + 1, units)).astype(np.float32)
            self.layers.append(
                (w, m, v * v, rng.random(rows + 1, np.float32), rng.random(units, np.float32))
            )

    def updates(self, n):
        for _ in range(n):
            for arrays in self.layers:
                rows, units = arrays[0].shape
                self.loop(
                    *(a.ctypes.data_as(ctypes.c_void_p) for a in arrays),
                    ctypes.c_long(rows),
                    ctypes.c_long(units),
                    ctypes.c_float(ETA),
                    ctypes.c_float(1.0),
                )


def in_turns(contestants, updates, repeats):
    """Seconds of one update, the best of the repeats, which alternate between the contestants."""
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(repeats):
        for name, contestant in contestants.items():
            began = time.perf_counter()
            n = updates.get(name, 50)
            contestant.updates(n)
            best[name] = min(best[name], (time.perf_counter() - began) / n)
    return best


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument(
        "--updates", type=int, default=2000, help="after which the errors are compared"
    )
    options.add_argument(
        "--threads", type=int, default=1, help="of the native engine, which uses one per lane"
    )
    args = options.parse_args()
    train, test = mnist()
    some = test.images[:2000], test.labels[:2000]
    for rule in ("two-term", "isd"):
        native = Ours(rule, ForwardForwardEngine(args.threads), train)
        contestants = {"native": native, "jax": Ours(rule, JaxEngine(), train)}
        if find_spec("torch"):
            contestants |= {f"PyTorch, {n} threads": Torch(rule, train, n) for n in {1, cores()}}
        else:
            print("PyTorch is left out, for it is not installed: pip install 'flexphase[bench]'")
        errors = {}
        for name, contestant in contestants.items():
            contestant.updates(args.updates)
            errors[name] = contestant.error(some)
        contestants["Adam alone, C"] = AdamAlone()
        best = in_turns(
            contestants, {"native": 2000, "jax": 100, "Adam alone, C": 100}, args.repeats
        )
        print(f"{rule}: one update")
        for name, seconds in best.items():
            error = (
                f"test error after {args.updates} updates {100 * errors[name]:.1f} %"
                if name in errors
                else ""
            )
            print(
                f"  {name:18s} {1e6 * seconds:8.0f} us   native / {name}: "
                f"{best['native'] / seconds:6.3f}   {error}"
            )
        evaluate = {"10,000 test images": test, "2,000 test images": some}
        for name, images in evaluate.items():
            metric, began = ForwardForwardError(*images), time.perf_counter()
            metric(native.state.params)
            share = (time.perf_counter() - began) * 60 / (best["native"] * 120_000)
            print(f"  60 evaluations on {name} cost {100 * share:.0f} % of 120,000 updates")


if __name__ == "__main__":
    main()
