"""Figures of the theory: each function draws on the matplotlib axes that it is given."""

from itertools import cycle
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from ..drawing import LINES, PALETTE
from ..phases import Alternating, Geometric, Phases, tape
from . import bias, lengths
from .chains import relaxation_time
from .coupling import gap
from .exponents import along
from .variance import best_b, given, least_trace, trace_isd, trace_two_term
from .zoo import Walk

BLUE, GREY = PALETTE[0], "0.55"
MINUS = (0.1, 0.5, 1.0, 2.0)  # Tr cov(g-) in Fig. 3B
B = np.linspace(0.02, 0.98, 193)
MARKS = "osD^v"


def panels(count: int) -> Any:
    """An array of axes side by side, in a new figure."""
    figure = Figure(figsize=(4.6 * count, 3.6), layout="constrained")
    return figure.subplots(1, count, squeeze=False)[0]


def fig_3b(ax: Any) -> None:
    """Fig. 3B: Tr cov of eq. 2 (blue) and of eq. 1 (grey) against b.

    Tr cov(g+) = 0.5, zero means, several Tr cov(g-).
    """
    for minus, line in zip(MINUS, LINES, strict=True):
        m = given(0.5, minus)
        ax.plot(B, trace_isd(m, B), line, color=BLUE, label=f"{minus:g}")
        ax.axhline(float(trace_two_term(m)), linestyle=line, color=GREY, linewidth=1)
        ax.plot(best_b(m), least_trace(m), "o", color=BLUE, markersize=4)
    ax.set(
        ylim=(0, 14),
        xlim=(0, 1),
        xlabel="b, probability of a positive phase",
        ylabel="trace of the estimator's covariance",
    )
    ax.set_title("ISD (blue; dot: best b), two-term (grey)", fontsize=10)
    ax.legend(
        title="Tr cov(g$_-$);  Tr cov(g$_+$) = 0.5", fontsize=8, title_fontsize=8, frameon=False
    )


def measured_traces(ax: Any, curves: dict[str, Any]) -> None:
    """Traces of learners (points with two standard errors) against those that their moments predict
    (lines).

    A curve is (moments, values of b, traces, errors, trace of eq. 1), under the learner's name; all
    are divided by the trace at b*.
    """
    lines = [line for line in LINES if line != ":"]  # the two-term rule is dotted
    lowest = 1.0
    for (name, curve), colour, mark, line in zip(
        curves.items(), cycle(PALETTE), cycle(MARKS), cycle(lines)
    ):
        m, b, trace, error, two = curve
        unit, label = float(least_trace(m)), f"{name}: b* = {best_b(m):.2f}"
        lowest = min(lowest, two / unit)
        ax.plot(B, trace_isd(m, B) / unit, line, color=colour, label=label)
        style = {"fmt": mark, "color": colour, "markersize": 5, "fillstyle": "none"}
        ax.errorbar(b, trace / unit, 2 * error / unit, capsize=2, **style)
        ax.plot([0.02, 0.98], [two / unit] * 2, color=colour, linestyle=":", linewidth=1)
    ax.set(
        yscale="log",
        ylim=(0.7 * lowest, 30),
        xlim=(0, 1),
        xlabel="b, probability of a positive phase",
        ylabel="trace / trace of ISD at the best b",
    )
    ax.set_title("lines: predicted, points: simulated, dotted: two-term", fontsize=10)
    ax.legend(fontsize=8, frameon=False, loc="best")


def length_moments(ax: Any, phases: int = 200_000) -> None:
    """E[T^k] / tau^k of geometric lengths: exact, simulated and as printed."""
    tau = np.geomspace(1, 200, 100)
    for k, line in zip((1, 2, 3), cycle(LINES)):
        label = f"E[T$^{k}$] / τ$^{k}$"
        ax.plot(tau, lengths.moment(k, tau) / tau**k, line, color=BLUE, label=label)
    some = np.array([1.5, 5, 20, 100])
    drawn = [tape(Phases(Alternating(), Geometric(t)), jax.random.key(0), phases) for t in some]
    shares = [np.asarray(seen.ticks, float) / t for seen, t in zip(drawn, some, strict=True)]
    style = {"fmt": "o", "color": PALETTE[1], "markersize": 4, "capsize": 2}
    for k in (1, 2, 3):
        mean = [np.mean(share**k) for share in shares]
        error = [2 * np.std(share**k) / phases**0.5 for share in shares]
        ax.errorbar(some, mean, error, label="simulated" if k == 1 else None, **style)
    printed = (6 * tau**3 - 6 * tau**2 - tau) / tau**3
    ax.plot(tau, printed, color=GREY, linewidth=1, label="E[T$^3$] as printed")
    ax.set(
        xscale="log",
        ylim=(-1.2, 6.4),
        xlabel="τ, mean phase length (ticks)",
        ylabel="moment / τ$^k$",
        title="geometric phase length",
    )
    ax.legend(fontsize=8, frameon=False, loc="upper right", bbox_to_anchor=(1, 0.86))


def short_phases(ax: Any) -> None:
    """P(T < s), against the paper's leading order s/tau with s = tau^m."""
    tau = np.geomspace(2, 1000, 60)
    for m, line in zip((0.25, 0.5, 0.75), cycle(LINES)):
        s = np.ceil(tau**m)
        chance = [lengths.shorter(t, int(k)) for t, k in zip(tau, s, strict=True)]
        ax.plot(tau, chance, line, color=BLUE, label=f"P(T < s), s = ⌈τ$^{{{m:g}}}$⌉")
        ax.plot(tau, tau ** (m - 1), line, color=GREY, linewidth=1)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="τ, mean phase length (ticks)",
        ylabel="probability",
        title="grey: leading order s/τ",
    )
    ax.legend(fontsize=8, frameon=False)


def bias_curves(parts: Any, every: list[Walk], lanes: int = 8192) -> None:
    """Transient (first axes) and feedback bias (second) against tau in relaxation times.

    Fixed lengths; lines are exact, points are simulated in `lanes` lanes.
    """
    for walk, colour, mark in zip(every, cycle(PALETTE), cycle(MARKS)):
        memory = max(relaxation_time(walk.chain.P), 1.0)
        tau = np.unique(np.round(np.geomspace(2, 100 * memory, 14)))
        first = np.array([np.linalg.norm(bias.transient(walk.chain, walk.start, t)) for t in tau])
        second = np.array([np.linalg.norm(bias.feedback(walk.chain, walk.start, t)) for t in tau])
        far = np.linalg.norm(bias.transient_limit(walk.chain, walk.start)) / memory
        limit = np.linalg.norm(bias.feedback_limit(walk.chain))
        name = f"{walk.name} ({memory:.0f})"
        parts[0].plot(tau / memory, first / far, color=colour, label=walk.name)
        parts[1].plot(tau / memory, second / limit, color=colour, label=name)
        if walk.method:
            some = np.unique(np.round(np.geomspace(2, min(40 * memory, 300), 5)))
            mean, error = simulated_feedback(walk, some, lanes) / limit
            style = {"fmt": mark, "color": colour, "markersize": 4, "capsize": 2}
            parts[1].errorbar(some / memory, mean, 2 * error, **style)
    x = np.array([0.03, 0.6])
    parts[1].plot(x, 3 * x, color=GREY, linestyle="--", label="growing as τ (Theorem 1's bound)")
    parts[0].plot([1, 100], [3, 0.03], color=GREY, linestyle="--", label="falling as 1/τ")
    parts[0].set(
        xscale="log",
        yscale="log",
        ylabel="transient bias / (η · its scale)",
        title="the phase begins out of equilibrium",
    )
    parts[1].set(
        xscale="log",
        yscale="log",
        ylabel="feedback bias / (η$^2$ · its limit)",
        title="θ moves during the phase",
    )
    for ax in parts:
        ax.set_xlabel("τ / relaxation time of the chain")
    parts[0].legend(fontsize=7, frameon=False)
    parts[1].legend(
        fontsize=7, frameon=False, title="in brackets: relaxation time (ticks)", title_fontsize=7
    )


def simulated_feedback(walk: Walk, taus: np.ndarray, lanes: int, eta: float = 0.02) -> np.ndarray:
    """(2, len(taus)): mean and standard error of feedback bias / eta^2, along the exact one."""
    found = []
    for tau in taus:
        at, seed = walk.starts(lanes), int(tau)
        samples = gap(walk.method, walk.params, at, -1.0, eta, tau, seed=seed)
        found.append(along(samples, bias.feedback(walk.chain, walk.start, tau)))
    return np.array(found).T / eta**2
