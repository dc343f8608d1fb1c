"""What this process may use of the machine."""

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")  # of Linux


def cores() -> int:
    """The number of cores this process may run on; all of them where the system does not say."""
    if "sched_getaffinity" in dir(os):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> float:
    """Bytes of memory of the machine, or fewer that the control groups of this process allow."""
    if "sysconf" not in dir(os):  # Windows
        return math.inf
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *limits_of_groups()])


def limits_of_groups(mine: str = "/proc/self/cgroup", groups: Path = GROUPS) -> Iterator[float]:
    """Bytes that a container or a cluster's job may use: the limits of its control groups and of
    those above them, as versions 1 and 2 keep them. A container may not see its own group by the
    name that the machine gives it, but sees its limit at the top.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in Path(mine).read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds not in ("", "memory"):
                continue
            top = groups / kinds
            own = top / path.lstrip("/")
            name = "memory.limit_in_bytes" if kinds else "memory.max"
            for folder in (own, *own.parents):
                with contextlib.suppress(OSError, ValueError):  # "max" is no limit
                    if folder.is_relative_to(top):
                        most = int((folder / name).read_text())
                        yield most if most > 0 else math.inf


def check_memory(need: float, fewer: str) -> None:
    """Refuse what needs more bytes than there are: the system would end the process."""
    if need > memory():
        raise ValueError(
            f"this needs about {need / 1e9:.3g} GB of memory and there are "
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
