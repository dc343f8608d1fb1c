"""What the command line does to a process that is its own, before anything heavy is imported.

A short run spends most of its time on imports and on compiling, not on training.
"""

import atexit
import codecs
import contextlib
import gc
import hashlib
import io
import logging
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..files import understood
from ..machine import cache_folder
from ..stopping import STOPPING

MOST = 4000  # compiled programs that are kept
PREPARED: list[int] = []  # the processes that `prepare` has set up, this one or none


def prepare(words: Sequence[str]) -> None:
    """Set up the process for these words of the command line."""
    PREPARED.append(os.getpid())
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("flexphase", as_far_as_possible)
        sys.stdout.reconfigure(errors="flexphase")
    keep_compiled()
    forgive_warnings()
    # A process that was killed while writing leaves a broken entry: JAX compiles it again.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    gc.set_threshold(200_000, 20, 100)  # imports and traces make many objects, and little garbage
    atexit.register(gc.freeze)  # a collection before the exit would free nothing that is needed
    if "xarray" not in sys.modules and not any(word.startswith("--dask") for word in words):
        # Where dask is installed, xarray imports it for every array: half a second. If xarray was
        # imported already, it has found dask and will use it, so dask must stay visible.
        sys.modules.setdefault("dask", None)  # type: ignore[arg-type]


def as_far_as_possible(error: UnicodeError) -> tuple[str | bytes, int]:
    """Names of files need not be UTF-8, and standard output need not be either."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


def forgive_warnings() -> None:
    """Undo PYTHONWARNINGS=error: any warning of a library would end the command."""
    os.environ.pop("PYTHONWARNINGS", None)  # of the processes that are started
    sys.warnoptions[:] = [option for option in sys.warnoptions if not option.startswith("error")]
    kept = [each for each in warnings.filters if each[0] != "error"]
    warnings.filters[:] = kept  # type: ignore[index]


def draw_plainly() -> None:
    """Import matplotlib in a process of our own: with its own settings, so that no matplotlibrc in
    the folder spoils a figure, and without the docstrings that it writes for every class of its
    artists, which take a third of a second.
    """
    if os.getpid() not in PREPARED or "matplotlib.figure" in sys.modules:
        return
    check_drawing()
    import matplotlib
    from matplotlib.artist import Artist

    own = {name: v for name, v in matplotlib.rcParamsDefault.items() if name != "backend"}
    matplotlib.rcParams.update(own)  # type: ignore[arg-type]
    if hasattr(Artist, "_update_set_signature_and_docstring"):
        Artist._update_set_signature_and_docstring = classmethod(lambda cls: None)  # type: ignore


def check_drawing() -> None:
    """Refuse settings with which matplotlib does not start, such as an unknown MPLBACKEND."""
    with understood("matplotlib does not start", "; correct or unset MPLBACKEND, or matplotlibrc"):
        if os.getpid() in PREPARED:
            keep_fonts()
        import matplotlib  # noqa: F401 - it reads its settings


def keep_fonts() -> None:
    """Give matplotlib a folder where the user's own cannot be written to: it would complain, and
    leave a temporary one behind.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if all(map(can_be_written, matplotlib_folders())):
        return
    with contextlib.suppress(OSError, ValueError):
        folder = cache_folder("matplotlib")
        if not can_be_written(folder):
            folder = Path(tempfile.mkdtemp(prefix="flexphase-"))
            STOPPING.begun.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["MPLCONFIGDIR"] = str(folder)


def matplotlib_folders() -> list[Path]:
    """Where matplotlib keeps its settings and its fonts."""
    if named := os.environ.get("MPLCONFIGDIR"):
        return [Path(named)]
    if sys.platform == "win32":
        return []  # it finds one that it can write to
    if not sys.platform.startswith(("linux", "freebsd")):
        return [Path("~/.matplotlib")]
    below = {"XDG_CONFIG_HOME": "~/.config", "XDG_CACHE_HOME": "~/.cache"}
    given = [os.environ.get(name) or default for name, default in below.items()]
    return [Path(folder) / "matplotlib" for folder in given]


def can_be_written(folder: Path) -> bool:
    """Is there such a folder, or can it be made, and can files be made in it?"""
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # or there is no home
        return False
    return os.access(folder, os.W_OK)


def keep_compiled() -> None:
    """Ask JAX to keep what it compiles in the user's cache folder, for this process and its
    workers.

    JAX's own variables take precedence: JAX_COMPILATION_CACHE_DIR names another folder,
    JAX_ENABLE_COMPILATION_CACHE=false means none. A folder that cannot be made is not used, nor one
    that belongs to another user, because the programs in it are run.
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
    left by processes that were killed while writing.
    """
    found = [(entry.stat(), entry.path) for entry in os.scandir(folder)]
    found.sort(key=lambda each: each[0].st_mtime)
    older = found[: len(found) // 2] if len(found) > most else []
    for _, path in [*older, *(each for each in found if not each[0].st_size)]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
