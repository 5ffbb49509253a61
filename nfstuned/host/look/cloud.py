"""What cloud-init will do at an image's first boot: the mounts that it writes to fstab, the host's name."""

from __future__ import annotations

from nfstuned.errors import ParseError
from nfstuned.host.look.nfsmount import Collected
from nfstuned.host.root import Root
from nfstuned.model.system import CommandLine
from nfstuned.parse.etc.cloud import (
    DEFAULTS,
    CloudMounts,
    as_fstab,
    parse_cloud_mounts,
    parse_preserve_hostname,
)
from nfstuned.parse.etc.fstab import parse_fstab

_FILE, _DROP_INS = "etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d"
_OFF, _OFF_AT_BOOT = "etc/cloud/cloud-init.disabled", "cloud-init=disabled"
_PROGRAMS = ("usr/bin/cloud-init", "usr/local/bin/cloud-init")


def observe_cloud(root: Root, collected: Collected) -> None:
    """Add the mounts of cloud-init's own files; what an instance is told at its start is not known.

    Of several files with the key the last counts, whole (cloudinit/util.py, read_conf_with_confd).
    """
    if root.exists(_OFF):
        return
    mounts: tuple[str, CloudMounts] | None = None
    defaults = DEFAULTS
    for name in _files(root):
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


def names_clones(root: Root, cmdline: CommandLine) -> bool:
    """Return whether cloud-init gives each clone of an image its own name.

    Its configuration stays where the package was removed and not purged: the program has to be there, too.
    """
    if root.exists(_OFF) or _OFF_AT_BOOT in cmdline.words:
        return False
    if not root.exists(_FILE) or not any(map(root.exists, _PROGRAMS)):
        return False
    told = [parse_preserve_hostname(root.read_or_empty(name)) for name in _files(root)]
    return not next((one for one in reversed(told) if one is not None), False)


def _files(root: Root) -> list[str]:
    """Return the names of cloud-init's files, of which the last counts."""
    names = (name for name in root.names(_DROP_INS) if name.endswith(".cfg"))
    return [_FILE, *(f"{_DROP_INS}/{name}" for name in names)]
