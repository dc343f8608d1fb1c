"""What a figure shows: panels, claims with their verdicts, and remarks."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .panels import Panel

Verdict = Literal["pass", "fail", "unclear"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "unclear")


class Claim(NamedTuple):
    """A sentence, of the paper or of a study, beside what was measured."""

    words: str  # what is claimed
    measured: str
    verdict: Verdict
    test: str  # how the verdict was reached


class Findings(NamedTuple):
    """What `show` of an experiment returns, and what the report is made from."""

    panels: Sequence[Panel]
    claims: Sequence[Claim]
    remarks: Sequence[str] = ()
    columns: int = 2  # of panels in the picture
