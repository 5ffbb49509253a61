"""Which udev rules are a distribution's own, and are masked while the service runs."""

from __future__ import annotations

import pytest

from nfstuned.core.udev.writers import choose_masks, is_default, set_by_administrator
from nfstuned.model.mounts import NFSRAHEAD, Setting
from nfstuned.model.udev import BAKED, FOLDER_MADE, MASK, UdevFile, is_mask
from nfstuned.parse.udev_rules import parse_udev_rules

NFS = "/usr/lib/udev/rules.d/99-nfs.rules"
EC2 = "/usr/lib/udev/rules.d/53-ec2-read-ahead-kb.rules"
STOCK = 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"\n'
AMAZONS = """\
# increase read_ahead_kb
SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/bin/awk -v bdi=$kernel 'BEGIN{ret=1} {if ($$4 == bdi) {ret=0}} \
END{exit ret}' /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="15360"
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (NFS, STOCK),
        (NFS, f"# nfs-utils\n\n{STOCK}"),
        (NFS.removeprefix("/usr"), STOCK),
        (NFS, STOCK.replace("/usr/libexec", "/usr/lib/nfs-utils")),
        (NFS, STOCK.replace('ACTION=="add"', 'ACTION=="add", KERNEL=="0:*"')),
        (EC2, AMAZONS),
    ],
)
def test_the_rules_that_distributions_ship_are_known(path: str, text: str) -> None:
    assert is_default(UdevFile(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (NFS.replace("/usr/lib", "/etc"), STOCK),
        (NFS.replace("/usr/lib", "/usr/local/lib"), STOCK),
        (NFS.replace("99-nfs", "98-nfs"), STOCK),
        (NFS, ""),
        (NFS, STOCK * 2),
        (NFS, STOCK + 'SUBSYSTEM=="block", ATTR{queue/read_ahead_kb}="128"\n'),
        (NFS, STOCK.replace("%c", "15360")),
        (NFS, STOCK.replace("nfsrahead", "myrahead")),
        (NFS, STOCK.replace('="%c"', '="%c", RUN+="/usr/bin/logger mounted"')),
        (NFS, STOCK.replace('"add"', '"change"')),
        (NFS, STOCK + "nonsense\n"),
        (EC2, AMAZONS.replace("15360", "4096")),
        (EC2, STOCK),
        (EC2, AMAZONS.replace("/proc/fs/nfsfs/volumes", "/etc/volumes")),
    ],
)
def test_a_changed_file_is_its_authors(path: str, text: str) -> None:
    file = UdevFile(path, text)
    assert not is_default(file)
    if file.path.endswith(("99-nfs.rules", "kb.rules")):
        assert all(one.left for one in choose_masks([file], ()) if path.endswith(one.name))


def test_nfs_utils_name_is_masked_also_before_nfs_utils_is_there() -> None:
    assert [(one.name, one.left) for one in choose_masks((), ())] == [("99-nfs.rules", "")]


def test_values_below_nfsrahead_keep_the_rule_in_force_but_a_vendors_do_not() -> None:
    own = Setting(NFSRAHEAD, None, "nfs4", "4096", "/etc/nfs.conf.d/a.conf", 2)
    vendors = Setting(NFSRAHEAD, None, "nfs4", "4096", "/usr/etc/nfs.conf", 2)
    other = Setting("nfsd", None, "threads", "8", "/etc/nfs.conf", 2)
    files = [UdevFile(NFS, STOCK), UdevFile(EC2, AMAZONS)]
    assert [bool(one.left) for one in choose_masks(files, (vendors, other))] == [False, False]
    assert [bool(one.left) for one in choose_masks(files, (own, vendors))] == [True, False]
    assert set_by_administrator((vendors, other)) is None


def test_a_mask_has_no_rule_and_names_its_author() -> None:
    for text in (MASK, MASK + FOLDER_MADE, BAKED):
        assert parse_udev_rules(text).rules == ()
        assert all(line.startswith("# ") for line in text.splitlines())
    assert is_mask(MASK)
    assert is_mask(MASK + FOLDER_MADE)
    assert not is_mask(BAKED)
    assert not is_mask("")
