"""Volumes of Kubernetes as requests for mounts, by their drivers (data/drivers.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nfstuned import data
from nfstuned.model.kernel import nfs_version, option_text, parse_options
from nfstuned.model.mounts import SMB_TYPES, Maker, Request, Unexpanded
from nfstuned.parse.etc.requests import MOST_PATH
from nfstuned.parse.fields import is_placeholder, split_options, with_brackets
from nfstuned.parse.yaml import ABSENT, Node

_DRIVERS = "drivers.toml"
_ANY = "nfs"
"""The row for drivers without a row of their own."""
_PROTOCOLS = re.compile(r"(?:storage_?)?protocol|(?:csi\.storage\.k8s\.io/)?fstype")
_TRUE = frozenset({"true", "yes", "on", "y"})
"""The words of YAML 1.1, in any case."""
_LOGIN = "credentials"
_NAMES = re.compile(r"(?<!\$)\{(\w+)\}")
_LOGINS = ("nodestagesecretref", "nodepublishsecretref", "secretref", "secretname")
_OF_NODE = re.compile(r"csi\.storage\.k8s\.io/node-(?:stage|publish)-secret-name")


class DriverVolume(NamedTuple):
    """A volume or a class of volumes: its driver, its attributes by key in lower case, and its options."""

    driver: Node
    attributes: Mapping[str, Node]
    options: Sequence[tuple[Node, str]]
    """Lists or texts of options, each with the name of its field."""
    name: str
    read_only: Node = ABSENT
    owner: str = ""


def volume_requests(volume: DriverVolume, file: str) -> Iterator[Request | Unexpanded]:
    """Yield the request of a volume; nothing where its driver mounts neither NFS nor SMB."""
    row = _row(volume)
    if row is None:
        return
    source, line, source_line = _place(row, volume)
    fields = volume.options
    if row.get("always"):
        fields = [each for each in fields if each[0] is not volume.attributes.get("mountoptions")]
    written = read_options(fields, volume.read_only)
    yield from written.unread(file)
    options = written.options
    if row.get("helper"):
        own = frozenset(data.read_table("mount-options.toml")["efs"]["names"].split())
        options = tuple(option for option in options if option.name not in own)
    has_login = _has_login(volume) or bool(row.get("login"))
    added = (*_always(row, fields, line), *_added(row, options, line, has_login=has_login))
    request = Request(source, "", "", file, line, fstype=row["type"], source_line=source_line)
    text = ",".join(option_text(option.name, option.value) for option in added)
    request = request._replace(provider=row.get("provider", ""), owner=volume.owner, added=text)
    request = request._replace(versions=tuple(row.get("versions", ())))
    yield written._replace(options=(*options, *added)).asked_by(request)


class Option(NamedTuple):
    """An option, and its line."""

    name: str
    value: str | None
    line: int


class Written(NamedTuple):
    """The options of a volume, and the name of their field."""

    options: tuple[Option, ...]
    field: str
    left: tuple[tuple[str, int], ...] = ()
    """Options that were not read, and their lines: placeholders as a whole, and values that are no texts."""

    def asked_by(self, request: Request) -> Request:
        """Return a volume's request with these options; the kubelet makes the mount, or a driver for it."""
        return request._replace(
            options=",".join(option_text(option.name, option.value) for option in self.options),
            option_lines=tuple(option.line for option in self.options),
            field=self.field,
            maker=Maker.KUBELET,
        )

    def unread(self, file: str) -> Iterator[Unexpanded]:
        """Yield each option that was not read."""
        return (Unexpanded(text, file, line) for text, line in self.left)


def read_options(fields: Sequence[tuple[Node, str]], read_only: Node = ABSENT) -> Written:
    """Return the options of lists and of texts with commas; the first of the fields with a value has them."""
    options: list[Option] = []
    left: list[tuple[str, int]] = []
    for node, _ in fields:
        for item in node.items or (node,):
            if item and not (item.is_scalar or item.is_null):
                left.append(("an option that is no text, which Kubernetes refuses", item.line))
            for text in split_options(item.text or ""):
                if is_placeholder(text):
                    left.append(("an option with a placeholder", item.line))
                else:
                    options += (Option(*pair, item.line) for pair in parse_options(text).pairs)
    if (read_only.text or "").lower() in _TRUE:
        options.append(Option("ro", None, read_only.line))
    field = next((name for node, name in fields if node), fields[0][1])
    return Written(tuple(options), field, tuple(left))


def _row(volume: DriverVolume) -> dict[str, Any] | None:
    """Return the table's row for a driver; None where it mounts neither NFS nor SMB, as far as is known."""
    name, table = volume.driver.text or "", data.read_table(_DRIVERS)
    for row in table.get(name, ()):
        # An empty list wants the attribute, whatever its value.
        where: dict[str, list[str]] = row.get("where", {})
        texts = {key: volume.attributes.get(key, ABSENT).text for key in where}
        if all(texts[key] in values if values else texts[key] for key, values in where.items()):
            return dict(row)
    if name in table:
        return None
    protocol = any(
        (node.text or "").lower().startswith(_ANY)
        for key, node in volume.attributes.items()
        if _PROTOCOLS.fullmatch(key)
    )
    return dict(table[_ANY][0]) if protocol or _ANY in name.lower() else None


def backend_versions(backend: Node) -> tuple[str, ...]:
    """Return the versions of the volumes that Trident makes with a backend, by its name; () for any."""
    driver = Node(backend.line, "csi.trident.netapp.io", is_scalar=True)
    row = _row(DriverVolume(driver, {"backendtype": backend}, (), ""))
    return tuple(row.get("versions", ())) if row else ()


def _place(row: Mapping[str, Any], volume: DriverVolume) -> tuple[str, int, int]:
    """Return the source of a volume, its line, and the line of its path.

    A server or a path that is not named, as of a class, gets a placeholder: the object's own name.
    """
    found = _filled(row.get("source", ""), volume)
    if found and (row["type"] in SMB_TYPES or ":/" in found[0]):
        return found[0], found[1], 0
    own = f"${{{volume.name}}}"
    path = _filled(row.get("path", ""), volume) or (f"/{own}", 0)
    servers = (filled for text in row.get("server", ()) if (filled := _filled(text, volume)))
    server = next(servers, None)
    if server is None:
        suffix = next((text for text in row.get("server", ()) if "." in text), "{}").partition("}")[2]
        server = (f"{own}{suffix}", volume.driver.line)
    if row["type"] in SMB_TYPES:
        return f"//{server[0]}{path[0]}", server[1], path[1]
    return f"{with_brackets(server[0])}:{path[0]}", server[1], path[1]


def _filled(text: str, volume: DriverVolume) -> tuple[str, int] | None:
    """Return a text with the attributes in its braces, and the line of the last; None where one lacks."""
    nodes: dict[str, tuple[str, int]] = {}
    for name in _NAMES.findall(text):
        node = volume.attributes.get("volumehandle" if name.isdecimal() else name, ABSENT)
        value = (node.text or "")[:MOST_PATH]
        if name.isdecimal():
            parts = value.split(":")
            value = parts[int(name)] if int(name) < len(parts) else ""
        if not value:
            return None
        nodes[name] = value, node.line
    filled = _NAMES.sub(lambda match: nodes[match[1]][0], text)
    return (filled, [line for _, line in nodes.values()][-1]) if nodes else None


def _always(row: Mapping[str, Any], fields: Sequence[tuple[Node, str]], line: int) -> Iterator[Option]:
    """Yield the options that a driver writes next to a volume's own, on the line of the volume's server.

    Equal texts become one (JoinMountOptions of k8s.io/kubernetes/pkg/volume/util).
    """
    text = row.get("always", "")
    if all(item.text != text for node, _ in fields for item in node.items or (node,)):
        yield from (Option(name, value, line) for name, value in parse_options(text).pairs)


def _added(
    row: Mapping[str, Any], written: Sequence[Option], line: int, *, has_login: bool
) -> Iterator[Option]:
    """Yield the options that a driver writes itself, on the line of the volume's server."""
    text = ",".join(option_text(option.name, option.value) for option in written)
    names = {option.name for option in written}
    own, asked = (nfs_version(row["type"], parse_options(each)) for each in (row.get("version", ""), text))
    if own is not None and asked is None:
        yield from (Option(name, value, line) for name, value in parse_options(row["version"]).pairs)
    # With another version than its own, nobody wrote the driver's options.
    for each in row.get("adds", ()) if asked in {None, own} or own is None else ():
        name, _, value = each.partition("=")
        if name not in names:
            yield Option(name, value or None, line)
    if has_login and row["type"] in SMB_TYPES and _LOGIN not in names:
        yield Option(_LOGIN, "/SECRET", line)


def _has_login(volume: DriverVolume) -> bool:
    """Whether a volume names a secret with the login for its server."""
    return any(name in volume.attributes for name in _LOGINS) or any(
        map(_OF_NODE.fullmatch, volume.attributes)
    )
