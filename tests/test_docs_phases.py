"""The programs of docs/phases.md and docs/schedule.md run as they stand, and learn."""

import re

import numpy as np
import pytest
from pages import ROOT, run

DOCS = ROOT / "docs"


def said(page, number, capsys):
    """All numbers that program `number` of a page prints."""
    run(DOCS / page, {number})
    return [float(word) for word in re.findall(r"-?\d+\.\d+", capsys.readouterr().out)]


def test_a_recording(tmp_path, monkeypatch):
    """By hand, 10 ticks a second: wake for 30 s, NREM for 12, a gap of 3, REM for 5."""
    monkeypatch.chdir(tmp_path)
    night = run(DOCS / "phases.md", {0, 1})["night"]
    np.testing.assert_array_equal(night.sign, [1, -1, 0, -1])
    np.testing.assert_array_equal(night.ticks, [300, 120, 30, 50])


def test_a_process_of_your_own(capsys):
    """2x2 Bars and Stripes: 4 ln 4 + 4 ln 8 = 13.86 is the optimum, 8 ln 16 = 22.18 uniform."""
    (nll,) = said("phases.md", 2, capsys)
    assert 13.86 < nll < 17


def test_numpy_under_always_on_learning(capsys):
    """The same data, the exact likelihood by enumeration of 16 states."""
    (nll,) = said("schedule.md", 0, capsys)
    assert 13.86 < nll < 17.5


def test_forward_forward_in_torch_under_isd(capsys):
    """Chance is 75 % of four classes."""
    pytest.importorskip("torch")
    (error,) = said("schedule.md", 1, capsys)
    assert error < 6


def test_an_energy_based_model_in_torch_under_always_on_learning(capsys):
    """Mean (1.5, -0.5) of the data; an untrained energy gives (0, 0)."""
    pytest.importorskip("torch")
    x, y, *spread = said("schedule.md", 2, capsys)
    assert abs(x - 1.5) < 0.3 and abs(y + 0.5) < 0.3
    assert max(spread) < 0.9
