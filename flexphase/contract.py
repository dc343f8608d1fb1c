"""The parts of a run are checked against each other before a tick is run.

Everything here is traced, never computed (`jax.eval_shape`): it takes milliseconds, whatever the
size of the network.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unicodedata import category

import jax
import jax.numpy as jnp
import numpy as np

from .core import Observer, Phase, Run, declares, init
from .lanes import Grid
from .record_schema import UNFIT

PARTS = {
    "method": ("check", "init", "enter", "step", "grad"),
    "process": ("init", "step"),
    "estimator": ("check", "init", "update"),
    "source": ("init", "__call__"),
    "optimiser": ("init", "update", "hold"),
}
VALUES = {
    "process": ("alternates", "b", "mean_length"),  # with_length is for the planner alone
    "source": ("stimuli",),
    "optimiser": ("eta", "make"),
}
OBSERVER = ("init", "see", "result")
#: Words of JAX and Python for arguments that a function cannot take.
MISFITS = (
    "positional argument",
    "must be arrays",
    "to have the same shape",
    "incompatible shapes",
    "Incompatible shapes",
)


def runs_of(given: Any) -> list[Run]:
    """The runs to train, one or those of a grid."""
    if isinstance(given, Grid):
        return list(given.runs)
    if not isinstance(given, Run):
        raise ValueError(
            f"train needs a run, not {what_is(given)}: write "
            "train(Run(method, process, estimator, source, optimiser), ...)."
        )
    return [given]


def check(given: Run | Grid) -> None:
    """Refuse parts that are incomplete or do not fit each other, in one sentence.

    Args:
        given: a run, or a grid of runs, whose shapes are all those of the first.
    """
    runs, checked = runs_of(given), []
    for run in runs:
        if not isinstance(run, Run):
            raise ValueError(f"a grid holds runs, not {what_is(run)}: return Run(...) from it.")
        complete(run)
        check_numbers(run)
        run.estimator.check(run.process)
        check_graded(run)
        if not any(run.source is source and run.method == method for source, method in checked):
            run.method.check(run.source.stimuli)
            checked.append((run.source, run.method))
    shapes(runs[0])


def check_numbers(run: Run) -> None:
    """A run has one learning rate, one b and one mean length; several are a grid."""
    numbers = {
        "eta": run.optimiser.eta,
        "b": run.process.b,
        "the length of a phase": run.process.mean_length,
    }
    for name, value in numbers.items():
        if jnp.ndim(value):
            raise ValueError(
                f"{name} is an array of shape {jnp.shape(value)}, and a run has one number; use "
                "grid for several: grid(lambda b: Run(...), b=[0.3, 0.5])."
            )


def check_graded(run: Run) -> None:
    """Signs between -1 and 1 need a method that can follow, and stimuli with their own clock."""
    if not declares(run.process, "graded"):
        return
    process, method = type(run.process).__name__, type(run.method).__name__
    if not declares(run.method, "graded"):
        raise ValueError(
            f"the signs of {process} are amplitudes between -1 and 1, and {method} knows phases "
            "of sign +1, -1 and 0 only; EquilibriumPropagation can follow, or a method that "
            "declares graded = True."
        )
    if not declares(run.source, "clocked"):
        raise ValueError(
            f"every tick is a phase of its own for {process}, so the source would show a new "
            "stimulus at each; hold it: Held(source, ticks=...)."
        )


def complete(run: Run) -> None:
    """Every part has what its protocol asks for."""
    if not isinstance(run, Run):
        raise ValueError(f"a run is needed, not {what_is(run)}.")
    for part in PARTS:
        complete_part(part, getattr(run, part))


def complete_part(part: str, thing: Any) -> None:
    """The part of that name has what its protocol asks for."""
    names = PARTS[part]
    if isinstance(thing, type):
        raise ValueError(
            f"the {part} is the class {thing.__name__} itself; make one: {thing.__name__}(...)."
        )
    if missing := [name for name in names if not callable(getattr(thing, name, None))]:
        if part == "optimiser":
            raise ValueError(
                f"the optimiser is {what_is(thing)}; write Optimiser(eta), or "
                "Optimiser(eta, optax.adam)."
            )
        raise ValueError(
            f"the {part} {what_is(thing)} has no function {missing[0]!r}; a {part} needs "
            f"{', '.join(names)}."
        )
    for name in VALUES.get(part, ()):
        try:
            getattr(thing, name)
        except AttributeError:
            raise ValueError(
                f"the {part} {what_is(thing)} has no {name!r}; a {part} needs "
                f"{', '.join(VALUES[part])}."
            ) from None


def shapes(run: Run) -> None:
    """What the parts return has the shapes and types that the next one takes."""
    method, source, process = (
        type(part).__name__ for part in (run.method, run.source, run.process)
    )
    key = jax.random.key(0)
    sign, n = jnp.float32(1), jnp.int32(0)

    params, z = pair(
        f"{method}.init", "(params, z)", traced(f"{method}.init", run.method.init, key)
    )
    real(f"the parameters of {method}.init", params)
    x = traced(f"{source}.init", run.source.init, key)
    again = traced(f"{source}.__call__", run.source.__call__, key, sign, x)
    same(f"{source}.__call__", again, x, "the stimulus that init returns")

    state = traced(f"{process}.init", run.process.init, key)
    drawn = traced(f"{process}.step", run.process.step, key, n, state)
    phase, moved = pair(f"{process}.step", "(Phase, state)", drawn)
    if not isinstance(phase, Phase) or any(leaf.shape for leaf in phase):
        raise ValueError(
            f"{process}.step must return (Phase(sign, prob, length, ticks, left), state) with one "
            "number in each field of the phase."
        )
    same(f"{process}.step", moved, state, "the state that init returns")
    if declares(run.source, "clocked"):
        ask = run.source.at  # type: ignore[attr-defined]
        held = traced(f"{source}.at", ask, key, phase, n, n, x)
        same(f"{source}.at", held, x, "the stimulus that init returns")

    for name in ("enter", "step"):
        function = getattr(run.method, name)
        moved = traced(f"{method}.{name}", function, key, params, z, x, sign)
        same(f"{method}.{name}", moved, z, "the state z that init returns")
    g = traced(f"{method}.grad", run.method.grad, params, z, x, sign)
    same(f"{method}.grad", g, params, "the parameters")

    estimator = type(run.estimator).__name__
    memory = traced(f"{estimator}.init", run.estimator.init, params)
    made = traced(f"{estimator}.update", run.estimator.update, phase, g, memory)
    if not isinstance(made, tuple) or len(made) != 3:
        raise ValueError(f"{estimator}.update must return (step, apply, memory).")
    same(f"the step of {estimator}.update", made[0], params, "the parameters")
    if jax.tree.structure(made[1]).num_leaves != 1 or jnp.shape(made[1]) != ():
        raise ValueError(f"{estimator}.update must say with one boolean whether a step is taken.")
    same(f"the memory of {estimator}.update", made[2], memory, "what init returns")


def check_observers(observers: Any, run: Run) -> dict[str, Observer]:
    """Observers by name, each of which carries the same thing along at every tick, and returns
    what a record can hold.
    """
    if observers is None:
        return {}
    if not isinstance(observers, Mapping):
        raise ValueError("observers must be a dict, such as {'trace': Trace(200)}.")
    for name, observer in observers.items():
        if missing := [f for f in OBSERVER if not callable(getattr(observer, f, None))]:
            raise ValueError(
                f"the observer {name!r} ({type(observer).__name__}) has no function "
                f"{missing[0]!r}; an observer needs {', '.join(OBSERVER)}."
            )
    state = jax.eval_shape(lambda key: init(run, key), jax.random.key(0))
    kinds = {name: type(observer).__name__ for name, observer in observers.items()}
    carried = {
        name: traced(f"{kinds[name]}.init", observer.init, state)
        for name, observer in observers.items()
    }
    state = state._replace(seen=carried)  # as observers see it in the loop
    names = []
    for name, observer in observers.items():
        kind = kinds[name]
        seen = traced(f"{kind}.see", observer.see, carried[name], state)
        same(f"{kind}.see", seen, carried[name], "what its init returns")
        result = traced(f"{kind}.result", observer.result, carried[name])
        if not isinstance(result, Mapping):
            raise ValueError(f"{kind}.result must return a dict of arrays by name.")
        real(f"what {kind}.result returns", result)
        names += names_of(name, result)
    check_observed([*observers], names)
    return dict(observers)


def names_of(observer: str, result: Any) -> list[str]:
    """The variables of a record in which it keeps what an observer returns, and their axes."""
    names = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(result)[0]:
        name = f"{observer}.{jax.tree_util.keystr(path, simple=True, separator='.')}"
        names += [name, *(f"{name}_{axis}" for axis in range(len(leaf.shape)))]
    return names


def check_observed(observers: list[Any], names: list[str]) -> None:
    """Refuse names under which a record could not hold, or tell apart, what was observed."""
    for name in [*observers, *names]:
        unfit = not isinstance(name, str) or not name or "/" in name
        if unfit or UNFIT & {*map(category, name)}:
            raise ValueError(
                f"{name!r} cannot name what is observed: a name is a text without control "
                "characters and slashes; rename the observer, or what it returns."
            )
    for name in observers:
        if within := [other for other in observers if other.startswith(f"{name}.")]:
            raise ValueError(
                f"what the observers {name!r} and {within[0]!r} return would have the same names "
                "in the record; give one of them another name."
            )
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"the record would have two variables or axes called {twice[0]!r}; rename one of the "
            "arrays that this observer returns."
        )


def traced(what: str, function: Callable, *args: Any) -> Any:
    """The shapes that a function returns; its mistakes in a sentence."""
    with explained(what):
        return jax.eval_shape(function, *args)


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """What JAX says of a function that it cannot trace, in a sentence."""
    try:
        yield
    except jax.errors.TracerArrayConversionError as error:
        raise ValueError(
            f"{what} uses NumPy on an array that is being compiled; use jax.numpy (jnp) there."
        ) from error
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError) as error:
        raise ValueError(
            f"{what} asks for the value of an array while it is compiled, as `if sign > 0` and "
            "float(x) do; write jnp.where(sign > 0, a, b) instead, and leave numbers as arrays."
        ) from error
    except (TypeError, ValueError) as error:
        said = str(error)
        if not any(words in said for words in MISFITS):
            raise
        raise ValueError(
            f"{what} does not take what it is given ({said.rstrip('.')}); check its arguments and "
            "the sizes of its arrays."
        ) from error


def real(what: str, tree: Any) -> None:
    """Real numbers of the kinds that NumPy has: a record could not hold others."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"{what} must be numbers, and {where} is a random key; leave it out, or give its "
                "bits: jax.random.key_data(key)."
            )
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            raise ValueError(
                f"{what} must be real numbers, not {leaf.dtype}; give real and imaginary parts as "
                "arrays of their own."
            )
        if np.dtype(leaf.dtype).kind not in "biuf":
            raise ValueError(
                f"{what} must be numbers that NumPy has, not {leaf.dtype}; convert them: "
                "x.astype(jnp.float32)."
            )


def pair(what: str, form: str, value: Any) -> tuple[Any, Any]:
    """The value, if it is a tuple of two; else a ValueError that says its form."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"{what} must return {form}.")
    return value


def same(what: str, got: Any, want: Any, like: str) -> None:
    """Same structure, shapes and types, so that nothing is broadcast or cast in silence."""
    if jax.tree.structure(got) != jax.tree.structure(want):
        raise ValueError(
            f"{what} must return the structure of {like}, {_tree(want)}, not {_tree(got)}."
        )
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(
                f"{what} must return arrays like {like}: {b.dtype}{list(b.shape)}, not "
                f"{a.dtype}{list(a.shape)}."
            )


def _tree(tree: Any) -> str:
    text = str(jax.tree.structure(tree)).removeprefix("PyTreeDef").strip("()")
    return text if len(text) < 80 else f"{text[:80]}..."


def what_is(thing: Any) -> str:
    """The kind of a value, for an error message: "a list"."""
    return f"a {type(thing).__name__}" if not isinstance(thing, type) else thing.__name__
