"""Progress in a notebook, and how a run shows itself there."""

import errno
import io
import sys

from flexphase import RBM, Optimiser, Rows, Run, aol, bars_and_stripes, train
from flexphase.cli.common import status
from flexphase.cli.train import Stoppable
from flexphase.progress import OFTEN, Notebook, display
from flexphase.report.display import Display
from flexphase.sweep import Sweep
from flexphase.sweep.cells import chunks

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


class Shell:
    """What IPython has in a Jupyter kernel."""

    def __init__(self):
        self.config, self.drawn = {"IPKernelApp": {}}, []

    def get_ipython(self):
        return self

    def HTML(self, text):
        return text

    def display(self, text, display_id):
        return self

    def update(self, text):
        self.drawn.append(text)


def test_training_draws_in_the_cell_of_a_notebook(monkeypatch):
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell)
    train(RUN, ticks=14, records=1, engine="jax", progress=True)
    for words in ("RBM: compiling the start of 1 lane", "RBM: building the loop of the jax engine"):
        assert any(words in drawn for drawn in shell.drawn)
    assert "14 of 14 ticks" in shell.drawn[-1] or "metrics at the end" in shell.drawn[-1]


def test_a_display_of_ones_own_is_told_what_is_compiled():
    """The command line's bar is one, too: it can be stopped at every step."""
    told, done = [], []

    class Told:
        def stage(self, words):
            told.append(words)

        def __call__(self, ticks, total, latest):
            done.append((ticks, total))

    train(RUN, ticks=14, records=1, engine="jax", progress=Stoppable(Told()))
    assert told[0] == "compiling the start of 1 lane" and len(told) >= 3
    assert done[-1] == (14, 14)


class Gone(io.StringIO):
    """A terminal that goes away after its first lines."""

    def __init__(self):
        super().__init__()
        self.gone = False

    def isatty(self):
        return True

    def write(self, text):
        if self.gone:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)

    def flush(self):
        if self.gone:
            raise OSError(errno.EIO, "Input/output error")


def test_a_run_goes_on_where_its_terminal_goes_away(monkeypatch):
    """The bar's end raised, and what had been trained was lost."""
    terminal = Gone()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with display(True, "aol") as bar:
        bar.stage("compiling")
        bar(1, 2, {"nll": 1.0})
        assert "aol" in terminal.getvalue()
        terminal.gone = True
        bar(2, 2, {"nll": 1.0})


def test_other_words_and_bars_go_on_too(monkeypatch):
    terminal = Gone()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    every = chunks(Sweep("some", "m:build", "m:metrics", [{"ticks": 5}], 1))
    with status("starting"), Display({"some": "fig"}, every, [], {}) as shown:
        assert "starting" in terminal.getvalue()
        terminal.gone = True
        shown.watch({}, every[0].name)


def test_a_run_shows_its_rule_and_its_numbers():
    for shown in (repr(RUN), RUN._repr_html_()):
        for words in ("RBM", "Bernoulli", "0.3", "always_on", "0.0125"):
            assert words in shown
    assert RUN._repr_html_().count("<tr>") == len(RUN)
