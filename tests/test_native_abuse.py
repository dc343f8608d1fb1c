"""Arrays of the wrong kind are refused with a sentence, never read out of bounds, and nothing
leaks. See also `make sanitize`.
"""

import subprocess
import sys
from pathlib import Path

import native_abuse
import numpy as np
import pytest
from native_abuse import (
    arrays,
    call,
    good,
    good_forward_forward,
    grows,
    hostile,
    hostile_forward_forward,
    refused,
    refused_forward_forward,
)

from flexphase import kernels

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")


def test_every_kernel_takes_odd_sizes_and_no_lanes_or_ticks():
    good(kernels._native)


def test_forward_forward_takes_odd_sizes_and_no_lanes():
    good_forward_forward(kernels._native)


def test_a_thread_that_cannot_be_started_is_done_without():
    """One thread is the reference; in a process of its own, whose memory is limited."""
    folder = str(Path(kernels._native.__file__).parent)
    subprocess.run([sys.executable, native_abuse.__file__, folder, "threads"], check=True)


@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_hostile_arrays_are_refused_by_name(kind):
    sentences = [refused(kernels._native, kind, given) for _, given in hostile(kind)]
    assert all(s.endswith(".") for s in sentences)
    assert "W must be a writable C-contiguous array of float32 of shape" in sentences[0]


def test_hostile_arrays_of_forward_forward_are_refused():
    for why, given in hostile_forward_forward():
        assert refused_forward_forward(kernels._native, given).endswith("."), why


@pytest.mark.parametrize("kind", ["small", "wide", "machine"])
def test_a_refused_call_changes_nothing(kind):
    """An error in the tape is found while the lanes run: their arrays are as they were."""
    given = next(g for why, g in hostile(kind) if why == "tape too short")
    before = {name: np.copy(a) for name, a in given.items()}
    refused(kernels._native, kind, given)
    for name in ("W", "v", "h", "left", "rng", "updates"):
        np.testing.assert_array_equal(given[name], before[name])


def test_arrays_that_are_only_read_may_be_read_only():
    given = arrays(3, 5, 4)
    for name in ("ticks", "row", "data", "eta"):
        given[name].flags.writeable = False
    call(kernels._native, given, "small")


def test_no_leak_over_ten_thousand_calls():
    """Two kilobytes of arrays per call would be 20 MB; the process grows by less than two."""
    assert grows(kernels._native, 10_000) < 2_000
