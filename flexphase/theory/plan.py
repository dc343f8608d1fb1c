"""Which b, tau and eta should this learner take? Measured at a checkpoint, each with its reason."""

from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from .. import shown
from ..core import Process, Run
from ..phases import tape
from .coupling import gap
from .frozen import learns_always, local, starts
from .mixing import Mixing, mixing, root, square
from .moments import moments
from .variance import Moments, best_b, mean_square, saving, trace_isd, trace_two_term

LONGEST = 4096  # ticks of a phase that are watched at most
AFFORDED = 2**21  # ticks, over all lanes, for the moments
SIGNS = (1.0, -1.0)


class Memory(NamedTuple):
    """How fast both phases forget."""

    positive: Mixing
    negative: Mixing
    watched: int  # ticks

    @property
    def transient(self) -> float:
        """|sum_t (E g_t - gbar)| over |gbar|, with two standard errors on top (noise is not
        absence); the larger one.
        """
        return max(
            (m.transient + 2 * (m.error.transient if m.error else 0)) / m.mean
            if m.mean > 0
            else 0.0
            for m in (self.positive, self.negative)
        )

    @property
    def slowest(self) -> float:
        return max(self.positive.autocorrelation, self.negative.autocorrelation)


class Plan(NamedTuple):
    """Advice, with a sentence for each part of it and what to expect of it."""

    b: float
    tau: int
    eta: float
    reasons: dict[str, str]
    expected: dict[
        str, float
    ]  # biases relative to the length of one phase's update; the loss per sample
    memory: Memory
    moments: Moments  # at the advised tau

    def __str__(self) -> str:
        head = f"b = {self.b:.3f}, tau = {self.tau}, eta = {self.eta:.2g}"
        rest = "expected  " + ", ".join(
            f"{name.replace('_', ' ')} {value:.3g}" for name, value in self.expected.items()
        )
        return "\n".join(
            [head, *(f"  {name:8s}{why}." for name, why in self.reasons.items()), f"  {rest}"]
        )

    def _repr_html_(self) -> str:
        values = {"b": f"{self.b:.3f}", "tau": self.tau, "eta": f"{self.eta:.2g}"}
        advice = [(name, values.get(name, ""), why) for name, why in self.reasons.items()]
        expected = [(k.replace("_", " "), f"{v:.3g}") for k, v in self.expected.items()]
        head = ("", "advice", "why")
        return shown.table(advice, head) + shown.table(expected, ("expected", ""))


def plan(
    run: Run, params: Any, *, loss: float = 0.05, bias: float = 0.1, lanes: int = 32, seed: int = 0
) -> Plan:
    """Advise b, tau and eta for `run` at `params`.

    `bias` is the share of a phase's update that its bias may have; `loss` what the noise of the
    updates may cost in the long run, in units of the loss per sample (nats for a Boltzmann
    machine): near a quadratic minimum SGD with unbiased estimates ends eta Tr(cov) / 4 above it,
    whatever the curvature. Where the landscape is not quadratic it costs more (an example is in
    docs/theory.md): eta is a ceiling.
    """
    for name, value in (("loss", loss), ("bias", bias)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, not {value!r}.")
    memory = watch(run, params, lanes, seed)
    tau, why_tau = advise_tau(run, memory, bias)
    there = run._replace(process=run.process.with_length(tau))
    m = moments(
        there, params, phases=max(16, min(400, AFFORDED // (lanes * tau))), lanes=lanes, seed=seed
    )
    b, why_b = advise_b(run, m, tau)
    variance = float(trace_isd(m, b) if local(run) else trace_two_term(m))
    now, then = (feedback(r, params, memory, lanes, seed) for r in (run, there))
    eta, why_eta = advise_eta(run, variance, then, tau, loss, bias)
    expected = {
        "gradient": float(np.sqrt(max(mean_square(m), 0))),
        "variance": variance,
        "excess_loss": eta * variance / 4,
        "transient_bias": memory.transient / tau,
        "feedback_bias": then * eta,
    }
    return Plan(
        b,
        tau,
        eta,
        {"b": why_b, "tau": why_tau, "eta": why_eta, "regime": regime(run, now, memory.slowest)},
        expected,
        memory,
        m,
    )


def watch(run: Run, params: Any, lanes: int, seed: int) -> Memory:
    """Watch long enough: fifty autocorrelation times, if that can be afforded."""
    ticks = 256
    while True:
        plus, minus = (
            mixing(run, params, sign, ticks=ticks, lanes=lanes, seed=seed) for sign in SIGNS
        )
        if ticks >= LONGEST or ticks >= 50 * max(plus.autocorrelation, minus.autocorrelation):
            return Memory(plus, minus, ticks)
        ticks *= 4


def feedback(run: Run, params: Any, memory: Memory, lanes: int, seed: int) -> float:
    """|feedback bias| per unit of eta, as a share of the length of one phase's update; the larger
    of the two phases'.
    """
    eta, tau = float(run.optimiser.eta), max(1, round(float(run.process.mean_length)))
    if not learns_always(run) or eta == 0:
        return 0.0
    geometric = random_lengths(run.process)
    shares = []
    for sign, term in zip(SIGNS, memory[:2], strict=True):
        at = starts(run, params, sign, lanes=4 * lanes, seed=seed + 2)
        samples = gap(
            run.method, params, at, sign, eta, tau, geometric=geometric, seed=seed
        )  # at b = 1/2: weights of 2
        shares.append(root(square(samples)) / (2 * eta**2 * term.mean) if term.mean > 0 else 0.0)
    return max(shares)


def advise_b(run: Run, m: Moments, tau: int) -> tuple[float, str]:
    b = float(best_b(m))
    why = (
        f"sqrt(A)/(sqrt(A)+sqrt(C)) = {b:.3f} +- {float(m.error(best_b)):.3f} from A = {m.A:.4g}, "
        f"C = {m.C:.4g} at tau = {tau}"
    )
    if run.process.alternates:
        return b, f"{why}; alternating phases have no b to choose: this is what ISD would take"
    here = float(run.process.b)
    return (
        b,
        f"{why}; saves {float(saving(m)):.1%} of the variance at b = 0.5, "
        f"{float(saving(m, here)):.1%} of that at the present {here:g}",
    )


def advise_tau(run: Run, memory: Memory, bias: float) -> tuple[int, str]:
    slow, settle = memory.slowest, memory.transient
    times = (
        f"{memory.positive.autocorrelation:.1f} (+) and {memory.negative.autocorrelation:.1f} (-) "
        "ticks"
    )
    why = f"the gradient's autocorrelation time is {times}"
    if slow * 50 > memory.watched:
        why += f", more than {memory.watched} ticks can resolve, so take this as a lower bound"
    if learns_always(run):
        tau = int(np.ceil(max(settle / bias, slow)))
        return (
            tau,
            f"{why}; the transient bias is at most {settle:.3g}/tau of an update, so tau = {tau} "
            f"keeps it within {bias:.0%}",
        )
    tau = max(1, int(np.ceil(slow * np.log(1 / bias)))) if slow > 1 or settle > 0 else 1
    return (
        tau,
        f"{why}; after log(1/{bias:g}) of these times the last state has forgotten the first to "
        f"about {bias:.0%}",
    )


def advise_eta(
    run: Run, variance: float, feedback: float, tau: int, loss: float, bias: float
) -> tuple[float, str]:
    limits = {
        f"noise, Tr cov = {variance:.4g}, costs at least eta Tr/4 = {loss:g} in loss at this eta": 4
        * loss
        / variance
        if variance > 0
        else np.inf
    }
    if learns_always(run):
        limits[
            f"the feedback bias, {feedback:.3g} eta of an update, reaches {bias:.0%} at this eta"
        ] = bias / feedback if feedback > 0 else np.inf
    why, eta = min(limits.items(), key=lambda item: item[1])
    if not np.isfinite(eta):
        return (
            1 / tau**2,
            "neither noise nor feedback was seen, so this is the remark of Theorem 1, eta = "
            f"1/tau^2 = {1 / tau**2:.2g}",
        )
    if run.optimiser.make is not optax.sgd:
        why += "; that is for plain SGD, an adaptive optimiser rescales it"
    return eta, f"{why}; the remark of Theorem 1, tau = 1/sqrt(eta), gives {1 / tau**2:.2g}"


def regime(run: Run, feedback: float, mixing: float) -> str:
    """Where the present setting lies, seen from the theorem."""
    eta, tau = float(run.optimiser.eta), float(run.process.mean_length)
    if not learns_always(run):
        return (
            "the parameters rest during a phase, so there is no feedback bias and Theorem 1 is not "
            "needed"
        )
    asked = 1 / np.sqrt(eta) if eta > 0 else np.inf
    if tau <= 1.5 * asked:
        return (
            f"tau = {tau:g} with eta = {eta:g} lies inside the regime of Theorem 1's remark, tau = "
            f"1/sqrt(eta) = {asked:.1f}"
        )
    grows = (
        "and has stopped growing with tau"
        if tau > mixing
        else "and still grows with tau, up to the mixing time"
    )
    return (
        f"tau = {tau:g} lies outside the regime of Theorem 1's remark, which asks tau = "
        f"1/sqrt(eta) = {asked:.1f} for eta = {eta:g}: "
        f"its bound eta^2 tau is {eta * tau:.2g} eta; the feedback measured there is "
        f"{feedback * eta:.2%} of an update, "
        f"{grows}"
    )


def random_lengths(process: Process) -> bool:
    """Do the negative phases of this process differ in length? Seen on 1,000 phases of its own."""
    phases = tape(process, jax.random.key(0), 1000)
    ticks = np.asarray(phases.ticks)[np.asarray(phases.sign) < 0]
    return len(ticks) > 0 and bool(np.any(ticks != ticks[0]))
