"""`flexphase study`: the studies from end to end at toy size, and what they are made of."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
from mnist_files import raw_mnist
from sweeping import Here

from flexphase.cli import main
from flexphase.core import Optimiser, Phase, Run
from flexphase.data import Held, Rows
from flexphase.engines.layered import LayeredEngine
from flexphase.estimators import isd, phase_change
from flexphase.experiments import STUDIES, figure, figures_in, reproduce
from flexphase.experiments.feedback import feedback
from flexphase.experiments.processes import INDEPENDENT, PROCESSES, agrees, process
from flexphase.experiments.separation import PerSign
from flexphase.kernels import MISSING
from flexphase.methods import EquilibriumPropagation
from flexphase.phases import Bernoulli, Fixed, Pairs, Pauses, Phases, tape
from flexphase.report.machine import PLAIN
from flexphase.sweep.cells import chunks
from flexphase.theory.variance import given


def test_the_help_is_made_from_the_descriptions(capsys):
    assert main(["study", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ",".join(STUDIES) in shown
    for experiment in STUDIES.values():
        assert experiment.title in shown


def test_every_study_plans_its_sweeps_at_both_sizes():
    for word in STUDIES:
        for module in map(figure, figures_in(word)):
            assert module.TITLE and (module.PLAIN is None or module.PLAIN[0] in PLAIN)
        for size in ("quick", "full"):
            plan = reproduce.configuration(word, size)
            assert json.loads(json.dumps(plan)) == plan
            own = reproduce.sweeps_of(word, size).values()
            every = [c.name for sweeps in own for s in sweeps.values() for c in chunks(s)]
            assert len(every) == len(set(every))


@pytest.mark.parametrize("name", PROCESSES)
def test_all_processes_have_the_same_share_and_mean_length(name):
    """b = 1/2 and 100 ticks. 20,000 phases: a geometric length has the standard deviation 99.5, so
    the mean has 0.70, and 0.995 where a negative phase copies the positive one (z below 4). Signs
    of the Markov chain have the correlation 1/2 from one to the next, so that the share has a
    standard error of sqrt(3 / (4 n)), the largest of all.
    """
    drawn = tape(process(name), jax.random.key(5), 20_000)
    assert abs(float(drawn.ticks.mean()) - 100) < 4 * 0.995
    assert abs(float((drawn.sign > 0).mean()) - 0.5) < 4 * (3 / (4 * 20_000)) ** 0.5
    assert float(drawn.prob[0]) == 0.5 and float(drawn.length[0]) == 100


def test_agreement_is_decided_by_the_stated_test():
    """Against the mean and sd that were measured independently: the same ones agree, values two sd
    away with the same spread do not (t = 4 for 8 and 8 seeds), and fewer phases decide nothing.
    """
    mean, sd = INDEPENDENT["matched"]
    like = mean + sd * np.array([-1, -1, -1, -1, 1, 1, 1, 1]) * (7 / 8) ** 0.5
    full, quick = ({"phases": n} for n in (100_000, 10_000))
    assert np.std(like, ddof=1) == pytest.approx(sd)
    assert agrees(full, "matched", like).verdict == "pass"
    assert agrees(full, "matched", like + 2 * sd).verdict == "fail"
    assert agrees(quick, "matched", like).verdict == "unclear"


@pytest.mark.parametrize("weighs", [False, True])
def test_an_adam_for_each_sign_is_two_optimisers_side_by_side(weighs):
    """Against optax.adam itself, run once over the positive terms and once over the negative ones;
    the steps of a sign of probability 1/4 are twice as long where they are weighted.
    """
    signs = [1, 1, -1, 1, -1, -1, 0, 1, -1]
    terms = jax.random.normal(jax.random.key(0), (len(signs), 3))
    estimator, sgd = PerSign(weighs), optax.sgd(0.1)
    memory, theta = estimator.init(jnp.zeros(3)), jnp.zeros(3)
    moved = {1: jnp.zeros(3), -1: jnp.zeros(3)}
    for sign, term in zip(signs, terms, strict=True):
        prob = jnp.float32(0.25 if sign > 0 else 0.75)
        phase = Phase(jnp.float32(sign), prob, jnp.float32(1), jnp.int32(1), jnp.int32(1))
        step, apply, memory = estimator.update(phase, term, memory)
        if bool(apply):
            change, _ = sgd.update(step, sgd.init(theta))
            moved[sign] = jnp.add(moved[sign], change)  # type: ignore[arg-type]
    for sign, prob in ((1, 0.25), (-1, 0.75)):
        adam, want = optax.adam(0.1), jnp.zeros(3)
        state = adam.init(want)
        for mine, term in zip(signs, terms, strict=True):
            if mine == sign:
                change, state = adam.update(sign * term, state)
                want = jnp.add(want, change)  # type: ignore[arg-type]
        factor = 0.5 / prob if weighs else 1
        np.testing.assert_allclose(moved[sign], factor * want, rtol=1e-5)


def kept(path):
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dataset.load()


@pytest.mark.slow
def test_processes_from_end_to_end(monkeypatch, tmp_path, capsys):
    toy = {"phases": 40, "seeds": 3, "kappas": [1.0, 5.0]}
    monkeypatch.setitem(figure("processes").SIZES, "quick", toy)
    monkeypatch.setattr("flexphase.sweep.Local", Here)
    assert main(["study", "processes", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "run" / "report.html")
    text = (tmp_path / "run" / "report.html").read_text()
    assert "flexphase study processes --quick --out" in text and "homeostatic" in text
    dataset = kept(tmp_path / "run" / "processes.nc")
    assert dataset["averaged.nll"].shape[:2] == (len(PROCESSES) + 1, 3)
    assert len(json.loads(dataset.attrs["claims"])) == len(INDEPENDENT) + 2


def test_every_rule_for_equilibrium_propagation_is_compiled_and_has_the_same_ticks(monkeypatch):
    """Two phases of T ticks for each stimulus, on the compiled engine wherever there is one."""
    study = figure("equilibrium")
    some = np.random.default_rng(0).random((20, 784), np.float32), np.eye(10, dtype=np.float32)
    toy = (some[0], np.tile(some[1], (2, 1)), some[0], np.arange(20) % 10)
    monkeypatch.setattr(study, "images", lambda norm: toy)
    study.rows.cache_clear()
    for name in study.RULES:
        run = study.build(name, 0.1, 5)
        assert float(run.process.mean_length) == study.RULES[name].T
        assert MISSING or LayeredEngine(1).refuses(run) is None
    study.rows.cache_clear()


def test_feedback_is_none_at_the_end_and_of_first_order_between_phases():
    """What is learned after a phase cannot move its states, to rounding; an update between phases
    moves them by an amount that is linear in a small eta. The contrast is that of the frozen copy.
    """
    rng = np.random.default_rng(0)
    source = Rows((rng.random((6, 4), np.float32), np.eye(3, dtype=np.float32)[np.arange(6) % 3]))
    method = EquilibriumPropagation((4, 5, 3), centred=True)
    params, _ = method.init(jax.random.key(1))
    settled = Run(
        method,
        Pauses(Phases(Bernoulli(0.5), Fixed(5)), 5),
        phase_change,
        Held(source, phases=2),
        Optimiser(0.1),
    )
    pairs = settled._replace(process=Phases(Pairs(), Fixed(5)), estimator=isd)
    rest = feedback(settled, params)
    assert rest.moved == pytest.approx(0, abs=1e-6) and rest.contrast > 0.01
    small, large = (
        feedback(pairs._replace(optimiser=Optimiser(eta)), params) for eta in (0.001, 0.002)
    )
    assert small.contrast == large.contrast > 0
    assert large.moved == pytest.approx(2 * small.moved, rel=0.05)


@pytest.mark.slow
def test_slow_from_end_to_end(monkeypatch, tmp_path):
    """Four rules: three claims of each on Bars and Stripes and one of their ranking; on MNIST three
    of each, those about samples among them, and one of their spread.
    """
    raw_mnist()
    toys = {
        "slow": {"phases": [10, 40], "rates": 2, "seeds": 3},
        "slow_mnist": {"phases": 4, "rates": 2, "seeds": 2, "shown": 100, "each": 2},
    }
    for name, toy in toys.items():
        monkeypatch.setitem(figure(name).SIZES, "quick", toy)
    monkeypatch.setattr("flexphase.sweep.Local", Here)
    assert main(["study", "slow", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    for name in toys:
        assert len(json.loads(kept(tmp_path / "run" / f"{name}.nc").attrs["claims"])) == 13
    report = (tmp_path / "run" / "report.html").read_text()
    assert "more samples of the slow weights show their label" in report


@pytest.mark.parametrize(("left", "verdict"), [(0.4, "pass"), (0.6, "fail"), (0.5, "unclear")])
def test_half_of_a_gap_varies_as_the_gap_does(left, verdict):
    """Slow weights leave a fixed share of a gap that is 1 to 8 nats in 8 seeds, up to a noise of
    0.1: paired, 0.4 and 0.5 are far apart; against half of the mean gap they are not.
    """
    gap, noise = np.arange(1.0, 9.0), 0.1 * np.resize([1, -1, -1, 1], 8)
    zero = np.zeros((1, 8))
    aol = {"last iterate": gap[None], "slow weights": (left * gap + noise)[None]}
    full = {"AoL": aol, "CD-100": {"last iterate": zero, "slow weights": zero}}
    assert figure("slow").ranking(full).verdict == verdict


@pytest.mark.parametrize(
    ("gains", "verdict"), [((5, 5), "unclear"), ((0, 9), "pass"), ((-9, -20), "fail")]
)
def test_what_helps_everywhere_mends_no_separation(gains, verdict):
    """Errors of 20 and 40 at the shortest and the longest block, and what is gained there."""
    noise = np.array([[0.3, -0.2, 0.1, -0.2], [-0.1, 0.2, 0.1, -0.2]])
    before = [20 + noise[0], 40 + noise[1]]
    after = [20 - gains[0] + noise[1], 40 - gains[1] + noise[0]]
    claim = figure("separation").mends("", (1, 128), before, after)
    assert claim.verdict == verdict
    assert f"{(gains[1] - gains[0]) / 20:.0%} of the loss" in claim.measured


def test_slow_weights_are_read_at_the_rate_that_suits_them():
    """The last iterate errs least at the first rate, slow weights at the second: samples are drawn
    there, and the claims compare those errors.
    """
    study = figure("slow_mnist")
    ends = {"last iterate": np.array([[1.0, 2.0], [9.0, 9.5]])}
    ends["slow weights"] = np.array([[3.0, 3.1], [0.1, 0.2]])
    rates = [0.001, 0.01]
    shown = {"last iterate": np.array([20.0, 22.0]), "slow weights": np.array([80.0, 82.0])}
    two = [{name: each for name in ("ISD", "AoL")} for each in (ends, shown)]
    larger, better, labels, *_, spread = study.claims(*two, rates)
    assert larger.measured.startswith("0.01 against 0.001") and larger.verdict == "pass"
    assert "last iterate 1.5 ± 0.71 (median 1.5, n = 2), slow weights 0.15" in better.measured
    assert labels.verdict == "pass" and spread.verdict == "unclear"  # twice the same rule


@pytest.mark.slow
def test_equilibrium_from_end_to_end(monkeypatch, tmp_path):
    raw_mnist()
    toy = {"hidden": 8, "pairs": 30, "seeds": 2, "shown": 100, "moments": 4}
    toy |= {"window": 2}
    monkeypatch.setitem(figure("equilibrium").SIZES, "quick", toy)
    assert main(["study", "equilibrium", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    dataset = kept(tmp_path / "run" / "equilibrium.nc")
    assert dataset["averaged.final.error"].shape == (33, 2)
    assert len(json.loads(dataset.attrs["claims"])) == 12


@pytest.mark.slow
def test_separation_from_end_to_end(monkeypatch, tmp_path):
    raw_mnist()
    toy = {"units": 8, "updates": 201, "seeds": 2, "blocks": [1.0, 128.0], "unequal": [1.0, 2.0]}
    toy |= {"etas": [0.003, 0.01], "records": 3, "shown": 100}
    monkeypatch.setitem(figure("separation").SIZES, "quick", toy)
    assert main(["study", "separation", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    dataset = kept(tmp_path / "run" / "separation.nc")
    assert dataset["averaged.final.error"].shape == (14, 2)
    assert len(json.loads(dataset.attrs["claims"])) == 7


@pytest.mark.slow
def test_the_family_from_end_to_end(monkeypatch, tmp_path):
    """Two methods at toy size and two rules of each; one has no negative term."""
    module = figure("family")
    left_out = {("helmholtz", rule) for rule in ("aol", "aol-random", "pairs")}
    left_out |= {("predictive", rule) for rule in ("two-term", "aol-random", "pairs")}
    monkeypatch.setattr(module, "REFUSED", left_out)
    few = ["helmholtz", "predictive"]
    toy = {"share": 0.002, "seeds": 2, "rates": [0.1, 1.0], "moments": 8, "methods": few}
    monkeypatch.setitem(module.SIZES, "quick", toy)
    monkeypatch.setattr("flexphase.sweep.Local", Here)
    assert main(["study", "family", "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    dataset = kept(tmp_path / "run" / "family.nc")
    claims = json.loads(dataset.attrs["claims"])
    assert len(claims) == 2
    text = (tmp_path / "run" / "report.html").read_text()
    assert "untrained" in text and "learns at least 80 %" in text


def test_the_words_of_the_family_are_those_of_the_command_line():
    """Every rule of every method builds; phases have the stated lengths; pairs hold a stimulus for
    both of their phases.
    """
    family = figure("family")
    for name, setting in family.SETTINGS.items():
        for rule in family.rules_of(name):
            run = family.build(name, rule, 0.01)
            length = setting.T if rule in ("two-term", "isd") else setting.on
            assert float(run.process.mean_length) == length
            assert float(run.optimiser.eta) == pytest.approx(0.01)
            if rule == "pairs":
                assert float(run.source.every) == 2 * length and run.source.clock == "ticks"


def test_why_a_rule_fails_is_decided_by_isd():
    """ISD adds variance and nothing else: where it fails, variance is the reason; where it does not
    and always-on learning does, learning on the way to rest is.
    """
    family = figure("family")
    m = given(1.0, 1.0, [1.0], [1.0], 0.9)

    def scores(isd, aol):
        values = {"two-term": 0.1, "isd": isd, "aol": aol}
        own = {r: family.Score(np.array([v, v + 0.001]), 0.1) for r, v in values.items()}
        return {False: {"rbm": own}, True: {"rbm": own}}

    noisy, biased = scores(0.8, 0.8), scores(0.1, 0.8)
    assert family.works("rbm", "isd", biased, 1.0, m).verdict == "pass"
    assert "; variance: " in family.works("rbm", "aol", noisy, 1.0, m).measured
    found = family.works("rbm", "aol", biased, 1.0, m)
    assert found.verdict == "fail" and "on the way to rest" in found.measured
