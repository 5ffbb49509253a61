"""Which keys udev knows, with which operators, attributes and values (systemd: parse_token(), udev-rules.c).

Each function returns udev's messages about a token that it uses all the same, and raises ValueError for a
token that costs the whole rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from nfstuned.model.udev import MATCHES, UdevToken
from nfstuned.parse.udev.tokens import find_mistake

_IMPORTS = ("file", "program", "builtin", "db", "cmdline", "parent")
_BUILTINS = (
    "(?:blkid|btrfs|dissect_image|factory_reset|hwdb|input_id|keyboard|kmod|net_driver|net_id|net_setup_link|"
    r"path_id|uaccess|usb_id)(?![^ \t\n\r])"
)
"""Of all versions and builds: which of them a host has cannot be seen in its rules."""
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
    """Whether the value's substitutions are checked; never those of a match unless `command` is set."""
    nonempty: bool = False
    command: bool = False

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
    "CONST": _Key(attribute="needed"),
    "TAG": _Key((*MATCHES, "=", "+=", "-="), assumed={":=": "="}, checked=True, nonempty=True),
    "ATTR": _SYSFS,
    "SYSCTL": _SYSFS,
    "ATTRS": _Key(attribute="checked"),
    "TEST": _Key(attribute="free", checked=True, nonempty=True, command=True),
    "PROGRAM": _Key(silent=_COMMAND, checked=True, nonempty=True, command=True),
    "IMPORT": _Key(attribute="needed", silent=_COMMAND, checked=True, nonempty=True, command=True),
    "OPTIONS": _Key(("=", ":="), silent={"+=": "="}),
    "OWNER": _PERMISSION,
    "GROUP": _PERMISSION,
    "MODE": _PERMISSION,
    "SECLABEL": _Key(("=", "+="), "needed", {":=": "="}, checked=True, nonempty=True),
    "RUN": _Key(("=", "+=", ":="), "free", checked=True, nonempty=True),
    "GOTO": _Key(("=",)),
    "LABEL": _Key(("=",)),
}


def check_token(token: UdevToken) -> tuple[UdevToken | None, tuple[str, ...]]:
    """Return a token as udev takes it, None where udev passes it over, and udev's messages about it.

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
    token = replace(token, operator=operator)
    if key.checked and (key.command or not token.is_match):
        messages += _check_value(token, nonempty=key.nonempty)
    check = _CHECKS.get(token.key)
    if check is None:
        return token, messages
    try:
        return token, messages + check(token)
    except _PassedOverError as reason:
        return None, (*messages, str(reason))


class _PassedOverError(Exception):
    """udev uses the rule without this token."""


def _check_value(token: UdevToken, *, nonempty: bool) -> tuple[str, ...]:
    mistake = (0, "empty value") if nonempty and not token.value else find_mistake(token.value)
    if mistake is None:
        return ()
    at, hint = mistake
    return (f'Invalid value "{token.value}" for {token.key} (char {at}: {hint}), ignoring.',)


def _name(token: UdevToken) -> tuple[str, ...]:
    if not token.is_match and token.value == "%k":
        raise ValueError('Ignoring NAME="%k", as it will take no effect.')
    if not token.is_match and not token.value:
        raise ValueError('Ignoring NAME="", as udev will not delete any network interfaces.')
    return ()


def _env(token: UdevToken) -> tuple[str, ...]:
    name = token.attribute or ""
    if not token.is_match and re.fullmatch(_OWN, name):
        raise ValueError(f"Invalid ENV attribute. '{name}' cannot be set.")
    return ()


def _const(token: UdevToken) -> tuple[str, ...]:
    if token.attribute not in {"arch", "virt", "cvm"}:
        raise ValueError("Invalid attribute for CONST.")
    return ()


def _subsystem(token: UdevToken) -> tuple[str, ...]:
    return (f'"{token.value}" must be specified as "subsystem".',) if token.value in {"bus", "class"} else ()


def _attrs(token: UdevToken) -> tuple[str, ...]:
    name = token.attribute or ""
    device = ("'device' link may not be available in future kernels.",) if name.startswith("device/") else ()
    upwards = "Direct reference to parent sysfs directory, may break in future kernels."
    return (*device, upwards) if "../" in name else device


def _test(token: UdevToken) -> tuple[str, ...]:
    if token.attribute and not re.fullmatch("0*[0-7]{1,4}", token.attribute):
        raise ValueError(f"Failed to parse mode '{token.attribute}': Invalid argument")
    return ()


def _import(token: UdevToken) -> tuple[str, ...]:
    if token.attribute not in _IMPORTS:
        raise ValueError("Invalid attribute for IMPORT.")
    if token.attribute == "builtin" and not is_builtin(token.value):
        raise ValueError(f"Unknown builtin command: {token.value}")
    return ()


def _run(token: UdevToken) -> tuple[str, ...]:
    if token.attribute not in {None, "program", "builtin"}:
        raise ValueError("Invalid attribute for RUN.")
    if token.attribute == "builtin" and not is_builtin(token.value):
        raise ValueError(f"Unknown builtin command '{token.value}', ignoring.")
    return ()


def _options(token: UdevToken) -> tuple[str, ...]:
    name, _, value = token.value.partition("=")
    if name == "link_priority" and not re.fullmatch(_INTEGER, value):
        raise ValueError(f"Failed to parse link priority '{value}': Invalid argument")
    if name == "log_level" and not re.fullmatch(_LOG_LEVEL, value):
        raise ValueError(f"Failed to parse log level '{value}': Invalid argument")
    if re.fullmatch(_OPTIONS, token.value):
        return ()
    raise _PassedOverError(f"Invalid value for OPTIONS key, ignoring: '{token.value}'")


def _permission(token: UdevToken) -> tuple[str, ...]:
    return () if token.value.isdigit() else _check_value(token, nonempty=True)


def is_builtin(command: str) -> bool:
    """Return whether a command is a builtin of udev."""
    return re.match(_BUILTINS, command.lstrip(" \t\n\r")) is not None


_CHECKS: Mapping[str, Callable[[UdevToken], tuple[str, ...]]] = {
    "NAME": _name,
    "ENV": _env,
    "CONST": _const,
    "SUBSYSTEM": _subsystem,
    "ATTRS": _attrs,
    "TEST": _test,
    "IMPORT": _import,
    "RUN": _run,
    "OPTIONS": _options,
    "OWNER": _permission,
    "GROUP": _permission,
    "MODE": _permission,
}
