"""Calls into the compiled module with good, odd and hostile arrays, without JAX: used by
test_native_abuse.py and by native/sanitize.sh.

python tests/native_abuse.py FOLDER_OF_THE_MODULE [threads]
"""

import importlib.util
import itertools
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STARTS = range(4)
MOST = 2**31 - 1


def load(folder: str) -> Any:
    path = next(Path(folder).glob("_native*.so"))
    spec = importlib.util.spec_from_file_location("_native", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays(
    lanes: int,
    visible: int,
    hidden: int,
    slots: int = 40,
    wide: bool = False,
    machine: bool = False,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """A complete, valid set of arguments; phases of 1 to 3 ticks."""
    rng = np.random.default_rng(seed)
    n = visible + hidden

    def f32(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    def coins(*shape: int) -> np.ndarray:
        return rng.integers(0, 2, shape).astype(np.float32)

    shapes = (
        {"W": (n, n), "a": (n,)}
        if machine
        else {"W": (visible, hidden), "a": (visible,), "c": (hidden,)}
    )
    made = {
        prefix + name: f32(lanes, *shape)
        for prefix in ("", "acc_", "base_")
        for name, shape in shapes.items()
    }
    made |= {"v": coins(lanes, visible), "h": coins(lanes, hidden), "x": coins(lanes, visible)}
    made |= {
        "chain_v": coins(lanes, visible),
        "chain_h": coins(lanes, hidden),
        "drive": f32(lanes, hidden),
        "gathered": f32(lanes, hidden + 1),
    }
    made |= {name: np.zeros(lanes, np.int32) for name in ("left", "slot", "updates")}
    made |= {"rng": rng.integers(1, 2**32, (lanes, 4, 16) if wide else (lanes, 4), dtype=np.uint32)}
    made |= {
        "ticks": rng.integers(1, 4, (lanes, slots)).astype(np.int32),
        "sign": rng.choice([-1, 1], (lanes, slots)).astype(np.int8),
    }
    made |= {
        "row": rng.integers(-1, 7, (lanes, slots)).astype(np.int32),
        "weight": f32(lanes, slots, 3),
    }
    made |= {
        "apply": np.ones((lanes, slots, 3), bool),
        "enter": rng.random((lanes, slots, n), dtype=np.float32),
    }
    made |= {
        "eta": np.full(lanes, 0.01, np.float32),
        "data": rng.integers(0, 2**32, (1, 7, -(-visible // 32)), dtype=np.uint32),
    }
    if machine:
        mask = np.triu(rng.random((n, n)) < 0.5, 1)
        mask |= mask.T
        made |= {
            "order": rng.permutation(n).astype(np.int32),
            "joined": np.nonzero(mask)[1].astype(np.int32),
        }
        made |= {"first": np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int32)}
        number = np.zeros((n, n), np.int32)
        number[mask] = np.arange(mask.sum())
        made |= {"mirror": np.ascontiguousarray(number.T[mask])}
    return made


#: How devices round: (stochastic, levels), and which of their numbers are given.
DEVICES = {
    (True, True): ("range", "step"),
    (False, True): ("range", "step", "asymmetry"),
    (True, False): ("step", "proportional"),
    (False, False): ("range", "write_noise"),
}


def device(given: dict[str, np.ndarray], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The same arguments with devices for synapses."""
    lanes = len(given["eta"])
    numbers = {"range": 1.0, "step": 0.1, "write_noise": 0.01, "proportional": 0.5}
    numbers |= {"asymmetry": 0.1}
    made = {name: np.full(lanes, numbers[name], np.float32) for name in names}
    return given | made | {"write_rng": given["rng"].copy()}


def call(
    module: Any,
    given: dict[str, Any],
    kind: str,
    ticks: int = 30,
    start: int = 0,
    remember: bool = False,
    threads: int = 2,
    isa: str = "",
    rounding: tuple[bool, bool] = (False, False),
) -> None:
    if kind == "machine":
        module.machine(given, ticks, start, True, remember, threads, isa, *rounding)
    else:
        module.rbm(given, ticks, start, True, remember, threads, kind == "wide", isa, *rounding)


def good(module: Any) -> None:
    """Every kernel, instruction set, start and memory, at odd sizes and lane counts."""
    for kind in ("small", "wide", "machine"):
        for lanes, visible, hidden in ((0, 2, 2), (1, 1, 1), (5, 3, 17), (17, 33, 9), (3, 70, 40)):
            for isa in module.isas():
                for start in STARTS:
                    for remember in (False, True):
                        given = arrays(
                            lanes, visible, hidden, wide=kind == "wide", machine=kind == "machine"
                        )
                        call(module, given, kind, 30, start, remember, isa=isa)
                        call(module, given, kind, 0, start, remember, isa=isa)
                for how, names in DEVICES.items():
                    for remember in (False, True):
                        given = device(
                            arrays(
                                lanes,
                                visible,
                                hidden,
                                wide=kind == "wide",
                                machine=kind == "machine",
                            ),
                            names,
                        )
                        call(module, given, kind, 30, 0, remember, isa=isa, rounding=how)
            given = arrays(lanes, visible, hidden) | {"nll": np.empty(lanes)}
            if min(visible, hidden) < 12:
                module.rbm_nll(
                    {k: given[k] for k in ("W", "a", "c", "nll")} | {"data": given["x"]}, 2
                )


def hostile(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """What must be refused: (why, arguments)."""
    base = arrays(3, 5, 4, wide=kind == "wide", machine=kind == "machine")
    read_only = base["W"].copy()
    read_only.flags.writeable = False
    cases = [
        ("another dtype", base | {"W": base["W"].astype(np.float64)}),
        ("too small", base | {"h": base["h"][:, :3].copy()}),
        ("too many dimensions", base | {"v": base["v"][None]}),
        ("not contiguous", base | {"v": np.asfortranarray(np.repeat(base["v"], 2, 1))[:, ::2]}),
        ("read-only", base | {"W": read_only}),
        ("not an array", base | {"x": [[1.0] * 5] * 3}),
        ("missing", {k: v for k, v in base.items() if k != "eta"}),
        ("data of another width", base | {"data": np.zeros((1, 7, 3), np.uint32)}),
        ("data for two of three lanes", base | {"data": np.zeros((2, 7, 1), np.uint32)}),
        (
            "tape too short",
            base
            | {
                name: base[name][:, :3].copy()
                for name in ("ticks", "sign", "row", "weight", "apply", "enter")
            },
        ),
        ("phase of no ticks", base | {"ticks": np.zeros_like(base["ticks"])}),
        ("row beyond the data", base | {"row": np.full_like(base["row"], 7)}),
        ("slot beyond the tape", base | {"slot": np.full(3, 40, np.int32)}),
        ("slot before the tape", base | {"slot": np.full(3, -1, np.int32)}),
        ("more left than the phase has", base | {"left": np.full(3, 9, np.int32)}),
        ("less than nothing left", base | {"left": np.full(3, -(2**31), np.int32)}),
        ("updates that would overflow", base | {"updates": np.full(3, MOST, np.int32)}),
        ("less than no updates", base | {"updates": np.full(3, -1, np.int32)}),
        ("memory in a local estimator", base | {"apply": np.zeros_like(base["apply"])}),
        ("too little noise", base | {"noise": np.zeros((29, 3, 9), np.float32)}),
        ("noise without a generator", base | {"write_noise": np.ones(3, np.float32)}),
        ("a device of no step", base | {"step": np.zeros(3, np.float32)}),
        ("a device of no range", base | {"range": np.full(3, np.nan, np.float32)}),
        ("devices for two of three lanes", base | {"range": np.ones(2, np.float32)}),
        ("too little given", base | {"range": np.ones(3, np.float32), "given": base["W"]}),
    ]
    if kind == "machine":
        cases += [
            ("joined to nobody", base | {"joined": base["joined"] + 9}),
            ("order beyond", base | {"order": base["order"] + 1}),
            (
                "a mirror beyond",
                base | {"range": np.ones(3, np.float32), "mirror": base["mirror"] + 99},
            ),
        ]
        cases += [("pairs that do not add up", base | {"first": base["first"][::-1].copy()})]
    return cases


def refusal(call: Callable[[], Any]) -> str:
    """The sentence of the ValueError."""
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("not refused")


def refused(module: Any, kind: str, given: dict[str, Any]) -> str:
    """The sentence of the ValueError."""
    return refusal(lambda: call(module, given, kind))


def forward_forward(lanes: int, sizes: tuple[int, ...], ticks: int = 20) -> dict[str, Any]:
    """A complete, valid set of arguments of Forward-Forward; every second tick is a step."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for layer, (below, units) in enumerate(itertools.pairwise(sizes)):
        for name, shape in {"W": (below, units), "c": (units,)}.items():
            made[f"{layer}.{name}"] = rng.normal(size=(lanes, *shape)).astype(np.float32)
            for moment in ("mu", "nu"):
                made[f"{layer}.{moment}_{name}"] = np.zeros((lanes, *shape), np.float32)
        made[f"{layer}.h"] = np.zeros((lanes, units), np.float32)
    positive = np.broadcast_to(np.arange(ticks) % 2 == 0, (lanes, ticks))
    sign = np.where(positive, 1, -1).astype(np.float32)
    return made | {
        "images": rng.random((1, 7, sizes[0]), dtype=np.float32),
        "row": rng.integers(0, 7, (lanes, ticks)).astype(np.int32),
        "label": rng.integers(0, 3, (lanes, ticks)).astype(np.int32),
        "sign": sign,
        "weight": sign.copy(),
        "apply": ~positive,
        "eta": np.full(lanes, 0.01, np.float32),
        "theta": np.full(lanes, 2, np.float32),
        "count": np.zeros(lanes, np.int32),
        "scores": np.empty((lanes, 7, 3), np.float32),
    }


def good_forward_forward(module: Any) -> None:
    for lanes, sizes in ((0, (5, 2)), (1, (4, 1)), (5, (19, 33, 8)), (3, (70, 16, 17, 5))):
        for isa in module.isas():
            for adam in (False, True):
                given = forward_forward(lanes, sizes)
                module.forward_forward(given, len(sizes) - 1, 3, adam, 2, isa)
                given["images"] = given["images"][0].copy()
                module.forward_forward_scores(given, len(sizes) - 1, 3, 2, isa)
                assert np.isfinite(given["scores"]).all()


def hostile_forward_forward() -> list[tuple[str, dict[str, Any]]]:
    """What must be refused: (why, arguments of two layers, 19-9-5)."""
    base = forward_forward(3, (19, 9, 5))
    return [
        ("layers that do not fit", base | {"1.W": base["1.W"][:, :8].copy()}),
        ("row beyond the images", base | {"row": np.full_like(base["row"], 7)}),
        ("row before the images", base | {"row": np.full_like(base["row"], -1)}),
        ("label beyond the classes", base | {"label": np.full_like(base["label"], 3)}),
        ("steps that would overflow", base | {"count": np.full(3, MOST, np.int32)}),
        ("less than no steps", base | {"count": np.full(3, -(2**31), np.int32)}),
    ]


def refused_forward_forward(module: Any, given: dict[str, Any]) -> str:
    """The sentence of the ValueError."""
    return refusal(lambda: module.forward_forward(given, 2, 3, True, 2, ""))


def wide(units: int) -> int:
    return -(-units // 16) * 16


def layered(
    lanes: int, sizes: tuple[int, ...], replicas: int = 1, slots: int = 30, seed: int = 0
) -> dict[str, Any]:
    """A complete, valid set of arguments of the layered networks; phases of 1 to 4 ticks."""
    rng = np.random.default_rng(seed)
    layers, n = len(sizes) - 1, replicas
    made: dict[str, Any] = {}

    def padded(*shape: int, scale: float = 1.0) -> np.ndarray:
        array = np.zeros((*shape[:-1], wide(shape[-1])), np.float32)
        array[..., : shape[-1]] = scale * rng.normal(size=shape)
        return array

    for i, (below, units) in enumerate(itertools.pairwise(sizes)):
        stored = (units, below) if i and units < below else (below, units)
        for before, scale in (("", below**-0.5), ("m_", 0.1)):
            made[f"{i}.{before}W"] = padded(lanes, *stored, scale=scale)
            made[f"{i}.{before}c"] = padded(lanes, units, scale=scale)
        made |= {f"{i}.{name}": np.abs(padded(lanes, n, units)) for name in ("s", "s_kept")}
    inputs = np.maximum(rng.normal(size=(1, 7, sizes[0])), 0).astype(np.float32)
    made |= {"inputs": inputs, "targets": rng.random((1, 7, sizes[-1]), dtype=np.float32)}
    made["x"] = inputs[0, rng.integers(0, 7, (lanes, n))]
    made["x_kept"] = inputs[0, rng.integers(0, 7, (lanes, n))]
    made |= {"target": np.abs(padded(lanes, n, sizes[-1])), "kept": np.zeros((lanes, n), "f4")}
    made |= {"gathered": padded(lanes, n, sizes[1], scale=0), "trace": padded(lanes, n, sizes[1])}
    made["trace"][:] = 0
    zeros = ("left", "slot", "updates", "known", "steps")
    made |= {name: np.zeros(lanes, np.int32) for name in zeros}
    made["deferred"] = np.zeros((lanes, sizes[0]), np.int32)
    sign = rng.choice([-1, 1], (lanes, slots)).astype(np.int8)
    made |= {
        "ticks": rng.integers(1, 5, (lanes, slots)).astype(np.int32),
        "sign": sign,
        "row": rng.integers(-1, 7, (lanes, slots, n)).astype(np.int32),
        "weight": rng.normal(size=(lanes, slots, 3)).astype(np.float32),
        "apply": np.ones((lanes, slots, 3), bool),
        "nudge": np.where(sign > 0, 0.5, 0)[..., None] + np.zeros(n),
        "scale": -rng.random((lanes, slots, n)),
        "clamp": rng.random((lanes, slots)) < 0.2,
        "eta": rng.random((lanes, layers)) / 8,
        "gain": rng.random((lanes, layers)),
        "dt": 0.2 + 0.5 * rng.random(lanes),
        "feedback": rng.random(lanes),
        "rate": rng.random(lanes),
        "curve": (np.arange(layers) % 3).astype(np.int32),
        "clip": np.tile(np.array([0.5, 0.25, 0, 1], np.float32), (layers, 1)),
    }
    for name in ("nudge", "scale", "eta", "gain", "dt", "feedback", "rate"):
        made[name] = made[name].astype(np.float32)
    return made


def alternate(given: dict[str, Any]) -> None:
    """Make the tape one of the two-term rule: +, -, +, -, with a step at the end of each second."""
    last = np.array([False, False, True])
    positive = np.arange(given["sign"].shape[1]) % 2 == 1  # slot 0 is over
    given["sign"][:] = np.where(positive, 1, -1)
    given["weight"][:] = np.where(positive, 1, -1)[:, None] * last
    given["apply"][:] = ~positive[:, None] & last


def good_layered(module: Any) -> None:
    """Every memory, with and without momentum, at odd sizes, lane counts and replicas."""
    shapes = ((0, (5, 2), 1), (1, (1, 1), 1), (3, (19, 33, 8), 2), (2, (40, 16, 17, 5), 5))
    for lanes, sizes, replicas in shapes:
        for isa in module.isas():
            for memory, momentum, reset in itertools.product(range(4), (0, 0.9), (False, True)):
                if memory == 3 and momentum:
                    continue  # refused
                given = layered(lanes, sizes, replicas)
                if memory == 1:
                    alternate(given)
                module.layered(given, sizes, 25, memory, reset, momentum, 2, isa)
                module.layered(given, sizes, 0, memory, reset, momentum, 2, isa)
                module.layered_settle(given, sizes, memory, momentum, isa)
            given = layered(lanes, sizes)
            given["inputs"] = given["inputs"][0].copy()
            given["outputs"] = np.full((lanes, 7, sizes[-1]), np.nan, np.float32)
            module.layered_outputs(given, sizes, 20, 2, isa)
            assert np.isfinite(given["outputs"]).all()


def hostile_layered() -> list[tuple[str, dict[str, Any]]]:
    """What must be refused: (why, arguments of two layers, 5-4-3, with two replicas)."""
    base = layered(3, (5, 4, 3), 2)
    tape = ("ticks", "sign", "row", "weight", "apply", "nudge", "scale", "clamp")
    return [
        ("another dtype", base | {"0.W": base["0.W"].astype(np.float64)}),
        ("without padding", base | {"1.s": base["1.s"][..., :3].copy()}),
        ("weights the other way round", base | {"1.W": np.zeros((3, 4, 16), np.float32)}),
        ("not contiguous", base | {"x": np.repeat(base["x"], 2, -1)[..., ::2]}),
        ("missing", {k: v for k, v in base.items() if k != "gain"}),
        ("missing memory", {k: v for k, v in base.items() if k != "x_kept"}),
        ("missing momentum", {k: v for k, v in base.items() if k != "deferred"}),
        ("rows for one replica", base | {"row": base["row"][..., :1].copy()}),
        ("targets of other rows", base | {"targets": base["targets"][:, :6].copy()}),
        ("data for two of three lanes", base | {"inputs": np.repeat(base["inputs"], 2, 0)}),
        ("no such activation", base | {"curve": np.full(2, 3, np.int32)}),
        ("tape too short", base | {name: base[name][:, :3].copy() for name in tape}),
        ("phase of no ticks", base | {"ticks": np.zeros_like(base["ticks"])}),
        ("row beyond the data", base | {"row": np.full_like(base["row"], 7)}),
        ("slot beyond the tape", base | {"slot": np.full(3, 30, np.int32)}),
        ("slot before the tape", base | {"slot": np.full(3, -1, np.int32)}),
        ("more left than the phase has", base | {"left": np.full(3, 9, np.int32)}),
        ("less than nothing left", base | {"left": np.full(3, -1, np.int32)}),
        ("more steps than the phase has", base | {"steps": np.full(3, 9, np.int32)}),
        ("updates that would overflow", base | {"updates": np.full(3, MOST, np.int32)}),
        ("deferred steps that would overflow", base | {"deferred": np.full((3, 5), MOST, "i4")}),
        ("less than no deferred steps", base | {"deferred": np.full((3, 5), -1, np.int32)}),
        ("too many terms that wait", base | {"apply": np.zeros_like(base["apply"])}),
    ]


def refused_layered(module: Any, given: dict[str, Any], **other: Any) -> str:
    """The sentence of the ValueError."""
    options = {"sizes": (5, 4, 3), "ticks": 25, "memory": 1, "momentum": 0.9, "threads": 2}
    return refusal(lambda: module.layered(given, reset=False, **(options | other)))


def without_threads(module: Any) -> bool:
    """Is the result the same where the system grants no thread? Memory for stacks is refused."""
    alone, crowd = forward_forward(64, (19, 33, 8)), forward_forward(64, (19, 33, 8))
    module.forward_forward(alone, 2, 3, True, 1, "")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**24, limits[1]))  # two stacks, not 63
    try:
        module.forward_forward(crowd, 2, 3, True, 64, "")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return all(np.array_equal(alone[name], crowd[name]) for name in ("0.W", "1.W", "1.h"))


def resident() -> int:
    """Kilobytes of memory that the process has now; its peak would hide a leak below what it had
    once.
    """
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def grows(module: Any, calls: int) -> int:
    """Kilobytes by which the process grows over that many calls, good and refused, once warm."""
    given, bad = arrays(3, 5, 4), hostile("small")[0][1]

    def some(n: int) -> int:
        for _ in range(n):
            given["slot"][:], given["left"][:] = 0, 0
            call(module, given, "small", 5, threads=1)
            refused(module, "small", bad)
        return resident()

    before = some(500)
    return some(calls) - before


if __name__ == "__main__":
    native = load(sys.argv[1])
    if sys.argv[2:] == ["threads"]:
        sys.exit(0 if without_threads(native) else 1)
    good(native)
    good_forward_forward(native)
    good_layered(native)
    for why, given in hostile_layered():
        print(f"layered, {why}: {refused_layered(native, given)}")
    for why, given in hostile_forward_forward():
        print(f"forward_forward, {why}: {refused_forward_forward(native, given)}")
    for kind in ("small", "wide", "machine"):
        for why, given in hostile(kind):
            print(f"{kind}, {why}: {refused(native, kind, given)}")
    print("clean")
