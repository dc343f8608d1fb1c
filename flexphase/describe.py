"""A run as data: JSON that tells any two runs apart, and the way back to a `Run`.

    object          {"class": "flexphase.phases.Bernoulli", "b": {"float32": 0.5}}
    array           {"float32": 0.5}, {"int32": [1, 2]}, large ones {"float32": {"shape", "sha256"}}
    swept number    {"float32": {"swept": "process.selection.b"}}: a variable of the record
    function        {"function": "optax.sgd"}; a user's own with a digest of its code, of what it
                    closes over and of the globals that it names; a library's with what it holds
    partial         {"partial": function, "args": [...], "keywords": {...}}

A description is data. Reading one back builds the classes of flexphase, known functions of JAX and
optax, and what the user allows; nothing in it is ever executed.
"""

import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

Description = Any  # what JSON can hold

SMALL = 64  # numbers that are written out
#: Packages whose version is in the record, so that the names of their functions are enough.
VERSIONED = ("flexphase", "jax", "jaxlib", "optax", "equinox", "numpy")
#: Classes that were moved, and the names by which files know them.
MOVED = {"flexphase.metrics.AtEnd": "flexphase.log.AtEnd"}
TRUSTED = (*VERSIONED, "builtins")
CONSTANTS = (bool, int, float, str, tuple, np.ndarray, jax.Array)  # of a class, beside its fields
PUBLIC = {"optax": optax, "jax.nn": jax.nn, "jax.numpy": jnp}
#: Functions that a record may name without the user's leave: they compute numbers, nothing else.
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


#: Modules of flexphase that hold no part of a run.
NO_PARTS = [["cli"], ["sweep"], ["experiments"], ["report"], ["live"], ["files"]]


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
        if not says_nothing(value):
            return repr(value)
        return self.named("class", type(value)) | {"holds": self.held(value)}

    def fields(self, items: Mapping[Any, Any], path: str) -> dict[str, Description]:
        return {
            str(name): self.of(part, f"{path}.{name}" if path else str(name))
            for name, part in items.items()
        }

    def array(self, array: np.ndarray) -> Description:
        kind = str(array.dtype)
        if array.size <= SMALL:
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


def says_nothing(value: Any) -> bool:
    """Is what an object says of itself only where it lies in memory?"""
    return " at 0x" in repr(value)


def words(value: Any) -> str:
    """What an object says of itself, or its kind."""
    return qualified(type(value)) if says_nothing(value) else repr(value)


def attributes(thing: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary and in slots."""
    slots = [vars(base).get("__slots__", ()) for base in type(thing).__mro__]
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    hidden = ("__dict__", "__weakref__")
    kept = {n: getattr(thing, n) for n in names if n not in hidden and hasattr(thing, n)}
    return kept | dict(getattr(thing, "__dict__", {}))


def closed_over(function: types.FunctionType) -> list[Any]:
    """What a function closes over; None for what has no value yet."""
    return [_content(cell) for cell in function.__closure__ or ()]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def wrappers(value: Any) -> list[types.FunctionType]:
    """The functions around the innermost one (functools.wraps), outermost first."""
    layers = []
    while (inner := getattr(value, "__wrapped__", None)) is not None:
        layers += [value] if isinstance(value, types.FunctionType) else []
        value = inner
    return layers


def field_names(value: Any) -> list[str] | None:
    """The names of the fields of a module, a dataclass or a named tuple; None of other things."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return list(value._fields) if _is_named(type(value)) else None


def underlying(attribute: Any) -> Any:
    """The function behind an attribute of a class, if there is one that its user wrote."""
    inner = getattr(attribute, "fget", None) or getattr(attribute, "__func__", attribute)
    inner = getattr(inner, "method", inner)  # equinox wraps the methods of its modules
    inner = inspect.unwrap(inner) if callable(inner) else inner
    written = isinstance(inner, types.FunctionType) and "<string>" not in inner.__code__.co_filename
    return inner if written else None


def qualified(thing: Any) -> str:
    """module.name of a class or function."""
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    whole = f"{getattr(thing, '__module__', None) or type(thing).__module__}.{name}"
    return MOVED.get(whole, whole)


def versioned(thing: Any) -> bool:
    """Does it belong to a package whose version the record holds, or to Python itself?"""
    return top_of(getattr(thing, "__module__", None) or type(thing).__module__) in TRUSTED


def top_of(module: Any) -> str:
    """flexphase, of flexphase.phases.process."""
    return str(module).partition(".")[0]


def public_name(value: Any) -> str | None:
    """The name under which JAX or optax offers a function."""
    name = str(getattr(value, "__name__", ""))
    return next((f"{m}.{name}" for m, lib in PUBLIC.items() if vars(lib).get(name) is value), None)


def names_in(code: types.CodeType) -> list[str]:
    """The globals that a function names, those of the functions inside it included."""
    inner = [names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return sorted({*code.co_names, *(name for names in inner for name in names)})


def bytecode(code: types.CodeType) -> list[Any]:
    """What is executed, without file names and line numbers."""
    consts = [bytecode(c) if isinstance(c, types.CodeType) else _const(c) for c in code.co_consts]
    return [code.co_code.hex(), consts, list(code.co_names), list(code.co_varnames)]


def _const(const: Any) -> str:
    return repr(sorted(map(repr, const))) if isinstance(const, frozenset) else repr(const)


class Builder:
    """From a description back to the object.

    Args:
        swept: path -> the one value that a swept number has.
        large: arrays by digest, for descriptions that name them only.
        allow: what a description may name beside the classes of flexphase: classes and functions,
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
            if content["sha256"] not in self.large:
                shape = tuple(content["shape"])
                raise ValueError(
                    f"it names data of shape {shape} by their digest only; give them: "
                    "record.run(data=...)"
                )
            return jnp.asarray(self.large[content["sha256"]], kind)
        return jnp.asarray(content, kind)

    def instance(self, what: dict[str, Description]) -> Any:
        cls = self.find(what, "class")
        if not isinstance(cls, type) or not _is_part(cls):
            raise ValueError(f"{what['class']} is no part of a run")
        fields = {n: self.build(part) for n, part in what.items() if n not in ("class", "code")}
        accepted = inspect.signature(cls).parameters
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
        ours = re.fullmatch(r"flexphase(\.[a-z][a-z_0-9]*)*", module)
        ours = ours and module.split(".")[1:2] not in NO_PARTS
        allowed = any(module == m or module.startswith(f"{m}.") for m in self.modules)
        if not (ours or allowed) or not attribute.isidentifier():
            raise ValueError(
                f"it names {name}, which is not part of flexphase; allow it: "
                f"record.run(allow=[{attribute if attribute.isidentifier() else 'the function'}])"
            )
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            raise ValueError(f"there is no {name} here") from None
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
    return issubclass(cls, eqx.Module) or _is_named(cls) or frozen


def _is_named(cls: type) -> bool:
    return issubclass(cls, tuple) and bool(getattr(cls, "_fields", ()))
