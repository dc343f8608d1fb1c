"""Contrastive learning with flexible phases. The public names are those of `api.py`, found there
when one is first asked for.

Importing JAX takes seconds; `flexphase --help` and worker processes should not.
"""

import os
import platform
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *  # noqa: F403

__version__ = "0.1.0"

# A lane's bits must not depend on how many lanes there are, but LLVM fuses a * b + c into one
# rounding, or not, as the shapes have it. So JAX is told, before it starts, to do without fused
# multiply-add (AVX has none); that costs up to a third of its speed. Name an xla_cpu_max_isa in
# XLA_FLAGS to decide yourself.
if platform.machine() in ("x86_64", "AMD64") and "xla_cpu_max_isa" not in os.environ.get(
    "XLA_FLAGS", ""
):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=AVX".strip()


def __getattr__(name: str) -> Any:
    if name != "__all__" and name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec(
        f"{__name__}.{name}"
    ):  # `from . import core` asks here first, while api may be half imported
        return import_module(f".{name}", __name__)
    api = import_module(".api", __name__)
    globals().update({public: getattr(api, public) for public in api.__all__}, __all__=api.__all__)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
