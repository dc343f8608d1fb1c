"""Records that the commands read, and files that they must not overwrite."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Kept(NamedTuple):
    """A record and where it lies."""

    record: Any
    folder: Path

    @property
    def options(self) -> dict[str, Any]:
        """The options that `flexphase train` was given."""
        if "options" not in self.record.attrs:
            raise ValueError(
                f"the record in {self.folder} was not made by flexphase train, so the data that it "
                "learned are not known."
            )
        try:
            options = json.loads(self.record.attrs["options"])
            return {name: options[name] for name in ("method", "data", "side")} | options
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"the options in the record in {self.folder} are damaged; train again."
            ) from None

    @property
    def label(self) -> str:
        return self.record.attrs.get("label", self.folder.name)


def load(path: str | Path) -> Kept:
    """The record of a run, by its folder or its file."""
    from ..record import Record

    path = Path(path)
    file = path / "record.nc" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        state = (
            "has not finished; go on with flexphase train ... --resume"
            if (path / "checkpoint.npz").exists()
            else "holds no record.nc"
        )
        raise ValueError(f"the folder {path} {state}.")
    return Kept(Record.load(file), file.parent)


def unused(path: str | Path, force: bool, named: bool = True) -> Path:
    """A file to write: refused if the user named one that exists, numbered if the name was ours."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give --out a file such as {path / 'figure.png'}.")
    if not path.parent.is_dir():
        raise ValueError(
            f"there is no folder {path.parent} to write {path.name} to; make it first, or choose "
            "another."
        )
    if force or not path.exists():
        return path
    if named:
        raise ValueError(f"{path} exists; choose another name, or replace it with --force.")
    return next(
        p for i in range(2, 10_000) if not (p := path.with_stem(f"{path.stem}-{i}")).exists()
    )
