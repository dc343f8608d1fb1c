"""The machine that we run on."""

import os


def cores() -> int:
    """Cores that this process may use."""
    if "sched_getaffinity" in dir(os):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
