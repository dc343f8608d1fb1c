"""The kernels of layered networks against a dense float64 loop in NumPy, and against themselves."""

import itertools

import numpy as np
import pytest
from native_abuse import (
    alternate,
    good_layered,
    hostile_layered,
    layered,
    refused_layered,
)

from flexphase import kernels

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
_native = kernels._native
ISAS = _native.isas() if not kernels.MISSING else [""]
SIZES = (9, 20, 6, 17, 3)  # wider and narrower than the layer below
NOTHING, WAITING, CHANGE, MEAN = range(4)
MEMORIES = [(memory, mu) for memory in range(4) for mu in (0, 0.8) if memory != MEAN or not mu]
RHO = (
    lambda x: np.clip(0.5 + 0.25 * x, 0, 1),
    lambda x: 1 / (1 + np.exp(-x)),
    np.tanh,
)


def made(memory, replicas=1, lanes=2, seed=0):
    given = layered(lanes, SIZES, replicas, seed=seed)
    if memory == WAITING:
        alternate(given)
    return given


def run(given, ticks, memory, momentum=0.0, reset=False, threads=1, isa=""):
    _native.layered(given, SIZES, ticks, memory, reset, momentum, threads, isa)
    return given


def settled(given, memory, momentum=0.0):
    """A copy with nothing left to write."""
    given = {name: part.copy() for name, part in given.items()}
    _native.layered_settle(given, SIZES, memory, momentum)
    return given


class Loop:
    """One lane, everything dense and in double precision, one tick after the other."""

    def __init__(self, given, memory, momentum, reset, lane):
        self.given, self.memory, self.momentum, self.reset = given, memory, momentum, reset
        self.lane, self.replicas = lane, given["x"].shape[1]
        self.params, self.traces, self.means = (self.layers(m) for m in ("", "m_", "m_"))
        pairs = list(itertools.pairwise(SIZES))
        self.s = [self.part(f"{i}.s")[:, :units] for i, (_, units) in enumerate(pairs)]
        self.x, self.target = self.part("x"), self.part("target")[:, : SIZES[-1]]
        self.left = self.slot = self.updates = 0
        self.last, self.sum = self.term(), None

    def part(self, name):
        return self.given[name][self.lane].astype(np.float64)

    def layers(self, before):
        layers = []
        for i, (below, units) in enumerate(itertools.pairwise(SIZES)):
            W, c = self.part(f"{i}.{before}W"), self.part(f"{i}.{before}c")[:units]
            layers.append([W[:, :below].T if i and units < below else W[:, :units], c])
        return layers

    def term(self):
        """sum_k scale_k gain s_{l-1} s_l / n for every layer."""
        scale = self.part("scale")[self.slot] / self.replicas
        terms = []
        for gain, s0, s1 in zip(self.part("gain"), [self.x, *self.s[:-1]], self.s, strict=True):
            terms.append([gain * np.einsum("k,ki,kj->ij", scale, s0, s1), gain * scale @ s1])
        return terms

    def relax(self):
        new = []
        for i, ((W, c), s) in enumerate(zip(self.params, self.s, strict=True)):
            d = (self.s[i - 1] if i else self.x) @ W + c
            if i + 1 < len(self.s):
                d = d + self.part("feedback") * self.s[i + 1] @ self.params[i + 1][0].T
            else:
                d = d + self.part("nudge")[self.slot][:, None] * (self.target - s)
            new.append(s + self.part("dt") * (RHO[self.given["curve"][i]](d) - s))
        if self.given["clamp"][self.lane, self.slot]:
            new[-1] = self.target.copy()
        self.s = new

    def tick(self):
        if self.left == 0:
            self.slot += 1
            self.left = self.given["ticks"][self.lane, self.slot]
            for k, row in enumerate(self.given["row"][self.lane, self.slot]):
                if row >= 0:
                    self.x[k] = self.given["inputs"][0, row]
                    self.target[k] = self.given["targets"][0, row]
            if self.reset:
                self.s = [np.zeros_like(s) for s in self.s]
        self.relax()
        first = self.left == self.given["ticks"][self.lane, self.slot]
        moment = 2 if self.left == 1 else 0 if first else 1
        self.learn(*(self.given[n][self.lane, self.slot, moment] for n in ("weight", "apply")))
        self.left -= 1

    def learn(self, weight, apply):
        now = self.term()
        total = combined(float(weight), now, 0, now)
        if self.memory == CHANGE:
            total = combined(float(weight), now, -float(weight), self.last)
        if self.memory == MEAN:
            off = combined(1, now, -1, self.means)
            total = combined(float(weight), off, 0, off)
            self.means = combined(1, self.means, self.part("rate") * apply, off)
        if self.memory == WAITING and self.sum is not None:
            total = combined(1, total, 1, self.sum)
        self.last = now
        if self.memory == WAITING:
            self.sum = None if apply else total
        if apply:
            self.updates += 1
            for layer, trace, g, eta in zip(
                self.params, self.traces, total, self.part("eta"), strict=True
            ):
                for j in range(2):
                    trace[j] = self.momentum * trace[j] + g[j]
                    layer[j] = layer[j] - eta * trace[j]


def combined(a, first, b, second):
    return [
        [a * p + b * q for p, q in zip(one, two, strict=True)]
        for one, two in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize(("memory", "momentum"), MEMORIES)
def test_against_a_dense_float64_loop(memory, momentum, replicas, isa):
    """Tapes of random weights, phases that reset their states, clamped outputs, all activations."""
    for reset, ticks in ((False, 40), (True, 31)):
        given = made(memory, replicas)
        given["known"][:] = memory == CHANGE
        loops = [Loop(given, memory, momentum, reset, lane) for lane in range(2)]
        before = given["0.W"].copy()
        for loop in loops:
            for _ in range(ticks):
                loop.tick()
        ended = settled(run(given, ticks, memory, momentum, reset, isa=isa), memory, momentum)
        assert np.abs(ended["0.W"] - before).max() > 0.02  # it did learn
        for lane, loop in enumerate(loops):
            after = Loop(ended, memory, momentum, reset, lane)
            assert_close(after.params, loop.params)
            assert_close([after.s], [loop.s])
            if momentum:
                assert_close(after.traces, loop.traces)
            if memory == MEAN:
                assert_close(after.means, loop.means)
            assert ended["updates"][lane] == loop.updates
            assert (ended["left"][lane], ended["slot"][lane]) == (loop.left, loop.slot)


def assert_close(ours, exact):
    for one, other in zip(ours, exact, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_without_a_tick_before_nothing_has_changed():
    """The differential rule does not step at the first tick of all."""
    given = made(CHANGE)
    before = {name: part.copy() for name, part in given.items()}
    run(given, 1, CHANGE)
    np.testing.assert_array_equal(given["updates"], 0)
    np.testing.assert_array_equal(given["known"], 1)
    for name in ("0.W", "3.W", "2.c"):
        np.testing.assert_array_equal(given[name], before[name])
    assert (given["0.s"] != before["0.s"]).any()


def test_silent_inputs_catch_up_in_closed_form():
    """A row whose input speaks once, then 100 phases later again, against the float64 loop."""
    given = layered(1, SIZES, 1, slots=120)
    given["inputs"][:, :, 0] = 0
    given["inputs"][:, 0, 0] = 1.5
    given["row"][:] = 1 + np.arange(120)[:, None] % 6
    given["row"][0, [1, 105]] = 0
    given["ticks"][:] = 2
    given["weight"][:] = 0.3
    loop = Loop(given, NOTHING, 0.9, False, 0)
    for _ in range(212):
        loop.tick()
    ended = settled(run(given, 212, NOTHING, 0.9), NOTHING, 0.9)
    after = Loop(ended, NOTHING, 0.9, False, 0)
    assert_close(after.params, loop.params)
    assert_close(after.traces, loop.traces)


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize(("memory", "momentum"), MEMORIES)
class TestDependsOnNothingElse:
    """The reference of each is the same kernel run another way: equal to the last bit."""

    def test_where_calls_end(self, memory, momentum, replicas):
        whole = run(made(memory, replicas, 3), 50, memory, momentum)
        parts = made(memory, replicas, 3)
        for ticks in (1, 2, 8, 0, 19, 20):
            run(parts, ticks, memory, momentum)
        assert_same_bits(whole, parts)
        assert_same_bits(settled(whole, memory, momentum), settled(parts, memory, momentum))

    def test_settling_changes_nothing_later(self, memory, momentum, replicas):
        given = run(made(memory, replicas, 3), 21, memory, momentum)
        before = {name: part.copy() for name, part in given.items()}
        settled(given, memory, momentum)
        assert_same_bits(given, before)

    def test_threads(self, memory, momentum, replicas):
        one, three = (
            run(made(memory, replicas, 5), 50, memory, momentum, threads=threads)
            for threads in (1, 3)
        )
        assert_same_bits(one, three)

    def test_instruction_set(self, memory, momentum, replicas):
        best = run(made(memory, replicas, 2), 50, memory, momentum)
        for isa in ISAS:
            assert_same_bits(best, run(made(memory, replicas, 2), 50, memory, momentum, isa=isa))

    def test_other_lanes(self, memory, momentum, replicas):
        many = made(memory, replicas, 4)
        shared = ("inputs", "targets", "curve", "clip")
        alone = {n: p.copy() if n in shared else p[2:3].copy() for n, p in many.items()}
        run(many, 50, memory, momentum)
        run(alone, 50, memory, momentum)
        for name in ("0.W", "1.W", "2.s", "gathered", "x"):
            np.testing.assert_array_equal(many[name][2:3], alone[name])


def assert_same_bits(one, other):
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("isa", ISAS)
def test_outputs_are_those_of_the_loop(isa):
    """Free networks from rest, 7 inputs; the loop has as many replicas. Bits are the same on every
    instruction set and for every number of threads.
    """
    given = layered(2, SIZES, 7)
    given["row"][:] = np.arange(7)
    given["nudge"][:], given["clamp"][:], given["ticks"][:] = 0, False, 30
    loops = [Loop(given, NOTHING, 0, True, lane) for lane in range(2)]
    for loop in loops:
        loop.learn = lambda weight, apply: None
        for _ in range(30):
            loop.tick()
    given["inputs"] = given["inputs"][0].copy()
    results = []
    for threads, which in ((1, isa), (3, isa), (1, "")):
        given["outputs"] = np.full((2, 7, SIZES[-1]), np.nan, np.float32)
        _native.layered_outputs(given, SIZES, 30, threads, which)
        results.append(given["outputs"])
    np.testing.assert_allclose(results[0], [loop.s[-1] for loop in loops], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_networks_at_rest_are_not_relaxed_further():
    """A thousand steps give the bits of a million."""
    given = layered(1, SIZES, 1)
    given["inputs"] = given["inputs"][0].copy()
    ends = []
    for steps in (1000, 1_000_000):
        given["outputs"] = np.zeros((1, 7, SIZES[-1]), np.float32)
        _native.layered_outputs(given, SIZES, steps, 1)
        ends.append(given["outputs"])
    np.testing.assert_array_equal(*ends)


def test_odd_sizes_and_no_lanes_or_ticks():
    good_layered(_native)


def test_hostile_arrays_are_refused_by_name():
    sentences = [refused_layered(_native, given) for _, given in hostile_layered()]
    assert all(s.endswith(".") for s in sentences)
    assert (
        "0.W must be a writable C-contiguous array of float32 of shape (3, 5, 16)" in (sentences[0])
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sizes": (5,)}, "layers"),
        ({"sizes": (5,) * 18}, "layers"),
        ({"sizes": (5, 0, 3)}, "unit"),
        ({"ticks": -1}, "ticks"),
        ({"memory": 4}, "memory"),
        ({"memory": 3}, "without momentum"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": float("nan")}, "momentum"),
        ({"threads": 0}, "threads"),
        ({"isa": "abacus"}, "abacus"),
    ],
)
def test_hostile_options_are_refused(change, word):
    assert word in refused_layered(_native, layered(3, (5, 4, 3), 2), **{"memory": 0} | change)


def test_a_refused_call_changes_nothing():
    for why in ("tape too short", "row beyond the data", "too many terms that wait"):
        given = dict(hostile_layered())[why]
        before = {name: np.copy(part) for name, part in given.items()}
        refused_layered(_native, given)
        assert_same_bits(given, before)
