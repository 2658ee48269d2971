"""``dataclass(frozen=True)`` as in the standard library, for the many small classes within the
package: equal to it in all that they do, and a third of the time to define.

The standard library writes and compiles six methods for each frozen class. That takes about a
millisecond before Python 3.13: for the hundred classes that one photo needs, a tenth of all the
time on the command line. Here ``__init__`` alone is compiled, and the classes share the others. It
sets all fields at once: lines make a thousand small records of one photo.
Classes that users make or read of in the documentation are plain dataclasses.

``replace`` is the standard library's, too, in a third of the time: it finds out once for each class
what its fields are. ``map_tensors`` changes dataclasses of arrays field by field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from functools import cache
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Literal, TypeVar

__all__ = ["Held", "dataclass", "field_names", "map_tensors", "named_tensors", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:
    Class = TypeVar("Class", bound=type)
    Record = TypeVar("Record")

    def replace(record: Record, /, **changes: object) -> Record:
        """A copy with other values; every field must be one that ``__init__`` takes."""
        kind = type(record)
        return kind(**{name: getattr(record, name) for name in field_names(kind)} | changes)

    def dataclass(*, frozen: Literal[True]) -> Callable[[Class], Class]:
        """frozen: all of them are; it is said where they are defined."""

        def define(cls: Class) -> Class:
            for name, method in SHARED.items():
                setattr(cls, name, method)
            made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
            made.__init__ = _init_of(made)
            return made

        return define


Held = TypeVar("Held")
"""A dataclass of arrays alone."""


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a class, in order."""
    return tuple(field.name for field in fields(kind))


def named_tensors(held: object) -> dict[str, Any]:
    """The arrays of a dataclass by their names, in order."""
    return {name: getattr(held, name) for name in field_names(type(held))}  # type: ignore[arg-type]  # types are hashable


def map_tensors(change: Callable[..., Any], first: Held, *others: Held) -> Held:
    """The first dataclass of arrays with each of them changed, given those of the same name in the
    others."""
    every = first, *others
    names = field_names(type(first))  # type: ignore[arg-type]
    return type(first)(*[change(*[getattr(one, name) for one in every]) for name in names])


class _Factory:
    """The default of a field that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()


def _init_of(cls: Any) -> Callable[..., None]:
    """As a dataclass has it."""
    every = fields(cls)
    names: dict[str, Any] = {"FACTORY": FACTORY}
    taken, kept = ["self"], []
    for field in every:
        name, value = field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            taken.append(f"{name}=FACTORY")
            value = f"_make_{name}() if {name} is FACTORY else {name}"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            taken.append(f"{name}=_default_{name}")
        else:
            taken.append(name)
        kept.append(f"{name}={value}")
    body = f" self.__dict__.update({', '.join(kept)})"
    if hasattr(cls, "__post_init__"):
        body += "\n self.__post_init__()"
    exec(f"def __init__({', '.join(taken)}):\n{body}", names)
    init: Callable[..., None] = names["__init__"]
    init.__annotations__ = {field.name: field.type for field in every} | {"return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _setattr(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[object, ...]:
    return tuple([getattr(self, f.name) for f in fields(self) if f.compare])


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


SHARED = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}
