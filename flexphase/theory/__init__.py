"""The paper's theory as tools for any learner: variance, best b, phase lengths, bias, a plan."""

from .ahead import plan_run
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
    "plan_run",
    "saving",
    "trace_isd",
    "trace_two_term",
]
