"""Strict: a broadcast between arrays of different rank raises, and every warning too
(pyproject.toml). Numbers are float32.

Properties are tried on the same examples in every run, and not timed: neither chance nor a busy
machine decides about a test.
"""

import contextlib
import os
import platform
from pathlib import Path

from hypothesis import HealthCheck, settings

# Most of the suite's time goes into compiling. All processes of a run share what was compiled, and
# the next run finds it; programs are found by their content, and each machine has its own. A
# checkout that cannot be written to compiles anew.
with contextlib.suppress(OSError):
    compiled = Path(__file__).parent.parent / "build" / "jax" / platform.node()
    compiled.mkdir(parents=True, exist_ok=True)
    if os.access(compiled, os.W_OK):
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(compiled))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import flexphase

flexphase.exact_lanes()
import jax  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile(
    "flexphase",
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("flexphase")


def pytest_configure(config):
    """Most programs of tests run for moments: with little optimisation they are compiled in half
    of the time. Processes that tests start, and `-m codegen`, compile as a user's program does.
    """
    if config.option.markexpr == "codegen":
        return
    quick = ["--xla_backend_optimization_level=1"]
    if jax.__version_info__ >= (0, 7):
        quick += ["--xla_cpu_use_fusion_emitters=false"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", " ".join([os.environ.get("XLA_FLAGS", ""), *quick]))
        jax.devices()  # reads the flags


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Thousands of programs in one process exhaust its memory maps (65,530 on Linux), and XLA then
    crashes; well below that, modules share what was traced.
    """
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or len(maps.read_bytes().splitlines()) > 6_000:
        jax.clear_caches()


def z_score(estimate, exact, error):
    """How many standard errors an estimate is off."""
    return abs(estimate - exact) / error
