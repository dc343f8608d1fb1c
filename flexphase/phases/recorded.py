"""Recorded phases: a table of what happened, replayed tick by tick."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import count
from ..core import Key, Phase
from .process import Stretched
from .tables import checked, phases_of, read

After = Literal["repeat", "shuffle", "end"]


class Place(NamedTuple):
    """Memory of a shuffled record: where it is, and the bits that shuffle its blocks."""

    bits: Array  # (4,)
    passes: Array  # through the whole record so far
    block: Array  # how many blocks of this pass are done
    offset: Array  # phases of the present block that are done


class Recorded(eqx.Module):
    """Phases as they were recorded, from a table with a row for each.

    The first row begins at tick 0; onsets and offsets are rounded to ticks. What lies between two
    rows is a phase without plasticity (sign 0). `b` is the share of positive ones among the phases
    that have a sign, `Phase.length` the mean length of phases of this sign in the record.

    Args:
        table: a file (.csv, .tsv as BIDS has it, .nwb), a pandas DataFrame, or a dict of columns.
        rate: ticks per unit of time (per second, as a rule).
        onset, duration, offset, type: names of the columns; either duration or offset is needed.
            By default the usual ones are tried: start_time, stop_time, trial_type, ...
        positive, negative, rest: words for the types, a word or a list; case does not matter. They
            take the place of the usual ones of their kind, and win over those of the others.
        after: `repeat` begins again; `shuffle` too, with blocks of `block` phases in random order,
            another one in each pass and lane; `end` lasts as long as the record.
        block: phases that stay together when they are shuffled (gaps are phases too).
        intervals: which table of an .nwb file, such as trials or epochs.
        sign, ticks: the phases themselves, in the place of a table: 1, -1 or 0, and whole numbers
            of ticks; for records.

    Example: `Recorded("sleep.csv", rate=10, positive="wake", negative=["NREM", "REM"])`.
    """

    sign: Array
    ticks: Array
    b: Array
    lengths: Array  # mean ticks of phases of sign -1, 0 and +1
    after: After = eqx.field(static=True)
    block: int = eqx.field(static=True)

    def __init__(
        self,
        table: Any = None,
        *,
        rate: float = 1.0,
        onset: str | None = None,
        duration: str | None = None,
        offset: str | None = None,
        type: str | None = None,
        positive: str | Iterable[str] | None = None,
        negative: str | Iterable[str] | None = None,
        rest: str | Iterable[str] | None = None,
        after: After = "repeat",
        block: int = 20,
        intervals: str = "trials",
        sign: Any = None,
        ticks: Any = None,
    ):
        if after not in get_args(After):
            raise ValueError(f"after the record comes one of {', '.join(get_args(After))}.")
        if sign is None:
            columns = {"onset": onset, "duration": duration, "offset": offset, "type": type}
            words = {"positive": positive, "negative": negative, "rest": rest}
            sign, ticks = phases_of(read(table, intervals), columns, words, rate)
        sign, ticks = checked(sign, ticks)
        self.sign, self.ticks = jnp.asarray(sign, jnp.float32), jnp.asarray(ticks, jnp.int32)
        self.b = (self.sign > 0).sum() / jnp.float32((self.sign != 0).sum())
        self.lengths = jnp.stack([mean_where(self.sign == s, self.ticks) for s in (-1, 0, 1)])
        self.after, self.block = after, count(block, "the phases of a block")

    @property
    def alternates(self) -> bool:
        """+, -, +, - without exception, also where it begins again."""
        signed = np.asarray(self.sign)[np.asarray(self.sign) != 0]
        even = len(signed) % 2 == 0 and self.after != "shuffle"
        return bool(even and np.array_equal(signed, np.resize([1, -1], len(signed))))

    @property
    def rests(self) -> bool:
        """Are there phases without plasticity?"""
        return bool((np.asarray(self.sign) == 0).any())

    @property
    def ends(self) -> int | None:
        """Ticks after which there is no more; None if the record begins again."""
        return int(np.asarray(self.ticks).sum(-1).min()) if self.after == "end" else None

    @property
    def mean_length(self) -> Array:
        return self.ticks.mean(-1)

    def with_length(self, tau: Any) -> Stretched:
        return Stretched(self, tau)

    def init(self, key: Key) -> Place | tuple[()]:
        if self.after != "shuffle":
            return ()
        zero = jnp.int32(0)
        return Place(jax.random.bits(key, (4,)), zero, zero, zero)

    def step(self, key: Key, n: Array, state: Any) -> tuple[Phase, Any]:
        number = self.sign.shape[-1]
        if self.after == "shuffle":
            at, state = self.shuffled(state)
            return self.phase(at, jnp.bool_(False)), state
        over = jnp.bool_(self.after == "end") & (n >= number)
        return self.phase(n % number, over), state

    def phase(self, at: Array, over: Array) -> Phase:
        """Row `at` of the record; a rest of one tick when it is over."""
        sign, ticks = jnp.where(over, 0, self.sign[at]), jnp.where(over, 1, self.ticks[at])
        prob = jnp.where(sign > 0, self.b, jnp.where(sign < 0, 1 - self.b, 1))
        return Phase(sign, prob, self.lengths[jnp.int32(sign) + 1], ticks, ticks)

    def shuffled(self, s: Place) -> tuple[Array, Place]:
        """The next row of a record whose blocks are in random order."""
        number, blocks = self.sign.shape[-1], -(-self.sign.shape[-1] // self.block)
        first = self.block * permuted(s.block, blocks, s.bits + s.passes.astype(jnp.uint32))
        done = s.offset + 1 == jnp.minimum(self.block, number - first)
        block = s.block + done
        wrap = block == blocks
        place = Place(
            s.bits,
            s.passes + wrap,
            jnp.where(wrap, 0, block),
            jnp.where(done, 0, s.offset + 1),
        )
        return first + s.offset, place


def mean_where(mask: Array, ticks: Array) -> Array:
    """The mean of those; 1 if there are none."""
    return jnp.where(mask.any(), (ticks * mask).sum() / jnp.maximum(mask.sum(), 1), 1.0)


def permuted(i: Array, n: int, bits: Array) -> Array:
    """Where number i of n goes in the random order that these four words choose.

    Four rounds of a Feistel network are a permutation of the next power of four; numbers that land
    beyond n go through it again.
    """
    half = max((n - 1).bit_length() + 1, 2) // 2
    mask = jnp.uint32(2**half - 1)

    def cipher(x: Array) -> Array:
        left, right = x >> half, x & mask
        for word in bits:
            mixed = (right ^ word) * jnp.uint32(0x9E3779B1)
            mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x85EBCA77)
            left, right = right, left ^ ((mixed ^ (mixed >> 13)) & mask)
        return left << half | right

    x = jax.lax.while_loop(lambda x: x >= n, cipher, cipher(i.astype(jnp.uint32)))
    return x.astype(jnp.int32)
