"""Records that the commands read, and files that they must not overwrite."""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import files
from ..catalogue.arguments import legible
from .options import options_of
from .program import draw_plainly


class Kept(NamedTuple):
    """A record and where it lies."""

    record: Any
    folder: Path

    @property
    def options(self) -> argparse.Namespace:
        """The options that `flexphase train` was given, checked as if they were given again."""
        if "options" not in self.record.attrs:
            raise ValueError(
                f"the record in {self.folder} was not made by flexphase train, so the data that it "
                "learned are not known."
            )
        damaged = f"the options in the record in {self.folder} are damaged"
        with files.understood(damaged, "; train again"):
            given = files.plain_json(self.record.attrs["options"])
            return options_of(given["method"], given)

    @property
    def task(self) -> Any:
        """The task of flexphase train that made this record, its data loaded again; a ValueError if
        data or code have changed since.
        """
        from ..describe import describe, difference
        from ..lanes import lanes
        from .train import task_of

        task = task_of(self.options)
        then, now = self.record.config["run"], describe(lanes(task.run, 1, 0).settings)
        if then != (now := json.loads(json.dumps(now))):
            raise ValueError(
                f"the data or the code of the run in {self.folder} are not what they were: "
                f"{difference(then, now)}; bring them back, or train again."
            )
        return task

    def run(self, lane: int = 0) -> Any:
        """The run that made this record, of one lane; its data are loaded again where they are too
        large to be in the record.
        """
        import jax

        from ..describe import digests

        one, data = self.record.lane(lane), ()
        wanted = digests(self.record.config["run"])
        lacks = any(f"data.{digest}" not in self.record.dataset for digest in wanted)
        if lacks and "options" in self.record.attrs:
            data = tuple(jax.tree.leaves(self.task.run.source))
        return one.run(data)

    @property
    def label(self) -> str:
        """What a legend calls it; the name of its folder helps where the record has no label."""
        from ..plot import label_of

        name = label_of(self.record)
        where = legible(self.folder.name)
        return name if "label" in self.record.attrs else f"{name} ({where})".strip()


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


def named(kept: list[Kept]) -> list[str]:
    """Labels of the runs, all different."""
    labels = [one.label for one in kept]
    return [
        label if labels.count(label) == 1 else f"{label} ({legible(one.folder.name)}, {i + 1})"
        for i, (label, one) in enumerate(zip(labels, kept, strict=True))
    ]


def picture_of(record: Any) -> tuple[int, int] | None:
    """Height and width of a picture of the data, where the record says them."""
    shape = record.attrs.get("picture")
    return None if shape is None else (int(shape[0]), int(shape[1]))


def figure_file(path: str | Path, force: bool, named: bool = True, *beside: str) -> Path:
    """A figure to write: its format, and that one can be drawn, is checked before anything is
    computed; the files `beside` it have its name with other suffixes.
    """
    from ..drawing import figure_format

    file = unused(path, force, named, beside=beside)
    figure_format(file)
    draw_plainly()
    return file


def unused(
    path: str | Path,
    force: bool,
    named: bool = True,
    option: str = "--out",
    beside: Sequence[str] = (),
) -> Path:
    """A file to write: refused if the user named one that exists, numbered if the name was ours.

    Args:
        path: where it is to be.
        force: may it replace another one?
        named: did the user choose the name?
        option: the option that names it.
        beside: suffixes of more files of its name.
    """
    path = Path(path)
    if path.is_dir():
        example = path / ("table.csv" if option == "--table" else "figure.png")
        raise ValueError(f"{path} is a folder; give {option} a file such as {example}.")
    if not path.parent.is_dir():
        raise ValueError(
            f"there is no folder {path.parent} to write {path.name} to; make it first, or choose "
            "another."
        )
    names = (path.stem, *(f"{path.stem}-{i}" for i in range(2, 10_000)))
    for one in (path.with_stem(name) for name in names):
        taken = [p for p in (one, *map(one.with_suffix, beside)) if os.path.lexists(p)]
        if force or not taken:
            return one
        if named:
            raise ValueError(f"{taken[0]} exists; choose another name, or replace it with --force.")
    raise ValueError(f"{path} and all names with a number are taken; choose another with {option}.")
