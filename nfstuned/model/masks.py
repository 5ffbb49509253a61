"""The udev rules of distributions that the service masks while it runs, and the files that mask them."""

from __future__ import annotations

MASKS = "run/udev/rules.d"
NFS_RULES = "99-nfs.rules"
"""nfs-utils' (tools/nfsrahead/99-nfs.rules): 128 KiB where nfs.conf says nothing, after every mount."""
EC2_RULES = "53-ec2-read-ahead-kb.rules"
"""amazon-ec2-utils', of Amazon Linux: 15360 KiB, whatever the server is."""
MASKED_NAMES = (NFS_RULES, EC2_RULES)
_MASK_HEAD = "# nfstuned.service sets the read-ahead of NFS mounts while it runs."
MASK = f"""\
{_MASK_HEAD} This file hides the
# distribution's udev rule of the same name, which would write another value a moment later, and goes when
# the service stops: nfstuned(8). To keep the rule in force, copy it to /etc/udev/rules.d.
"""
FOLDER_MADE = "# Its folder was made for it.\n"
BAKED = """\
# Written by `nfstuned bake --daemonless`: 99-nfstuned.rules sets the read-ahead of NFS mounts. This file
# hides nfs-utils' rule of the same name, which would write another value first.
"""


def is_mask(text: str) -> bool:
    """Return whether a file's text is that of a mask that the service made."""
    return text.startswith(_MASK_HEAD)
