"""The paper's theory as tools for any learner: variance, best b, phase lengths, bias, a plan."""

from .exact import exact_moments
from .moments import moments
from .plan import Plan, plan
from .variance import Moments, best_b, penalty, saving, trace_isd, trace_two_term

__all__ = [
    "Moments",
    "Plan",
    "best_b",
    "exact_moments",
    "moments",
    "penalty",
    "plan",
    "saving",
    "trace_isd",
    "trace_two_term",
]
