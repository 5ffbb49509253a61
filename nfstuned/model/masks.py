"""The udev rules of distributions that the service masks while it runs, and the files that mask them."""

from __future__ import annotations

MASKS = "run/udev/rules.d"
"""The folder of the masks, below the root: udev prefers its files to those of /usr/lib/udev/rules.d."""
NFS_RULES = "99-nfs.rules"
"""The rule of nfs-utils (tools/nfsrahead). It writes 128 KiB after a mount, unless nfs.conf has a value."""
EC2_RULES = "53-ec2-read-ahead-kb.rules"
"""The rule of amazon-ec2-utils (Amazon Linux). It writes 15360 KiB for every NFS mount."""
MASKED_NAMES = (NFS_RULES, EC2_RULES)
_MASK_HEAD = "# nfstuned.service sets the read-ahead of NFS mounts while it runs."
"""By this line `is_mask` knows the service's masks; another text would leave existing masks in place."""
MASK = f"""\
{_MASK_HEAD} This file hides the
# distribution's udev rule of the same name, which would write another value a moment later, and goes when
# the service stops: nfstuned(8). To keep the rule in force, copy it to /etc/udev/rules.d.
"""
"""The text of a mask that the service makes."""
FOLDER_MADE = "# Its folder was made for it.\n"
"""The last line of a mask for which its folder was made: who removes the mask removes the folder, too."""
BAKED = """\
# Written by `nfstuned bake --daemonless`: 99-nfstuned.rules sets the read-ahead of NFS mounts. This file
# hides nfs-utils' rule of the same name, which would write another value first.
"""
"""The text of the mask that an image gets. It does not begin with _MASK_HEAD: the service leaves it alone."""


def is_mask(text: str) -> bool:
    """Return whether a file's text is that of a mask that the service made."""
    return text.startswith(_MASK_HEAD)
