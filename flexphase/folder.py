"""A run folder: one configuration, one process at a time, every file whole or absent.

`flexphase train`, `reproduce` and `study` all work in one. `run.json` is its plan: what the run
consists of, and the versions that decide its bits.
"""

import contextlib
import json
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any, TextIO

from .describe import difference, digest
from .files import content, make_folder, plain_json, understood, write
from .record import changed, deciding_versions

fcntl: Any = None  # Windows has none
with contextlib.suppress(ImportError):
    import fcntl

PLAN = "run.json"
PART = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.part", re.DOTALL)  # of `files.replacing`


class RunFolder:
    """A folder for the files of one run: `with RunFolder(path, config, resume) as folder:`.

    `config` is what the run consists of, as JSON can hold it. Entering makes the folder, or with
    `resume` goes on in it; another configuration, another version, a second process and a folder
    that is not a run's are refused with a ValueError, and nothing in them is changed. Parts of
    files that a killed process left are removed.
    """

    def __init__(self, path: str | Path, config: dict[str, Any], resume: bool = False):
        self.path, self.config, self.resume = Path(path), config, resume
        self._lock = Lock(self.path)

    def __enter__(self) -> "RunFolder":
        try:
            self._open()
        except OSError as error:
            self.__exit__()
            raise ValueError(
                f"cannot write to {self.path} ({error.strerror or error}); choose another folder."
            ) from None
        except ValueError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def _open(self) -> None:
        if self.path.exists():
            self._refuse_unless_ours()
        else:
            make_folder(self.path)
        self._lock.take()
        self._refuse_unless_ours()  # again: another process may have begun and ended meanwhile
        for path in (*self.path.glob(".*.part"), *self.path.glob("chunks/.*.part")):
            if left_over(path.name):
                path.unlink(missing_ok=True)
        if not (self.path / PLAN).exists():
            config = self.config
            plan = {"versions": deciding_versions(), "digest": digest(config), "config": config}
            self.write(PLAN, json.dumps(plan, indent=1))

    def _refuse_unless_ours(self) -> None:
        """Look at a folder that exists, and change nothing.

        An empty one is free, and so is one whose run was killed before its plan was written.
        """
        if not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; choose a folder for the run.")
        names = {path.name for path in self.path.iterdir()} - {Lock.FILE, Lock.OWNER}
        left = [name for name in names if not left_over(name)]
        if not left:
            return
        if PLAN not in left:
            raise ValueError(
                f"{self.path} is not empty and is not a run folder of flexphase; choose another "
                "folder."
            )
        if not self.resume:
            raise ValueError(
                f"{self.path} already holds a run; "
                "go on with it (--resume) or choose another folder."
            )
        with understood(f"{self.path / PLAN} is damaged", "; choose another folder"):
            plan = plain_json(content(self.path / PLAN))
            kept, versions = dict(plan["config"]), dict(plan["versions"])
            if plan["digest"] != digest(kept):
                raise ValueError("its digest is wrong")
        if differ := changed(versions, deciding_versions()):
            raise ValueError(
                f"{self.path} was made by another version: {', '.join(differ)}; "
                "choose another folder."
            )
        if digest(kept) != digest(self.config):
            raise ValueError(
                f"{self.path} belongs to another configuration: {difference(kept, self.config)}; "
                "resume with the command that began it, or choose another folder."
            )

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file of the folder, whole or not at all; returns its path."""
        path = self.path / name
        make_folder(path.parent, exist_ok=True)
        return write(path, data)


def left_over(name: str) -> bool:
    """Is it the name of a file that we made, and a killed process left?"""
    return name == Lock.TAKEOVER or bool(PART.fullmatch(name))


class Lock:
    """One process at a time in a folder.

    The lock is `flock` on a file: the system frees it when the process ends, however it ends. On
    Windows, and on network file systems without `flock`, it is a file that only one process can
    make (O_EXCL); it names the host and the process. One that a killed process of this host (on
    Linux, of this container) left is taken over (where there are hard links, and not on Windows);
    any other is refused, and the error says which file to remove.
    """

    FILE, OWNER, TAKEOVER = ".lock", ".owner", ".owner.part"

    def __init__(self, folder: Path):
        self.folder = folder
        self._file: TextIO | None = None
        self._owner: Path | None = None

    def take(self) -> None:
        """Take the lock, or raise ValueError."""
        self._file = open(self.folder / self.FILE, "a", opener=at_once)  # noqa: SIM115 - held on
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise ValueError(
                f"{self.folder / self.FILE} is not a regular file; remove it, or choose another "
                "folder."
            )
        if fcntl is None:
            return self._claim(self.folder / self.OWNER)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process is working in {self.folder}; wait for it or choose another "
                "folder."
            ) from None
        except OSError:  # ENOLCK, EOPNOTSUPP, ENOSYS: this file system has no locks
            self._claim(self.folder / self.OWNER)

    def release(self) -> None:
        if self._owner:
            self._owner.unlink(missing_ok=True)
        if self._file:
            self._file.close()
        self._file = self._owner = None

    def _claim(self, owner: Path) -> None:
        if owner.exists():
            self._remove_if_gone(owner)
        try:
            made = os.open(owner, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            raise ValueError(
                f"another process is working in {self.folder} ({named(owner)}), or was when it "
                f"was killed; wait for it, or remove {owner} if it is gone."
            ) from None
        with open(made, "w") as file:
            file.write(" ".join(me().values()))
        self._owner = owner

    def _remove_if_gone(self, owner: Path) -> None:
        """Remove the lock of a process that has ended.

        The hard link `second` can be made by one process only, so only that one may remove the
        lock, and a newer lock is never removed.
        """
        second = self.folder / self.TAKEOVER
        try:
            os.link(owner, second)
        except OSError:  # another process made it, the lock is gone, or no links here
            return
        if gone(second):
            owner.unlink(missing_ok=True)
        second.unlink(missing_ok=True)


def at_once(path: str, flags: int) -> int:
    """Open a file without waiting, even if it is a FIFO that nobody reads."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)


def me() -> dict[str, str]:
    """This process: its host and its number, and on Linux its namespace. Two containers may have
    the name of one host, and the same number is then not the same process.
    """
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return {"host": socket.gethostname(), "number": str(os.getpid()), "space": space}


def holder(owner: Path) -> dict[str, str]:
    """What `me` was in the process that holds a lock."""
    with contextlib.suppress(OSError, ValueError):
        said = content(owner, 1000).decode().split(" ")
        return dict(zip(me(), [*said, "", ""], strict=False))
    return {"host": "unknown", "number": "", "space": ""}


def named(owner: Path) -> str:
    """HOST NUMBER of the process that holds a lock."""
    found = holder(owner)
    return f"{found['host']} {found['number']}".strip()


def gone(owner: Path) -> bool:
    """Was it made by a process of this host that has ended? On Windows nobody can say."""
    if fcntl is None:
        return False  # there, signal 0 is Ctrl-C
    own, other = me(), holder(owner)
    number = other["number"]
    near = own["host"] == other["host"] and own["space"] == other["space"]
    if not near or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
