"""A run as data: JSON that tells any two runs apart. `rebuild` is the way back to a `Run`.

object          {"class": "flexphase.phases.selections.Bernoulli", "b": {"float32": 0.5}}
array           {"float32": 0.5}, {"int32": [1, 2]}, large ones {"float32": {"shape", "sha256"}}
swept number    {"float32": {"swept": "process.selection.b"}}: a variable of the record
function        {"function": "optax.sgd"}; a user's own with a digest of its code, of what it
                closes over and of the globals that it names; a library's with what it holds
partial         {"partial": function, "args": [...], "keywords": {...}}
anything else   {"class": "builtins.complex", "holds": [...]}: what a copy would be made of
"""

import functools
import hashlib
import inspect
import json
import math
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .inspecting import (
    VERSIONED,
    attributes,
    bytecode,
    closed_over,
    field_names,
    installed,
    names_in,
    parts_of,
    public_name,
    qualified,
    top_of,
    underlying,
    versioned,
    words,
    wrappers,
)

Description = Any  # what JSON can hold

SMALL = 64  # numbers that are written out
CONSTANTS = (bool, int, float, str, tuple, np.ndarray, jax.Array)  # of a class, beside its fields


class Swept(NamedTuple):
    """A number in which the lanes differ: its values, dimensions of the grid first."""

    values: np.ndarray


class Described(NamedTuple):
    """A description, with the arrays that it names."""

    run: Description
    swept: dict[str, np.ndarray]  # by path
    large: dict[str, np.ndarray]  # by digest


def describe(value: Any) -> Description:
    """A value as JSON."""
    return _Describer().of(value, "")


def described(value: Any) -> Described:
    """A value as JSON, together with its swept numbers and its large arrays."""
    describer = _Describer()
    return Described(describer.of(value, ""), describer.swept, describer.large)


def digest(description: Description) -> str:
    """The same for the same description, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def digests(description: Description) -> set[str]:
    """The digests of the large arrays that it names."""
    found, parts = set(), [description]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            found |= {part["sha256"]} if isinstance(part.get("sha256"), str) else set()
            part = list(part.values())
        parts += part if isinstance(part, list) else []
    return found


def difference(then: Any, now: Any, path: str = "") -> str:
    """The first place where two descriptions differ, in words."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*then, *now]:
            if then.get(name) != now.get(name):
                where = f"{path}.{name}" if path else str(name)
                return difference(then.get(name), now.get(name), where)
    short = [text if len(text) < 60 else f"{text[:57]}..." for text in map(json.dumps, (then, now))]
    return f"{path.removeprefix('run.')} was {short[0]} and is now {short[1]}"


def is_key(leaf: Any) -> bool:
    """Is this a typed random key?"""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def plain_array(leaf: Any) -> np.ndarray:
    """A leaf of a state as a NumPy array; a random key as its bits."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


class _Describer:
    def __init__(self):
        self.swept: dict[str, np.ndarray] = {}
        self.large: dict[str, np.ndarray] = {}
        self.inside: list[Any] = []  # being described: a function may name itself

    def of(self, value: Any, path: str) -> Description:
        if isinstance(value, Swept):
            self.swept[path] = value.values
            return {str(value.values.dtype): {"swept": path}}
        if isinstance(value, (np.ndarray, np.generic, jax.Array)):
            return self.array(plain_array(value))
        if isinstance(value, functools.partial):
            rest = {
                "args": self.of(value.args, path),
                "keywords": self.fields(value.keywords, path),
            }
            return {"partial": self.of(value.func, path)} | rest
        if isinstance(value, float) and math.isnan(value):
            return {"float": "nan"}  # which is not what it was: NaN differs from itself
        if isinstance(value, (bool, int, float, str, type(None))):
            return value
        if isinstance(value, Mapping):
            return {"dict": self.fields(value, path)}
        if isinstance(value, (set, frozenset)):
            return {"set": sorted(json.dumps(self.of(part, path)) for part in value)}
        if isinstance(value, type):
            return self.named("class", value)
        if (names := field_names(value)) is not None:
            fields = {name: getattr(value, name) for name in names}
            return self.named("class", type(value)) | self.fields(fields, path)
        if isinstance(value, (list, tuple)):
            return [self.of(part, f"{path}.{i}") for i, part in enumerate(value)]
        if callable(value):
            return self.function(value)
        if isinstance(value, types.ModuleType):
            return value.__name__
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": hashlib.sha256(value).hexdigest()}
        return self.other(value)

    def other(self, value: Any) -> Description:
        """An object of any other kind. Its repr may leave out most of it, so all that a copy of it
        would be made of is described.
        """
        if any(value is seen for seen in self.inside):
            return qualified(value)
        self.inside.append(value)
        try:
            whole = self.of(parts_of(value), "")
        finally:
            self.inside.pop()
        if release := installed(type(value)):
            return {"class": qualified(type(value)), "release": release, "holds": whole}
        return self.named("class", type(value)) | {"holds": whole}

    def fields(self, items: Mapping[Any, Any], path: str) -> dict[str, Description]:
        return {
            str(name): self.of(part, f"{path}.{name}" if path else str(name))
            for name, part in items.items()
        }

    def array(self, array: np.ndarray) -> Description:
        kind = str(array.dtype)
        if array.dtype.hasobject or array.dtype.kind in "mMc":  # JSON has no dates
            objects = array.ravel().tolist() if array.dtype.hasobject else array.tobytes()
            return {kind: {"shape": list(array.shape), "digest": digest(self.of(objects, ""))}}
        broken = array.dtype.kind == "f" and bool(np.isnan(array).any())
        if array.size <= SMALL and not broken:
            exact = array.astype(str).astype(float) if array.dtype.kind == "f" else array
            return {kind: exact.tolist()}  # 0.1, not 0.10000000149
        sha256 = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
        self.large[sha256] = array
        return {kind: {"shape": list(array.shape), "sha256": sha256}}

    def named(self, what: str, thing: Any) -> dict[str, Description]:
        name = qualified(thing)
        if versioned(thing):
            return {what: name}
        return {what: name, "code": digest(self.code(thing))}

    def function(self, value: Any) -> Description:
        if isinstance(value, types.MethodType):
            return self.named("function", value.__func__) | {"self": self.of(value.__self__, "")}
        if name := public_name(value):
            return {"function": name}
        inner = inspect.unwrap(value)
        made = self.named("function", inner)
        if versioned(inner) and (held := self.held(inner)):
            made["holds"] = held
        if around := [self.wrapper(layer) for layer in wrappers(value)]:
            made["around"] = around
        return made

    def wrapper(self, layer: types.FunctionType) -> Description:
        """A function around another one, which has its name."""
        if top_of(layer.__globals__.get("__name__")) in VERSIONED:
            return [layer.__code__.co_qualname, self.held(layer)]
        return digest(self.code(layer))

    def held(self, thing: Any) -> Description:
        """What a function closes over, or an object has as its attributes."""
        if any(thing is seen for seen in self.inside):
            return qualified(thing)
        self.inside.append(thing)
        try:
            if isinstance(thing, types.FunctionType):
                return [self.of(content, "") for content in closed_over(thing)]
            return self.fields(attributes(thing), "")
        finally:
            self.inside.pop()

    def code(self, thing: Any) -> Description:
        """What a function or a class does: its code, what it closes over, the globals it names;
        of an object also what it holds.
        """
        if any(thing is seen for seen in self.inside):
            return qualified(thing)
        if not isinstance(thing, (type, types.FunctionType)):
            held = self.held(thing)
            return [self.code(type(thing)), held] if held else words(thing)
        self.inside.append(thing)
        try:
            if isinstance(thing, type):
                return [part for base in thing.__mro__ for part in self.own(base)]
            names = [n for n in names_in(thing.__code__) if n in thing.__globals__]
            used = {n: thing.__globals__[n] for n in names}
            given = [thing.__defaults__, thing.__kwdefaults__]
            return [
                bytecode(thing.__code__),
                [self.of(value, "") for value in (*closed_over(thing), *given)],
                {n: self.of(v, "") for n, v in used.items() if not isinstance(v, types.ModuleType)},
            ]
        finally:
            self.inside.pop()

    def own(self, base: type) -> list[Description]:
        """The functions and constants that a user wrote in the body of a class."""
        if versioned(base):
            return []
        fields, parts = getattr(base, "__dataclass_fields__", {}), []
        for name, part in sorted(vars(base).items(), key=_first):
            if (function := underlying(part)) is not None:
                parts.append([name, self.code(function)])
            elif isinstance(part, CONSTANTS) and name not in fields and not name.startswith("__"):
                parts.append([name, self.of(part, "")])
        return parts


def _first(item: tuple[str, Any]) -> str:
    return item[0]
