"""udev rules in systemd-udevd's reading, their writes, and the service's masks (udev(7))."""

from __future__ import annotations

from typing import NamedTuple

from nfstuned.model.kernel import decimal, whole_pages

MATCHES = ("==", "!=")


class UdevToken(NamedTuple):
    """A `KEY{attribute}operator"value"` of a rule."""

    key: str
    attribute: str | None
    """None without braces."""
    operator: str
    """udev's operator: it takes `PROGRAM=` for `PROGRAM==`, and `ATTR{x}:=` for `ATTR{x}=`."""
    value: str
    """The value without quotes and escapes; substitutions (`%k`) are not applied."""
    escaped: bool = False
    """Written e"like this": with the escapes of C."""
    ignore_case: bool = False
    """Written i"like this"."""

    @property
    def is_match(self) -> bool:
        """Whether it is a condition, not an assignment."""
        return self.operator in MATCHES


class UdevRule(NamedTuple):
    """A rule, which may stand on several lines."""

    line: int
    """The rule's first line."""
    last: int
    """Its last line: the number under which udev reports it."""
    tokens: tuple[UdevToken, ...]
    """In the order of udev's evaluation, which may differ from the written order."""
    label: str | None = None
    goto: str | None = None
    """The label of a later rule of this file."""


class UdevDefect(NamedTuple):
    """udev's message about a rule when it reads it."""

    line: int
    last: int
    message: str
    """In udev's words."""
    dropped: bool
    """Whether udev drops the whole rule; otherwise it goes on with its own reading."""


class UdevRules(NamedTuple):
    """A rules file: the rules in force, and udev's messages about the others."""

    rules: tuple[UdevRule, ...] = ()
    defects: tuple[UdevDefect, ...] = ()


class UdevEvent(NamedTuple):
    """A device's event, with the facts for rules. By default: the bdi of a new NFS superblock."""

    kernel: str = "0:43"
    subsystem: str = "bdi"
    action: str = "add"
    read_ahead_kb: str | None = None
    """The attribute's value before any rule; None where it is not known."""

    @property
    def devpath(self) -> str:
        """The device's folder below /sys."""
        return f"/devices/virtual/{self.subsystem}/{self.kernel}"


class RuleWriter(NamedTuple):
    """A rule that writes read_ahead_kb of an NFS superblock."""

    file: str
    line: int
    value: str
    """The written value: "15360", or "%c" for a program's output; "" where a command writes by itself."""
    program: str | None
    """The command that decides the value; None where the rule does."""
    certain: bool
    """Whether it writes for every NFS superblock; False where that depends on unknown facts of the host."""
    passed: bool = False
    """Whether a jump that may be taken passes over it."""

    @property
    def kb(self) -> int | None:
        """The value in KiB; None where it is known only after the write, or is not a number."""
        return decimal(self.value)

    def may_write(self, kb: int, page_kb: int) -> bool:
        """Whether this rule may have written `kb`; the kernel takes whole pages of a value."""
        if self.kb is not None:
            return whole_pages(self.kb, page_kb) == kb
        return self.program is not None or "%" in self.value or "$" in self.value


class UdevFile(NamedTuple):
    """A udev rules file that is in force, or an empty file that masks others."""

    path: str
    text: str
    hides: tuple[str, ...] = ()
    """The files of the same name, in weaker folders, that it masks."""
    unread: bool = False
    """It exists and could not be read: its effect is not known."""
    absent: tuple[str, ...] = ()
    """The programs of an administrator's rules about read-aheads that are not there."""
    scripts: tuple[tuple[str, str], ...] = ()
    """The paths and the texts of scripts that an administrator's rules about bdis start."""


MASKS = "run/udev/rules.d"
"""The folder of the masks, below the root: udev prefers its files to those of /usr/lib/udev/rules.d."""
NFS_RULES = "99-nfs.rules"
"""The rule of nfs-utils (tools/nfsrahead). It writes 128 KiB after a mount, unless nfs.conf has a value."""
EC2_RULES = "53-ec2-read-ahead-kb.rules"
"""The rule of amazon-ec2-utils (Amazon Linux). It writes 15360 KiB for every NFS mount."""
MASKED_NAMES = (NFS_RULES, EC2_RULES)
_MASK_HEAD = "# nfstuned.service sets the read-ahead of NFS mounts while it runs."
"""`is_mask` recognises the service's masks by this line; another text would leave existing masks behind."""
MASK = f"""\
{_MASK_HEAD} This file hides the
# distribution's udev rule of the same name, which would write another value a moment later, and goes when
# the service stops: nfstuned(8). To keep the rule in force, copy it to /etc/udev/rules.d.
"""
"""The text of a mask that the service makes."""
FOLDER_MADE = "# Its folder was made for it.\n"
"""The last line of a mask with a new folder, which is removed together with the mask."""
BAKED = """\
# Written by `nfstuned bake --daemonless`: 99-nfstuned.rules sets the read-ahead of NFS mounts. This file
# hides nfs-utils' rule of the same name, which would write another value first.
"""
"""The text of an image's mask. It does not begin with _MASK_HEAD: the service leaves it alone."""


def is_mask(text: str) -> bool:
    """Whether a file has the text of the service's mask."""
    return text.startswith(_MASK_HEAD)
