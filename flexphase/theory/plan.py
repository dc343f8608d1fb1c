"""Which b, tau and eta should this learner take? Measured at a checkpoint, each with its reason."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from .. import shown
from ..checks import above_zero, count
from ..contract import complete
from ..core import Process, Run
from ..phases import Bernoulli, Homeostatic, Pauses, Stretched, tape
from .coupling import gap
from .frozen import WAIT, learns_always, single, starts
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
        """|sum_t (E g_t - gbar)| over |gbar|, the larger one of both phases.

        Two standard errors are added: what noise hides may be there.
        """
        return max(_relative_transient(self.positive), _relative_transient(self.negative))

    @property
    def slowest(self) -> float:
        """The longest time in which a phase forgets, in ticks: autocorrelation or settling."""
        return max(max(m.autocorrelation, m.settling) for m in self[:2])

    @property
    def resolved(self) -> bool:
        """Was it watched for long enough to know that time?"""
        return 50 * self.slowest <= self.watched


def _relative_transient(m: Mixing) -> float:
    error = m.error.transient if m.error else 0
    return (m.transient + 2 * error) / m.mean if m.mean > 0 else 0.0


class Plan(NamedTuple):
    """Advice, with a sentence for each part of it and what to expect of it."""

    b: float
    tau: int
    eta: float
    reasons: dict[str, str]
    expected: dict[str, float]  # biases relative to one phase's update; the loss per sample
    memory: Memory | None  # None where the theory does not know the estimator
    moments: Moments | None  # at the advised tau

    def __str__(self) -> str:
        head = f"b = {self.b:.3f}, tau = {self.tau}, eta = {self.eta:.2g}"
        why = [f"  {name:8s}{sentence}." for name, sentence in self.reasons.items()]
        rest = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in self.expected.items()]
        return "\n".join([head, *why, f"  expected  {', '.join(rest)}"])

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

    Near a quadratic minimum SGD with unbiased estimates ends eta Tr(cov) / 4 above it,
    whatever the curvature. Where the landscape is not quadratic it costs more (an example is in
    docs/theory.md): eta is a ceiling.

    Args:
        run: of one setting.
        params: of one lane, as the method's `init` gives them.
        loss: what the noise of the updates may cost in the long run, in units of the loss per
            sample (nats for a Boltzmann machine).
        bias: the share of a phase's update that its bias may have.
        lanes: chains that are measured side by side.
        seed: of the measurement.

    Returns: a `Plan`: `b`, `tau` and `eta`, for each a sentence in `reasons`, and in `expected`
    what to expect of them.

    Example: `plan(run, train(run, phases=2000).parameters()).tau`
    """
    complete(run)
    above_zero(loss, "loss")
    above_zero(bias, "bias")
    count(lanes, "lanes")
    memory = watch(run, params, lanes, seed)
    tau, why_tau = advise_tau(run, memory, bias)
    there = run._replace(process=of_length(run.process, tau))
    m = moments_at(there, params, tau, lanes, seed)
    b, why_b = advise_b(run, m, tau)
    here = float(run.process.b)
    taken = here if run.process.alternates else b
    expected = expected_of(run, m, taken)
    now = feedback(run, params, memory, here, lanes, seed)
    then = feedback(there, params, memory, taken, lanes, seed)
    eta, why_eta = advise_eta(run, expected["variance"], then, tau, loss, bias)
    reasons = {
        "b": why_b,
        "tau": why_tau,
        "eta": why_eta,
        "regime": regime(run, now, memory.slowest),
    }
    expected |= {"excess_loss": eta * expected["variance"] / 4, "feedback_bias": then * eta}
    if learns_always(run):
        expected["transient_bias"] = memory.transient / tau
    return Plan(taken, tau, eta, reasons, expected, memory, m)


def moments_at(run: Run, params: Any, tau: float, lanes: int, seed: int) -> Moments:
    """The moments with so many phases of tau ticks as are afforded."""
    phases = max(16, min(400, int(AFFORDED // (lanes * tau))))
    return moments(run, params, phases=phases, lanes=lanes, seed=seed)


def expected_of(run: Run, m: Moments, b: float) -> dict[str, float]:
    """The length of the gradient and the variance of its estimate."""
    variance = float(trace_isd(m, b) if single(run) else trace_two_term(m))
    return {"gradient": float(np.sqrt(max(mean_square(m), 0))), "variance": variance}


def watch(run: Run, params: Any, lanes: int, seed: int) -> Memory:
    """Watch both phases for fifty of the times in which they forget, or for LONGEST ticks."""
    ticks = 256
    while True:
        plus, minus = (
            mixing(run, params, sign, ticks=ticks, lanes=lanes, seed=seed) for sign in SIGNS
        )
        memory = Memory(plus, minus, ticks)
        if ticks >= min(LONGEST, 50 * memory.slowest):
            return memory
        ticks *= 4


def feedback(run: Run, params: Any, memory: Memory, b: float, lanes: int, seed: int) -> float:
    """|feedback bias| per unit of eta, as a share of one phase's update; the larger of both.

    Terms have the weights 1/b and 1/(1-b).
    """
    eta = float(run.optimiser.eta)
    if not learns_always(run) or eta == 0:
        return 0.0
    shares = []
    for sign, term in zip(SIGNS, memory[:2], strict=True):
        at = starts(run, params, sign, lanes=4 * lanes, seed=seed + 2)
        tau, survival = lengths_of(run.process, sign)
        samples = gap(run.method, params, at, sign, eta, tau, b=b, seed=seed, survival=survival)
        update = eta * term.mean / (b if sign > 0 else 1 - b)
        shares.append(root(square(samples)) / (eta * update) if update > 0 else 0.0)
    return max(shares)


def advise_b(run: Run, m: Moments, tau: int) -> tuple[float, str]:
    """The best b for these moments, and why."""
    b = float(best_b(m))
    why = (
        f"sqrt(A)/(sqrt(A)+sqrt(C)) = {b:.3f} +- {float(m.error(best_b)):.3f} "
        f"from A = {m.A:.4g}, C = {m.C:.4g} at tau = {tau}"
    )
    if run.process.alternates:
        return b, f"{why}; alternating phases have no b to choose: this is what ISD would take"
    here = float(run.process.b)
    saved = f"saves {float(saving(m)):.1%} of the variance at b = 0.5"
    return b, f"{why}; {saved}, {float(saving(m, here)):.1%} of that at the present {here:g}"


def advise_tau(run: Run, memory: Memory, bias: float) -> tuple[int, str]:
    """A phase length that keeps the transient bias within `bias`, and why."""
    slow, transient = memory.slowest, memory.transient
    plus, minus = memory[:2]
    why = (
        f"the gradient's autocorrelation time is {plus.autocorrelation:.1f} (+) and "
        f"{minus.autocorrelation:.1f} (-) ticks, and phases settle e-fold in {plus.settling:.1f} "
        f"and {minus.settling:.1f}"
    )
    if not memory.resolved:
        why += f", more than {memory.watched} ticks can resolve, so take this as a lower bound"
    if learns_always(run):
        tau = int(np.ceil(max(transient / bias, slow)))
        most = f"the transient bias is at most {transient:.3g}/tau of an update"
        return tau, f"{why}; {most}, so tau = {tau} keeps it within {bias:.0%}"
    if slow == 1 and transient == 0:
        return 1, f"{why}; the first tick of a phase is as good as any later one"
    tau = max(1, int(np.ceil(slow * np.log(1 / bias))))
    forgotten = f"about {bias:.0%} is left of what the state was at first"
    return tau, f"{why}; after log(1/{bias:g}) of the longest of these times {forgotten}"


def advise_eta(
    run: Run, variance: float, feedback: float, tau: int, loss: float, bias: float
) -> tuple[float, str]:
    """The largest eta within `loss` and `bias`, and which of the two limits it."""
    noise = f"noise, Tr cov = {variance:.4g}, costs at least eta Tr/4 = {loss:g} in loss"
    moving = f"the feedback bias, {feedback:.3g} eta of an update, reaches {bias:.0%}"
    limits = {f"{noise} at this eta": 4 * loss / variance if variance > 0 else np.inf}
    if learns_always(run):
        limits[f"{moving} at this eta"] = bias / feedback if feedback > 0 else np.inf
    why, eta = min(limits.items(), key=lambda item: item[1])
    if not np.isfinite(eta):
        remark = f"the remark of Theorem 1, eta = 1/tau^2 = {1 / tau**2:.2g}"
        return 1 / tau**2, f"neither noise nor feedback was seen, so this is {remark}"
    if run.optimiser.make is not optax.sgd:
        why += "; that is for plain SGD, an adaptive optimiser rescales it"
    return eta, f"{why}; the remark of Theorem 1, tau = 1/sqrt(eta), gives {1 / tau**2:.2g}"


def regime(run: Run, feedback: float, mixing: float) -> str:
    """Does the present setting lie where the remark of Theorem 1 asks for it?"""
    eta, tau = float(run.optimiser.eta), float(run.process.mean_length)
    if not learns_always(run):
        return (
            "the parameters rest during a phase, "
            "so there is no feedback bias and Theorem 1 is not needed"
        )
    asked = 1 / np.sqrt(eta) if eta > 0 else np.inf
    if tau <= 1.5 * asked:
        return (
            f"tau = {tau:g} with eta = {eta:g} lies inside the regime of Theorem 1's remark, "
            f"tau = 1/sqrt(eta) = {asked:.1f}"
        )
    grown = "has stopped growing with tau"
    growing = "still grows with tau, up to the mixing time"
    return (
        f"tau = {tau:g} lies outside the regime of Theorem 1's remark, "
        f"which asks tau = 1/sqrt(eta) = {asked:.1f} for eta = {eta:g}: "
        f"its bound eta^2 tau is {eta * tau:.2g} eta; the feedback measured there is "
        f"{feedback * eta:.2%} of an update, and {grown if tau > mixing else growing}"
    )


def length_of(process: Process) -> float:
    """The tau with which `of_length` gives the same process back: pauses keep their length."""
    if isinstance(process, Pauses):
        return length_of(process.process)
    return float(process.mean_length)


def of_length(process: Process, tau: int) -> Process:
    """The same process with phases of mean length tau; one that does not know how is stretched."""
    own: Any = getattr(process, "with_length", None)
    return own(tau) if callable(own) else Stretched(process, tau)  # type: ignore


def of_share(process: Process, b: float) -> Process | None:
    """The same process with another b, where that is a number of its selection; else None."""
    if not isinstance(getattr(process, "selection", None), (Bernoulli, Homeostatic)):
        return None
    return eqx.tree_at(lambda p: p.selection.b, process, np.float32(b))


def lengths_of(process: Process, sign: float) -> tuple[float, np.ndarray]:
    """The mean length tau of phases of this sign, and P(T >= t) for t = 1, 2, ..., at most LONGEST
    ticks, as WAIT phases of the process show it.
    """
    phases = tape(process, jax.random.key(0), WAIT)
    own = np.asarray(phases.sign) * sign > 0
    if not own.any():
        raise ValueError(
            f"the process shows no phase of sign {sign:g} in {WAIT} phases; choose another b."
        )
    ticks = np.sort(np.asarray(phases.ticks)[own])
    t = np.arange(1, min(int(ticks[-1]), LONGEST) + 1)
    survival = 1 - np.searchsorted(ticks, t) / len(ticks)
    return float(np.asarray(phases.length)[own].mean()), survival
