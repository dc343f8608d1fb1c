"""Records that the commands read, and files that they must not overwrite."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from .options import defaults


class Kept(NamedTuple):
    """A record and where it lies."""

    record: Any
    folder: Path

    @property
    def options(self) -> dict[str, Any]:
        """The options that `flexphase train` was given; what a record of an earlier version does
        not say is at its default.
        """
        if "options" not in self.record.attrs:
            raise ValueError(
                f"the record in {self.folder} was not made by flexphase train, so the data that it "
                "learned are not known."
            )
        try:
            given = json.loads(self.record.attrs["options"])
            return defaults(given["method"]) | given
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"the options in the record in {self.folder} are damaged; train again."
            ) from None

    @property
    def label(self) -> str:
        """What a legend calls it; the name of its folder helps where the record has no label."""
        from ..plot import label_of

        name = label_of(self.record)
        return name if "label" in self.record.attrs else f"{name} ({self.folder.name})".strip()


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


def params_of(record: Any, method: Any, lane: int) -> Any:
    """The final parameters of one lane, in the form that the method gives them."""
    import jax
    import jax.numpy as jnp

    lanes = record["diverged_at"]
    if lane >= lanes.size:
        raise ValueError(
            f"the run has {lanes.size} trained networks, numbered from 0; there is no {lane}."
        )
    like = jax.eval_shape(lambda: method.init(jax.random.key(0))[0])
    kept = record.params

    def leaf(path: Any, shape: Any) -> Any:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if name not in kept or kept[name].shape[lanes.ndim :] != shape.shape:
            raise ValueError(
                "the parameters in this record do not fit the method that its options describe."
            )
        return jnp.asarray(kept[name].reshape(lanes.size, *shape.shape)[lane])

    return jax.tree_util.tree_map_with_path(leaf, like)


def picture_of(record: Any) -> tuple[int, int] | None:
    """Height and width of a picture of the data, where the record says them."""
    shape = record.attrs.get("picture")
    return None if shape is None else (int(shape[0]), int(shape[1]))


def unused(path: str | Path, force: bool, named: bool = True, option: str = "--out") -> Path:
    """A file to write: refused if the user named one that exists, numbered if the name was ours."""
    path = Path(path)
    if path.is_dir():
        example = path / ("table.csv" if option == "--table" else "figure.png")
        raise ValueError(f"{path} is a folder; give {option} a file such as {example}.")
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
