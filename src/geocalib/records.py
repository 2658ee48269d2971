"""``dataclass(frozen=True)`` as in the standard library, for the many small classes within the
package: equal to it in all that they do, and a third of the time to define.

The standard library writes and compiles six methods for each frozen class. That takes about a
millisecond before Python 3.13: for the hundred classes that one photo needs, a tenth of all the
time on the command line. Here ``__init__`` alone is compiled, and the classes share the others.
Classes that users make or read of in the documentation are plain dataclasses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Literal, TypeVar

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    Class = TypeVar("Class", bound=type)

    def dataclass(*, frozen: Literal[True]) -> Callable[[Class], Class]:
        """frozen: all of them are; it is said where they are defined."""

        def define(cls: Class) -> Class:
            for name, method in SHARED.items():
                setattr(cls, name, method)
            return dataclasses.dataclass(repr=False, eq=False)(cls)

        return define


def _setattr(self: Any, name: str, value: object) -> None:
    values = self.__dict__
    # Only __init__ sets a field that has no value yet.
    if name in values or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    values[name] = value


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
