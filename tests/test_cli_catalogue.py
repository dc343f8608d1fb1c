"""The catalogue: what it says is true of the library, and an entry is all that a method needs."""

import argparse
import json
from pathlib import Path

import pytest

import flexphase.methods
from flexphase import catalogue
from flexphase.catalogue import DATASETS, METHODS, RULES
from flexphase.catalogue.common import OPTIMISERS
from flexphase.catalogue.datasets import load
from flexphase.catalogue.equilibrium_propagation import upper_rates
from flexphase.catalogue.rules import legend
from flexphase.cli import options, parser
from flexphase.cli.records import Kept
from flexphase.cli.train import to_keep
from flexphase.estimators import always_on, isd, two_term

PAGE = (Path(__file__).parent.parent / "docs" / "cli.md").read_text()


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_defaults_of_a_method_are_words_that_exist(method):
    assert method.rule in RULES and method.optimiser in OPTIMISERS
    assert method.data.partition(":")[0] in DATASETS
    assert hasattr(flexphase.methods, method.kind)
    kept = options.options_of(method.name)
    for name in ("data", "rule", "length", "lr", "optimiser", "records"):
        assert getattr(kept, name) == getattr(method, name)


def test_a_method_is_found_by_its_file_alone(tmp_path, monkeypatch, capsys):
    """The file that docs/cli.md shows."""
    (tmp_path / "linear.py").write_text(PAGE.split("```python\n")[1].split("```")[0])
    monkeypatch.setattr(catalogue, "__path__", [*catalogue.__path__, str(tmp_path)])
    found = catalogue.discovered()
    assert set(found) == {*METHODS, "linear"}
    monkeypatch.setitem(METHODS, "linear", found["linear"])
    args = parser().parse_args(["train", "linear"])
    assert (args.data, args.rule, args.length, args.lr, args.gain) == ("digits", "isd", 1, 0.01, 1)
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit):
        parser().parse_args(["train", "linear", "--help"])
    text = capsys.readouterr().out
    assert "Train a linear network." in text and "phases to train for (default: 20000)" in text


@pytest.mark.parametrize(
    ("rule", "length", "label", "alternates", "estimator"),
    # eqs. 1, 2, 4 and 5
    [
        ("cd", 10, "CD-10", True, two_term),
        ("two-term", 20, "two-term, T = 20", True, two_term),
        ("two-term", 1, "two-term", True, two_term),
        ("isd", 1, "ISD, b = 0.25", False, isd),
        ("aol", 10, "AoL, T = 10, b = 0.25", False, always_on),
        ("aol-random", 1.5, "AoL random T, mean T = 1.5, b = 0.25", False, always_on),
    ],
)
def test_rules_by_name(rule, length, label, alternates, estimator):
    args = argparse.Namespace(rule=rule, length=length, b=0.25)
    process, built = RULES[rule].build(args)
    assert legend(args) == label and built is estimator
    assert process.alternates == alternates and float(process.mean_length) == length
    assert RULES[rule].uses_b != alternates and (RULES[rule].update == "pair") == alternates


@pytest.mark.parametrize(
    ("given", "rates"), [(0.3, (1, 0.3, 0.3)), ([0.3], (1, 0.3, 0.3)), ([0.3, 0.1], (1, 0.3, 0.1))]
)
def test_upper_rates_are_one_for_all_or_one_for_each(given, rates):
    """A number alone is what records of earlier versions have."""
    assert (1, *upper_rates(given, 2)) == rates
    with pytest.raises(ValueError, match="2 numbers for 3 layers"):
        upper_rates([0.3, 0.1], 3)


def test_data_by_word_detail_and_side():
    """Bars and Stripes of side n have 2 * 2^n rows."""
    assert load("bas").images.shape == (32, 16) and load("bas:3").images.shape == (16, 9)
    assert load("bas", 2).shape == (2, 2) and not load("bas").grey
    digits = load("digits")
    assert digits.grey and digits.classes == 10 and digits.test is not None
    assert (len(digits.images), len(digits.test[0])) == (1437, 360)
    with pytest.raises(ValueError, match="no data 'digits:3'"):
        load("digits:3")


def test_a_record_of_an_earlier_version_gets_the_defaults_of_new_options(tmp_path):
    import xarray as xr

    from flexphase.record import Record

    said = '{"method": "equilibrium-propagation", "data": "digits", "side": null, "lr": 0.5}'
    kept = Kept(Record(xr.Dataset(attrs={"options": said})), tmp_path).options
    assert (kept.lr, kept.beta, kept.rule) == (0.5, 0.5, "two-term")


@pytest.mark.parametrize(
    "words",
    [
        *METHODS,
        "rbm --no-visible-bias --average none --batch 3 --stay 0.5 0.25 --select markov",
        "equilibrium-propagation --hidden 5 4 --upper-rate 0.1 0.3 --no-centred --data a=b.npy",
        "forward-forward --lr 1e-9 --device digital8,range=2 --updates 7 --threads 2",
    ],
)
def test_options_of_a_record_are_those_that_were_given(words):
    """Through JSON and back."""
    args = parser().parse_args(["train", *words.split()])
    kept = to_keep(args)
    assert vars(options.options_of(args.method, json.loads(json.dumps(kept)))) == kept
