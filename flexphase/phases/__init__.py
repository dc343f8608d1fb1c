"""Phase processes: which phase comes next, and how long does it last?

`Phases(selection, duration)` is most of them; `Recorded` replays measured phases, `Pauses` puts
phases without plasticity in between, `Sinusoidal` has graded signs. `tape` draws phases without a
network, `schedule` hands them to a training loop of your own.
"""

from .durations import (
    Duration,
    Empirical,
    Fixed,
    Gamma,
    Geometric,
    Law,
    LogNormal,
    Matched,
    Weibull,
)
from .neither import Pauses, Sinusoidal
from .process import Phases, Stretched, tape
from .recorded import Recorded
from .schedule import Schedule, Tick, schedule
from .selections import (
    Alternating,
    Bernoulli,
    Blocks,
    Clamped,
    Homeostatic,
    Markov,
    Pairs,
    Selection,
)

__all__ = [
    "Alternating",
    "Bernoulli",
    "Blocks",
    "Clamped",
    "Duration",
    "Empirical",
    "Fixed",
    "Gamma",
    "Geometric",
    "Homeostatic",
    "Law",
    "LogNormal",
    "Markov",
    "Matched",
    "Pairs",
    "Pauses",
    "Phases",
    "Recorded",
    "Schedule",
    "Selection",
    "Sinusoidal",
    "Stretched",
    "Tick",
    "Weibull",
    "schedule",
    "tape",
]
