"""One update of equilibrium propagation, 784-500-10 on MNIST: the compiled engine of layered
networks, the JAX engine, a plain PyTorch loop and a straight C++ loop, on one thread each.

    pip install ".[bench]" && python benchmarks/layered.py [--quick]

An update of the two-term rule is a positive and a negative phase of 20 ticks. Times are CPU seconds
of this process, the best of several repeats in turns; ratios are what counts. The error on the
first 2,000 test images stands beside each time. The loops in PyTorch and C++ compute what the input
gives to the hidden layer once a phase or less, as a careful user would; those of C++ are dense and
compiled with -O3 -march=native -ffast-math.
"""

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # one thread for JAX, too

from typing import Any

import jax
import numpy as np

from flexphase import Optimiser, Run
from flexphase.data import Rows, mnist
from flexphase.engines.jax import JaxEngine
from flexphase.engines.layered import LayeredEngine
from flexphase.engines.layered_kernel import outputs
from flexphase.estimators import always_on, two_term
from flexphase.lanes import lanes
from flexphase.methods import EquilibriumPropagation
from flexphase.phases import Alternating, Fixed, Phases
from flexphase.replicas import Batches, Replicas

SIZES, T, BETA, DT = (784, 500, 10), 20, 0.5, 0.5
LOOP = r"""
#include <cmath>
constexpr long I = 784, H = 500, O = 10;
static float rho(float x) { x = 0.5f + 0.25f * x; return x < 0 ? 0 : x > 1 ? 1 : x; }

// Updates of the centred two-term rule, one for each row.
extern "C" void updates(float *W1, float *c1, float *W2, float *c2, float *s1, float *s2,
                        const float *images, const float *targets, const int *rows, long n, long T,
                        float beta, float dt, float eta) {
    static float drive[H], d1[H], d2[O], k1[H], k2[O];
    for (long u = 0; u < n; u++) {
        const float *x = images + rows[u] * I, *y = targets + rows[u] * O;
        for (long j = 0; j < H; j++) drive[j] = c1[j];
        for (long i = 0; i < I; i++)
            for (long j = 0; j < H; j++) drive[j] += x[i] * W1[i * H + j];
        for (int phase = 0; phase < 2; phase++) {
            const float nudge = phase ? -beta : beta;
            for (long t = 0; t < T; t++) {
                for (long o = 0; o < O; o++) d2[o] = c2[o] + nudge * (y[o] - s2[o]);
                for (long j = 0; j < H; j++) {
                    float d = drive[j];
                    for (long o = 0; o < O; o++) {
                        d += W2[j * O + o] * s2[o];
                        d2[o] += s1[j] * W2[j * O + o];
                    }
                    d1[j] = d;
                }
                for (long j = 0; j < H; j++) s1[j] += dt * (rho(d1[j]) - s1[j]);
                for (long o = 0; o < O; o++) s2[o] += dt * (rho(d2[o]) - s2[o]);
            }
            if (phase) break;
            for (long j = 0; j < H; j++) k1[j] = s1[j];
            for (long o = 0; o < O; o++) k2[o] = s2[o];
        }
        const float rate = eta / (2 * beta);
        for (long i = 0; i < I; i++)
            for (long j = 0; j < H; j++) W1[i * H + j] += rate * x[i] * (k1[j] - s1[j]);
        for (long j = 0; j < H; j++) c1[j] += rate * (k1[j] - s1[j]);
        for (long j = 0; j < H; j++)
            for (long o = 0; o < O; o++) W2[j * O + o] += rate * (k1[j] * k2[o] - s1[j] * s2[o]);
        for (long o = 0; o < O; o++) c2[o] += rate * (k2[o] - s2[o]);
    }
}
"""


def first_parameters():
    """Those of the method, the same for all."""
    params, _ = EquilibriumPropagation(SIZES).init(jax.random.key(0))
    return [np.array(part) for layer in params for part in layer]


def wrong(params, test):
    """Share of test images whose label is not the most active output of the free network."""
    W1, c1, W2, c2 = (np.asarray(part)[None] for part in params)
    answers = outputs(((W1, c1), (W2, c2)), test[0], DT, asked=1)[0].argmax(1)
    return float((answers != test[1]).mean())


class Ours:
    def __init__(self, engine, data, eta, batch=1, estimator: Any = two_term):
        method, source = EquilibriumPropagation(SIZES, BETA, DT, centred=True), Rows(data)
        if batch > 1:
            method, source = Replicas(method, batch), Batches(source, batch)
        run = Run(method, Phases(Alternating(), Fixed(T)), estimator, source, Optimiser(eta))
        self.engine, self.lanes = engine, lanes(run, 1, 0)
        params, _ = EquilibriumPropagation(SIZES).init(jax.random.key(0))
        self.state = engine.start(self.lanes, jax.tree.map(lambda part: part[None], params))

    def updates(self, n):
        ticks = 2 * T * n
        self.state = self.engine.advance(self.lanes, self.state, ticks, lambda ticks: None)
        jax.block_until_ready(self.state.params)

    def params(self):
        return [part[0] for layer in self.state.params for part in layer]


class Torch:
    """As one would write it: matrices, a loop over the ticks, the term of each phase."""

    def __init__(self, data, eta, batch):
        import torch

        torch.set_num_threads(1)
        self.torch, self.eta, self.batch = torch, eta, batch
        self.images, self.targets = (torch.from_numpy(np.array(part)) for part in data)
        self.W1, self.c1, self.W2, self.c2 = map(torch.from_numpy, first_parameters())
        self.s = torch.zeros(batch, SIZES[1]), torch.zeros(batch, SIZES[2])
        self.rng = np.random.default_rng(0)

    def phase(self, x, y, nudge):
        s1, s2 = self.s
        drive = x @ self.W1 + self.c1
        for _ in range(T):
            d1 = drive + s2 @ self.W2.T
            d2 = s1 @ self.W2 + self.c2 + nudge * (y - s2)
            s1 = s1 + DT * ((0.5 + 0.25 * d1).clamp(0, 1) - s1)
            s2 = s2 + DT * ((0.5 + 0.25 * d2).clamp(0, 1) - s2)
        self.s = s1, s2
        return x.T @ s1, s1.sum(0), s1.T @ s2, s2.sum(0)

    def updates(self, n):
        rate = self.eta / (2 * BETA * self.batch)
        with self.torch.no_grad():
            for _ in range(n):
                rows = self.rng.integers(len(self.images), size=self.batch)
                x, y = self.images[rows], self.targets[rows]
                plus, minus = self.phase(x, y, BETA), self.phase(x, y, -BETA)
                for part, a, b in zip(self.params(), plus, minus, strict=True):
                    part += rate * (a - b)

    def params(self):
        return [self.W1, self.c1, self.W2, self.c2]


class Cpp:
    """The straight loop."""

    def __init__(self, data, eta):
        self.folder = tempfile.TemporaryDirectory()
        source, library = (Path(self.folder.name) / name for name in ("loop.cpp", "loop.so"))
        source.write_text(LOOP)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["c++", *flags, "-o", library, source], check=True)
        self.loop = ctypes.CDLL(str(library)).updates
        self.eta, self.rng = eta, np.random.default_rng(0)
        self.data = [np.ascontiguousarray(part, np.float32) for part in data]
        self.state = [np.zeros(units, np.float32) for units in SIZES[1:]]
        self.parts = first_parameters()

    def updates(self, n):
        rows = self.rng.integers(len(self.data[0]), size=n).astype(np.int32)
        arrays = (*self.parts, *self.state, *self.data, rows)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        numbers = [ctypes.c_float(number) for number in (BETA, DT, self.eta)]
        self.loop(*pointers, ctypes.c_long(n), ctypes.c_long(T), *numbers)

    def params(self):
        return self.parts


def in_turns(contestants, updates, repeats):
    """CPU seconds of one update, the best of the repeats, which alternate."""
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(repeats):
        for name, contestant in contestants.items():
            began, n = time.process_time(), updates[name]
            contestant.updates(n)
            best[name] = min(best[name], (time.process_time() - began) / n)
    return best


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="fewer updates and repeats")
    quick = options.parse_args().quick
    split, test = mnist()
    data = split.images, np.eye(10, dtype=np.float32)[split.labels]
    some = test.images[:2000], test.labels[:2000]
    one, many, repeats = (500, 100, 2) if quick else (4000, 1000, 5)
    native = LayeredEngine(1)
    contestants = {
        "native, two-term": Ours(native, data, 0.1),
        "native, always on": Ours(native, data, 0.002, estimator=always_on),
        "JAX engine": Ours(JaxEngine(), data, 0.1),
        "C++ loop": Cpp(data, 0.1),
        "native, batch 20": Ours(native, data, 0.1, 20),
    }
    before = {name: 20 if name == "JAX engine" else one for name in contestants}
    before["native, batch 20"] = many
    timed = {"JAX engine": 4, "native, batch 20": 100}
    if find_spec("torch"):
        contestants |= {"PyTorch": Torch(data, 0.1, 1), "PyTorch, batch 20": Torch(data, 0.1, 20)}
        before |= {"PyTorch": one, "PyTorch, batch 20": many}
        timed |= {"PyTorch": 50, "PyTorch, batch 20": 50}
    else:
        print("PyTorch is left out because it is not installed: pip install 'flexphase[bench]'")
    errors = {}
    for name, contestant in contestants.items():
        contestant.updates(before[name])
        errors[name] = wrong(contestant.params(), some)
    best = in_turns(contestants, {name: timed.get(name, 1000) for name in contestants}, repeats)
    print("784-500-10, T = 20: one update, two phases")
    for name, seconds in best.items():
        ours = best["native, batch 20" if name.endswith("20") else "native, two-term"]
        print(
            f"  {name:18s} {1e6 * seconds:8.1f} us   {seconds / ours:7.1f} times ours   test error "
            f"after {before[name]} updates {100 * errors[name]:.1f} %"
        )
    print("goals: JAX engine 100, PyTorch 10, always on at most 2")


if __name__ == "__main__":
    main()
