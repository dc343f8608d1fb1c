"""What objects, classes and functions are made of: names, fields, what they hold, their code."""

import copyreg
import dataclasses
import functools
import inspect
import os
import sys
import sysconfig
import types
from typing import Any

import jax
import jax.numpy as jnp
import optax

#: Packages whose version is in the record, so that the names of their functions are enough.
VERSIONED = ("flexphase", "jax", "jaxlib", "optax", "equinox", "numpy")
TRUSTED = (*VERSIONED, "builtins")
PUBLIC = {"optax": optax, "jax.nn": jax.nn, "jax.numpy": jnp}
LABELS = ("index", "columns", "name", "names", "dtype", "dtypes")  # of a table of pandas
FOUND = ("_has_sorted_indices", "_has_canonical_format")  # by a sparse matrix of scipy, when asked
#: Classes that were moved, and the names by which files know them.
MOVED = {"flexphase.metrics.AtEnd": "flexphase.log.AtEnd"}


def says_nothing(value: Any) -> bool:
    """Is its repr only an address?"""
    return " at 0x" in repr(value)


def words(value: Any) -> str:
    """repr(value), or the class where the repr is only an address."""
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
    return list(value._fields) if is_named(type(value)) else None


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


def is_named(cls: type) -> bool:
    """Is this class a named tuple?"""
    return issubclass(cls, tuple) and bool(getattr(cls, "_fields", ()))


def parts_of(value: Any) -> Any:
    """What a copy of an object would be made of, as `copy` and `pickle` ask for it; its attributes
    or its repr where it cannot be copied.
    """
    if hasattr(value, "ndim") and is_pandas(type(value)):
        kept = {name: getattr(value, name) for name in LABELS if hasattr(value, name)}
        return [value.to_numpy(), kept]
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        made = reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception:  # a lock, a file: whatever its class raises
        return attributes(value) or words(value)
    if isinstance(made, str):
        return made
    make, args, *more = made
    state, *items = [*more, None][:3]
    if isinstance(state, dict):
        state = {name: part for name, part in state.items() if not found_later(value, name)}
    listed = [list(part) for part in items if part is not None]
    return [qualified(make), [part for part in args if part is not type(value)], state, listed]


def is_pandas(kind: type) -> bool:
    """Of a table, a column or an index of pandas a copy would have the caches too."""
    return any(top_of(base.__module__) == "pandas" for base in kind.__mro__)


def found_later(value: Any, name: Any) -> bool:
    """Does the object find this attribute out by itself when it is first asked?"""
    cached = inspect.getattr_static(type(value), str(name), None)
    return name in FOUND or isinstance(cached, functools.cached_property)


def installed(thing: type) -> str:
    """The release of the library that a class comes from, instead of its code, which may be most of
    that library; nothing where it is a user's.
    """
    top = top_of(thing.__module__)
    if top in sys.stdlib_module_names:
        return "Python"
    library = sys.modules.get(top)
    place = str(getattr(library, "__file__", None) or "")
    kept = any(place.startswith(f"{sysconfig.get_path(p)}{os.sep}") for p in ("purelib", "platlib"))
    return str(getattr(library, "__version__", "")) if kept else ""
