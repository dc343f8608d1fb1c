"""`--device`, `flexphase ledger` and `flexphase study` as a user types them."""

import json

import numpy as np
import pytest

from flexphase import Record, kernels
from flexphase.catalogue import METHODS, devices
from flexphase.cli import main
from flexphase.cli.options import options_of
from flexphase.cli.train import task_of
from flexphase.experiments import STUDIES, figure, figures_in
from flexphase.hardware.device import Device
from flexphase.hardware.on_device import OnDevice
from flexphase.hardware.presets import PRESETS

SMALL = ["train", "rbm", "--data", "bas:2", "--hidden", "3", "--length", "3"]
SMALL += ["--records", "1", "--phases", "40"]


def test_words_are_the_fields_of_a_device():
    """Every field of `Device` has its word, and the words of a preset can be changed."""
    assert {*devices.SYNAPSE} == {*Device.__dataclass_fields__}
    synapse, unit = devices.read("bits=8,range=4,rounding=stochastic,read_noise=0.1")
    assert synapse == {"bits": 8, "range": 4, "rounding": "stochastic"}
    assert unit == {"read_noise": 0.1}
    rram, _ = devices.read("rram,range=2,spread=0")
    assert (rram["range"], rram["spread"], rram["nonlinearity"]) == (2, 0, 1)
    assert rram["pulse"] == pytest.approx(0.004)
    for name in PRESETS:
        Device(**devices.read(name)[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bits=0,range=4", "bits of a device: '0' is not at least 1"),
        ("bits=1,range=4", "bits, of which one is the sign, must be at least 2"),
        ("bits=8,range=0", "range of a device, its largest weight, must be above 0"),
        ("bits=8", "bits of a device need a range"),
        ("noise=-1", "write noise of a device must be at least 0, not -1.0"),
        ("bit=8,range=4", "a device has no 'bit'; its words are bits, range"),
        ("bit=8,range=4", "did you mean bits?"),
        ("memristor", "there is no device 'memristor'; choose from ideal, digital8"),
        ("rrram", "did you mean rram?"),
        ("range=wide", "range of a device: 'wide' is not a number"),
        ("range", "there is no device 'range'"),
        ("bits=8,range", "give range one number, as in range=4"),
        ("range=4,range=5", "give range one number"),
        ("noise=nan", "noise of a device: 'nan' is not a finite number"),
        ("range=inf,bits=8", "range of a device: 'inf' is not a finite number"),
        ("rounding=up", "rounding must be nearest or stochastic, not 'up'"),
        ("", "there is no device ''"),
        ("activity_bits=2", "are 0 or 1, which is one bit already"),
    ],
)
def test_bad_words_are_one_sentence(text, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--device", text]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err
    assert not list(tmp_path.iterdir())


def trained(tmp_path, name, *words):
    folder = tmp_path / name
    assert main([*SMALL, "--out", str(folder), *words]) == 0
    return folder


def test_training_on_a_device_and_its_ledger(tmp_path, capsys):
    """The record says what the device was, the weights are on its levels, and the ledger of two
    rules stands side by side.
    """
    device = "bits=4,range=2,rounding=stochastic"
    aol = trained(tmp_path, "aol", "--rule", "aol", "--device", device, "--lr", "0.3")
    record = Record.load(aol / "record.nc")
    assert record.attrs["engine"] == ("jax" if kernels.MISSING else "native")
    levels = record.params["W"] * 7 / 2
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-5)
    assert record.run().optimiser.device.rounding == "stochastic"
    assert device in record.attrs["label"]
    cd = trained(tmp_path, "cd", "--rule", "cd")
    capsys.readouterr()
    figure = tmp_path / "ledger.png"
    words = ["--json", "--costs", "read=1e-12,write=1e-11", "--phases", "4", "--out", str(figure)]
    assert main(["ledger", str(aol), str(cd), *words]) == 0
    out, err = capsys.readouterr()
    one, two = json.loads(out)["runs"]
    assert figure.exists() and "learning is switched on and off" in err
    assert one["signals"]["random_writes"] and not two["signals"]["random_writes"]
    assert [s["what"] for s in two["stores"]][2:] == ["memory of TwoTerm"]
    assert one["energy"]["update"] == pytest.approx(one["energy"]["tick"])
    ticks, each = two["counts"]["ticks"], two["energy"]
    assert two["counts"]["updates"] == ticks // 6  # one after 3 + 3 ticks
    assert each["update"] * (ticks // 6) == pytest.approx(ticks * each["tick"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "no record"),
        (["nowhere", "--costs", "red=1"], "did you mean read?"),
        (["nowhere", "--costs", "read=-1"], "must not be negative"),
    ],
)
def test_a_bad_ledger_is_one_sentence(words, says, capsys):
    assert main(["ledger", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_device(name):
    task = task_of(options_of(name, {"device": "digital8,range=2"}))
    assert isinstance(task.run.optimiser, OnDevice) and task.run.optimiser.device.bits == 8


def test_studies_are_listed_and_have_the_form_of_figures(capsys):
    assert main(["study", "hardwear"]) == 2
    assert "did you mean hardware?" in capsys.readouterr().err
    for name in STUDIES:
        for module in figures_in(name):
            study = figure(module)
            for size in ("quick", "full"):
                sweeps = study.sweeps(study.SIZES[size])
                assert study.TITLE and all(sweep.cells for sweep in sweeps.values())
