"""Does an installed flexphase train? Run in the environment that is to be checked.

    python tools/check_install.py           # whatever engine there is
    python tools/check_install.py native    # the compiled engine must be there

It trains the README's RBM for a few phases and refuses a result that has not learned. The numbers
to compare with are exact: an untrained machine scores 355 nats, a perfect one 108.
"""

import sys

import flexphase as fp
from flexphase import live


def main() -> None:
    data = fp.bars_and_stripes(4)
    method = fp.RBM(16, 16, visible_bias=False)
    run = fp.Run(method, *fp.aol(b=0.5, T=20), fp.Rows(data), fp.Optimiser(0.01))
    record = fp.train(run, phases=10_000, seeds=4, metrics={"nll": fp.NLL(data)}, records=2)
    engine, nll = record.attrs["engine"], float(record.final().mean())
    print(f"flexphase {fp.__version__}, {engine} engine: {nll:.0f} nats ({fp.__file__})")
    if sys.argv[1:] and engine != sys.argv[1]:
        sys.exit(f"the {sys.argv[1]} engine was asked for, and the {engine} engine was used.")
    if "uPlot" not in live.page():
        sys.exit("the live page has lost its parts.")
    if not 108 < nll < 300:
        sys.exit("it has not learned.")


if __name__ == "__main__":
    main()
