"""Which initial weights does Forward-Forward want on MNIST? The test images are looked at once, when everything has been chosen.

    python benchmarks/forward_forward_scale.py

The last 10,000 training images are for validation, the first 50,000 for training. The score of a scale is its mean validation error over
both rules, each at the learning rate that suits it best. All scales are screened with 20,000 updates and one seed; the two of lowest score
are trained again with 40,000 and two other seeds. The lower score wins, and with it the best learning rate of either rule. Then networks
are trained on all 60,000 images from three fresh seeds with 120,000 updates.
"""

import numpy as np
import optax

import flexphase as fp
from flexphase.sweep import learning_rates

SCALES, ETAS = (0.03, 0.1, 0.3, 1.0, 2.0), learning_rates(0.002, 0.05, 5)
RULES = {"two-term": fp.cd(1), "ISD": fp.isd(0.5, 1), "ISD, b = 0.3": fp.isd(0.3, 1), "ISD, b = 0.7": fp.isd(0.7, 1)}


def errors(name, scale, etas, train, test, updates, seeds, seed):
    """Per cent, (etas, seeds), on all of `test` at the end."""
    method, paired = fp.ForwardForward((784, 500, 500), scale=scale), name == "two-term"
    source = fp.LabelContrast(*train, paired=paired)
    runs = fp.grid(lambda eta: fp.Run(method, *RULES[name], source, fp.Optimiser(eta, optax.adam)), eta=etas)
    metrics = {"error": fp.ForwardForwardError(*test)}
    record = fp.train(runs, ticks=updates * (2 if paired else 1), seeds=seeds, seed=seed, metrics=metrics, records=1)
    found = np.nan_to_num(100 * record.final().values, nan=100)  # a lane that diverged
    for eta, row in zip(etas, found, strict=True):
        print(f"{name:12s}  scale {scale:<4g}  eta {eta:<7.3g}  {row.mean():6.2f} %  {np.round(row, 2)}", flush=True)
    return found


def validate(scales, updates, seeds, seed):
    """The scales from the lowest score on, each with its score and the best eta of either rule."""
    train, _ = fp.mnist()
    parts = [part[:50_000] for part in train], [part[50_000:] for part in train]
    scored = []
    for scale in scales:
        means = [errors(name, scale, ETAS, *parts, updates, seeds, seed).mean(1) for name in ("two-term", "ISD")]
        scored.append((np.mean([mean.min() for mean in means]), scale, [ETAS[mean.argmin()] for mean in means]))
        print(f"scale {scale:g}: score {scored[-1][0]:.2f} % after {updates:,} updates\n")
    return sorted(scored)


if __name__ == "__main__":
    screened = validate(SCALES, 20_000, 1, 0)
    _, scale, best = validate([scale for _, scale, _ in screened[:2]], 40_000, 2, 10)[0]
    print(f"chosen: scale {scale:g}, two-term at eta {best[0]:.3g}, ISD at eta {best[1]:.3g}; test error:")
    for name, eta in [*((name, 0.01) for name in RULES), ("two-term", best[0]), ("ISD", best[1])]:
        errors(name, scale, [eta], *fp.mnist(), 120_000, 3, 100)
