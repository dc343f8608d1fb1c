"""The first contact: `flexphase` alone, `flexphase demo`, and what `flexphase train rbm` says."""

import functools
import json

import pytest

from flexphase.cli import COMMANDS, demo, main, parser
from flexphase.cli.chart import Curve, chart

OPTIMUM, UNTRAINED = 108.131, 354.891  # closed forms, docs/conventions.md
#: Slow weights, mean of the demo's four seeds. Measured: 121.6 +- 1.4, 118.6 +- 3.2 and 124.7 +-
#: 26.2 (one seed of 32 fails, at 266), mean and sd over 32 seeds (100 to 131, compiled engine):
#: four standard errors of a mean of four seeds above.
MOST = {"two-term": 124.4, "ISD": 125, "always on": 177.1}


def test_flexphase_alone_says_what_to_try(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    tried = [line.split()[1] for line in said.splitlines() if line.startswith("  flexphase ")]
    assert len(tried) >= 5 and set(tried) <= set(COMMANDS)


def test_the_demo_shows_that_slow_weights_mend_flexible_phases(capsys, monkeypatch):
    monkeypatch.setattr(demo, "trained", functools.cache(demo.trained))
    assert main(["demo", "--json"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert list(rows) == ["two-term", "ISD", "always on"]
    for name, row in rows.items():
        assert OPTIMUM < row["averaged"] < MOST[name] and OPTIMUM < row["last"] < UNTRAINED
    # slow weights are better by 109 +- 44 and 141 +- 79 nats, mean and sd over the same 32 seeds
    assert rows["ISD"]["averaged"] < rows["ISD"]["last"]
    assert rows["always on"]["averaged"] < rows["always on"]["last"]
    assert rows["always on"]["updates"] == 20 * rows["ISD"]["updates"]
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for name, row in rows.items():
        numbers = f"{row['last']:.1f} +- {row['last_sd']:.1f} {row['averaged']:.1f} +- "
        assert any(line.startswith(f"{name} {numbers}") for line in lines)
    assert out.count("|") > 10 and "untrained machine has 355, a perfect one 108." in err


def test_a_chart_has_its_points_where_they_belong():
    drawn = chart({"falls": Curve([0, 1, 2], [4, 2, 0])}, width=21, height=5)
    lines = drawn.splitlines()
    at = {i: line.split("|")[1].index("o") for i, line in enumerate(lines[:5]) if "o" in line}
    assert at == {0: 0, 2: 10, 4: 20}
    assert lines[0].startswith("4 ") and lines[4].startswith("0 ") and lines[-1] == "o falls"
    assert chart({"empty": Curve([], [])}) == "(nothing to draw)"


def test_training_says_where_the_result_lies(tmp_path, capsys):
    words = ["train", "rbm", "--phases", "200", "--seeds", "2", "--out", str(tmp_path / "run")]
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert abs(result["untrained"] - UNTRAINED) < 1 and abs(result["optimum"] - OPTIMUM) < 1e-3
    assert "an untrained one has 354.9" in err and "a perfect one 108.1" in err


def test_the_defaults_of_train_rbm_average_several_seeds():
    args = parser().parse_args(["train", "rbm"])
    assert (args.seeds, args.average, args.rule) == (4, 0.5, "aol")
    assert parser().parse_args(["train", "rbm", "--average", "none"]).average is None


@pytest.mark.slow
def test_the_defaults_of_train_rbm_learn(tmp_path, capsys):
    """Slow weights: 119.3 +- 2.9, mean and sd over 32 seeds (100 to 131, compiled engine); four
    standard errors of a mean of four seeds above.
    """
    assert main(["train", "rbm", "--out", str(tmp_path / "run"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert OPTIMUM < result["averaged"]["mean"] < 125
    assert result["averaged"]["mean"] < result["final"]["mean"] < UNTRAINED
