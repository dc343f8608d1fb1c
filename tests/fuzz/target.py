"""Runs cases one after the other, in one process: JSON lines in, JSON lines out.

python tests/fuzz/target.py FOLDER. Each case is run in a folder of its own under FOLDER; the answer
says how it ended, what was said and what was written. A crash ends the process, which the parent
sees.
"""

import base64
import contextlib
import faulthandler
import hashlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
SECONDS = 300  # a case that takes longer hangs; the machine may be busy


def library(words: list[str]) -> int:
    """Read a file with the library; the exit code that the command line would have."""
    from flexphase import Record, Recorded
    from flexphase.catalogue import datasets
    from flexphase.folder import RunFolder

    what, path = words
    try:
        if what == "@record":
            record = Record.load(path)
            repr(record), record.to_dataframe(), record.params, record.averaged_params
            record.run()
            record.parameters(lane=0)
        elif what == "@data":
            datasets.read(Path(path))
        elif what == "@phases":
            Recorded(path)
        elif what == "@folder":
            with RunFolder(path, {"a": 1}, resume=True):
                pass
        else:
            checkpointed(path)
    except ValueError as error:
        print(f"flexphase: {error}", file=sys.stderr)
        return 2
    return 0


def checkpointed(path: str) -> None:
    """Go on from a checkpoint of a small run, or make one; its name is ENGINE-RUN.npz."""
    from flexphase import train

    engine, name = Path(path).stem.split("-")
    ticks = 16 if Path(path).exists() else 8
    options: Any = {"ticks": ticks, "seeds": 2, "records": 1, "engine": engine}
    run, metrics = small_run(name)
    train(run, metrics=metrics, average=0.5, checkpoint=path, **options)


def small_run(name: str) -> tuple[Any, dict[str, Any]]:
    """A run of each engine, with its metrics: states of different shapes."""
    import numpy as np
    import optax

    import flexphase as fp

    data, classes = fp.bars_and_stripes(2), np.eye(2, dtype=np.float32)
    if name == "rbm":
        run = fp.Run(fp.RBM(4, 2), *fp.aol(0.5, 2), fp.Rows(data), fp.Optimiser(0.1))
        return run, {"nll": fp.NLL(data)}
    if name == "ff":
        source = fp.LabelContrast(data, np.arange(len(data)) % 2, 2)
        method = fp.ForwardForward((4, 3), 2)
        return fp.Run(method, *fp.isd(0.5, 1), source, fp.Optimiser(0.1, optax.adam)), {}
    assert name == "ep", name
    source = fp.Rows((data, classes[np.arange(len(data)) % 2]))
    method = fp.EquilibriumPropagation((4, 3, 2))
    return fp.Run(method, *fp.cd(2), source, fp.Optimiser(0.1)), {}


def contents(folder: Path, work: Path) -> dict[str, str]:
    """All files below the folder, by their path from `work`, with what they hold; the cache is
    anybody's.
    """
    found = {}
    for path in folder.rglob("*"):
        name = os.path.relpath(path, work)
        if path.is_symlink():
            found[name] = f"to {os.readlink(path)}"
        elif path.is_file() and not path.is_relative_to(folder / "cache"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def ends(case: dict[str, Any], folder: Path, seeds: Path) -> dict[str, Any]:
    """Run one case; how it ended."""
    from flexphase.cli import main

    work = Path(tempfile.mkdtemp(dir=folder))
    for name, raw in case["files"].items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(base64.b64decode(raw))
    if not case["files"] and seeds.exists():
        shutil.copytree(seeds, work, dirs_exist_ok=True)
    before = contents(folder, work)
    told = work.with_suffix(".err")
    os.chdir(work)
    kept = os.dup(1), os.dup(2)
    with open(told, "w+b") as file, open(os.devnull, "wb") as nowhere:
        sys.stdout.flush()
        os.dup2(nowhere.fileno(), 1)
        os.dup2(file.fileno(), 2)
        # also where a library holds the interpreter's lock
        faulthandler.dump_traceback_later(SECONDS, exit=True, file=nowhere)
        try:
            words = case["words"]
            code = library(words) if words[:1] and words[0].startswith("@") else main(words)
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"[:300]
        finally:
            faulthandler.cancel_dump_traceback_later()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
        file.seek(0)
        err = file.read().decode(errors="replace")
    for number in kept:
        os.close(number)
    told.unlink()
    after = contents(folder, work)
    written = sorted(after.keys() - before.keys())
    changed = sorted(name for name in before if after.get(name) != before[name])
    os.chdir(folder)
    shutil.rmtree(work, ignore_errors=True)
    return {"code": code, "err": err[-1_000_000:], "written": written, "changed": changed}


#: Where commands write that are not told where to.
OURS = (
    "runs/",
    "run/samples",
    "run/figure",
    "samples",
    "figure",
    "phases.png",
    "phases-",
    "flexphase-live",
)


def named(words: list[str]) -> list[str]:
    """The files and folders that the words allow to be written."""
    if words[:1] and words[0].startswith("@"):
        return [words[1].split("/")[0]] if words[0] in ("@checkpoint", "@folder") else []
    out = [word for option, word in itertools.pairwise(words) if option in ("--out", "--table")]
    names = [Path(word) for word in out if Path(word).name]
    beside = [str(name.with_suffix(kind)) for name in names for kind in (".npy", ".csv")]
    return [os.path.normpath(word) for word in out + beside]


def fault(case: dict[str, Any], end: dict[str, Any]) -> str | None:
    """What is wrong with how a case ended; None if nothing is."""
    if end["code"] not in (0, 2, 130, 141):
        return f"exit code {end['code']}"
    if "Traceback" in end["err"] or "Exception ignored" in end["err"]:
        return "a traceback"
    if end["code"] == 2 and end["err"].count("\n") != 1:
        return f"{end['err'].count(chr(10))} lines on standard error"
    given = tuple(named(case["words"]))
    other = {
        kind: [name for name in end[kind] if name not in given and not below(name, given)]
        for kind in ("written", "changed")
    }
    if "--force" in case["words"]:
        other["changed"] = [name for name in other["changed"] if not name.startswith(OURS)]
    strange = [name for name in other["written"] if not name.startswith(OURS)]
    if strange or other["changed"]:
        return f"wrote {[*strange, *other['changed']][0]}"
    return None


def below(name: str, folders: tuple[str, ...]) -> bool:
    return name.startswith(tuple(f"{folder}/" for folder in folders))


def main() -> None:
    from flexphase import exact_lanes

    exact_lanes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    os.environ |= {"FLEXPHASE_CACHE": str(folder / "cache")}
    os.environ.pop("FLEXPHASE_DATA", None)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(ends(json.loads(line), folder, folder / "seeds")) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
