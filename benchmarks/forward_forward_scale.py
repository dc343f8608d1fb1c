"""Which initial weights does Forward-Forward want on MNIST? Chosen on held-out training images; the
result is in docs/forward_forward.md.

    python benchmarks/forward_forward_scale.py

The last 10,000 training images are for validation, the first 50,000 for training. The score of a
scale is its mean validation error over both rules, each at the learning rate that suits it best.
All scales are screened with 20,000 updates and one seed; the two of lowest score are trained again
with 40,000 updates and two other seeds at the three middle learning rates, and the lower score
wins.
"""

import numpy as np
import optax

import flexphase as fp
from flexphase.sweep import learning_rates

SCALES, ETAS = (0.03, 0.1, 0.3, 1.0, 2.0, 4.0), learning_rates(0.002, 0.05, 5)
RULES = {"two-term": fp.cd(1), "ISD": fp.isd(0.5, 1)}


def errors(rule, scale, etas, updates, seeds, seed):
    """Of each eta, in per cent: the mean over seeds of the error on all validation images at the
    end.
    """
    train, paired = fp.mnist().train, rule == "two-term"
    source = fp.LabelContrast(*(part[:50_000] for part in train), paired=paired)
    method = fp.ForwardForward((784, 500, 500), scale=scale)
    runs = fp.grid(
        lambda eta: fp.Run(method, *RULES[rule], source, fp.Optimiser(eta, optax.adam)), eta=etas
    )
    metrics = {"error": fp.ForwardForwardError(*(part[50_000:] for part in train))}
    record = fp.train(
        runs,
        ticks=updates * (2 if paired else 1),
        seeds=seeds,
        seed=seed,
        metrics=metrics,
        records=1,
    )
    found = np.nan_to_num(
        100 * record.final().values, nan=100
    )  # a lane that diverged has learned nothing
    for eta, row in zip(etas, found, strict=True):
        print(
            f"{rule:8s}  scale {scale:<4g}  eta {eta:<7.3g}  {row.mean():6.2f} %  "
            f"{np.round(row, 2)}",
            flush=True,
        )
    return found.mean(1)


def ranked(scales, *settings):
    """The scales, the lowest score first."""
    scores = {
        scale: np.mean([errors(rule, scale, *settings).min() for rule in RULES]) for scale in scales
    }
    print(
        "scores:", ", ".join(f"{scale:g}: {score:.2f} %" for scale, score in scores.items()), "\n"
    )
    return sorted(scores, key=scores.__getitem__)


if __name__ == "__main__":
    best = ranked(SCALES, ETAS, 20_000, 1, 0)[:2]
    print("chosen:", ranked(best, ETAS[1:4], 40_000, 2, 10)[0])
