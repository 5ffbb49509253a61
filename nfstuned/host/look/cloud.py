"""The mounts that cloud-init will write to an image's fstab at its first boot."""

from __future__ import annotations

from nfstuned.errors import ParseError
from nfstuned.host.look.nfsmount import Collected
from nfstuned.host.root import Root
from nfstuned.parse.etc.cloud import DEFAULTS, CloudMounts, as_fstab, parse_cloud_mounts
from nfstuned.parse.etc.fstab import parse_fstab

_FILE, _DROP_INS = "etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d"
_OFF = "etc/cloud/cloud-init.disabled"


def observe_cloud(root: Root, collected: Collected) -> None:
    """Add the mounts of cloud-init's own files; what an instance is told at its start is not known.

    Of several files with the key the last counts, whole (cloudinit/util.py, read_conf_with_confd).
    """
    if root.exists(_OFF):
        return
    drop_ins = [f"{_DROP_INS}/{name}" for name in root.names(_DROP_INS) if name.endswith(".cfg")]
    mounts: tuple[str, CloudMounts] | None = None
    defaults = DEFAULTS
    for name in (_FILE, *drop_ins):
        try:
            found = parse_cloud_mounts(root.read_or_empty(name), root.shown(name))
        except ParseError as error:
            collected.refuse(error)
            continue
        mounts = (name, found) if found.mounts is not None else mounts
        defaults = found.defaults or defaults
    if mounts is not None:
        name, found = mounts
        collected.add(parse_fstab(as_fstab(found.mounts or (), defaults), root.shown(name)))
