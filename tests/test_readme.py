"""The README's example is run as it stands, and must print the number that the README states."""

import re
from pathlib import Path

import pytest
from pages import blocks

PAGE = Path(__file__).parent.parent / "README.md"
README = PAGE.read_text()


def test_the_example_prints_the_number_that_is_stated(tmp_path, capsys, monkeypatch):
    code, _ = blocks(PAGE)
    stated = float(re.search(r"about \*\*(\d+) nats\*\*", README).group(1))
    one_seed = float(re.search(r"one seed: sd (\d+)", README).group(1))
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = float(capsys.readouterr().out.split()[0])
    assert printed == pytest.approx(
        stated, abs=3 * one_seed / 8**0.5
    )  # three standard errors of the mean of eight seeds
    assert (tmp_path / "aol.png").stat().st_size > 10_000


def test_a_new_equilibrium_learner_takes_fifteen_lines(capsys):
    """Without imports and empty lines; and it prints the number that is stated, to three standard
    errors of the mean of four seeds.
    """
    _, code = blocks(PAGE)
    lines = [line for line in code.splitlines() if line.strip()]
    assert len([line for line in lines if "import" not in line]) <= 15
    stated = float(re.search(r"about \*\*([\d.]+) nats\*\* \(one seed", README).group(1))
    one_seed = float(re.search(r"\(one seed: sd ([\d.]+); untrained", README).group(1))
    exec(compile(code, "README.md", "exec"), {})
    printed = float(capsys.readouterr().out.split()[0])
    assert printed == pytest.approx(stated, abs=3 * one_seed / 4**0.5)


def test_the_commands_shown_are_words_that_the_parser_knows():
    import shlex

    from flexphase.cli import parser

    shown = [
        shlex.split(line[2:], comments=True)
        for line in README.splitlines()
        if line.startswith("$ flexphase ")
    ]
    assert len(shown) >= 4
    for words in shown:
        parser().parse_args(words[1:])
