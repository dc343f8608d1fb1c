"""The JAX engine on two devices gives the numbers of one: lanes are divided among them.

The devices are virtual ones of the CPU, and their number is fixed when JAX starts: hence a process
of its own.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import flexphase
from flexphase import NLL, RBM, Optimiser, Rows, Run, aol, bars_and_stripes, grid, train

CHILD = """
import json, sys
import jax
from test_sharding import trained, where_lanes_are
print(json.dumps({"devices": len(jax.devices()), "lanes": where_lanes_are(), "nll": trained()}))
"""


def runs():
    data = bars_and_stripes(3)
    return grid(lambda b: Run(RBM(9, 5), *aol(b, 5), Rows(data), Optimiser(0.02)), b=[0.4, 0.6]), {
        "nll": NLL(data)
    }


def trained():
    """Curves of 2 settings x 2 seeds, and of 3 seeds, which two devices cannot share evenly."""
    lanes, metrics = runs()
    even = train(lanes, ticks=60, seeds=2, metrics=metrics, records=3, engine="jax", average=0.5)
    odd = train(lanes.runs[0], ticks=60, seeds=3, metrics=metrics, records=3, engine="jax")
    return [even["nll"].values.tolist(), odd["nll"].values.tolist()]


def where_lanes_are():
    """Which lanes of the weights each device holds after some ticks."""
    from flexphase.engines.jax import JaxEngine
    from flexphase.lanes import lanes

    every, engine = lanes(runs()[0], 2, 0), JaxEngine()
    state = engine.advance(every, engine.start(every), 10, lambda n: None)
    shards = state.params.W.addressable_shards
    return [list(shard.index[0].indices(len(every.keys))[:2]) for shard in shards]


def test_two_devices_give_the_numbers_of_one(monkeypatch):
    if not flexphase.exact_lanes():
        pytest.skip("lanes agree to rounding only on this processor")
    flags = "--xla_force_host_platform_device_count=2 --xla_cpu_max_isa=AVX"
    env = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.path.dirname(__file__)}
    child = [sys.executable, "-c", CHILD]
    done = subprocess.run(child, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["devices"] == 2
    assert said["lanes"] == [[0, 2], [2, 4]]
    for ours, theirs in zip(trained(), said["nll"], strict=True):
        np.testing.assert_array_equal(np.array(ours), np.array(theirs))
