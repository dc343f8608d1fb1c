"""What a command costs before and after its work: CPU seconds of tiny runs on the compiled engines,
beside those of their imports and of an empty Python, with the result beside each.

    python benchmarks/startup.py [--quick]

Every run is a process of its own with a folder of its own; what JAX and Python compiled is kept
between them, as it is for a user. The median of several, because other work disturbs them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

TINY = ["--engine", "native", "--seeds", "1", "--json"]
RUNS = {
    "an empty Python": ["-c", "pass"],
    "imports of a run": ["-c", "import flexphase.training, flexphase.engines, flexphase.record"],
    "train rbm": ["-m", "flexphase", "train", "rbm", "--phases", "100", *TINY],
    "train boltzmann": ["-m", "flexphase", "train", "boltzmann", "--phases", "100", *TINY],
    "train forward-forward": [
        *("-m", "flexphase", "train", "forward-forward", "--data", "digits"),
        *("--hidden", "20", "20", "--updates", "100", *TINY),
    ],
    "train equilibrium-propagation": [
        *("-m", "flexphase", "train", "equilibrium-propagation", "--data", "digits"),
        *("--updates", "100", *TINY),
    ],
}


def spent(words: list[str], folder: str, number: int) -> tuple[float, str]:
    """CPU seconds of one process, and the first number of its result."""
    train = "train" in words
    where = ["--out", os.path.join(folder, str(number))] if train else []
    kept = {"FLEXPHASE_CACHE": "cache", "PYTHONPYCACHEPREFIX": "bytecode"}
    environment = os.environ | {key: os.path.join(folder, name) for key, name in kept.items()}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words, *where], env=environment, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, result(json.loads(done.stdout)) if train else ""


def result(found: dict) -> str:
    """What a run ends with."""
    return f"{found['metric']} {found['final']['mean']:.4g}"


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="3 processes of each kind, not 9")
    times, rows = 3 if p.parse_args().quick else 9, {}
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, words) in enumerate(RUNS.items()):
            spent(words, folder, 1000 * i)  # compiles what is kept
            found = [spent(words, folder, 1000 * i + j) for j in range(1, times + 1)]
            rows[name] = [seconds for seconds, _ in found], found[-1][1]
    print(f"{'CPU seconds, median [least, most]':34s} of {times}; over imports; result")
    unit = statistics.median(rows["imports of a run"][0])
    for name, (seconds, said) in rows.items():
        middle = statistics.median(seconds)
        spread = f"{middle:5.2f} [{min(seconds):.2f}, {max(seconds):.2f}]"
        print(f"{name:34s} {spread}  {middle / unit:5.2f}  {said}")


if __name__ == "__main__":
    main()
