"""Plain records behave as dataclasses do."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import pytest
from msgspec import field

from headrace._core.plain_record import PlainRecord, set_frozen


class Size(PlainRecord, frozen=True):
    """A size."""

    UNIT: ClassVar[str] = "px"
    width: int
    height: int = 2
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.height < 0:
            set_frozen(self, "height", -self.height)


class Named(Size, frozen=True):
    """A size with a name."""

    name: str = "n"


class Counts(PlainRecord):
    """Counts that change."""

    counts: dict[str, int] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _Twin:
    width: int
    height: int = 2
    names: tuple[str, ...] = ()


def test_values_compare_hash_pickle_and_show_as_those_of_dataclasses() -> None:
    one = Size(1, -3)
    assert (one.height, Size.UNIT) == (3, "px")
    assert one == Size(1, 3) != Size(1, 4)
    assert Named(1) != Size(1)
    assert hash(one) == hash(Size(1, 3))
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == repr(_Twin(1, 3)).replace("_Twin", "Size")
    frozen: Any = one
    with pytest.raises(AttributeError):
        frozen.width = 2
    with pytest.raises(TypeError):
        hash(Counts())


def test_functions_of_dataclasses_know_them() -> None:
    one, twin = Named(1, 3), _Twin(1, 3)
    assert dataclasses.replace(one, height=4) == Named(1, 4)
    assert dataclasses.asdict(one) == {**dataclasses.asdict(twin), "name": "n"}
    shown, expected = dataclasses.fields(Size), dataclasses.fields(_Twin)
    for field_name in ("name", "type", "default", "default_factory"):
        assert [getattr(f, field_name) for f in shown] == [getattr(f, field_name) for f in expected]
    assert [f.name for f in dataclasses.fields(one)][-1] == "name"
    assert dataclasses.is_dataclass(one)
    assert dataclasses.fields(Counts)[0].default_factory is dict


def test_mutable_defaults_are_each_instances_own() -> None:
    Counts().counts["a"] = 1
    assert Counts().counts == {}
