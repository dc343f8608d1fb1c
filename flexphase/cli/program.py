"""What the command line does to a process that is its own, before anything heavy is imported.

A short run spends most of its time on imports and on compiling, not on training.
"""

import atexit
import contextlib
import gc
import hashlib
import io
import os
import platform
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..files import understood
from ..machine import cache_folder

MOST = 4000  # compiled programs that are kept
PREPARED: list[int] = []  # the processes that `prepare` has set up, this one or none


def prepare(words: Sequence[str]) -> None:
    """Set up the process for these words of the command line."""
    PREPARED.append(os.getpid())
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be UTF-8
        sys.stdout.reconfigure(errors="surrogateescape")
    keep_compiled()
    # An entry is broken where a process was killed while it wrote: JAX compiles it again.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    gc.set_threshold(200_000, 20, 100)  # imports and traces make many objects, and little garbage
    atexit.register(gc.freeze)  # a collection before the exit would free nothing that is needed
    if "xarray" not in sys.modules and not any(word.startswith("--dask") for word in words):
        # Where dask is installed, xarray imports it for every array: half a second. An xarray that
        # is there already has seen it, and would ask for it.
        sys.modules.setdefault("dask", None)  # type: ignore[arg-type]


def draw_plainly() -> None:
    """Import matplotlib without the docstrings that it writes for every class of its artists, in a
    process of our own; they take a third of a second.
    """
    if os.getpid() not in PREPARED or "matplotlib.figure" in sys.modules:
        return
    from matplotlib.artist import Artist

    if hasattr(Artist, "_update_set_signature_and_docstring"):
        Artist._update_set_signature_and_docstring = classmethod(lambda cls: None)  # type: ignore


def check_drawing() -> None:
    """Refuse settings with which matplotlib does not start, such as an unknown MPLBACKEND."""
    with understood("matplotlib does not start", "; correct or unset MPLBACKEND, or matplotlibrc"):
        import matplotlib  # noqa: F401 - it reads its settings


def keep_compiled() -> None:
    """Ask JAX to keep what it compiles in the user's cache folder, for this process and its
    workers.

    JAX's own variables decide where they are set: JAX_COMPILATION_CACHE_DIR is another folder,
    JAX_ENABLE_COMPILATION_CACHE=false is none. A folder that cannot be made, or that belongs to
    someone else, is not used: what is read from it is run.
    """
    if {"JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"} & set(os.environ):
        return
    with contextlib.suppress(OSError, ValueError):
        folder = cache_folder("compiled") / processor()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owned = os.name != "posix" or folder.stat().st_uid == os.getuid()
        if not owned or not os.access(folder, os.W_OK):
            return
        forget_oldest(folder)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def processor() -> str:
    """A name for processors that can run each other's programs: home folders may be shared."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else [platform.processor()]
    words = ("model name", "flags", "Features")
    features = sorted({line for line in lines if line.startswith(words)}) or lines
    text = "\n".join([platform.system(), platform.machine(), *features])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def forget_oldest(folder: Path, most: int = MOST) -> None:
    """Remove the older half of the programs where there are more than `most`, and all empty ones,
    which a process left that was killed while it wrote.
    """
    found = [(entry.stat(), entry.path) for entry in os.scandir(folder)]
    found.sort(key=lambda each: each[0].st_mtime)
    older = found[: len(found) // 2] if len(found) > most else []
    for _, path in [*older, *(each for each in found if not each[0].st_size)]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
