"""What the NFSv4 client of a host, or of an image's clones, calls itself to servers."""

from __future__ import annotations

from nfstuned.host.look.services import observe_unit
from nfstuned.host.root import Root
from nfstuned.model.system import IDENTITY_UNIT, ClientIdentity

_NAME, _NAME_OF_IMAGE = "proc/sys/kernel/hostname", "etc/hostname"
_IDENTIFIER, _NONE = "sys/fs/nfs/net/nfs_client/identifier", "(null)"
_MACHINE_ID, _NO_MACHINE_ID = "etc/machine-id", frozenset({"", "uninitialized"})
_NAMERS = (
    "etc/cloud/cloud.cfg",
    "etc/waagent.conf",
    "usr/bin/ignition",
    "usr/lib/dracut/modules.d/30ignition",
)
"""Programs that name each instance of an image: cloud-init, Azure's agent, Ignition."""
_CLOUD, _CLOUD_OFF = _NAMERS[0], "etc/cloud/cloud-init.disabled"


def observe_identity(root: Root, *, image: bool) -> ClientIdentity:
    """Return who the host is to servers of NFSv4; of an image, who each of its clones will be."""
    name = root.read_or_empty(_NAME_OF_IMAGE if image else _NAME)
    # hostname(5): comments are ignored.
    lines = (line.strip() for line in name.splitlines())
    known = next((line for line in lines if line and not line.startswith("#")), None)
    identifier = "" if image else root.read_or_empty(_IDENTIFIER).strip()
    off = root.exists(_CLOUD_OFF)
    return ClientIdentity(
        known,
        "" if identifier == _NONE else identifier,
        renamed=image and any(root.exists(file) for file in _NAMERS if not (file == _CLOUD and off)),
        given=observe_unit(root, IDENTITY_UNIT, image=image).enabled,
        machine_id=root.read_or_empty(_MACHINE_ID).strip() not in _NO_MACHINE_ID,
    )
