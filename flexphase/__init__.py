"""Contrastive learning with flexible phases. The public names are those of `api.py`, found there
when one is first asked for.

Importing JAX takes seconds; `flexphase --help` and worker processes should not.
"""

import os
import platform
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *  # noqa: F403

__version__ = "0.2.0"
EXACT = "--xla_cpu_max_isa=AVX"  # AVX has no fused multiply-add


def exact_lanes() -> bool:
    """Ask JAX for lanes whose bits do not depend on how many there are; call it before JAX starts.

    Depending on the shapes, LLVM rounds a * b + c once (fused) or twice. This adds
    `--xla_cpu_max_isa=AVX` to XLA_FLAGS (AVX has no fused multiply-add), for the whole process, and
    costs up to a third of JAX's speed; compiled engines are exact anyway. The command line and its
    workers call it. An xla_cpu_max_isa that is there already is left alone.

    Returns: will lanes be exact? False on other processors than x86, if JAX has already started
    without the flag, or if XLA_FLAGS has another xla_cpu_max_isa.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    if "xla_cpu_max_isa" in flags:
        return EXACT in flags.split()
    jax = sys.modules.get("jax._src.xla_bridge")
    if jax and jax.backends_are_initialized():
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {EXACT}".strip()
    return True


def __getattr__(name: str) -> Any:
    if name != "__all__" and name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `from . import core` asks here first, while api may be half imported.
    if find_spec(f"{__name__}.{name}"):
        return import_module(f".{name}", __name__)
    api = import_module(".api", __name__)
    globals().update({public: getattr(api, public) for public in api.__all__}, __all__=api.__all__)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
