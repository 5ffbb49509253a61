"""What the NFSv4 client of a host, or of an image's clones, calls itself to servers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.host.look.cloud import names_clones
from nfstuned.host.look.services import observe_unit
from nfstuned.host.root import Root
from nfstuned.model.system import IDENTITY_UNIT, MACHINE_ID, ClientIdentity, CommandLine

_NAME, _NAME_OF_IMAGE = "proc/sys/kernel/hostname", "etc/hostname"
_IDENTIFIER, _NONE = "sys/fs/nfs/net/nfs_client/identifier", "(null)"
_MACHINE_ID, _NO_MACHINE_ID = MACHINE_ID[1:], frozenset({"", "uninitialized"})
_MACHINE_ID_OF_DBUS, _ID = "var/lib/dbus/machine-id", re.compile(r"(?!0{32})[0-9A-Fa-f]{32}\n?")
_NAMERS = ("etc/waagent.conf", "usr/bin/ignition", "usr/lib/dracut/modules.d/30ignition")
"""Programs other than cloud-init that name each instance of an image: Azure's agent, Ignition."""


def observe_identity(root: Root, cmdline: CommandLine, *, image: bool) -> ClientIdentity:
    """Return who the host is to servers of NFSv4; of an image, who each of its clones will be.

    `cmdline` is what its kernel is booted with.
    """
    name = root.read_or_empty(_NAME_OF_IMAGE if image else _NAME)
    # hostname(5): comments are ignored.
    lines = (line.strip() for line in name.splitlines())
    known = next((line for line in lines if line and not line.startswith("#")), None)
    identifier = "" if image else root.read_or_empty(_IDENTIFIER).strip()
    return ClientIdentity(
        known,
        "" if identifier == _NONE else identifier,
        renamed=image and (any(map(root.exists, _NAMERS)) or names_clones(root, cmdline)),
        given=observe_unit(root, IDENTITY_UNIT, image=image).enabled,
        machine_ids=tuple(f"/{file}" for file in _machine_ids(root)) if image else (),
    )


def _machine_ids(root: Root) -> Iterator[str]:
    """Yield the files of which systemd makes a machine id at boot.

    It takes that of D-Bus where the other has none, but follows no link to it (systemd,
    src/shared/machine-id-setup.c).
    """
    if root.read_or_empty(_MACHINE_ID).strip() not in _NO_MACHINE_ID:
        yield _MACHINE_ID
    if root.link(_MACHINE_ID_OF_DBUS) is None and _ID.fullmatch(root.read_or_empty(_MACHINE_ID_OF_DBUS)):
        yield _MACHINE_ID_OF_DBUS
