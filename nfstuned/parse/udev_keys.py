"""The tokens of udev rules, and the keys with their operators, attributes and values (systemd: udev-rules.c).

Each function returns udev's messages about a token that it uses all the same, and raises ValueError for a
token that costs the whole rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nfstuned.model.udev import MATCHES, UdevToken

_BUILTINS = (
    "(?:blkid|btrfs|dissect_image|factory_reset|hwdb|input_id|keyboard|kmod|net_driver|net_id|net_setup_link|"
    r"path_id|uaccess|usb_id)(?![^ \t\n\r])"
)
"""The builtins of all versions and builds: a host's own cannot be seen in its rules."""
_OWN = (
    "ACTION|SEQNUM|SYNTH_UUID|SYNTH_ARG_.*|DEVPATH|DEVPATH_OLD|SUBSYSTEM|DEVTYPE|DRIVER|MODALIAS|DEVNAME|"
    "DEVMODE|DEVUID|DEVGID|MAJOR|MINOR|DISKSEQ|PARTN|IFINDEX|INTERFACE|INTERFACE_OLD|DEVLINKS|TAGS|"
    "CURRENT_TAGS|USEC_INITIALIZED|UDEV_DATABASE_VERSION"
)
"""Properties that rules cannot set (device_property_can_set(); systemd 252 refuses about half of them)."""
_OPTIONS = (
    "(?s)dump|string_escape=none|string_escape=replace|db_persist|watch|nowatch|"
    "(?:static_node|link_priority|log_level)=.*"
)
_INTEGER = r"[ \t\n\r]*[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)"
_LOG_LEVEL = "emerg|alert|crit|err|warning|notice|info|debug|[0-7]|reset"


@dataclass(frozen=True, slots=True)
class _Key:
    """The operators and forms that udev takes of a key."""

    operators: tuple[str, ...] = MATCHES
    """The operators that count; others are taken for these, or are invalid."""
    attribute: str = "none"
    """Whether braces are needed, free, or not allowed: "none", "free", "needed", or "checked"."""
    assumed: Mapping[str, str] = field(default_factory=dict)
    """The operator that udev takes instead of others, with a message."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """The operator that it takes instead of others, without a message."""
    checked: bool = False
    """Whether the value's substitutions are checked, in matches only where `command` is set."""
    nonempty: bool = False
    command: bool = False
    attributes: tuple[str | None, ...] = ()
    """The only texts in braces that udev knows, None for no braces; () for any text."""

    @property
    def alternatives(self) -> str:
        """The operators as udev names them in a message: "'==', '!=', or '='"."""
        *most, last = (f"'{operator}'" for operator in self.operators if operator != "-=")
        return f"{', '.join(most)}{',' if len(most) > 1 else ''} or {last}"

    def check_attribute(self, token: UdevToken) -> tuple[str, ...]:
        """Return udev's messages about a token's braces; ValueError where they cost the whole rule."""
        needed = self.attribute in {"needed", "checked"}
        if (needed and not token.attribute) or (self.attribute == "none" and token.attribute is not None):
            raise ValueError(f"Invalid attribute for {token.key}.")
        mistake = find_mistake(token.attribute or "") if self.attribute == "checked" else None
        if mistake is None:
            return ()
        at, hint = mistake
        return (f'Invalid attribute "{token.attribute}" for {token.key} (char {at}: {hint}), ignoring.',)


_COMMAND = {"=": "==", "+=": "==", ":=": "=="}
_SYSFS = _Key(("==", "!=", "="), "checked", {"+=": "=", ":=": "="}, checked=True)
_PERMISSION = _Key(("=", ":="), assumed={"+=": "="})
KEYS: Mapping[str, _Key] = {
    **dict.fromkeys(("ACTION", "DEVPATH", "RESULT", "KERNEL", "SUBSYSTEM", "DRIVER"), _Key()),
    **dict.fromkeys(("KERNELS", "SUBSYSTEMS", "DRIVERS", "TAGS"), _Key()),
    "SYMLINK": _Key((*MATCHES, "=", "+=", "-=", ":="), checked=True),
    "NAME": _Key((*MATCHES, "=", ":="), assumed={"+=": "="}, checked=True),
    "ENV": _Key((*MATCHES, "=", "+="), "needed", {":=": "="}, checked=True),
    "CONST": _Key(attribute="needed", attributes=("arch", "virt", "cvm")),
    "TAG": _Key((*MATCHES, "=", "+=", "-="), assumed={":=": "="}, checked=True, nonempty=True),
    "ATTR": _SYSFS,
    "SYSCTL": _SYSFS,
    "ATTRS": _Key(attribute="checked"),
    "TEST": _Key(attribute="free", checked=True, nonempty=True, command=True),
    "PROGRAM": _Key(silent=_COMMAND, checked=True, nonempty=True, command=True),
    "IMPORT": _Key(
        attribute="needed",
        attributes=("file", "program", "builtin", "db", "cmdline", "parent"),
        silent=_COMMAND,
        checked=True,
        nonempty=True,
        command=True,
    ),
    "OPTIONS": _Key(("=", ":="), silent={"+=": "="}),
    "OWNER": _PERMISSION,
    "GROUP": _PERMISSION,
    "MODE": _PERMISSION,
    "SECLABEL": _Key(("=", "+="), "needed", {":=": "="}, checked=True, nonempty=True),
    "RUN": _Key(
        ("=", "+=", ":="), "free", checked=True, nonempty=True, attributes=(None, "program", "builtin")
    ),
    "GOTO": _Key(("=",)),
    "LABEL": _Key(("=",)),
}


def check_token(token: UdevToken) -> tuple[UdevToken | None, tuple[str, ...]]:
    """Return a token in udev's reading, None where udev passes it over, and udev's messages about it.

    Raises ValueError where udev drops the rule. SYMLINK-= is new since systemd 252, and so is CONST{cvm}:
    252 drops the rule. OPTIONS="dump" is new too: 252 passes that over.
    """
    key = KEYS.get(token.key)
    if key is None:
        raise ValueError(f"Invalid key '{token.key}'.")
    if token.ignore_case and (not token.is_match or key.command):
        raise ValueError(f"Invalid prefix 'i' for '{token.key}'.")
    messages = key.check_attribute(token)
    operator = key.assumed.get(token.operator) or key.silent.get(token.operator) or token.operator
    if operator not in key.operators:
        raise ValueError(f"Invalid operator for {token.key}.")
    if token.operator in key.assumed:
        messages += (f"{token.key} key takes {key.alternatives} operator, assuming '='.",)
    token = token._replace(operator=operator)
    if key.checked and (key.command or not token.is_match):
        messages += _check_value(token, nonempty=key.nonempty)
    if key.attributes and token.attribute not in key.attributes:
        raise ValueError(f"Invalid attribute for {token.key}.")
    if refusal := _refusal(token):
        raise ValueError(refusal)
    if token.key == "OPTIONS" and not re.fullmatch(_OPTIONS, token.value):
        return None, (*messages, f"Invalid value for OPTIONS key, ignoring: '{token.value}'")
    return token, messages + _remarks(token)


def _check_value(token: UdevToken, *, nonempty: bool) -> tuple[str, ...]:
    mistake = (0, "empty value") if nonempty and not token.value else find_mistake(token.value)
    if mistake is None:
        return ()
    at, hint = mistake
    return (f'Invalid value "{token.value}" for {token.key} (char {at}: {hint}), ignoring.',)


def _remarks(token: UdevToken) -> tuple[str, ...]:
    """Return udev's messages about the value or the attribute of a token that it uses all the same."""
    if token.key == "SUBSYSTEM" and token.value in {"bus", "class"}:
        return (f'"{token.value}" must be specified as "subsystem".',)
    if token.key in {"OWNER", "GROUP", "MODE"} and not token.value.isdigit():
        return _check_value(token, nonempty=True)
    if token.key != "ATTRS":
        return ()
    name = token.attribute or ""
    device = ("'device' link may not be available in future kernels.",) if name.startswith("device/") else ()
    upwards = "Direct reference to parent sysfs directory, may break in future kernels."
    return (*device, upwards) if "../" in name else device


def is_builtin(command: str) -> bool:
    """Return whether a command is a builtin of udev."""
    return re.match(_BUILTINS, command.lstrip(" \t\n\r")) is not None


def _refusal(token: UdevToken) -> str:
    """Return udev's message about a token for which it drops the rule, "" for any other token."""
    key, attribute, value = token.key, token.attribute or "", token.value
    assigns, (option, _, number) = not token.is_match, value.partition("=")
    unknown = attribute == "builtin" and not is_builtin(value)
    refusals = (
        (key == "NAME" and assigns and value == "%k", 'Ignoring NAME="%k", as it will take no effect.'),
        (
            key == "NAME" and assigns and not value,
            'Ignoring NAME="", as udev will not delete any network interfaces.',
        ),
        (
            key == "ENV" and assigns and re.fullmatch(_OWN, attribute),
            f"Invalid ENV attribute. '{attribute}' cannot be set.",
        ),
        (
            key == "TEST" and attribute and not re.fullmatch("0*[0-7]{1,4}", attribute),
            f"Failed to parse mode '{attribute}': Invalid argument",
        ),
        (key == "IMPORT" and unknown, f"Unknown builtin command: {value}"),
        (key == "RUN" and unknown, f"Unknown builtin command '{value}', ignoring."),
        (
            key == "OPTIONS" and option == "link_priority" and not re.fullmatch(_INTEGER, number),
            f"Failed to parse link priority '{number}': Invalid argument",
        ),
        (
            key == "OPTIONS" and option == "log_level" and not re.fullmatch(_LOG_LEVEL, number),
            f"Failed to parse log level '{number}': Invalid argument",
        ),
    )
    return next((message for refused, message in refusals if refused), "")


_NAMES = (
    "devnode|tempnode|attr|sysfs|env|kernel|number|driver|devpath|id|major|minor|"
    "result|parent|name|links|root|sys"
)
_LONG_NAMES = {"c": "result", "s": "attr", "E": "env", "k": "kernel", "p": "devpath"}
_SIGN = re.compile(rf"\$\$|%%|\$({_NAMES})|%([NsEkndpbMmcPDLrS])|[$%]")
_BRACES = re.compile(r"\{([^}]{1,1023})\}")
_NUMBER = re.compile(r"[0-9]+\+?")
_INVALID_TYPE = "invalid substitution type"


def find_mistake(value: str) -> tuple[int, str] | None:
    """Return where the first wrong substitution is, counted from 1, and the reason, or None.

    As udev_check_format() of systemd's src/udev/udev-format.c judges it when rules are read. Applying them is
    more lenient: there a `$4` stays as it is.
    """
    for name, inside, start, end in _substitutions(value):
        if name is None:
            return start + 1, _INVALID_TYPE
        if name in {"attr", "sysfs", "env"} and not inside:
            return end + 1, "attribute value missing"
        if name == "result" and inside and not _NUMBER.fullmatch(inside):
            return end + 1, "attribute value not a valid number"
    return None


def uses_result(value: str) -> bool:
    """Return whether a value contains the output of a program."""
    return any(name == "result" for name, *_ in _substitutions(value))


def is_literal(value: str) -> bool:
    """Return whether a value has no substitutions."""
    return "%" not in value and "$" not in value


def _substitutions(value: str) -> Iterator[tuple[str | None, str, int, int]]:
    """Yield each substitution's name (None if unknown), the text in its braces, its start and its end."""
    at = 0
    while sign := _SIGN.search(value, at):
        at = sign.end()
        if sign[0] in {"$$", "%%"}:
            continue
        name, inside = sign[1] or _LONG_NAMES.get(sign[2], sign[2]), ""
        if name and value.startswith("{", at):
            braces = _BRACES.match(value, at)
            name, inside, at = (name, braces[1], braces.end()) if braces else (None, "", at)
        yield name, inside, sign.start(), at


_BETWEEN = re.compile(r"[ \t\n\r,]*")
_KEY = re.compile(r"(.*?)(?=[ \t\n\r={]|[-+!:]=)", re.DOTALL)
_ATTRIBUTE = re.compile(r"\{([^}]*)\}")
_OPERATOR = re.compile(r"[ \t\n\r]*(==|!=|\+=|-=|=|:=)[ \t\n\r]*")
_PLAIN = re.compile(r'(i?)"((?:[^"\\]|\\"|\\(?!"))*)"')
_ESCAPED = re.compile(r'(e|ei|ie)"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtvs\\\"'])|x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"
)
_LETTERS = dict(zip("abfnrtvs\\\"'", "\a\b\f\n\r\t\v \\\"'", strict=True))
_BYTE, _ASCII, _LAST_CHARACTER = 0xFF, 0x80, 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_INVALID = "Invalid key/value pair, ignoring."


def split_tokens(text: str) -> Iterator[UdevToken]:
    """Yield a rule's tokens as they are written; see parse_line() of udev-rules.c.

    Commas and spaces between tokens are optional. Raises ValueError at text that is no token: udev then drops
    the whole rule. A prefix i is understood by systemd newer than 252, which takes it for such an error.
    """
    at = _skip(text, 0)
    while at < len(text):
        key = _demand(_KEY.match(text, at))
        attribute, end = None, key.end()
        if text.startswith("{", end):
            braces = _demand(_ATTRIBUTE.match(text, end))
            attribute, end = braces[1], braces.end()
        operator = _demand(_OPERATOR.match(text, end))
        if plain := _PLAIN.match(text, operator.end()):
            value = plain[2].replace('\\"', '"')
            yield UdevToken(key[1], attribute, operator[1], value, ignore_case=bool(plain[1]))
            at = _skip(text, plain.end())
            continue
        escaped = _demand(_ESCAPED.match(text, operator.end()))
        value = _ESCAPE.sub(_unescape, escaped[2])
        prefix = escaped[1]
        yield UdevToken(key[1], attribute, operator[1], value, escaped=True, ignore_case="i" in prefix)
        at = _skip(text, escaped.end())


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _demand(match: re.Match[str] | None) -> re.Match[str]:
    if match is None:
        raise ValueError(_INVALID)
    return match


def _unescape(match: re.Match[str]) -> str:
    """Return the character of an escape; see cunescape_one() of src/basic/escape.c. NUL is refused."""
    letter, hexadecimal, octal, *unicode = match.groups()
    if letter:
        return _LETTERS[letter]
    if hexadecimal or octal:
        byte = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
        if not 0 < byte <= _BYTE:
            raise ValueError(_INVALID)
        return chr(byte) if byte < _ASCII else chr(0xDC00 + byte)
    code = int(unicode[0] or unicode[1] or "0", 16)
    if not 0 < code <= _LAST_CHARACTER or code in _SURROGATES:
        raise ValueError(_INVALID)
    return chr(code)
