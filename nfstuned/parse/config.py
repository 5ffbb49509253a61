"""The tables of nfstuned.toml: keys, types, and the allowed values in words.

The validators of pydantic return the value that the policy has, or raise ValueError with the allowed values;
with an empty text the description of the key counts.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_interface, ip_network
from posixpath import normpath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from nfstuned.model.policy import LEAST_KB, MOST_KB, SIZE_UNITS
from nfstuned.parse.toml import shown

MOST_MOUNTS = 10_000
PROFILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
DURATION = r"^(0|[1-9][0-9]{0,4}[smh])$"
_UNITS = {"s": 1, "m": 60, "h": 3600}
SIZE = r"^(0|[1-9][0-9]{0,5}[KMG])$"
_LEAST_BYTES, _MOST_BYTES = 64 << 10, 64 << 30
FILE = r"^/([^/\u0000-\u001f\u007f]+/)*[^/\u0000-\u001f\u007f]+$"
_LONGEST_S = 86400
TIMES_RSIZE = r"^[1-9][0-9]?\*rsize$"
NFS_VERSION = r"^(3|4\.[0-2])$"
TEXTFILE = r"^/.+\.prom$"


def checked_duration(value: object) -> float:
    """Return the seconds of "60s", "5m" or "1h", at most a day; "0" is 0."""
    if not isinstance(value, str) or not re.fullmatch(DURATION, value):
        raise ValueError
    seconds = 0 if value == "0" else int(value[:-1]) * _UNITS[value[-1]]
    if seconds > _LONGEST_S:
        raise ValueError
    return float(seconds)


def checked_size(value: object) -> int:
    """Return the bytes of "64K", "16M" or "1G" (powers of 1024), from 64 KiB to 64 GiB; "0" is 0."""
    if not isinstance(value, str) or not re.fullmatch(SIZE, value):
        raise ValueError
    number = 0 if value == "0" else int(value[:-1]) * SIZE_UNITS[value[-1]]
    if number and not _LEAST_BYTES <= number <= _MOST_BYTES:
        raise ValueError
    return number


def checked_file(value: object) -> str:
    """Return the absolute path of a file, without `.` and `..`; "" for none."""
    if isinstance(value, str):
        named = re.fullmatch(FILE, value) and not {".", ".."} & set(value.split("/"))
        if named or not value:
            return value
    raise ValueError


def checked_read_ahead(value: object) -> object:
    """Return a number of KiB within the bounds, or "15*rsize", as it is."""
    if isinstance(value, str) and re.fullmatch(TIMES_RSIZE, value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and LEAST_KB <= value <= MOST_KB:
        return value
    raise ValueError


def checked_globs(value: object) -> tuple[str, ...]:
    """Return the patterns as a tuple; a single pattern needs no list."""
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise ValueError
    return tuple(patterns)


def checked_versions(value: object) -> tuple[str, ...]:
    """Return versions of NFS as a tuple; a single version needs no list, and a list may be empty."""
    named = () if value == [] else checked_globs(value)
    if not all(re.fullmatch(NFS_VERSION, version) for version in named):
        raise ValueError
    return named


def checked_servers(value: object) -> tuple[str, ...]:
    """Return server patterns: globs, addresses and networks.

    A malformed address or network is refused: as a glob it would match nothing.
    """
    patterns = checked_globs(value)
    for pattern in patterns:
        try:
            if "/" in pattern:
                ip_network(pattern)
            elif re.fullmatch(r"[0-9.]+|\[?[^][*?]*:[^][*?]*\]?", pattern):
                # No name has a colon; a scope counts nowhere, and need not be one.
                ip_address(re.sub(r"^\[(.*)\]$", r"\1", pattern).partition("%")[0])
        except ValueError as error:  # noqa: PERF203 - a handful
            raise ValueError(
                f"{shown(pattern)} is not an address or network ({error}); {_allowed_server(pattern)}"
            ) from None
    return patterns


def _allowed_server(pattern: str) -> str:
    try:
        network = ip_interface(pattern).network
    except ValueError:
        return 'allowed: an address, a network such as "10.1.2.0/24", or a glob such as "*.example.com"'
    return f"allowed: {network} for the network"


def checked_textfile(value: object) -> str:
    """Return an absolute path that ends with .prom, as it is: node_exporter reads no other files."""
    if not (
        isinstance(value, str)
        and re.fullmatch(TEXTFILE, value)
        and value.isprintable()
        and normpath(value) == value
    ):
        raise ValueError
    return value


def _number(least: int, most: int, unit: str = "") -> Any:  # noqa: ANN401 - pydantic's Field is Any, too
    return Field(default_factory=int, ge=least, le=most, description=f"a number from {least} to {most}{unit}")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DaemonTable(_Table):
    """How the daemon works."""

    sample_interval: Annotated[
        float, BeforeValidator(checked_duration), WithJsonSchema({"type": "string", "pattern": DURATION})
    ] = Field(
        default_factory=float,
        description='a duration such as "60s", "5m" or "1h", at most "24h"; "0" for no samples',
    )
    restore_on_stop: bool = Field(default=False, description="true or false")
    mode: Literal["tune", "observe"] = Field(default="tune", description='"tune" or "observe"')


class SamplesTable(_Table):
    """The file for samples, in addition to the journal."""

    file: Annotated[
        str, BeforeValidator(checked_file), WithJsonSchema({"type": "string", "pattern": "^(/.*[^/])?$"})
    ] = Field(
        default_factory=str,
        description='the absolute path of a file such as "/var/log/nfstuned/samples.jsonl"; "" for none',
    )
    max_size: Annotated[
        int, BeforeValidator(checked_size), WithJsonSchema({"type": "string", "pattern": SIZE})
    ] = Field(
        default_factory=int,
        description='a size such as "512K", "16M" or "1G", from "64K" to "64G"; "0" for no rotation',
    )
    keep: int = _number(0, 99)


class PrometheusTable(_Table):
    """The metrics of the service."""

    textfile: Annotated[
        str, BeforeValidator(checked_textfile), WithJsonSchema({"type": "string", "pattern": TEXTFILE})
    ] = Field(default_factory=str, description="an absolute path without .. that ends with .prom")
    max_mounts: int = _number(1, MOST_MOUNTS)


class ProviderTable(_Table):
    """The signs of a provider's servers; only nfstuned's own files have such tables."""

    model_config = ConfigDict(strict=False)

    servers: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()
    name_form: str = ""
    client_options: tuple[str, ...] = ()
    implementation: str = ""
    azure: bool = False
    title: str = ""
    versions: tuple[str, ...] = ()
    flavours: tuple[str, ...] = ()
    absent_dialects: tuple[str, ...] = ()
    export: str = ""
    locks: bool = True
    noresvport: str = ""
    noresvport_before: str = Field(default="", pattern=r"^[0-9]+\.[0-9]+$")
    noresvport_by_client: bool = False
    limits: str = ""


class NconnectTable(_Table):
    """The ways to deal with nconnect."""

    mode: Literal["advise", "persist"] = Field(default="advise", description='"advise" or "persist"')


_StringOrList = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
        ]
    }
)
_Servers = Annotated[tuple[str, ...], BeforeValidator(checked_servers), _StringOrList]
_Globs = Annotated[tuple[str, ...], BeforeValidator(checked_globs), _StringOrList]
_Version: dict[str, Any] = {"type": "string", "pattern": NFS_VERSION}
_Versions = Annotated[
    tuple[str, ...],
    BeforeValidator(checked_versions),
    WithJsonSchema({"anyOf": [_Version, {"type": "array", "items": _Version}]}),
]


class MatchTable(_Table):
    """The mounts of an entry; all given patterns must match, and an empty table matches all mounts."""

    server: _Servers = Field(
        default_factory=tuple, description="a glob, an address or a network, or a list of them"
    )
    export: _Globs = Field(default_factory=tuple, description='a glob such as "/vol1*", or a list of them')
    mount_point: _Globs = Field(
        default_factory=tuple, description='a glob such as "/data/*", or a list of them'
    )


_Adapt = Literal["off", "down", "on"]
_ADAPT: Any = Field(default_factory=str, description='"off", "down" or "on"')


class PolicyTable(_Table):
    """Mounts that match get the profile, or their provider's, as their workload changes it."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("profile", "workload", "adapt")]}
    )

    match: MatchTable = Field(description="a table with server, export or mount_point")
    profile: str = Field(default_factory=str, description="the name of a profile")
    workload: str = Field(default_factory=str, description="the name of a workload")
    adapt: _Adapt = _ADAPT


class SourceTable(_Table):
    """Who recommends the numbers of a profile."""

    keys: _Globs = Field(description="a key of the profile, or a list of them")
    title: str = Field(default_factory=str, description="a string")
    url: str = Field(pattern=r"^https?://\S+$", description="an http or https address")
    read: str = Field(
        pattern=r"^\d{4}-\d{2}(-\d{2})?$", description='a date such as "2026-07-29" or "2026-07"'
    )


_ReadAheadKb = Annotated[
    int | str,
    BeforeValidator(checked_read_ahead),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": LEAST_KB, "maximum": MOST_KB},
                {"type": "string", "pattern": TIMES_RSIZE},
            ]
        }
    ),
]


class ProfileTable(_Table):
    """The settings for one kind of server; a missing key is inherited, or means no opinion."""

    inherits: str = Field(default_factory=str, description="the name of another profile")
    read_ahead_kb: _ReadAheadKb = Field(
        default_factory=int, description=f'a number of KiB from {LEAST_KB} to {MOST_KB}, or "15*rsize"'
    )
    read_ahead_max_kb: int = _number(LEAST_KB, MOST_KB, " KiB")
    lower: bool = Field(default=False, description="true or false")
    adapt: _Adapt = _ADAPT
    nconnect: int = _number(1, 16)
    nconnect_max: int = _number(1, 16)
    nconnect_depends: str = Field(
        default_factory=str, min_length=1, description="the condition of the number in words"
    )
    nconnect_not_for: _Versions = Field(
        default_factory=tuple, description='a version of NFS such as "4.0", or a list of them'
    )
    rsize_max: int = _number(1024, 1048576, " bytes")
    actimeo_min: int = _number(0, 3600, " seconds")
    max_channels: int = _number(1, 16)
    sources: list[SourceTable] = Field(default_factory=list, description="[[profile.NAME.sources]] tables")


class WorkloadTable(_Table):
    """The programs' use of mounts, and the read-ahead that serves it."""

    about: str = Field(default_factory=str, description="a string")
    read_ahead_kb: int = _number(LEAST_KB, MOST_KB, " KiB")
    adapt: _Adapt = _ADAPT
    sources: list[SourceTable] = Field(default_factory=list, description="[[workload.NAME.sources]] tables")


_Name = Annotated[str, Field(pattern=PROFILE_NAME)]
_Rule = Annotated[str, Field(pattern=r"^([A-Za-z]{3}[0-9]{1,3}|[a-z0-9]+(-[a-z0-9]+)+)$")]
_RULES: Any = Field(default_factory=tuple, description='rules such as "NFS307", "soft-mount" or "SMB6"')
_Severities = dict[_Rule, Literal["error", "warning", "advice", "info"]]
_SEVERITY: Any = Field(
    default_factory=dict, description='a rule = "error", "warning", "advice" or "info"', json_schema_extra={}
)


class PathTable(_Table):
    """The rules of a check for some files."""

    match: _Globs = Field(description='a glob such as "legacy/*", or a list of them')
    ignore: list[_Rule] = _RULES
    severity: _Severities = _SEVERITY


class CheckTable(_Table):
    """The rules of nfstuned check: those to ignore, and severities of a site's own."""

    ignore: list[_Rule] = _RULES
    severity: _Severities = _SEVERITY
    path: list[PathTable] = Field(default_factory=list, description="[[check.path]] tables")


class CheckFile(_Table):
    """The whole of a .nfstuned.toml, above the files for which it is."""

    check: CheckTable = Field(default_factory=CheckTable)


class ConfigFile(CheckFile):
    """The whole of nfstuned.toml, or of one of its drop-ins."""

    daemon: DaemonTable = Field(default_factory=DaemonTable)
    samples: SamplesTable = Field(default_factory=SamplesTable)
    prometheus: PrometheusTable = Field(default_factory=PrometheusTable)
    nconnect: NconnectTable = Field(default_factory=NconnectTable)
    policy: list[PolicyTable] = Field(default_factory=list)
    profile: dict[_Name, ProfileTable] = Field(
        default_factory=dict, json_schema_extra={"additionalProperties": False}
    )
    workload: dict[_Name, WorkloadTable] = Field(
        default_factory=dict, json_schema_extra={"additionalProperties": False}
    )


class BuiltinFile(ConfigFile):
    """A file of nfstuned's own."""

    provider: dict[_Name, ProviderTable] = Field(default_factory=dict)


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of the file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ConfigFile.model_json_schema()}
