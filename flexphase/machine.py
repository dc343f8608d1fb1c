"""What this process may use of the machine."""

import math
import os
import sys
from pathlib import Path


def cores() -> int:
    """The number of cores this process may run on; all of them where the system does not say."""
    if "sched_getaffinity" in dir(os):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> float:
    """Bytes of memory of the machine."""
    if "sysconf" not in dir(os):  # Windows
        return math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(need: float, fewer: str) -> None:
    """Refuse what needs more bytes than the machine has: the system would end the process."""
    if need > memory():
        raise ValueError(
            f"this needs about {need / 1e9:.3g} GB of memory and the machine has "
            f"{memory() / 1e9:.3g}; take fewer {fewer}."
        )


def cache_folder(what: str) -> Path:
    """A folder for things that can be fetched or made again: FLEXPHASE_CACHE, or the platform's."""
    if named := os.environ.get("FLEXPHASE_CACHE"):
        return Path(named) / what
    variable, below = {
        "darwin": ("", "Library/Caches"),
        "win32": ("LOCALAPPDATA", ""),
    }.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    given = os.environ.get(variable)
    return (Path(given) if given else home() / below) / "flexphase" / what


def home() -> Path:
    """The user's own folder; a container may have none."""
    try:
        return Path.home()
    except RuntimeError:
        raise ValueError(
            "this user has no home folder; name a folder for what is kept in FLEXPHASE_CACHE."
        ) from None
