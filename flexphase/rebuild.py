"""From the description of a run back to a `Run`.

Nothing in a description is executed: reading one builds the parts of a run that flexphase defines
(PARTS), known functions of JAX and optax, and what the user allows.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .describe import Description, describe
from .inspecting import PUBLIC, is_named, qualified

#: Functions that a record may always name, without `allow`: they compute numbers, nothing else.
OPTIMISERS = [
    "sgd",
    "adam",
    "adamw",
    "adagrad",
    "adamax",
    "adabelief",
    "lion",
    "nadam",
    "radam",
    "rmsprop",
    "yogi",
    "noisy_sgd",
]
ACTIVATIONS = [
    "sigmoid",
    "relu",
    "relu6",
    "softplus",
    "tanh",
    "silu",
    "gelu",
    "elu",
    "selu",
    "hard_sigmoid",
    "hard_tanh",
]
KNOWN = {
    *(f"optax.{name}" for name in OPTIMISERS),
    *(f"jax.nn.{name}" for name in ACTIVATIONS),
    "jax.numpy.tanh",
}

#: Modules of flexphase, and packages of such, whose classes and functions a record may name: they
#: are parts of runs, which read and write nothing.
PARTS = [
    "flexphase.core",
    "flexphase.data.held",
    "flexphase.data.pairs",
    "flexphase.data.sources",
    "flexphase.estimators",
    "flexphase.hardware",
    "flexphase.methods",
    "flexphase.optimisers",
    "flexphase.phases.durations",
    "flexphase.phases.neither",
    "flexphase.phases.process",
    "flexphase.phases.recorded",
    "flexphase.phases.selections",
    "flexphase.replicas",
]


class Builder:
    """From a description back to the object.

    Args:
        swept: path -> the one value that a swept number has.
        large: arrays by digest, for descriptions that name them only.
        allow: what a description may name beside the parts of flexphase: classes and functions,
            or names of modules (strings) that may be imported for it.
    """

    def __init__(
        self,
        swept: Callable[[str], Any],
        large: Mapping[str, np.ndarray],
        allow: Iterable[Any] = (),
    ):
        self.swept, self.large = swept, large
        allow = [allow] if isinstance(allow, str) or callable(allow) else list(allow)
        self.modules = [name for name in allow if isinstance(name, str)]
        self.objects = [thing for thing in allow if not isinstance(thing, str)]

    def build(self, what: Description) -> Any:
        if isinstance(what, list):
            return tuple(self.build(part) for part in what)
        if not isinstance(what, dict):
            return what
        if "class" in what:
            return self.instance(what)
        if "function" in what:
            return self.function(what)
        if "partial" in what:
            keywords = {name: self.build(part) for name, part in what["keywords"].items()}
            return functools.partial(
                self.build(what["partial"]), *self.build(what["args"]), **keywords
            )
        if "dict" in what:
            return {name: self.build(part) for name, part in what["dict"].items()}
        ((kind, content),) = what.items()
        return self.array(kind, content)

    def array(self, kind: str, content: Any) -> jax.Array:
        if kind not in ("float32", "float64", "int32", "int64", "uint32", "uint8", "int8", "bool"):
            raise ValueError(f"it holds an array of {kind!r}, which no run has")
        if isinstance(content, dict) and "swept" in content:
            return jnp.asarray(self.swept(content["swept"]), kind)
        if isinstance(content, dict):
            shape, found = tuple(content["shape"]), self.large.get(content["sha256"])
            if found is None:
                raise ValueError(
                    f"it names data of shape {shape} by their digest only; give them: "
                    "record.run(data=...)"
                )
            if describe(found) != {kind: content}:
                raise ValueError(f"its data of shape {shape} are not those that it names")
            return jnp.asarray(found, kind)
        return jnp.asarray(content, kind)

    def instance(self, what: dict[str, Description]) -> Any:
        cls = self.find(what, "class")
        if not isinstance(cls, type) or not _is_part(cls):
            raise ValueError(f"{what['class']} is no part of a run")
        fields = {n: self.build(part) for n, part in what.items() if n not in ("class", "code")}
        # Arguments that are no fields are not for records: `Recorded(table)` reads a file.
        accepted = {*inspect.signature(cls).parameters} & {*_fields(cls)}
        try:
            return cls(**{name: value for name, value in fields.items() if name in accepted})
        except TypeError as error:
            raise ValueError(
                f"{what['class']} cannot be made from its fields ({error}); give its constructor "
                "arguments the names of its fields"
            ) from None

    def function(self, what: dict[str, Description]) -> Any:
        if what["function"] in KNOWN and len(what) == 1:
            module, _, name = what["function"].rpartition(".")
            return getattr(PUBLIC[module], name)
        found = self.find(what, "function")
        if not callable(found):
            raise ValueError(f"{what['function']} is no function")
        return found

    def find(self, what: dict[str, Description], kind: str) -> Any:
        """The class or function of that name, if it may be used and is still the same."""
        name = str(what[kind])
        for thing in self.objects:
            if qualified(inspect.unwrap(thing)) == name:
                return self.unchanged(thing, what, name)
        module, _, attribute = name.rpartition(".")
        allowed = any(f"{module}.".startswith(f"{m}.") for m in (*PARTS, *self.modules))
        if not allowed or not attribute.isidentifier():
            raise ValueError(
                f"it names {name}, which is none of flexphase's own parts of a run; allow it: "
                f"record.run(allow=[{attribute if attribute.isidentifier() else 'the function'}])"
            )
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            raise ValueError(f"there is no {name} here") from None
        if qualified(inspect.unwrap(found)) != name:  # the module imports it from elsewhere
            raise ValueError(f"there is no {name} here")
        return self.unchanged(found, what, name)

    def unchanged(self, found: Any, what: dict[str, Description], name: str) -> Any:
        now = describe(found)
        parts = ("code",) if "class" in what else ("code", "holds", "around")
        if any(what.get(part) != now.get(part) for part in parts):
            raise ValueError(f"the code of {name} is not what it was when the record was made")
        return found


def _is_part(cls: type) -> bool:
    """May a description name it? A module, a named tuple or a frozen dataclass."""
    frozen = dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore
    return issubclass(cls, eqx.Module) or is_named(cls) or frozen


def _fields(cls: Any) -> list[str]:
    """The names of the fields of such a class."""
    return list(cls._fields) if is_named(cls) else [f.name for f in dataclasses.fields(cls)]
