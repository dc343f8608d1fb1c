"""What the commands share: where words go, folders that are never overwritten, signals."""

import contextlib
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..files import make_folder
from ..progress import Patient
from ..progress import say as say


@contextlib.contextmanager
def status(words: str) -> Iterator[None]:
    """Show a line on the terminal while the block runs; print nothing where there is none."""
    if not sys.stderr.isatty():
        yield
        return
    terminal = Patient(sys.stderr)
    print(f"{words} ...", end="\r", file=terminal, flush=True)
    try:
        yield
    finally:
        print("\x1b[2K", end="\r", file=terminal, flush=True)


def plain(value: Any) -> Any:
    """Strict JSON: NumPy's numbers as Python's, what is not finite as null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, (str, bytes, int, float, type(None))):
        return plain(value.tolist())  # of NumPy or JAX; importing them to ask would be slow
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(result: Any) -> None:
    """One JSON object on standard output."""
    print(json.dumps(plain(result), allow_nan=False), flush=True)


def fresh_folder(path: str | Path) -> Path:
    """A folder to write to: made here, or empty; nothing that exists is overwritten."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; give --out a folder.")
    if path.is_dir() and any(path.iterdir()):
        raise ValueError(f"{path} exists and is not empty; choose another folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"cannot write to {path} ({error.strerror or error}); give --out another folder."
        ) from None
    return path


def run_folder(name: str, parent: str | Path = "runs") -> Path:
    """A new folder for a run without --out: runs/NAME-TIME, made here, so that two commands never
    get the same one. If it cannot be made, the first write to it raises the error.
    """
    stamp = Path(parent) / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for path in (stamp, *(stamp.with_name(f"{stamp.name}-{i}") for i in range(2, 1000))):
        try:
            return make_folder(path)
        except FileExistsError:
            continue
        except OSError:
            break
    return stamp
