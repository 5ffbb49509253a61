"""Frozen values: each promise of `dataclass(frozen=True, slots=True)`, beside that very decorator."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest

from nfstuned.frozen import frozen

MAKERS = {"frozen": frozen, "dataclass": dataclass(frozen=True, slots=True)}


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
    names: tuple[str, ...] = field(default_factory=tuple)
    note: str = field(default="", compare=False, repr=False)


@pytest.fixture(params=[Point, Model], ids=["frozen", "dataclass"])
def kind(request: pytest.FixtureRequest) -> type[Point]:
    kind: type[Point] = request.param
    return kind


def test_it_is_made_shown_and_taken_apart_as_a_dataclass(kind: type[Point]) -> None:
    point = kind(1, names=("a",))
    assert repr(point) == f"{kind.__name__}(x=1, y=2, names=('a',))"
    assert asdict(point) == {"x": 1, "y": 2, "names": ("a",), "note": ""}
    assert [member.name for member in fields(point)] == ["x", "y", "names", "note"]
    assert replace(point, y=3) == kind(1, 3, ("a",))
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


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_factory_makes_a_new_value_each_time_and_own_methods_stay(
    maker: Callable[[type], type],
) -> None:
    class Own:
        """Has a list, a field that it sets itself, and a way of its own to be shown."""

        items: list[int] = field(default_factory=list)
        missing: str = ""
        set_items: str = ""
        make_items: str = ""
        total: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", sum(self.items))

        def __repr__(self) -> str:
            return f"own {self.total}"

    made = maker(Own)
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


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_field_given_by_name_alone_may_stand_before_a_field_without_default(
    maker: Callable[[type], type],
) -> None:
    class Named:
        """Has a field with a default first."""

        x: int = field(default=1, kw_only=True)
        y: int

    named = maker(Named)
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
