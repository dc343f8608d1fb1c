"""The words for phases: what they compose against the library's own classes, what they refuse, and
`flexphase phases` against the tape of the same process.
"""

import itertools
import json
import os

import equinox as eqx
import jax
import numpy as np
import pytest

from flexphase import NCE, estimators
from flexphase.catalogue.phases import DURATIONS, FORMS, SELECTIONS, rule_of
from flexphase.cli import main, parser
from flexphase.cli.options import options_of
from flexphase.cli.train import task_of
from flexphase.core import lane_keys
from flexphase.phases import (
    Alternating,
    Bernoulli,
    Blocks,
    Fixed,
    Gamma,
    Geometric,
    Homeostatic,
    LogNormal,
    Markov,
    Matched,
    Pairs,
    Phases,
    Recorded,
    Weibull,
    tape,
)
from flexphase.phases.statistics import statistics
from flexphase.record import Record

CHOSEN = {  # the words after --select, and what they mean
    "alternating": ("", Alternating()),
    "bernoulli": ("--b 0.3", Bernoulli(0.3)),
    "markov": ("--stay 0.9 0.8", Markov(0.9, 0.8)),
    "pairs": ("", Pairs()),
    "homeostatic": ("--b 0.3 --kappa 2", Homeostatic(0.3, 2)),
    "blocks": ("--block 3 5", Blocks(3, 5)),
}
LASTING = {  # the words after --duration
    "fixed": ("--length 20", Fixed(20)),
    "geometric": ("--length 20", Geometric(20)),
    "gamma": ("--length 20 --cv 0.5", Gamma(20, 0.5)),
    "lognormal": ("--length 20 --cv 2", LogNormal(20, 2)),
    "weibull": ("--length 20 --cv 0.7", Weibull(20, 0.7)),
    "matched": ("--length 20", Matched(Geometric(20))),
}


def composed(words):
    """The rule of these words, as `flexphase phases` reads them."""
    return rule_of(parser().parse_args(["phases", *words.split()]))


def same(process, expected):
    return bool(eqx.tree_equal(process, expected))


def test_every_word_has_its_meaning_here():
    assert CHOSEN.keys() == SELECTIONS.keys() and LASTING.keys() == DURATIONS.keys()


@pytest.mark.parametrize("duration", LASTING)
@pytest.mark.parametrize("select", CHOSEN)
def test_a_selection_and_a_duration_compose(select, duration):
    (chosen, selection), (lasting, law) = CHOSEN[select], LASTING[duration]
    words = f"--select {select} {chosen} --duration {duration} {lasting}"
    process, estimator = composed(words)
    assert same(process, Phases(selection, law)) and estimator is estimators.always_on
    others = [v for k, v in LASTING.items() if k != duration]
    assert not any(same(process, Phases(selection, other)) for _, other in others)


@pytest.mark.parametrize(
    ("words", "process", "estimator"),
    [
        # what is not said: kappa 5, cv 1, fixed lengths of 100 ticks, b 1/2
        ("--select homeostatic", Phases(Homeostatic(0.5, 5), Fixed(100)), estimators.always_on),
        ("--duration gamma", Phases(Bernoulli(0.5), Gamma(100, 1)), estimators.always_on),
        # phases of one tick have no spread
        ("--duration weibull --length 1", Phases(Bernoulli(0.5), Fixed(1)), estimators.always_on),
        # the rule is the estimator, and says how phases are chosen where --select does not
        ("--rule isd --select pairs --length 3", Phases(Pairs(), Fixed(3)), estimators.isd),
        (
            "--rule cd --duration geometric --length 3",
            Phases(Alternating(), Geometric(3)),
            estimators.two_term,
        ),
        # without words of one's own, the paper's rules
        ("--rule cd --length 4", Phases(Alternating(), Fixed(4)), estimators.two_term),
        ("--rule isd --b 0.2 --length 4", Phases(Bernoulli(0.2), Fixed(4)), estimators.isd),
        (
            "--rule aol-random --b 0.2 --length 4",
            Phases(Bernoulli(0.2), Geometric(4)),
            estimators.always_on,
        ),
    ],
)
def test_what_is_not_said(words, process, estimator):
    told = composed(words)
    assert same(told.process, process) and told.estimator is estimator


@pytest.fixture
def night(tmp_path):
    """A recorded table with a gap, in seconds."""
    path = tmp_path / "night.csv"
    path.write_text("onset,duration,type\n0,2,wake\n2,1,sleep\n4,3,wake\n7,1,sleep\n")
    return path


@pytest.mark.parametrize("rate", [1, 10])
def test_a_record_and_its_rate(night, rate):
    said = "" if rate == 1 else f"--rate {rate}"
    process, _ = composed(f"--recorded {night} {said}")
    assert same(process, Recorded(night, rate=rate))
    assert np.asarray(process.ticks).tolist() == [2 * rate, rate, rate, 3 * rate, rate]
    assert np.asarray(process.sign).tolist() == [1, -1, 0, 1, -1]


NUMBERS = {
    "stay": "--stay 0.9 0.8",
    "kappa": "--kappa 0",
    "block": "--block 2 3",
    "cv": "--cv 2",
    "rate": "--rate 2",
    "b": "--b 0.3",
}


def test_a_table_with_the_name_of_a_formula(tmp_path, capsys, monkeypatch):
    r"""matplotlib knows no \a, and said so after the work."""
    monkeypatch.chdir(tmp_path)
    name = r"$\a$.csv"
    (tmp_path / name).write_text("onset,duration,type\n0,2,wake\n2,1,sleep\n4,3,wake\n")
    assert main(["phases", "--recorded", name]) == 0, capsys.readouterr().err
    words = ["train", "rbm", "--data", "bas:2", "--rule", "aol", "--recorded", name, "--ticks", "9"]
    assert main([*words, "--engine", "jax", "--out", "$\\run$"]) == 0, capsys.readouterr().err
    assert main(["plot", "$\\run$", "$\\run$"]) == 0, capsys.readouterr().err


def unused():
    """Every number with every selection and duration that has no use for it."""
    entries = [("select", e) for e in SELECTIONS.values()]
    entries += [("duration", e) for e in DURATIONS.values()]
    for (option, entry), name in itertools.product(entries, NUMBERS):
        needed = f" {NUMBERS[entry.needs]}" if entry.needs else ""
        # a duration alone goes with Bernoulli phases, which have a b
        if name not in entry.takes and (option, name) != ("duration", "b"):
            yield f"--{option} {entry.name}{needed} {NUMBERS[name]}", f"--{name} is for "


def test_every_number_is_tried():
    assert NUMBERS.keys() == FORMS.keys()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *unused(),
        ("--select markov", "--select markov needs --stay P_PLUS P_MINUS."),
        ("--select blocks", "--select blocks needs --block N_PLUS N_MINUS."),
        *(
            (words, f"--{name} says more about phases that --select, --duration or --recorded name")
            for name, words in NUMBERS.items()
            if name != "b"
        ),
        *(
            (f"--recorded night.csv {words}", f"leave out --{words.split()[0][2:]}, or the record")
            for words in (
                "--select pairs",
                "--duration gamma",
                *(words for name, words in NUMBERS.items() if name != "rate"),
            )
        ),
        *(
            (f"--rule aol-random {words}", "aol-random names its phases itself; with --select")
            for words in ("--select pairs", "--duration gamma", "--recorded night.csv")
        ),
    ],
)
def test_a_word_without_effect_is_refused(words, says, capsys, tmp_path, monkeypatch):
    """The takers of a number are named; nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert main(["phases", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "process"),
    [
        ("--select markov --stay 0.9 0.8 --duration gamma --length 8 --cv 0.5", None),
        ("--rule isd --b 0.3 --length 5", Phases(Bernoulli(0.3), Fixed(5))),
        ("--recorded night.csv --rate 3", None),
    ],
)
def test_the_numbers_are_those_of_the_tape(words, process, night, capsys, monkeypatch):
    """The phases that a lane of this seed sees, unrolled without the command; and the figure."""
    monkeypatch.chdir(night.parent)
    said = f"phases {words} --phases 300 --seed 7 --out p.svg --json".split()
    assert main(said) == 0
    out, err = capsys.readouterr()
    process = process or composed(words).process
    keys = lane_keys(jax.random.key(7))
    told = tape(process, keys.run, 300, state=process.init(keys.process))
    expected = statistics(np.asarray(told.sign, float), np.asarray(told.ticks))
    assert json.loads(out) == expected._asdict()
    assert f"b = {expected.b:.4g}" in err and (night.parent / "p.svg").stat().st_size > 1000
    assert main(said) == 2 and "--force" in capsys.readouterr().err


def refused(capsys, words, says):
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err


def test_updates_are_not_promised_where_some_phases_have_none(night, capsys):
    """A record with a gap makes fewer updates than ticks, phases or pairs of phases."""
    for rule in ("aol", "isd", "cd"):
        words = f"train rbm --data bas:2 --rule {rule} --recorded {night} --updates 8"
        refused(capsys, words, "some of the recorded phases have no update; give --phases or")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--select markov --stay 0.9 0.8", "select"),
        ("--recorded night.csv", "recorded"),
        ("--b 0.3", "b"),
        ("--duration gamma --b 0.3", "b"),
    ],
)
def test_predictive_coding_refuses_words_for_negative_phases(words, name, capsys):
    says = f"all phases of predictive coding are positive, so leave out --{name};"
    refused(capsys, f"train predictive-coding {words}", says)


def test_rules_of_two_terms_have_no_b(capsys):
    """It was ignored without a word."""
    for rule in ("cd", "two-term"):
        refused(capsys, f"train rbm --data bas:2 --rule {rule} --b 0.3", "so leave out --b; it is")


@pytest.mark.parametrize(
    ("words", "b"),  # the share of positive phases in closed form
    [
        ("--b 0.2", 0.2),
        ("--rule cd", 1 / 2),
        ("--select markov --stay 0.9 0.8", 2 / 3),
        ("--select blocks --block 1 3", 1 / 4),
    ],
)
def test_noise_is_weighed_as_often_as_it_is_shown(words, b):
    """nu = (1 - b) / b makes both importance weights equal, whatever the phases are."""
    args = parser().parse_args(["train", "nce", "--data", "bas:2", *words.split()])
    run = task_of(args).run
    assert isinstance(run.method, NCE) and float(run.process.b) == pytest.approx(b)
    assert float(run.method.nu) == pytest.approx((1 - b) / b, rel=1e-6)
    assert float(task_of(with_options(args, nu=3.0)).run.method.nu) == 3


def with_options(args, **changed):
    """The same options with some changed."""
    vars(args).update(changed)
    return args


def test_the_defaults_of_train_name_no_phases_of_ones_own():
    kept = vars(options_of("rbm"))
    assert all(kept[name] is None for name in ("select", "duration", "recorded", "hold"))
    assert all(kept[name] is None for name in FORMS if name != "b")


def test_times_that_would_overflow_are_refused(tmp_path, capsys, recwarn):
    path = tmp_path / "p.csv"
    path.write_text("onset,duration,type\n0,1,wake\n1e308,1,sleep\n")
    assert main(["phases", "--recorded", str(path), "--rate", "10"]) == 2
    err = capsys.readouterr().err
    assert "a finite number in every row, below 1e+100" in err and err.count("\n") == 1
    assert not recwarn.list


def test_a_table_whose_name_is_no_utf8(night, tmp_path, monkeypatch):
    """It is in labels and titles, which are text, after the training is done."""
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"p\xff.csv")
    os.rename(night, odd)
    small = ["--data", "bas:2", "--hidden", "2", "--records", "1", "--phases", "4"]
    words = ["train", "rbm", *small, "--rule", "aol", "--engine", "jax", "--recorded", odd]
    assert main([*words, "--out", "run"]) == 0
    assert Record.load(tmp_path / "run" / "record.nc").attrs["label"].endswith("of p\ufffd.csv")
    words = ["phases", "--recorded", odd, "--rate", "10", "--out", "p.svg"]
    assert main(words) == 0
