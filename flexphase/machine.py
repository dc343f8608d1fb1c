"""What this process may use of the machine."""

import os


def cores() -> int:
    """The number of cores this process may run on; all of them where the system does not say."""
    if "sched_getaffinity" in dir(os):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
