"""A prediction of the paper beside its measurement."""

from typing import NamedTuple


class Prediction(NamedTuple):
    """A row of the table: a number that the paper predicts, and what it is."""

    source: str  # where the paper says it
    learner: str
    statement: str
    predicted: str
    measured: float
    error: float  # standard error, or half a 95 % interval of an exponent; 0 for exact numbers
    test: str
    passed: bool
    note: str = ""
