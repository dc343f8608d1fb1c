"""A run folder: one configuration, one process at a time, every file whole or absent."""

import fcntl
import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from .. import __version__
from ..files import replacing

PLAN = "run.json"


def digest(config: Any) -> str:
    """A hash of a configuration that JSON can hold."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def stack() -> dict[str, str]:
    """The versions that decide the bits of a result."""
    others = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")}
    return {"flexphase": __version__} | others


class RunFolder:
    """A folder for the files of one run: `with RunFolder(path, config, resume) as folder:`.

    `config` is what the run consists of, as JSON can hold it. Entering makes the folder, or with
    `resume` goes on in it; another configuration, another version and a second process are refused
    with a ValueError.
    """

    def __init__(self, path: str | Path, config: dict[str, Any], resume: bool = False):
        self.path, self.config, self.resume = Path(path), config, resume
        self._lock: TextIO | None = None

    def __enter__(self) -> "RunFolder":
        try:
            self._open()
        except OSError as error:
            self.__exit__()
            raise ValueError(f"cannot write to {self.path}: {error.strerror or error}.") from None
        except ValueError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        if self._lock:
            self._lock.close()

    def _open(self) -> None:
        if self.path.exists():
            self._refuse_unless_ours()
        else:
            self.path.mkdir(parents=True)
        self._lock = open(self.path / ".lock", "a")  # noqa: SIM115 - held until the run ends
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process is working in {self.path}; wait for it or choose another folder."
            ) from None
        if not (self.path / PLAN).exists():
            plan = {"versions": stack(), "digest": digest(self.config), "config": self.config}
            self.write(PLAN, json.dumps(plan, indent=1))

    def _refuse_unless_ours(self) -> None:
        """Look at a folder that exists, and change nothing.

        An empty one is free, and so is one whose run was killed before its plan was written.
        """
        if not self.path.is_dir():
            raise ValueError(f"{self.path} is not a folder; choose another name for the run.")
        names = {path.name for path in self.path.iterdir()} - {".lock"}
        left = [name for name in names if not name.endswith(".part")]
        if not left:
            return
        if PLAN not in left:
            raise ValueError(
                f"{self.path} exists and is not a run folder of flexphase; choose another folder."
            )
        if not self.resume:
            raise ValueError(
                f"{self.path} already holds a run; "
                "go on with it (--resume) or choose another folder."
            )
        try:
            plan = json.loads((self.path / PLAN).read_text())
            kept, versions = plan["digest"], dict(plan["versions"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.path / PLAN} is damaged; choose another folder.") from None
        differ = [
            f"{k} {versions.get(k)} (here {v})" for k, v in stack().items() if versions.get(k) != v
        ]
        if differ:
            raise ValueError(
                f"{self.path} was made by another version: {', '.join(differ)}; "
                "choose another folder."
            )
        if kept != digest(self.config):
            raise ValueError(
                f"{self.path} belongs to another configuration; "
                "resume with the command that began it, or choose another folder."
            )

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file of the folder, whole or not at all; returns its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, open(part, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        return path
