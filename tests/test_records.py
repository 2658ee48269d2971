"""Our dataclasses against those of the standard library."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from copy import copy
from functools import cached_property
from typing import Any

import pytest

from geocalib import records


class Fields:
    """What both of them are made from."""

    number: int
    words: tuple[str, ...] = ()
    hidden: float = dataclasses.field(default=0.5, repr=False)
    aside: object = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", abs(self.number))

    @cached_property
    def twice(self) -> int:
        return 2 * self.number


def _made(decorate: Any) -> Any:
    body = {name: value for name, value in vars(Fields).items() if name != "__dict__"}
    cls = type("Made", (), body)
    cls.__dict__["twice"].__set_name__(cls, "twice")
    return decorate(frozen=True)(cls)


@pytest.fixture(params=[records.dataclass, dataclasses.dataclass], ids=["ours", "standard"])
def made(request: pytest.FixtureRequest) -> Any:
    return _made(request.param)


@records.dataclass(frozen=True)
class Travelling:
    value: int


def test_it_is_written_the_same(made: Any) -> None:
    assert repr(made(-3, ("a",), 1.0, None)) == "Made(number=3, words=('a',), aside=None)"


def test_one_within_itself_is_written(made: Any) -> None:
    within: list[object] = []
    one = made(1, aside=within)
    within.append(one)
    assert repr(one) == "Made(number=1, words=(), aside=[...])"


def test_equal_fields_make_equals(made: Any) -> None:
    one, same = made(1, ("a",), aside=[1]), made(-1, ("a",), aside=[2])
    assert one == same
    assert hash(one) == hash(same)
    assert {one: "found"}[same] == "found"
    assert one != made(1, ("b",))
    assert one != made(1, ("a",), 0.25)


def test_another_class_is_never_equal() -> None:
    assert _made(records.dataclass)(1) != _made(records.dataclass)(1)
    assert Travelling(1) != (1,)


@pytest.mark.parametrize("name", ["number", "hidden", "new"])
def test_nothing_can_be_assigned_or_deleted(made: Any, name: str) -> None:
    one = made(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(one, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(one, name)
    assert one == made(1)


def test_it_is_replaced_copied_and_remembers(made: Any) -> None:
    one = made(2, ("a",))
    assert dataclasses.replace(one, number=-5) == made(5, ("a",))
    assert copy(one) == one
    assert one.twice == 4
    assert dataclasses.asdict(one) == {"number": 2, "words": ("a",), "hidden": 0.5, "aside": []}


def test_it_travels() -> None:
    assert pickle.loads(pickle.dumps(Travelling(3))) == Travelling(3)


def test_it_tells_what_it_takes() -> None:
    ours, standard = _made(records.dataclass), _made(dataclasses.dataclass)
    assert str(inspect.signature(ours)) == str(inspect.signature(standard))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        ours()
