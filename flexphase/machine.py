"""What this process may use of the machine."""

import os
import sys
from pathlib import Path


def cores() -> int:
    """The number of cores this process may run on; all of them where the system does not say."""
    if "sched_getaffinity" in dir(os):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_folder(what: str) -> Path:
    """A folder for things that can be fetched or made again: FLEXPHASE_CACHE, or the platform's."""
    if named := os.environ.get("FLEXPHASE_CACHE"):
        return Path(named) / what
    system = {
        "darwin": Path.home() / "Library/Caches",
        "win32": Path(os.environ.get("LOCALAPPDATA", Path.home())),
    }
    xdg = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return system.get(sys.platform, xdg) / "flexphase" / what
