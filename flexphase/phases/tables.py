"""Tables of recorded phases: reading them, and turning times into ticks."""

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import above_zero
from ..files import content, hdf5, text, understood

#: Words for the types of phases where none are given.
WORDS = {
    "positive": ("positive", "+", "+1", "1", "plus", "wake", "data", "clamped"),
    "negative": ("negative", "-", "-1", "minus", "sleep", "model", "free"),
    "rest": ("rest", "0", "gap", "pause", "none", "n/a", "nan", ""),
}
FAR = 1e100  # in time: times, their sums and ticks stay finite
SIGNS = {"positive": 1.0, "negative": -1.0, "rest": 0.0}
#: Names of columns that are tried where none is given, in this order.
COLUMNS = {
    "onset": ("onset", "start", "start_time", "begin"),
    "duration": ("duration", "length"),
    "offset": ("offset", "stop_time", "stop", "end", "end_time"),
    "type": ("type", "sign", "trial_type", "stage", "state", "phase", "label", "condition"),
}

Words = Mapping[str, str | Iterable[str] | None]  # by kind; None: the usual ones


def read(table: Any, intervals: str = "trials") -> Any:
    """A table with named columns, from a file or as it is."""
    import pandas as pd

    if isinstance(table, (str, Path)):
        path = Path(table)
        if not os.path.lexists(path):
            raise ValueError(f"there is no table of phases at {path}.")
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(
                f"{path.name} cannot be read as a table of phases; the name must end in "
                f"{', '.join(READERS)}."
            )
        with understood(f"{path} cannot be read as a table of phases"):
            return reader(content(path), intervals)
    if isinstance(table, Mapping):
        return pd.DataFrame({str(name): list(column) for name, column in table.items()})
    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            "recorded phases come from a file, a pandas DataFrame or a dict of columns, not "
            f"{type(table).__name__}."
        )
    return table


def read_csv(raw: bytes, intervals: str, sep: str = ",") -> Any:
    import pandas as pd

    return pd.read_csv(io.StringIO(text(raw)), sep=sep, keep_default_na=False, dtype=str)


def read_bids(raw: bytes, intervals: str) -> Any:
    """The events file of the Brain Imaging Data Structure: onset, duration and trial_type, in
    seconds, between tabs.
    """
    return read_csv(raw, intervals, sep="\t")


def read_nwb(raw: bytes, intervals: str) -> Any:
    """A table of intervals of a file of Neurodata Without Borders: start_time, stop_time and a
    column of types, in seconds.
    """
    with hdf5(raw, soft_links=True) as opened, nwb_reader()(file=opened, mode="r") as file:
        content = file.read()
        usual = {"trials": content.trials, "epochs": content.epochs}
        tables = dict(content.intervals) | {n: t for n, t in usual.items() if t is not None}
        if intervals not in tables:
            known = ", ".join(tables) or "none"
            raise ValueError(f"it has no intervals {intervals!r}; it has {known}")
        return tables[intervals].to_dataframe()


def nwb_reader() -> Any:
    """pynwb's reader of HDF5; its decorators hide its arguments from type checkers."""
    try:
        from pynwb import NWBHDF5IO  # type: ignore[import-not-found]
    except ImportError:
        raise ValueError(
            "files of Neurodata Without Borders are read by pynwb: pip install 'flexphase[nwb]'"
        ) from None
    return NWBHDF5IO


READERS = {".csv": read_csv, ".tsv": read_bids, ".nwb": read_nwb}


def column(table: Any, what: str, given: str | None) -> str | None:
    """The name of a column: the given one, or the first usual one that is there."""
    names = [str(name) for name in table.columns]
    if given is not None and given not in names:
        raise ValueError(
            f"the table has no column {given!r} for {what}; it has {', '.join(names) or 'none'}."
        )
    return given or next((name for name in COLUMNS[what] if name in names), None)


def times(table: Any, name: str) -> np.ndarray:
    """A column of finite numbers."""
    import pandas as pd

    if getattr(table[name], "dtype", np.dtype(float)).kind in "mM":
        raise ValueError(
            f"the column {name!r} holds dates or timedeltas, whose unit pandas chooses; give "
            "numbers, such as seconds: (t - t.iloc[0]).dt.total_seconds() of dates."
        )
    values = np.asarray(pd.to_numeric(table[name], errors="coerce"), float)
    if not (np.abs(values) < FAR).all():
        raise ValueError(
            f"the column {name!r} must hold a finite number in every row, below {FAR:g}."
        )
    return values


def words_of(words: str | Iterable[str]) -> list[str]:
    return [str(w).strip().lower() for w in ([words] if isinstance(words, str) else words)]


def spoken(kind: Any) -> str:
    """A type as a word: 1.0 and 1 are the same."""
    if isinstance(kind, (float, np.floating)) and float(kind).is_integer():
        kind = int(kind)
    return str(kind).strip().lower()


def meanings(words: Words) -> dict[str, str]:
    """What each word says: positive, negative or rest.

    Words that are given take the place of the usual ones of their kind, and win over those of the
    other kinds.
    """
    known = {word: kind for kind in WORDS if words[kind] is None for word in WORDS[kind]}
    given: dict[str, str] = {}
    for kind in WORDS:
        for word in words_of(words[kind] or ()):
            if given.setdefault(word, kind) != kind:
                raise ValueError(
                    f"the word {word!r} is given as {given[word]} and as {kind}; a type has one "
                    "meaning."
                )
    return known | given


def signs(kinds: Any, words: Words) -> np.ndarray:
    """+1, -1 or 0 for each word; a ValueError for words that are not known."""
    known = {word: SIGNS[kind] for word, kind in meanings(words).items()}
    said = [spoken(kind) for kind in kinds]
    if unknown := sorted({word for word in said if word not in known}):
        shown = ", ".join(map(repr, unknown[:5]))
        raise ValueError(
            f"the table has phases of unknown type {shown}; say what they are with positive=, "
            "negative= or rest=, such as positive='wake'."
        )
    return np.array([known[word] for word in said])


def phases_of(
    table: Any,
    columns: Mapping[str, str | None],
    words: Words,
    rate: float,
) -> tuple[np.ndarray, np.ndarray]:
    """-> sign and ticks of all phases, gaps included."""
    if not len(table):
        raise ValueError("the table of phases is empty; it needs a row for each phase.")
    above_zero(rate, "the rate, in ticks per unit of time,")
    if columns["duration"] is not None and columns["offset"] is not None:
        raise ValueError("when a phase ends: name its duration or its offset, not both.")
    names = {what: column(table, what, given) for what, given in columns.items()}
    if columns["offset"] is not None:
        names["duration"] = None  # what only looks like one
    for what in ("onset", "type"):
        if names[what] is None:
            raise ValueError(
                f"the table has no column that looks like the {what} of a phase; name it: "
                f"{what}='...'. It has {', '.join(map(str, table.columns))}."
            )
    onset = times(table, names["onset"])  # type: ignore[arg-type]
    offset = ends(table, names, onset)
    order = np.argsort(onset, kind="stable")
    onset, offset = onset[order], offset[order]
    sign = signs(table[names["type"]], words)[order]
    return on_the_clock(onset - onset[0], offset - onset[0], sign, rate)


def ends(table: Any, names: Mapping[str, str | None], onset: np.ndarray) -> np.ndarray:
    """When each phase ends, from its duration or its offset."""
    if names["duration"] is not None:
        duration = times(table, names["duration"])
    elif names["offset"] is not None:
        duration = times(table, names["offset"]) - onset
    else:
        raise ValueError(
            "the table says when phases begin, not when they end; it needs a column duration or "
            "offset."
        )
    if (duration < 0).any():
        row = int(np.flatnonzero(duration < 0)[0])
        raise ValueError(f"the phase in row {row} has a negative duration ({duration[row]:g}).")
    return onset + duration


def on_the_clock(
    onset: np.ndarray, offset: np.ndarray, sign: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Times in ticks, gaps filled with phases of sign 0."""
    overlap = offset[:-1] - onset[1:]
    if (overlap * rate > 1e-3).any():
        row = int(np.flatnonzero(overlap * rate > 1e-3)[0])
        raise ValueError(
            f"the phases that begin at {onset[row]:g} and {onset[row + 1]:g} overlap (times after "
            "the first onset); a network is in one phase at a time."
        )
    begin, end = np.rint(onset * rate), np.rint(offset * rate)
    if end[-1] >= 2**31:
        raise ValueError(f"the record lasts {end[-1]:.3g} ticks, more than 2^31; lower the rate.")
    if (end - begin < 1).any():
        row = int(np.flatnonzero(end - begin < 1)[0])
        raise ValueError(
            f"at {rate:g} ticks per unit of time the phase that begins at {onset[row]:g} (after "
            f"the first onset) lasts {(offset[row] - onset[row]) * rate:.3g} ticks, less than one; "
            "raise the rate."
        )
    gap = np.append(begin[1:] - end[:-1], 0)
    every_sign = np.stack([sign, np.zeros_like(sign)], 1).ravel()
    every_ticks = np.stack([end - begin, gap], 1).ravel()
    lasts = every_ticks >= 1
    return every_sign[lasts], every_ticks[lasts].astype(np.int32)


def checked(sign: Any, ticks: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sign and the ticks of each phase, if they can be replayed."""
    signs, lengths = np.asarray(sign), np.asarray(ticks)
    if signs.ndim != 1 or signs.shape != lengths.shape or not signs.size:
        raise ValueError(
            "recorded phases need a list of signs and one of ticks, of the same length and not "
            f"empty, not arrays of shape {signs.shape} and {lengths.shape}."
        )
    if signs.dtype.kind not in "iuf" or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError("the signs of recorded phases must be 1, -1 or 0.")
    whole = lengths.dtype.kind in "iuf" and ((lengths >= 1) & (lengths == np.rint(lengths))).all()
    if not whole or lengths.sum(dtype=float) >= 2**31:
        raise ValueError(
            "recorded phases must last whole numbers of ticks, at least 1 each and fewer than 2^31 "
            "together."
        )
    if not ((signs > 0).any() and (signs < 0).any()):
        missing = "negative" if (signs > 0).any() else "positive"
        raise ValueError(
            f"the record has no {missing} phase, so one of the two terms would never be seen."
        )
    return signs, lengths
