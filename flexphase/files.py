"""The one way in for files from outside, and the one way out.

In: regular files of bounded size, read as data. Nothing in them is executed (no pickle, no eval),
and whatever the libraries below raise becomes one sentence (`understood`). Out: whole files or none
(`replacing`).
"""

import contextlib
import functools
import hashlib
import io
import json
import math
import os
import secrets
import stat
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .machine import memory
from .stopping import STOPPING

if TYPE_CHECKING:
    import h5py
    import numpy as np
    import xarray as xr

READ = os.O_RDONLY  # and what the system has of these
for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    READ |= getattr(os, _flag, 0)
MOST = int(min(2**33, memory() / 2))  # bytes of a file, and of what is unpacked from it
MEMBERS = 10_000  # arrays in an archive
#: How their members are packed. zipfile unpacks no more of these than their headers promise; other
#: kinds it unpacks whole.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
SEAL = b"\nflexphase sha256 "
SEALED = len(SEAL) + 64
HEAP = b"GCOL\1\0\0\0"  # of HDF5


@contextlib.contextmanager
def understood(words: str, advice: str = "") -> Iterator[None]:
    """Whatever goes wrong inside is a ValueError: "WORDS (why)ADVICE."; warnings are suppressed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        raise ValueError(f"{words} ({reason(error)}){advice}.") from None


def reason(error: Exception) -> str:
    """An error of a library in a few words."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    elif not isinstance(error, (ValueError, OSError)) or not text:
        text = f"{type(error).__name__}: {text}"
    text = " ".join(text.split()).rstrip(".: ")
    return text if len(text) < 300 else f"{text[:297]}..."


def content(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a regular file of at most `most`; nothing else is opened.

    A FIFO would wait for a writer for ever, a device might never end.
    """
    regular(os.stat(path))
    descriptor = os.open(path, READ)
    try:
        about = os.fstat(descriptor)
        regular(about)  # again: the path may name another file by now
        bounded(about.st_size, most)
        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(about.st_size + 1)
    finally:
        os.close(descriptor)
    if len(raw) != about.st_size:
        raise ValueError("it changes while it is read")
    return raw


def regular(about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is not a regular file")


def bounded(size: int, most: int | None = None) -> None:
    most = MOST if most is None else most
    if size > most:
        raise ValueError(f"it holds {size:,} bytes, and at most {most:,} are read")


def text(raw: bytes) -> str:
    """Text in UTF-8, with or without a byte order mark."""
    return raw.decode("utf-8-sig")


def plain_json(raw: str | bytes) -> Any:
    """JSON as Python writes it."""
    return json.loads(raw)


def gunzip(raw: bytes, most: int) -> bytes:
    """The content of a .gz file that unpacks to at most `most` bytes."""
    unpack = zlib.decompressobj(wbits=31)
    whole = unpack.decompress(raw, most + 1)
    bounded(len(whole), most)
    if not unpack.eof or unpack.unused_data:
        raise ValueError("it is not one whole gzip stream")
    return whole


def npy(raw: bytes) -> "np.ndarray":
    """The array in a .npy file; a ValueError unless its size is that in the header."""
    import numpy as np

    file = io.BytesIO(raw)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"it is an .npy file of the unknown version {version}")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject or dtype.names:
        raise ValueError("it holds objects, and only numbers are read")
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(raw) - file.tell():
        raise ValueError(f"its header promises another size, {dtype} of shape {shape}")
    if not dtype.itemsize:
        raise ValueError("its numbers have no bytes")
    flat = np.frombuffer(raw, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def npz(raw: bytes) -> "dict[str, np.ndarray]":
    """The arrays in an .npz archive, by name."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(names) > MEMBERS or len({*names}) < len(names):
            raise ValueError("it has too many arrays, or two of one name")
        if strange := [name for name in names if not name.endswith(".npy")]:
            raise ValueError(f"it holds {strange[0][:50]!r}, which is no array")
        check_members(members)
        return {name[: -len(".npy")]: npy(archive.read(name)) for name in names}


def check_members(members: list[zipfile.ZipInfo], most: int | None = None) -> None:
    """Raise ValueError if they might unpack to more than `most` bytes together."""
    if any(member.compress_type not in PACKED for member in members):
        raise ValueError("its members are neither stored nor deflated")
    bounded(sum(member.file_size for member in members), most)


def netcdf(raw: bytes) -> "xr.Dataset":
    """The variables and attributes at the root of a netCDF-4 file, in memory, as numbers."""
    import xarray as xr

    raw = unsealed(raw)
    with hdf5(raw) as file:
        check_values(file, longest=check_heaps(raw))
    hook = sys.unraisablehook
    sys.unraisablehook = _silent  # h5netcdf's finaliser fails on a file that it could not open
    try:
        with xr.open_dataset(
            io.BytesIO(raw), engine="h5netcdf", decode_times=False, decode_timedelta=False
        ) as dataset:
            return dataset.load()
    except Exception as error:
        why = reason(error)
    finally:
        sys.unraisablehook = hook
    raise ValueError(why)


@contextlib.contextmanager
def hdf5(raw: bytes, soft_links: bool = False) -> "Iterator[h5py.File]":
    """An HDF5 file in memory, of bounded size, that needs no other file.

    Args:
        raw: its bytes.
        soft_links: may arrays have second names? Code that loads every name would load such an
            array many times.
    """
    import h5py

    check_heaps(raw)
    with h5py.File(io.BytesIO(raw)) as file:
        groups: list[Any] = [file]
        file.visititems(lambda _, it: groups.append(it) if isinstance(it, h5py.Group) else None)
        bounded(sum(bytes_in(group, soft_links) for group in groups))
        yield file


def bytes_in(group: "h5py.Group", soft_links: bool) -> int:
    """The size of its arrays, which must lie in this file: HDF5 would open any other file that it
    names, and wait for ever if that is a FIFO.
    """
    import h5py

    size = 0
    for name in map(str, group):
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink) and soft_links:
            continue
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"its {name[:50]!r} is a link")
        array = group[name]
        if isinstance(array, h5py.Dataset):
            if array.external or array.is_virtual:
                raise ValueError(f"its {name[:50]!r} lies in another file")
            size += array.nbytes
    return size


def check_values(file: "h5py.File", longest: int) -> None:
    """Raise ValueError if an array holds no numbers, or attributes hold too much text: HDF5 keeps a
    text once, in a heap whose `longest` object has so many bytes, and can name it a million times.
    """
    import h5py

    named = 0
    for name, thing in [("root", file), *file.items()]:
        if isinstance(thing, h5py.Dataset) and thing.dtype.kind not in "biuf":
            raise ValueError(f"its {str(name)[:50]!r} holds {thing.dtype}, not numbers")
        about = map(thing.attrs.get_id, thing.attrs)
        named += sum(math.prod(one.shape) for one in about if one.dtype.hasobject)
    bounded(named * longest)


def check_heaps(raw: bytes) -> int:
    """The bytes of the longest object in a global heap; a ValueError if HDF5 would walk through one
    for ever.

    A heap is "GCOL", its version 1, its size, and objects: index, count, size, data. Index 0 is
    free space, whose size counts its own head of 16 bytes; a size of 0 is never left. Heaps do not
    overlap, so that a file has no more objects than there is room for their heads.
    """
    at, room, longest = raw.find(HEAP), len(raw) // 16, 0
    while at >= 0:
        size = int.from_bytes(raw[at + 8 : at + 16], "little")
        here, end = at + 16, min(at + size, len(raw))
        while here + 16 <= end:
            index = int.from_bytes(raw[here : here + 2], "little")
            length = int.from_bytes(raw[here + 8 : here + 16], "little")
            if index == 0 and length < 16:
                raise ValueError("a heap of it is damaged")
            longest = max(longest, 0 if index == 0 else min(length, len(raw)))
            here += length if index == 0 else 16 + -(-length // 8) * 8
            room -= 1
            if room < 0:
                raise ValueError("its heaps overlap")
        at = raw.find(HEAP, at + 8)
    return longest


def _silent(_: Any) -> None:
    """Do not show errors in finalisers to the user."""


def netcdf_bytes(
    dataset: "xr.Dataset", groups: "Mapping[str, xr.Dataset] | None" = None, packed: bool = False
) -> bytes:
    """A netCDF-4 file in memory: writing to a full disk, HDF5 would end the process.

    Args:
        dataset: the file itself.
        groups: more datasets in it, by name.
        packed: are numbers compressed?
    """
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    whole = io.BytesIO()
    no_lock: Any = False  # nobody else sees this file
    with h5netcdf.File(whole, "w") as file:
        for name, part in {"": dataset, **(groups or {})}.items():
            numbers = [v for v in part if part[v].dtype.kind in "fi"] if packed else []
            where = file.create_group(name) if name else file
            encoding = {str(v): {"zlib": True} for v in numbers}
            part.dump_to_store(H5NetCDFStore(where, lock=no_lock), encoding=encoding)
    return whole.getvalue()


def sealed(raw: bytes) -> bytes:
    """With the SHA-256 behind the end, where HDF5 does not read."""
    return raw + seal_of(raw)


def seal_of(raw: bytes) -> bytes:
    return SEAL + hashlib.sha256(raw).hexdigest().encode()


def unsealed(raw: bytes) -> bytes:
    """What was sealed, if it is unharmed; a file without a seal is taken as it is."""
    at = raw.rfind(SEAL, max(0, len(raw) - SEALED))
    if at < 0:
        return raw
    body = raw[:at]
    if seal_of(body) != raw[at:]:
        raise ValueError("its checksum is wrong, so it was damaged or changed")
    return body


@contextlib.contextmanager
def replacing(path: Path, lasting: bool = True, over: bool = True) -> Iterator[Path]:
    """A temporary file beside `path`; renamed to it in one step when the block ends without error.

    Args:
        path: where the file is to be.
        lasting: wait until the disk has it; not needed for notes that may be lost.
        over: may it replace an existing file? If not, a file of that name is kept, even one made
            meanwhile, and a ValueError says so.
    """
    check_place(path)
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    remove = functools.partial(part.unlink, missing_ok=True)
    with STOPPING.undone(remove):
        try:
            yield part
            if lasting:
                on_disk(part)
            if over:
                os.replace(part, path)
            else:
                name_new(part, path)
            if lasting:
                name_on_disk(path)
        finally:
            remove()


def check_place(path: Path) -> None:
    """Refuse a file in a folder that is not there, or one that is a folder itself."""
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for {path.name}; make it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file in it.")


def name_new(part: Path, path: Path) -> None:
    """Give a file a name that no other one has, or raise ValueError."""
    try:
        os.link(part, path)
    except OSError:
        if os.path.lexists(path):
            raise ValueError(f"{path} exists; choose another name.") from None
        os.rename(part, path)  # this file system has no links


def on_disk(path: Path) -> None:
    """Wait until the disk has the content of a file."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))  # Windows wants to write
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def name_on_disk(path: Path) -> None:
    """Wait until the disk has the name of a file, where the system can wait for a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path, exist_ok: bool = False) -> Path:
    """Make a folder and those above it, and wait until the disk has their names."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=exist_ok)
    for folder in new:
        name_on_disk(folder)
    return path


def write(path: Path, data: str | bytes, over: bool = True) -> Path:
    """Write a file, whole or not at all, and wait until the disk has it; returns its path. Without
    `over`, another file of that name is kept (`replacing`).
    """
    with replacing(path, over=over) as part:
        part.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
