"""make fuzz: random command lines and harmed files until the time is over.

python tests/fuzz/fuzz.py [--seconds 60] [--cases N] [--seed 0] [--what commands files]
What ends badly is printed and kept in tests/fuzz/corpus, which `make test` replays.
"""

import argparse
import collections
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent.parent))
NOTHING = {"err": "", "written": [], "changed": []}
FRESH = 1000  # cases after which a new process is taken: compiled programs fill its memory
MAKE = """
import sys; sys.path.insert(0, sys.argv[2])
from pathlib import Path
import numpy as np, xarray as xr
import cases, target
from flexphase.cli import main
from flexphase.record import Record
out = Path(sys.argv[1])
assert main([*cases.RUN, "--average", "0.5", "--out", str(out / "run")]) == 0
record = Record.load(out / "run" / "record.nc")
record.dataset.to_netcdf(out / "bare.nc", engine="h5netcdf")
(out / "record.nc").write_bytes((out / "run" / "record.nc").read_bytes())
for name in cases.CHECKPOINTS:
    target.checkpointed(str(out / name))
(out / "checkpoint.npz").write_bytes((out / "run" / "checkpoint.npz").read_bytes())
(out / "run.json").write_bytes((out / "run" / "run.json").read_bytes())
x = np.tile([[0, 1, 1, 0], [1, 1, 0, 0]], (3, 1))
np.save(out / "x.npy", x); np.savez(out / "x.npz", images=x, labels=np.arange(6) % 2)
np.savetxt(out / "x.csv", x, "%d", ",")
rows = [f"{2 * i},{1 + i % 2},{'wake' if i % 2 else 'sleep'}" for i in range(12)]
(out / "phases.csv").write_text("onset,duration,type\\n" + "\\n".join(rows) + "\\n")
text = (out / "phases.csv").read_text()
(out / "phases.tsv").write_text(text.replace(",", "\\t"))
cases.night(out / "phases.nwb")
"""


class Target:
    """The process that runs cases; begun again when one has ended it."""

    def __init__(self, folder: Path):
        self.folder, self.process, self.served = folder, None, 0

    def close(self) -> None:
        """Let it end."""
        if self.process and self.process.stdin and self.process.stdout:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        self.served += 1
        if self.process and self.served % FRESH == 0:
            self.close()
        if self.process is None or self.process.poll() is not None:
            words = [sys.executable, str(HERE / "target.py"), str(self.folder)]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        return {"code": "hangs" if code == 1 else f"crash {code}"} | NOTHING


def seeds_in(folder: Path) -> dict[str, bytes]:
    """Real files, made by a small run."""
    folder.mkdir()
    words = [sys.executable, "-c", MAKE, str(folder), str(HERE)]
    subprocess.run(words, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def main() -> int:
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--cases", type=int, default=10**9)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--what", nargs="+", default=["commands", "files"])
    args = p.parse_args()
    import cases
    from target import fault

    compiled = HERE.parent.parent / "build" / "jax" / platform.node()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(compiled))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    warnings.filterwarnings("ignore", "Duplicate name")  # zipfile, of forged archives
    rng, ended, faults = random.Random(args.seed), collections.Counter(), 0
    top, began, n = cases.top_parser(), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds, target = seeds_in(folder / "seeds"), Target(folder)
        while n < args.cases and time.monotonic() - began < args.seconds:
            what = args.what[n % len(args.what)]
            files = what == "files"
            case = cases.file_case(rng, seeds) if files else cases.command_case(rng, top)
            end = target.run(case)
            n += 1
            if n % 500 == 0:
                print(f"{n} cases, {time.monotonic() - began:.0f} s, {faults} faults", flush=True)
            ended[what, str(end["code"])] += 1
            if wrong := fault(case, end):
                faults += 1
                text = json.dumps(case | {"fault": wrong, "said": end["err"][-300:]}, indent=1)
                file = HERE / "corpus" / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
                file.write_text(text + "\n")
                print(f"{wrong}: {' '.join(case['words'])[:200]} -> {file.name}", flush=True)
        target.close()
    minutes = (time.monotonic() - began) / 60
    counts = ", ".join(f"{what} {code}: {k}" for (what, code), k in sorted(ended.items()))
    print(f"{n} cases in {minutes:.1f} min, seed {args.seed}, {faults} faults ({counts})")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
