"""flexphase train helmholtz."""

import argparse
from typing import Any

from .arguments import number
from .common import hidden_units, make_run, zeros_and_ones
from .entries import Input, MethodEntry, Task


def options(group: Any) -> None:
    hidden_units(group, 8)
    group.add_argument(
        "--binarise", type=number, metavar="THRESHOLD", help="pixels above it are on"
    )


def build(args: argparse.Namespace, data: Input) -> Task:
    from ..data import Rows
    from ..methods import HelmholtzMachine
    from ..methods.helmholtz import HelmholtzNLL

    if args.hidden > 16:
        raise ValueError("the NLL is taken by enumerating the hidden units; take 16 or fewer.")
    rows = zeros_and_ones(args, data).images
    method = HelmholtzMachine(rows.shape[1], args.hidden)
    return Task(make_run(args, method, Rows(rows)), {"nll": HelmholtzNLL(rows)})


def asleep(method: Any, key: Any, params: Any, rows: int, steps: int, x: Any, mask: Any) -> Any:
    """Dreams: independent samples of the generative model, which takes one step."""
    import jax
    import jax.numpy as jnp

    if mask is not None and mask.any():
        raise ValueError("a Helmholtz machine dreams from above, so no pixel can be held.")
    _, z = method.init(key)

    def dream(key: Any) -> Any:
        return method.step(key, params, z, z.v, jnp.float32(-1)).v

    return jax.vmap(dream)(jax.random.split(key, rows))


METHOD = MethodEntry(
    name="helmholtz",
    words="Helmholtz machine by wake-sleep",
    label="Helmholtz machine",
    kind="HelmholtzMachine",
    data="bas",
    rule="isd",
    length=1,
    lr=0.1,
    phases=100_000,
    records=20,
    options=options,
    build=build,
    sample=asleep,
    sweeps=0,
)
