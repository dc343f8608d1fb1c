"""Files that others made: damaged, forged or no files at all. One sentence, and nothing else."""

import errno
import gzip
import io
import json
import os
import signal
import stat
import struct
import zipfile

import h5py
import jax
import numpy as np
import pytest
import xarray as xr

from flexphase import (
    NLL,
    RBM,
    Optimiser,
    Record,
    Recorded,
    Rows,
    Run,
    aol,
    bars_and_stripes,
    files,
    train,
)
from flexphase.checkpoints import checksum
from flexphase.cli import main
from flexphase.cli.common import run_folder
from flexphase.core import init
from flexphase.data import mnist_sources
from flexphase.folder import RunFolder
from flexphase.kernels import MISSING

DATA = bars_and_stripes(2)


SMALL = Run(RBM(4, 3), *aol(T=2), Rows(DATA), Optimiser(0.1))


def go(**options):
    usual = {"ticks": 8, "seeds": 2, "records": 2, "metrics": {"nll": NLL(DATA)}, "engine": "jax"}
    return train(SMALL, **(usual | options))


@pytest.fixture(scope="module")
def record():
    return go()


@pytest.fixture(autouse=True)
def in_time():
    """A file that is waited for is a failure, not a test that never ends."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("still waiting after 60 s"))
    signal.alarm(60)
    yield
    signal.alarm(0)


# Records


def flipped(raw, place):
    at = int(place * len(raw))
    return raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :]


HARMED = {
    **{f"a bit at {p:.2f}": lambda raw, p=p: flipped(raw, p) for p in np.linspace(0, 0.999, 25)},
    "cut in half": lambda raw: raw[: len(raw) // 2],
    "cut by a byte": lambda raw: raw[:-1],
    "spliced": lambda raw: raw[: len(raw) // 3] + raw[len(raw) // 2 :],
    "nothing": lambda raw: b"",
}


@pytest.mark.parametrize("harm", HARMED.values(), ids=HARMED)
def test_a_harmed_record_is_refused_in_one_line(record, harm, tmp_path, capfd):
    path = record.save(tmp_path / "record.nc")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(ValueError, match=r"not a record of flexphase \(.+\); give a netCDF file"):
        Record.load(path)
    assert main(["plot", str(path), "--out", str(tmp_path / "f.png")]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1, err


def test_a_record_with_its_seal_is_a_netcdf_file_for_everyone(record, tmp_path):
    path = record.save(tmp_path / "record.nc")
    with xr.open_dataset(path, engine="h5netcdf") as other:
        np.testing.assert_array_equal(other["nll"], record["nll"])
    with h5py.File(path) as other:
        np.testing.assert_array_equal(other["ticks"], record["ticks"])


def without(name):
    return lambda ds: ds.drop_vars(name)


def noted(**attrs):
    return lambda ds: ds.assign_attrs(attrs)


FORGED = {
    "a clock without entries": lambda ds: ds.isel(record=slice(0, 0)),
    "a metric that is a scalar": lambda ds: ds.assign(nll=1.0),
    "a metric without lanes": lambda ds: ds.assign(nll=ds["nll"].isel(seed=0)),
    "a metric of words": lambda ds: ds.assign(nll=ds["nll"].astype(str)),
    "a clock of words": lambda ds: ds.assign(ticks=ds["ticks"].astype(str)),
    "a clock that is a scalar": lambda ds: ds.assign(ticks=3),
    "a clock of fractions": lambda ds: ds.assign(phases=ds["phases"] + 0.5),
    "a clock that is not finite": lambda ds: ds.assign(updates=ds["updates"] * np.inf),
    "a clock that was never set": lambda ds: ds.assign(ticks=ds["ticks"] * np.nan),
    "a clock below zero": lambda ds: ds.assign(ticks=ds["ticks"] - 9),
    "no lanes": lambda ds: ds.isel(seed=slice(0, 0)),
    "no diverged_at": without("diverged_at"),
    "diverged_at of fractions": lambda ds: ds.assign(diverged_at=ds["diverged_at"] + 0.5),
    "no seeds": without("seed"),
    "parameters of words": lambda ds: ds.assign({"params.W": ds["params.W"].astype(str)}),
    "parameters without lanes": lambda ds: ds.assign({"params.W": ds["params.W"].isel(seed=0)}),
    "metrics that are no list": noted(metrics='{"nll": 1}'),
    "metrics that are numbers": noted(metrics="[1]"),
    "a clock called a metric twice": noted(metrics='["nll", "nll"]'),
    "a configuration that is deep": noted(config="[" * 100_000),
    "a configuration that is a number": noted(config=3),
    "a run that is a list": noted(config='{"run": []}'),
    "versions that are a list": noted(versions="[]"),
    "seconds that are a word": noted(seconds="long"),
    "seconds that are none": noted(seconds=np.nan),
    "an engine that is a number": noted(engine=3),
    "interrupted by words": noted(interrupted="no"),
    "a picture of words": noted(picture="square"),
    "a picture of one number": noted(picture=3),
    "a picture of nothing": noted(picture=[0, 4]),
    "classes of words": noted(classes="ten"),
    "a label of two texts": noted(label=["a", "b"]),
    "a label that is a number": noted(label=3),
    "options that are a list": noted(options="[]"),
    "options that are no JSON": noted(options="{"),
    "an optimum of words": lambda ds: ds.assign(nll=ds["nll"].assign_attrs(optimum="low")),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_record_is_refused_when_it_is_loaded(record, forge, tmp_path, capfd):
    path = Record(forge(record.dataset.copy())).save(tmp_path / "record.nc")
    with pytest.raises(ValueError, match="not a record of flexphase"):
        Record.load(path)
    forge(record.dataset.copy()).to_netcdf(tmp_path / "bare.nc", engine="h5netcdf")
    assert main(["plan", str(tmp_path / "bare.nc")]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_slow_metrics_are_there_for_all_or_none(tmp_path):
    """Also where a sweep does not keep parameters."""
    whole = go(average=0.5).dataset
    bare = whole.drop_vars([n for n in whole if "params" in str(n)])
    bare = bare.assign(error=bare["nll"], **{"averaged.error": bare["averaged.nll"]})
    bare.attrs["metrics"] = '["nll", "error"]'
    assert "averaged error" in repr(Record.load(Record(bare).save(tmp_path / "fine.nc")))
    path = Record(bare.drop_vars("averaged.error")).save(tmp_path / "bad.nc")
    with pytest.raises(ValueError, match=r"it has no averaged\.error"):
        Record.load(path)


def test_a_variable_that_would_not_fit_into_memory_is_not_loaded(record, tmp_path):
    path = tmp_path / "large.nc"
    record.dataset.to_netcdf(path, engine="h5netcdf")
    with h5py.File(path, "a") as file:
        file.create_dataset("huge", (2**40,), "f8", chunks=(1024,))
        file["huge"].make_scale("huge")
    with pytest.raises(ValueError, match="bytes, and at most"):
        Record.load(path)


def test_a_note_may_be_a_list_of_texts(record, tmp_path):
    noted = Record(record.dataset.assign_attrs(tags=["pilot", "b = 0.5"], one=["x"]))
    attrs = Record.load(noted.save(tmp_path / "record.nc")).attrs
    assert [*attrs["tags"], *attrs["one"]] == ["pilot", "b = 0.5", "x"]


@pytest.mark.parametrize("kind", ["text", "bytes"])
def test_notes_that_might_name_a_long_text_many_times(kind, record, tmp_path, monkeypatch):
    """HDF5 keeps a text once: these 50 might be the longest each, which is more than is read."""
    path = record.save(tmp_path / "record.nc")
    path.write_bytes(files.unsealed(path.read_bytes()))
    with h5py.File(path, "a") as file:
        file.attrs["more"] = "x" * 50_000
        tags = np.full(50, "abc", h5py.string_dtype())
        if kind == "bytes":
            tags = np.empty(50, h5py.vlen_dtype(np.uint8))
            tags[:] = [np.zeros(3, np.uint8)] * 50
        file.attrs["tags"] = tags
    Record.load(path)
    monkeypatch.setattr(files, "MOST", 2**21)
    with pytest.raises(ValueError, match="bytes, and at most"):
        Record.load(path)


def external(file, path):
    file.create_dataset("x", (4,), "f8", external=[(str(path), 0, 32)])


def virtual(file, path):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(str(path), "y", (4,))
    file.create_virtual_dataset("x", layout)


def linked(file, path):
    file["x"] = h5py.ExternalLink(str(path), "y")


def softly(file, path):
    file["x"] = h5py.SoftLink("/ticks")


def deeper(file, path):
    external(file.create_group("inner"), path)


@pytest.mark.parametrize("name", ["record.nc", "phases.nwb"])
@pytest.mark.parametrize("point", [external, virtual, linked, softly, deeper])
def test_a_file_that_names_another_one_is_refused(record, point, name, tmp_path):
    """The other one, a FIFO, would be waited for; an alias of an array would be loaded again."""
    os.mkfifo(tmp_path / "fifo")
    record.dataset.to_netcdf(tmp_path / name, engine="h5netcdf")
    with h5py.File(tmp_path / name, "a") as file:
        point(file, tmp_path / "fifo")
    if name == "record.nc":
        with pytest.raises(ValueError, match=r"\(its 'x' (is a link|lies in another file)\)"):
            Record.load(tmp_path / name)
    elif point is not softly:  # which is usual there
        with pytest.raises(ValueError, match=r"\(its 'x' (is a link|lies in another file)\)"):
            Recorded(tmp_path / name)


@pytest.mark.parametrize(
    "run",
    [
        {"class": "flexphase.record.Record"},
        {"class": "flexphase.core.Run"},
        {"class": "flexphase.core.Run", "method": {"partial": 3}},
        {"class": 7},
        {"class": "flexphase.core.Run", "method": {"float32": {}}},
        {"class": "flexphase.core.Run", "method": {"float32": "many"}},
        {"class": "flexphase.core.Run", "method": {"function": "flexphase.cli.main"}},
        {"class": "flexphase.sweep.cells.Sweep"},
    ],
    ids=str,
)
def test_a_forged_description_of_a_run_builds_nothing(record, run, tmp_path):
    config = json.dumps(record.config | {"run": run})
    path = Record(record.dataset.assign_attrs(config=config)).save(tmp_path / "record.nc")
    with pytest.raises(ValueError, match="cannot be rebuilt"):
        Record.load(path).run()


# Checkpoints


def npz_of(path):
    with np.load(path) as file:
        return dict(file)


def forge_checkpoint(path, change):
    kept = npz_of(path)
    change(kept)
    np.savez(path, **kept)


def reseal(kept):
    del kept["checksum"]
    kept["checksum"] = checksum(kept)


CHECKPOINTS = {
    "a leaf of words": lambda kept: kept.update(state0=kept["state0"].astype(str)),
    "another dtype": lambda kept: kept.update(state0=kept["state0"].astype(np.float64)),
    "curves of words": lambda kept: kept.update({"curve.nll": kept["curve.nll"].astype(str)}),
    "times of words": lambda kept: kept.update(times=np.array(["a", "b"])),
    "ticks in the past": lambda kept: kept.update({"curve.ticks": -kept["curve.ticks"] - 1}),
    "another number": lambda kept: kept.update({"curve.nll": kept["curve.nll"] + 1}),
    "no checksum": lambda kept: kept.pop("checksum", None),
    "one more array": lambda kept: kept.update(more=np.zeros(3)),
    "another shape": lambda kept: kept.update(state0=kept["state0"][:, None]),
    "an array less": lambda kept: kept.pop("state0"),
    "curves of another length": lambda kept: kept.update({"curve.nll": kept["curve.nll"][:1]}),
}
#: Those that only the checksum can tell.
PLAUSIBLE = ("another number", "no checksum")


@pytest.mark.parametrize(
    ("what", "resealed"),
    [(what, seal) for what in CHECKPOINTS for seal in {False, what not in PLAUSIBLE}],
)
def test_a_checkpoint_that_was_changed_is_refused(what, resealed, tmp_path):
    """By its checksum, and with a fresh one by the shapes and types of the run."""
    path = tmp_path / "checkpoint.npz"
    go(checkpoint=path)
    forge_checkpoint(path, CHECKPOINTS[what])
    if resealed:
        forge_checkpoint(path, reseal)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"not a checkpoint of flexphase \("):
        go(checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "forged",
    [
        {"times": np.array([np.nan, 0.0])},
        {"times": np.array([-1.0, 0.0])},
        {"curve.phases": np.full((3, 2), -1)},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_a_forged_checkpoint_with_its_checksum_is_refused(forged, tmp_path):
    path = tmp_path / "checkpoint.npz"
    go(checkpoint=path)

    def change(kept):
        kept.update(forged)
        reseal(kept)

    forge_checkpoint(path, change)
    with pytest.raises(ValueError, match=r"not a checkpoint of flexphase \(its (times|phases)"):
        go(checkpoint=path)


@pytest.mark.parametrize("engine", ["jax", "native"])
@pytest.mark.parametrize("left", [-(2**31), -1, 3])
def test_a_checkpoint_whose_phase_never_ends(left, engine, tmp_path):
    """Phases have 2 ticks. With fewer than none to go, compiled engines waited for ever."""
    if engine == "native" and MISSING:
        pytest.skip("built without a compiler")
    path = tmp_path / "checkpoint.npz"
    go(checkpoint=path, engine=engine)
    leaves = jax.tree_util.tree_leaves_with_path(init(SMALL, jax.random.key(0)))
    at = [jax.tree_util.keystr(where) for where, _ in leaves].index(".phase.left")

    def change(kept):
        assert kept[f"state{at}"].tolist() == [0, 0]
        kept[f"state{at}"] = np.array([0, left], np.int32)
        reseal(kept)

    forge_checkpoint(path, change)
    with pytest.raises(ValueError, match=r"not a checkpoint of flexphase \(its phases"):
        go(checkpoint=path, engine=engine, ticks=16)


@pytest.mark.parametrize("place", np.linspace(0, 0.999, 20))
def test_a_bit_of_a_checkpoint(place, tmp_path):
    """The local headers of a zip hold bits that nothing reads; any other is noticed."""
    path = tmp_path / "checkpoint.npz"
    whole = go(checkpoint=path)
    path.write_bytes(flipped(path.read_bytes(), place))
    try:
        again = go(checkpoint=path)
    except ValueError as error:
        assert "not a checkpoint of flexphase" in str(error)
    else:
        np.testing.assert_array_equal(again.params["W"], whole.params["W"])


def test_an_array_in_the_place_of_a_checkpoint(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ValueError, match="not a checkpoint of flexphase"):
        go(checkpoint=tmp_path / "array.npy")


# Data


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def described(shape, dtype="<f8"):
    return repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode() + b"\n"


ARRAYS = {
    "no Python": header(b"((((" + b" " * 50 + b"\n"),
    "code": header(b"__import__('os').getcwd()" + b" " * 50 + b"\n"),
    "a header without end": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "more than there is": header(described((10**9, 4))) + b"\0" * 32,
    "a negative shape": header(described((-2, -2))) + b"\0" * 32,
    "overflow": header(described((2**40, 2**40))) + b"\0" * 32,
    "numbers of no bytes": header(described((2, 2), "<U0")),
    "dates": header(described((2, 2), "<M8[D]")) + b"\0" * 32,
    "an unknown version": b"\x93NUMPY\x09\x00",
}


def data_refused(path, capfd, says="cannot be read as data"):
    assert main(["train", "rbm", "--data", str(path), "--phases", "4"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err


@pytest.mark.parametrize("raw", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_are_none(raw, tmp_path, capfd):
    (tmp_path / "x.npy").write_bytes(raw)
    data_refused(tmp_path / "x.npy", capfd)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", raw)
    data_refused(tmp_path / "x.npz", capfd)


@pytest.mark.parametrize("name", ["../x", "x", "/etc/passwd", "\u2028", "x.npy/y"])
def test_archives_with_odd_names(name, tmp_path, capfd):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr(name, b"hello")
    data_refused(tmp_path / "x.npz", capfd)


def test_an_archive_that_unpacks_to_more_than_is_read(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("flexphase.files.MOST", 2**20)
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((2**18, 2)))
    data_refused(tmp_path / "x.npz", capfd)


def test_an_archive_that_unpacks_to_more_than_it_says(tmp_path, capfd):
    """zipfile unpacks members of bz2 and LZMA whole, whatever their headers say."""
    part = io.BytesIO()
    np.save(part, np.zeros((2, 4)))
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", kind) as archive:
            archive.writestr("x.npy", part.getvalue())
        data_refused(tmp_path / "x.npz", capfd, "neither stored nor deflated")


def test_a_file_that_is_too_large_is_not_read(tmp_path, capfd):
    with open(tmp_path / "x.csv", "wb") as file:
        file.truncate(2**40)  # sparse
    data_refused(tmp_path / "x.csv", capfd, "at most")


# Not a regular file


def test_a_fifo_is_refused_not_waited_for(tmp_path, capfd):
    for name in ("x.npy", "x.csv", "x.npz", "record.nc", "checkpoint.npz", "phases.csv"):
        os.mkfifo(tmp_path / name)
    data_refused(tmp_path / "x.npy", capfd, "regular file")
    data_refused(tmp_path / "x.csv", capfd, "regular file")
    for words in ("plot", "plan", "sample"):
        for path in (tmp_path, tmp_path / "record.nc"):
            assert main([words, str(path)]) == 2
            err = capfd.readouterr().err
            assert "regular file" in err and err.count("\n") == 1
    with pytest.raises(ValueError, match="regular file"):
        go(checkpoint=tmp_path / "checkpoint.npz")
    with pytest.raises(ValueError, match="regular file"):
        Recorded(tmp_path / "phases.csv")


def test_a_device_is_not_even_opened(monkeypatch):
    """To open one may do something: a tape is wound back."""
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(ValueError, match="regular file"):
        files.content("/dev/null")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/"])
def test_devices_and_folders_are_no_records(path):
    with pytest.raises(ValueError, match="not a record of flexphase"):
        Record.load(path)


# What is written


def test_the_disk_has_a_file_before_it_takes_its_place(tmp_path, monkeypatch):
    """Also where another library wrote it, which does not wait."""
    had = []

    def fsync(descriptor):
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode):
            had.append((about.st_size, (tmp_path / "x.csv").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with files.replacing(tmp_path / "x.csv") as part:
        part.write_text("1,2\n")
        assert not had
    assert had == [(4, False)] and (tmp_path / "x.csv").read_text() == "1,2\n"
    with files.replacing(tmp_path / "note", lasting=False) as part:
        part.write_text("3")
    assert len(had) == 1


def test_the_disk_has_the_name_of_a_file_too(tmp_path, monkeypatch):
    """The folder is waited for after the file has its name."""
    seen = []

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            seen.append([path.name for path in tmp_path.iterdir()])

    monkeypatch.setattr(os, "fsync", fsync)
    files.write(tmp_path / "x.csv", "1,2\n")
    assert "x.csv" in seen[0] and len(seen) == 1


def test_the_disk_has_the_names_of_all_folders_that_are_made(tmp_path, monkeypatch):
    """Of a run without --out, too, and of its chunks."""
    seen = []

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            seen.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.chdir(tmp_path)
    run = run_folder("rbm", "new/runs")
    assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new/runs")} <= {*seen}
    with RunFolder(run, {}) as folder:
        folder.write("chunks/x", "y")
    assert str(tmp_path / run) in seen and str(tmp_path / run / "chunks") in seen
    with RunFolder("deep/er/run", {}):
        assert {str(tmp_path / "deep"), str(tmp_path / "deep/er")} <= {*seen}


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_file_that_was_made_meanwhile_is_kept(links, tmp_path, monkeypatch):
    """As by two commands that look the name up at the same time."""

    def link(*_):
        raise OSError(errno.EPERM, "this file system has no links")

    if not links:
        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "x.csv"
    files.write(path, "ours", over=False)
    assert path.read_text() == "ours"
    path.unlink()
    with pytest.raises(ValueError, match="exists; choose"), files.replacing(path, over=False) as it:
        it.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]


def test_a_figure_that_was_made_meanwhile_is_kept(tmp_path, capsys, monkeypatch):
    """While `phases` draws."""
    from flexphase import plot

    out, save = tmp_path / "phases.png", plot.save
    monkeypatch.setattr(plot, "save", lambda *a, **k: (out.write_text("theirs"), save(*a, **k)))
    words = ["phases", "--phases", "100", "--out", str(out)]
    assert main(words) == 2
    assert "exists; choose" in capsys.readouterr().err and out.read_text() == "theirs"
    assert main([*words, "--force"]) == 0


# Recorded phases and MNIST


@pytest.mark.parametrize(
    "raw", [b"", b"\0\0\0", b'"' * 99, b"onset,duration\n\xff,1", b"a" * 10_000 + b"\n" + b"," * 99]
)
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_tables_that_are_none(raw, suffix, tmp_path):
    path = tmp_path / f"phases.{suffix}"
    path.write_bytes(raw)
    with pytest.raises(ValueError) as refused:
        Recorded(path)
    assert "\n" not in str(refused.value)


def test_an_nwb_file_goes_through_the_same_guards(tmp_path):
    path = tmp_path / "phases.nwb"
    with h5py.File(path, "w") as file:
        file.create_group("intervals/trials").create_dataset("x", (2**40,), "f8", chunks=(1024,))
    with pytest.raises(ValueError, match="bytes, and at most"):
        Recorded(path)
    heap = b"GCOL\1\0\0\0" + (4096).to_bytes(8, "little")
    path.write_bytes(path.read_bytes() + heap.ljust(4096, b"\0"))
    with pytest.raises(ValueError, match="a heap of it is damaged"):
        Recorded(path)


def overlapping(heaps, objects):
    """Heaps whose first object hides the others; all of them end in the same many small ones."""
    head, body = b"GCOL\1\0\0\0", 32 * heaps
    raw = b"".join(
        head + struct.pack("<QHHIQ", 2**40, 1, 0, 0, body - 32 * i - 32) for i in range(heaps)
    )
    return raw + struct.pack("<HHIQ", 1, 0, 0, 0) * objects


def test_heaps_that_overlap_are_not_walked_through_again_and_again(tmp_path):
    """16,000 of them in a megabyte took minutes: as many steps as heaps times objects."""
    raw = overlapping(40, 80)
    (tmp_path / "x.nc").write_bytes(raw)
    with pytest.raises(ValueError, match=r"not a record of flexphase \(its heaps overlap\)"):
        Record.load(tmp_path / "x.nc")
    files.check_heaps(overlapping(1, 80))
    walked = []

    class Counted(bytes):
        """A slice of two bytes is the index of an object."""

        def __getitem__(self, at):
            walked.append(at.stop - at.start == 2)
            return super().__getitem__(at)

    with pytest.raises(ValueError, match="overlap"):
        files.check_heaps(Counted(raw))
    assert sum(walked) <= len(raw) // 16 + 1


def test_an_mnist_that_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    name = "t10k-labels-idx1-ubyte"
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(bytes(2**28)))
    raw, why = mnist_sources.verified(tmp_path / f"{name}.gz", name)
    assert raw is None and "at most" in why
    os.mkfifo(tmp_path / name)
    raw, why = mnist_sources.verified(tmp_path / name, name)
    assert raw is None and "regular file" in why
