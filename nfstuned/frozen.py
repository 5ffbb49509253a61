"""Frozen values: what `dataclass(frozen=True, slots=True)` makes of a class, in a third of the time.

A command defines some 150 classes of values before it does anything, and the standard library compiles six
methods for each: half of the time of `nfstuned status`. Here `__init__` alone is compiled; the other methods
are shared, or compare fields through `operator.attrgetter`. The class is a dataclass all the same: `fields`,
`replace`, `asdict`, `match` and pickle work on its values.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """Stand in for PEP 681's decorator, which says something to type checkers only."""
        return lambda decorator: decorator


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Return a dataclass with slots, whose values do not change and are equal where their fields are.

    A method that the class defines itself stays. Raises TypeError for a field with a default that is not
    among the arguments: `__post_init__` has to set those.
    """
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    values = cast("type[DataclassInstance]", made)
    methods = {**_SHARED, **_comparison(values), "__init__": _init(values)}
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:  # Python gives a class with its own __eq__ the __hash__ None
            setattr(made, name, method)
    return made


def _init(made: type[DataclassInstance]) -> object:
    """Compile `__init__`: it sets each field through its slot, past the `__setattr__` that refuses.

    Its own names begin with an underscore, as no field that one gives does.
    """
    names: dict[str, object] = {"_missing": MISSING}
    parameters = ["self"]
    by_name: list[str] = []
    body = []
    given = [member for member in fields(made) if member.init]
    for member in fields(made):
        if not member.init and (member.default, member.default_factory) != (MISSING, MISSING):
            message = f"{made.__qualname__}.{member.name}: a field without init has no default"
            raise TypeError(message)
    for member in given:
        name = value = parameter = member.name
        names[f"_set_{name}"] = getattr(made, name).__set__
        if member.default is not MISSING:
            names[f"_default_{name}"] = member.default
            parameter = f"{name}=_default_{name}"
        elif member.default_factory is not MISSING:
            names[f"_make_{name}"] = member.default_factory
            parameter = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        (by_name if member.kw_only else parameters).append(parameter)
        body.append(f"_set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    if by_name:
        parameters += ["*", *by_name]
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(text, names)  # noqa: S102  # nothing but names of fields is in the text
    init = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"  # type: ignore[attr-defined]  # a TypeError shows it
    init.__annotations__ = {member.name: member.type for member in given} | {"return": "None"}
    return init


def _comparison(made: type[DataclassInstance]) -> dict[str, object]:
    """Return `__eq__` and `__hash__` by the fields that are compared."""
    names = [member.name for member in fields(made) if member.compare]
    # Of a single name it would get the bare value, and a number that is none is not equal to itself.
    twice = names * 2 if len(names) == 1 else names
    key: Callable[[object], object] = attrgetter(*twice) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed}


def _repr(self: DataclassInstance) -> str:
    shown = (f"{member.name}={getattr(self, member.name)!r}" for member in fields(self) if member.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(_: object, name: str, *__: object) -> NoReturn:
    message = f"{name!r} is a field of a frozen value"
    raise FrozenInstanceError(message)


def _state(self: DataclassInstance) -> list[object]:
    return [getattr(self, member.name) for member in fields(self)]


def _restore(self: DataclassInstance, state: list[object]) -> None:
    for member, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, member.name, value)


_SHARED: dict[str, object] = {
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
