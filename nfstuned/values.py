"""Values: what `dataclass(slots=True)` makes of a class, in a tenth of the time.

A command defines some 150 classes of values before it does anything. The standard library compiles six
methods for each, and loads `inspect`, a tokenizer and a parser to do so. Here a class is made from the names
of its fields: `__init__` is compiled when the first value is made, and the other methods are shared, or
compare fields through `operator.attrgetter`. The class is a dataclass all the same: `fields`, `asdict`,
`match` and pickle work on its values, and what the standard library wants to know is made when it first asks.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import KW_ONLY, field, replace
    from types import FunctionType
    from typing import Any, NoReturn, Protocol, TypeVar

    from typing_extensions import dataclass_transform

    T = TypeVar("T")

    class Value(Protocol):
        """What the decorators make."""

        __value_fields__: dict[str, _Member]
else:

    class KW_ONLY:  # noqa: N801 - the name that the standard library gives it
        """As the type of `_`: the fields after it are given by name alone."""

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """Stand in for PEP 681's decorator, which says something to type checkers only."""
        return lambda decorator: decorator

    def field(**words: object) -> _Words:
        """Say more of a field than its type, by the words of `dataclasses.field`."""
        return _Words(words)

    def replace(value: T, /, **changes: object) -> T:
        """Return a value with these fields changed and the others as in this one."""
        for name, member in value.__value_fields__.items():
            if member.init and name not in changes:
                changes[name] = getattr(value, name)
        return type(value)(**changes)


__all__ = ("KW_ONLY", "compile_all", "defaults", "field", "frozen", "mutable", "replace")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Return a dataclass with slots, whose values do not change and are equal where their fields are.

    A method that the class defines itself stays. Raises TypeError for a field with a default that is not
    among the arguments, which `__post_init__` has to set, and for one that `dataclasses.field` describes.
    """
    return _made(cls, {"__setattr__": _refuse, "__delattr__": _refuse}, compared=True)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """Return a dataclass with slots, for what is filled bit by bit: its values equal themselves alone.

    A method that the class defines itself stays. Raises TypeError as `frozen` does.
    """
    return _made(cls, {}, compared=False)


def defaults(cls: type) -> dict[str, object]:
    """Return the defaults of the fields that have one, but for those that a factory makes."""
    members: dict[str, _Member] = cls.__value_fields__  # type: ignore[attr-defined]  # of what is made here
    return {name: member.default for name, member in members.items() if member.default is not _MISSING}


def compile_all() -> None:
    """Compile now what the first value of each class would wait for."""
    while _UNMADE:
        _UNMADE.pop().__init__  # noqa: B018 - whoever asks for it has it compiled


class _Missing:
    """No default, and no argument."""


_MISSING = _Missing()


class _Words:
    """What a class says of a field in place of its default."""

    __slots__ = ("words",)

    def __init__(self, words: dict[str, Any]) -> None:
        self.words = words


class _Member:
    """A field: its name and type, and what `field` said of it."""

    __slots__ = ("default", "factory", "init", "name", "positional", "type", "words")

    def __init__(self, name: str, annotation: str, words: dict[str, Any]) -> None:
        self.name = name
        self.type = annotation
        self.words = words
        self.default = words.get("default", _MISSING)
        self.factory = words.get("default_factory", _MISSING)
        self.init = words.get("init", True)
        self.positional = self.init and not words.get("kw_only", False)


def _made(cls: type[T], methods: dict[str, Any], *, compared: bool) -> type[T]:
    inherited: dict[str, _Member] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= base.__dict__.get("__value_fields__", {})
    own = _members(cls)
    members = inherited | own
    body = _SHARED | methods
    if compared:
        body |= _comparison(tuple(name for name in members if members[name].words.get("compare", True)))
    body["__init__"] = _Init()
    body["__match_args__"] = tuple(name for name in members if members[name].positional)
    # Python gives a class with its own __eq__ the __hash__ None.
    body |= {name: value for name, value in cls.__dict__.items() if name not in body or value is not None}
    for name in (*own, "__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    body["__value_fields__"] = members
    kind: Any = type(cls)
    made: type[T] = kind(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _members(cls: type) -> dict[str, _Member]:
    """Return the fields that the class itself names, in their order."""
    members = {}
    by_name: dict[str, Any] = {}
    for name, annotation in cls.__annotations__.items():
        kind = annotation.partition("[")[0].rpartition(".")[2]
        if kind == "KW_ONLY":
            by_name = {"kw_only": True}
        elif kind != "ClassVar":
            said = cls.__dict__.get(name, _MISSING)
            if type(said).__module__ == "dataclasses":
                raise TypeError(f"{cls.__qualname__}.{name}: its field() is not that of nfstuned.values")
            default = {} if said is _MISSING else {"default": said}
            words = said.words if isinstance(said, _Words) else default
            if not words.get("init", True) and words.keys() & {"default", "default_factory"}:
                raise TypeError(f"{cls.__qualname__}.{name}: a field without init has no default")
            members[name] = _Member(name, annotation, by_name | words)
    return members


class _Init:
    """`__init__`, until a value is made or somebody asks for its arguments: then it is compiled."""

    __slots__ = ("owner",)

    def __set_name__(self, owner: type[Value], _: str) -> None:
        self.owner = owner
        _UNMADE.append(owner)

    def __get__(self, value: object, _: type | None = None) -> object:
        method = _init(self.owner)
        self.owner.__init__ = method  # type: ignore[method-assign]  # this very one
        return method if value is None else method.__get__(value)


_UNMADE: list[type[Value]] = []
"""The classes whose `__init__` `compile_all` has not asked for."""


def _init(made: type[Value]) -> FunctionType:
    """Compile `__init__`: it sets each field through its slot, past the `__setattr__` that refuses.

    Its own names begin with an underscore, as no field that one gives does.
    """
    names: dict[str, Any] = {"_missing": _MISSING}
    parameters = ["self"]
    by_name: list[str] = []
    body = []
    given = [member for member in made.__value_fields__.values() if member.init]
    for member in given:
        name = value = parameter = member.name
        names[f"_set_{name}"] = getattr(made, name).__set__
        if member.default is not _MISSING:
            names[f"_default_{name}"] = member.default
            parameter = f"{name}=_default_{name}"
        elif member.factory is not _MISSING:
            names[f"_make_{name}"] = member.factory
            parameter = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        (parameters if member.positional else by_name).append(parameter)
        body.append(f"_set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    if by_name:
        parameters += ["*", *by_name]
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(text, names)  # noqa: S102  # nothing but names of fields is in the text
    init: FunctionType = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"  # a TypeError shows it
    init.__annotations__ = {member.name: member.type for member in given} | {"return": "None"}
    return init


def _comparison(names: tuple[str, ...]) -> dict[str, Any]:
    """Return `__eq__` and `__hash__` by the fields that are compared."""
    # Of a single name it would get the bare value, and a number that is none is not equal to itself.
    twice = names * 2 if len(names) == 1 else names
    key: Callable[[object], object] = attrgetter(*twice) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed}


class _AsDataclass:
    """`__dataclass_fields__`, by which the standard library knows a dataclass: made when it asks."""

    def __get__(self, _: object, owner: type[Value]) -> object:
        import dataclasses  # noqa: PLC0415 - few commands take values apart

        members = owner.__value_fields__.values()
        described = [(member.name, member.type, dataclasses.field(**member.words)) for member in members]
        twin: Any = dataclasses.make_dataclass(owner.__name__, described, init=False, repr=False, eq=False)
        owner.__dataclass_fields__ = twin.__dataclass_fields__  # type: ignore[attr-defined]  # as there
        return twin.__dataclass_fields__


def _repr(self: Value) -> str:
    members = self.__value_fields__.values()
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in members if one.words.get("repr", True))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(_: object, name: str, *__: object) -> NoReturn:
    import dataclasses  # noqa: PLC0415 - nobody changes a value

    message = f"{name!r} is a field of a frozen value"
    raise dataclasses.FrozenInstanceError(message)


def _state(self: Value) -> list[object]:
    return [getattr(self, name) for name in self.__value_fields__]


def _restore(self: Value, state: list[object]) -> None:
    for name, value in zip(self.__value_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED: dict[str, Any] = {
    "__repr__": _repr,
    "__replace__": replace,
    "__getstate__": _state,
    "__setstate__": _restore,
    "__dataclass_fields__": _AsDataclass(),
}
