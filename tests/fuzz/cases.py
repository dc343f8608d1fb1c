"""Random cases: command lines made from the parser's own options, and files made from real ones.

A case is data: {"words": [...], "files": {name: base64}}. Words that begin with @ call the library:
`@record FILE` and `@checkpoint FILE`.
"""

import argparse
import base64
import datetime
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from flexphase import checkpoints, files
from flexphase.cli import parser

VALUES = (
    *("-1", "0", "1", "2", "3", "7", "0.5", "0.1", "1e-3", "2.5", "-0.0", "1e-400", "1e400"),
    *("nan", "inf", "-inf", "99999999999999999999", "0x10", "1_0", "\uff11", "", " ", "-", "--"),
    *("1e300", "-1e300", "1e-300", "1e38"),
    *("abc", "\u00e9\u4e2d", "../x", "/dev/null", "/dev/full", "/", ".", "nowhere/x", "%s", "{}"),
    *("a\nb", "a" * 5000, "True", "None", "all", "x.npy", "x.npz", "x.csv", "phases.csv", "run"),
    *("bas", "bas:2", "bas:0", "bas:99", "bas:x", "digits", "rings:9", "two-moons:0", "[1]"),
)
#: Options whose large values would only take long, and commands that would: they get bad ones.
LONG = {"--ticks", "--phases", "--updates", "--steps", "--rows", "--lanes", "--threads", "--seeds"}
BAD = ("-1", "0", "nan", "abc", "", "1e400", "2.5", "-inf")
SLOW = ("theory", "reproduce", "study", "plan", "data", "demo")
#: Folders that no run may have, for commands that would take long in any other.
TAKEN = ("x.npy", "run", "record.nc/x", "/proc/flexphase", "/", "a\0b")
BUDGET = ["--phases", "4", "--records", "1", "--engine"]
RUN = ["train", "rbm", "--data", "bas:2", "--hidden", "2", "--length", "2", "--seeds", "2"]
RUN += [*BUDGET, "jax"]
#: Of every engine, and of states of different shapes: `target.small_run`.
CHECKPOINTS = [f"{engine}-{run}.npz" for engine in ("jax", "native") for run in ("rbm", "ff", "ep")]


def subcommands(p: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [a for a in p._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def command(rng: random.Random, top: argparse.ArgumentParser) -> list[str]:
    """A command line: mostly real words, with values that are mostly not."""
    words, p = [], top
    while (choices := subcommands(p)) and rng.random() < 0.98:
        names = list(choices)
        name = rng.choices(names, [20 if n == "train" else 1 if n in SLOW else 3 for n in names])
        words += name
        p = choices[name[0]]
    slow = bool(words) and words[0] in SLOW
    positional = [a for a in p._actions if not a.option_strings]
    for _ in positional if rng.random() < 0.9 else []:
        words.append(rng.choice(("run", "run/record.nc", "nowhere", rng.choice(VALUES))))
    options = [a for a in p._actions if a.option_strings and a.dest != "help"]
    for action in rng.sample(options, min(len(options), rng.randrange(1, 6))):
        name = rng.choice(action.option_strings)
        words.append(name)
        if action.nargs == 0:
            continue
        choices = [str(c) for c in action.choices or ()]
        bad = name in LONG or slow
        pool = BAD if bad else choices + list(VALUES)
        words.append(rng.choice(pool))
    if words[:1] in (["reproduce"], ["study"]) and len(words) > 1 and rng.random() < 0.5:
        known = next(a for a in p._actions if not a.option_strings).choices or VALUES
        words[1] = rng.choice(list(known))
        words += ["--out", rng.choice(TAKEN)]
    elif words[:1] == ["plan"] and rng.random() < 0.5:
        words[1:] = ["run", "--checkpoint", "--lanes", "2", *words[2:]]
    elif slow:
        words += ["--no-such-option"]
    if words[:1] == ["train"]:
        words += [*BUDGET, rng.choice(("jax", "auto", "native"))]
    if words[:1] in (["train"], ["plot"], ["sample"], ["phases"], ["live"]) and rng.random() < 0.9:
        words += ["--out", "out" if words[0] == "train" else f"out.{rng.choice(('png', 'pgf'))}"]
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), rng.choice(VALUES))
    return words


def mutated(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    """A few of the ways in which files are harmed."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(8)
        if how == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[at % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x20))
        elif how == 2:
            data[at : at + 8] = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63)).to_bytes(
                8, "little"
            )
        elif how == 3:
            del data[at : at + rng.choice((1, 8, 100, 10_000))]
        elif how == 4:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 64)))
        elif how == 5:
            data[at : at + rng.choice((16, 512))] = bytes(rng.choice((16, 512)))
        elif how == 6:
            data = data[:at] + other[rng.randrange(len(other)) :]
        else:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin : begin + 256]
    return bytes(data)


NOTHING = {"float32": []}
PARTS = (
    {"class": "flexphase.phases.recorded.Recorded", "sign": NOTHING, "ticks": {"int32": []}},
    {"class": "flexphase.phases.recorded.Recorded", "table": "phases.csv"},
    {"class": "flexphase.phases.selections.Bernoulli", "b": 0.5, "alternates": True},
    {"class": "flexphase.data.sources.Rows", "data": NOTHING},
    {"class": "flexphase.core.Optimiser", "eta": NOTHING, "make": {"function": "optax.sgd"}},
    {"class": "flexphase.methods.rbm.RBM", "visible": 4, "hidden": 2, "scale": NOTHING},
    {"class": "flexphase.estimators.Weighted", "weigh": {"function": "flexphase.folder.write"}},
    {"class": "flexphase.estimators.Weighted", "weigh": {"function": "jax.nn.relu"}},
)
ODD = (None, True, -1, 0, 3, 2.5, float("nan"), 1e300, "", "x", "RBM", [], [1], {}, {"a": 1})


def odd_json(rng: random.Random, value: Any, early: float = 0.15, less: float = 0.2) -> Any:
    """The same JSON with one place changed: replaced as a whole with the probability `early` on
    every level, or left out with `less`.
    """
    if rng.random() < early or not isinstance(value, (dict, list)) or not value:
        return rng.choice(ODD)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [odd_json(rng, v, early, less) if i == at else v for i, v in enumerate(value)]
    at = rng.choice(list(value))
    if rng.random() < less:
        return {k: v for k, v in value.items() if k != at}
    return {k: odd_json(rng, v, early, less) if k == at else v for k, v in value.items()}


def odd_run(rng: random.Random, config: dict[str, Any]) -> dict[str, Any]:
    """The same configuration with a field deep inside its run changed, or a part of another."""
    run = config["run"]
    if rng.random() < 0.3:
        part = rng.choice([name for name in run if name != "class"])
        return config | {"run": run | {part: rng.choice(PARTS)}}
    return config | {"run": odd_json(rng, run, early=0.03, less=0.05)}


def odd_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Another type, shape or value."""
    how = rng.randrange(6)
    if how == 0:
        return array.astype(rng.choice(("f8", "i8", "u1", "c8", "S3", "?")))
    if how == 1:
        return array[..., None] if rng.random() < 0.5 else array.ravel()
    if how == 2:
        return array[:0] if array.ndim else np.zeros(0, array.dtype)
    if how == 3 or array.dtype.kind not in "iuf":
        return np.concatenate([array, array]) if array.ndim else array
    new = array.copy()
    if new.size:
        kinds = {"f": (np.nan, np.inf, -1e30, 0, 0.5), "i": (-1, 2**31 - 1, -(2**31), 7, 0)}
        new.flat[rng.randrange(new.size)] = rng.choice(kinds.get(array.dtype.kind, (0, 255)))
    return new


def forged_record(rng: random.Random, raw: bytes) -> bytes:
    """A record that HDF5 can read, with something changed, and a fresh seal or none."""
    file = io.BytesIO(files.unsealed(raw))
    with h5py.File(file, "a") as h5:
        if rng.random() < 0.3:
            h5.attrs["config"] = json.dumps(odd_run(rng, json.loads(h5.attrs["config"])))
        elif rng.random() < 0.6:
            name = rng.choice(list(h5.attrs))
            text = h5.attrs[name]
            try:
                h5.attrs[name] = json.dumps(odd_json(rng, json.loads(text)))
            except (ValueError, TypeError):
                h5.attrs[name] = rng.choice((0, -1, 2.5, "x", np.zeros(3)))
        else:
            name = rng.choice(list(h5))
            old = h5[name]
            if rng.random() < 0.3 or old.dtype.kind not in "iuf":
                del h5[name]
            elif rng.random() < 0.5:
                new = odd_array(rng, old[()])
                if new.shape == old.shape and new.dtype == old.dtype:
                    old[...] = new
                else:
                    del h5[name]
                    h5[name] = new
            else:
                key = rng.choice((*old.attrs, "units", "scale_factor", "_FillValue", "dtype"))
                if key not in ("DIMENSION_LIST", "REFERENCE_LIST"):
                    old.attrs[key] = rng.choice((0, "days since 1970-01-01", "bool", 1e300, "x"))
    body = file.getvalue()
    return body + files.seal_of(body) if rng.random() < 0.5 else body


def forged_checkpoint(rng: random.Random, raw: bytes) -> bytes:
    """An archive of arrays with something changed, and the right checksum."""
    kept = dict(files.npz(raw))
    kept.pop("checksum")
    name = rng.choice(list(kept))
    if rng.random() < 0.15:
        del kept[name]
    elif name == "identity":
        text = json.dumps(odd_json(rng, json.loads(kept[name].tobytes())))
        kept[name] = np.frombuffer(text.encode(), np.uint8)
    else:
        kept[name] = odd_array(rng, kept[name])
    kept["checksum"] = checkpoints.checksum(kept)
    file = io.BytesIO()
    np.savez(file, **kept)
    return file.getvalue()


def forged_archive(rng: random.Random, raw: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as zip:
        for name, array in files.npz(raw).items():
            part = io.BytesIO()
            np.save(part, odd_array(rng, array) if rng.random() < 0.5 else array)
            data = part.getvalue()
            data = mutated(rng, data, data) if rng.random() < 0.3 else data
            zip.writestr(rng.choice((f"{name}.npy", name, "../x.npy", "x.npy")), data)
    return file.getvalue()


def night(path: Path) -> None:
    """Phases in a file of Neurodata Without Borders; without pynwb, one that only looks like it."""
    stages, starts = ["wake", "sleep"] * 6, np.arange(12.0)
    try:
        import pynwb  # type: ignore[import-not-found]
    except ImportError:
        with h5py.File(path, "w") as file:
            file.attrs["nwb_version"] = "2.7.0"
            trials = file.create_group("intervals/trials")
            trials["start_time"], trials["stop_time"], trials["stage"] = starts, starts + 1, stages
            trials["last"] = h5py.SoftLink("/intervals/trials/stop_time")
        return
    begin = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    file = pynwb.NWBFile(session_description="-", identifier="-", session_start_time=begin)
    file.add_trial_column("stage", "of sleep")
    for start, stage in zip(starts, stages, strict=True):
        file.add_trial(start_time=start, stop_time=start + 1, stage=stage)
    with pynwb.NWBHDF5IO(str(path), "w") as out:
        out.write(file)


def forged_night(rng: random.Random, raw: bytes) -> bytes:
    """Such a file that HDF5 can read, with an array changed, left out or in another place."""
    file = io.BytesIO(raw)
    with h5py.File(file, "a") as h5:
        trials = h5["intervals/trials"]
        name = rng.choice(list(trials))
        old = trials[name][()]
        del trials[name]
        if rng.random() < 0.7:
            odd = odd_array(rng, old) if old.dtype.kind in "iuf" else old[: rng.randrange(12)]
            trials[name] = odd
        elif rng.random() < 0.5:
            trials[name] = h5py.SoftLink(rng.choice(("/nowhere", "/intervals/trials", "/")))
    return file.getvalue()


def file_case(rng: random.Random, seeds: dict[str, bytes]) -> dict[str, Any]:
    """A harmed or forged file, and what reads it."""
    kind = rng.choice(("record", "record", "checkpoint", "data", "plan", "phases"))
    harmed = {}
    if kind == "record":
        name = rng.choice(("record.nc", "bare.nc"))
        raw = seeds[name]
        raw = forged_record(rng, raw) if rng.random() < 0.5 else mutated(rng, raw, seeds["x.npz"])
        harmed[name] = raw
        readers = (
            ["plot", name, "--out", "out.png"],
            ["sample", name, "--rows", "1", "--steps", "1", "--out", "out.png"],
            ["ledger", name, "--phases", "1"],
            ["plan", name, "--checkpoint", "--lanes", "2"],
        )
        words = rng.choice(readers) if rng.random() < 0.1 else ["@record", name]
    elif kind == "checkpoint":
        cheap = rng.random() < 0.9
        name = rng.choice(CHECKPOINTS)
        raw = seeds[name if cheap else "checkpoint.npz"]
        forged = rng.random() < 0.6
        raw = forged_checkpoint(rng, raw) if forged else mutated(rng, raw, seeds["record.nc"])
        if cheap:
            harmed[name] = raw
            words = ["@checkpoint", name]
        else:
            harmed["run/checkpoint.npz"], harmed["run/run.json"] = raw, seeds["run.json"]
            words = [*RUN, "--average", "0.5", "--resume", "--out", "run"]
    elif kind == "plan":
        plan = seeds["run.json"]
        text = json.dumps(odd_json(rng, json.loads(plan))).encode()
        harmed["run/run.json"] = text if rng.random() < 0.6 else mutated(rng, plan, seeds["x.csv"])
        words = ["@folder", "run"]
    elif kind == "data":
        name = rng.choice(("x.npy", "x.npz", "x.csv"))
        raw = seeds[name]
        forged = name == "x.npz" and rng.random() < 0.5
        harmed[name] = forged_archive(rng, raw) if forged else mutated(rng, raw, seeds["record.nc"])
        words = ["@data", name]
    else:
        name = rng.choice(("phases.csv", "phases.tsv", "phases.nwb"))
        raw, forged = seeds[name], name.endswith(".nwb") and rng.random() < 0.5
        harmed[name] = forged_night(rng, raw) if forged else mutated(rng, raw, seeds["x.csv"])
        words = ["@phases", name]
    return {"words": words, "files": {n: base64.b64encode(r).decode() for n, r in harmed.items()}}


def command_case(rng: random.Random, top: argparse.ArgumentParser) -> dict[str, Any]:
    return {"words": command(rng, top), "files": {}}


def top_parser() -> argparse.ArgumentParser:
    return parser()
