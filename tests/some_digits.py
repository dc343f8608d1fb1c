"""Handwritten digits for networks that learn from pairs: 1400 to train on, the rest to ask."""

import numpy as np
from on_jax import train

from flexphase.data import digits
from flexphase.methods import Accuracy


def parts():
    """(images, labels) to train on, and those that are asked."""
    images, labels = digits()
    order = np.random.default_rng(0).permutation(len(images))
    return tuple((images[few], labels[few]) for few in (order[:1400], order[1400:]))


def pairs():
    """Images to train on, and their one-hot labels."""
    images, labels = parts()[0]
    return images, np.eye(10, dtype=np.float32)[labels]


def learned(run, phases):
    """The record of two networks that reach 0.8 on images that were not trained on; chance is
    0.1.
    """
    metrics = {"accuracy": Accuracy(run.method, *parts()[1])}
    record = train(run, phases=phases, seeds=2, records=2, metrics=metrics)
    assert (record["accuracy"].isel(record=0) < 0.4).all()
    assert (record.final("accuracy") > 0.8).all()
    return record
