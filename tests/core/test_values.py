"""Values: each promise of `dataclass(slots=True)`, beside that very decorator."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, fields
from types import FunctionType
from typing import Any, ClassVar

import pytest

from nfstuned import values
from nfstuned.values import KW_ONLY, compile_all, defaults, field, frozen, mutable, replace

STANDARD = dataclass(frozen=True, slots=True)
MAKERS: dict[str, Callable[[type], type]] = {"frozen": frozen, "dataclass": STANDARD}
SOURCES = {"frozen": values, "dataclass": dataclasses}


@frozen
class Point:
    """A value that pickle can import."""

    x: int
    y: int = 2
    names: tuple[str, ...] = field(default_factory=tuple)
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Model:
    """The same by the standard library."""

    x: int
    y: int = 2
    names: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    note: str = dataclasses.field(default="", compare=False, repr=False)


@pytest.fixture(params=[Point, Model], ids=["frozen", "dataclass"])
def kind(request: pytest.FixtureRequest) -> type[Point]:
    kind: type[Point] = request.param
    return kind


def test_it_is_made_shown_and_taken_apart_as_a_dataclass(kind: type[Point]) -> None:
    point = kind(1, names=("a",))
    assert repr(point) == f"{kind.__name__}(x=1, y=2, names=('a',))"
    assert asdict(point) == {"x": 1, "y": 2, "names": ("a",), "note": ""}
    assert [member.name for member in fields(point)] == ["x", "y", "names", "note"]
    assert dataclasses.replace(point, y=3) == kind(1, 3, ("a",))
    parameters = inspect.signature(kind).parameters
    assert {name: parameter.annotation for name, parameter in parameters.items()} == {
        "x": "int",
        "y": "int",
        "names": "tuple[str, ...]",
        "note": "str",
    }
    match point:
        case Point(1, y) | Model(1, y):
            assert y == 2


def test_it_equals_by_its_compared_fields_and_its_class(kind: type[Point]) -> None:
    assert kind(1) == kind(1, note="other")
    assert hash(kind(1)) == hash(kind(1, note="other"))
    assert kind(1) != kind(2)
    other: object = Model(1)
    assert Point(1) != other
    assert Point(1).__eq__((1, 2, ())) is NotImplemented


@pytest.mark.parametrize("change", [lambda p: setattr(p, "x", 2), lambda p: delattr(p, "x")])
def test_it_does_not_change(kind: type[Point], change: Callable[[Point], None]) -> None:
    point = kind(1)
    with pytest.raises(FrozenInstanceError, match="x"):
        change(point)
    assert point == kind(1)
    assert not hasattr(point, "__dict__")


def test_it_can_be_copied_and_sent(kind: type[Point]) -> None:
    point = kind(1, note="kept")
    for twin in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):  # noqa: S301
        assert (twin, twin.note) == (point, "kept")


def test_what_is_missing_is_named_with_the_class(kind: type[Point]) -> None:
    with pytest.raises(TypeError, match=rf"{kind.__name__}.__init__\(\) missing 1 required .*'x'"):
        kind()  # type: ignore[call-arg]


@pytest.mark.parametrize("name", MAKERS)
def test_a_factory_makes_a_new_value_each_time_and_own_methods_stay(name: str) -> None:
    class Own:
        """Has a list, a field that it sets itself, and a way of its own to be shown."""

        items: list[int] = SOURCES[name].field(default_factory=list)
        missing: str = ""
        set_items: str = ""
        make_items: str = ""
        total: int = SOURCES[name].field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", sum(self.items))

        def __repr__(self) -> str:
            return f"own {self.total}"

    made = MAKERS[name](Own)
    assert made().items is not made().items
    assert repr(made([1, 2])) == "own 3"


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_fields_are_inherited(maker: Callable[[type], type]) -> None:
    class Base:
        """Has a field."""

        x: int = 1

    base = maker(Base)

    class More(base):  # type: ignore[valid-type, misc]
        """Adds a field."""

        y: int = 2

    more = maker(More)
    assert repr(more(3)).endswith("More(x=3, y=2)")
    assert more(3) == more(3, 2) != base(3)


@pytest.mark.parametrize("name", MAKERS)
def test_a_field_given_by_name_alone_may_stand_before_a_field_without_default(name: str) -> None:
    class Named:
        """Has a field with a default first."""

        x: int = SOURCES[name].field(default=1, kw_only=True)
        y: int

    named = MAKERS[name](Named)
    assert repr(named(2, x=3)).endswith("Named(x=3, y=2)")
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        named(2, 3)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_values_without_fields_are_equal(maker: Callable[[type], type]) -> None:
    class Empty:
        """Says what it is by its class alone."""

    empty = maker(Empty)
    assert empty() == empty()
    assert len({empty(), empty()}) == 1


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_value_equals_itself_whatever_it_holds_and_keeps_its_hash(maker: Callable[[type], type]) -> None:
    class Single:
        """Has a field, and says itself what is equal to it."""

        x: float

    class Own:  # noqa: PLW1641 - the decorator gives it
        """As above."""

        x: float

        def __eq__(self, other: object) -> bool:
            return True

    value = math.nan
    single = maker(Single)
    assert single(value) == single(value)
    assert isinstance(hash(maker(Own)(1.0)), int)


def test_a_default_that_nobody_would_set_is_refused() -> None:
    class Lost:
        """Has a default that no argument and nothing else gives."""

        x: int = field(init=False, default=1)

    with pytest.raises(TypeError, match=r"Lost\.x: a field without init has no default"):
        frozen(Lost)


def test_what_a_value_is_made_with_is_compiled_with_the_first_value_or_before() -> None:
    @frozen
    class Late:
        """Is compiled when it is used."""

        x: int

    @frozen
    class Early:
        """Is compiled before."""

        x: int

    def compiled(kind: type) -> bool:
        return isinstance(kind.__dict__["__init__"], FunctionType)

    assert not compiled(Late)
    Late(1)
    assert compiled(Late)
    assert not compiled(Early)
    compile_all()
    assert compiled(Early)
    assert Early(1) == Early(x=1)


def test_the_standard_librarys_own_field_is_refused() -> None:
    class Mixed:
        """Describes a field by another module's function."""

        x: int = dataclasses.field(default=1)

    with pytest.raises(TypeError, match=r"Mixed\.x: its field\(\) is not that of nfstuned\.values"):
        frozen(Mixed)


def test_the_standard_library_replaces_and_describes_as_this_does() -> None:
    point = Point(1, names=("a",), note="kept")
    assert dataclasses.replace(point, y=3) == replace(point, y=3) == Point(1, 3, ("a",))
    assert replace(point, y=3).note == "kept"
    if sys.version_info >= (3, 13):
        assert copy.replace(point, y=3) == replace(point, y=3)
    told, meant = fields(Point), fields(Model)
    for one, other in zip(told, meant, strict=True):
        keys = ("name", "type", "default", "default_factory", "init", "repr", "compare", "kw_only")
        assert [getattr(one, key) for key in keys] == [getattr(other, key) for key in keys]
    assert defaults(Point) == {"y": 2, "note": ""}
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replace(point, z=1)  # type: ignore[call-arg]


def test_fields_behind_kw_only_are_given_by_name() -> None:
    @frozen
    class Named:
        """Has one field that is given by its place."""

        x: int
        _: KW_ONLY
        y: int = 2
        z: int

    assert repr(Named(1, z=3)).endswith("Named(x=1, y=2, z=3)")
    assert Named.__match_args__ == ("x",)


def test_a_mutable_value_changes_and_equals_itself_alone() -> None:
    @mutable
    class Filled:
        """Is filled bit by bit."""

        name: str
        items: list[int] = field(default_factory=list)

    value = Filled("a")
    value.items.append(1)
    value.name = "b"
    assert repr(value).endswith("Filled(name='b', items=[1])")
    assert asdict(value) == {"name": "b", "items": [1]}
    assert value == value != Filled("b", [1])  # noqa: PLR0124 - that is what is asked
    assert len({value, Filled("b", [1])}) == 2
    with pytest.raises(AttributeError):
        value.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_what_a_class_has_beside_fields_stays(maker: Callable[[type], type]) -> None:
    """A constant of the class is no field; a classmethod and super() work on the class that is made."""

    class Base:
        """Has a method."""

        x: int
        unit: ClassVar[str] = "kB"

        @classmethod
        def made(cls, x: int) -> object:
            return cls(x)  # type: ignore[call-arg]

        def text(self) -> str:
            return f"{self.x} {self.unit}"

    base: Any = maker(Base)

    class More(base):  # type: ignore[misc]
        """Says more."""

        def text(self) -> str:
            return f"{base.text(self)}!"

    more: Any = maker(More)
    assert more.made(3).text() == "3 kB!"
    assert [member.name for member in fields(more)] == ["x"]
