"""The README's examples are run as they stand, and must print the numbers that it states; every
command that a page shows is one that the parser knows.
"""

import re
import shlex
from pathlib import Path

import pytest
from pages import blocks

from flexphase.catalogue.phases import check_words
from flexphase.cli import parser, plan

PAGE = Path(__file__).parent.parent / "README.md"
DOCS = PAGE.parent / "docs"
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


PAGES = [PAGE, *sorted(set(DOCS.rglob("*.md")) - set(DOCS.glob("_build/**/*.md")))]
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(flexphase [^`]+)`")
#: Words that stand for others: a form, not a command.
FORM = re.compile(r"\.\.\.|[\[\]|]|(?<![\w-])[A-Z][A-Z-]*(?!\w)")
#: Shown because it is refused.
TYPO = "flexphase train rbm --lenght 3"


def shown(page):
    """The commands of a page: (words, does it stand in a block?)."""
    text = page.read_text("utf-8")
    for block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if not re.match(r"(\$ )?flexphase( |$)", line):
                continue
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if not re.search(r"\.\.\.|[\[\]|]", " ".join(words)):
                yield words, True
    for command in INLINE.findall(FENCED.sub("", text)):
        if not FORM.search(command) and " ".join(command.split()) != TYPO:
            yield shlex.split(command), False


def check_command(words):
    """Read the words as the command would, and train nothing."""
    args = parser().parse_args(words)
    if args.command == "plan":
        args = plan.options_of(args)
    if "select" in args:
        check_words(args)


COMMANDS = [
    pytest.param(words, whole, id=f"{page.relative_to(PAGE.parent)}: {' '.join(words)}")
    for page in PAGES
    for words, whole in shown(page)
]


def test_the_pages_show_commands():
    """So many at least, in blocks and in sentences: the patterns above find them."""
    whole = [param.values[1] for param in COMMANDS]
    assert sum(whole) >= 20 and len(whole) - sum(whole) >= 30


@pytest.mark.parametrize(("words", "whole"), COMMANDS)
def test_a_command_that_is_shown_is_one_that_the_parser_knows(words, whole, capsys):
    """A sentence may name an option without saying of which run."""
    try:
        check_command(words[1:])
    except SystemExit as end:  # of --help, 0
        said = capsys.readouterr().err
        assert end.code == 0 or (not whole and "arguments are required" in said), said


def test_the_typo_that_is_shown_is_refused(capsys):
    assert f"`{TYPO}`" in (DOCS / "cli.md").read_text("utf-8")
    with pytest.raises(SystemExit):
        check_command(TYPO.split()[1:])
    assert "did you mean --length?" in capsys.readouterr().err
