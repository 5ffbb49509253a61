"""The program mount.nfs: what in it tells how it reads nfsmount.conf.

`mount.nfs -V` prints PACKAGE_STRING, which stands in the file as it is printed; so the program need not be
run, and an image's can be asked, too. Names of functions stand in their messages (support/nfs/conffile.c).
"""

from __future__ import annotations

import re

from nfstuned.model.system import NfsUtils

_VERSION = re.compile(rb"\(linux nfs-utils ([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})[^)\n\0]{0,20}\)\n")
_DROP_INS = b"conf_init_dir: "
"""Since nfs-utils 2.5.3 ("conffile: process config.d directory config files"), and in backports of it."""


def parse_mount_nfs(program: bytes) -> NfsUtils:
    """Return what the file of mount.nfs tells; without a version where it is another program."""
    found = _VERSION.search(program)
    version = tuple(int(part) for part in found[1].split(b".")) if found else None
    return NfsUtils(version, _DROP_INS in program)
