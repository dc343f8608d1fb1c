"""Progress in a notebook, and how a run shows itself there."""

from flexphase import RBM, Optimiser, Rows, Run, aol, bars_and_stripes
from flexphase.progress import OFTEN, Notebook

RUN = Run(RBM(4, 3), *aol(0.3, 7), Rows(bars_and_stripes(2)), Optimiser(0.0125))


def test_a_notebook_draws_a_bar_with_the_present_metric_and_not_too_often(monkeypatch):
    now, drawn = [100.0], []
    monkeypatch.setattr("flexphase.progress.time.monotonic", lambda: now[0])
    bar = Notebook("<aol>", drawn.append)
    bar.stage("compiling")
    assert drawn == ["<progress></progress> &lt;aol&gt;: compiling"]
    now[0] += 2.0
    bar(500, 1500, {"nll": 123.456})
    assert '<progress max="1500" value="500">' in drawn[-1]
    assert "500 of 1,500 ticks 4 s left nll 123.5" in drawn[-1]  # twice as much is left as is done
    now[0] += OFTEN / 2
    bar(600, 1500, {})
    assert len(drawn) == 2
    bar(1500, 1500, {})  # the end is always drawn
    assert 'value="1500"' in drawn[-1] and "left" not in drawn[-1]


def test_a_run_shows_its_rule_and_its_numbers():
    for shown in (repr(RUN), RUN._repr_html_()):
        for words in ("RBM", "Bernoulli", "0.3", "always_on", "0.0125"):
            assert words in shown
    assert RUN._repr_html_().count("<tr>") == len(RUN)
