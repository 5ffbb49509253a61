from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.root import Root
from nfstuned.host.writers import find_writer

NFS_UTILS = 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"\n'
VENDOR = 'SUBSYSTEM=="bdi" \\\n, ACTION=="add" \\\n, ATTR{read_ahead_kb}="15360"\n'


def rules(tmp_path: Path, **files: str) -> Root:
    for name, text in files.items():
        folder, _, file = name.partition("__")
        path = tmp_path / folder / "udev/rules.d" / f"{file}.rules"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root(str(tmp_path))


def test_the_rule_whose_write_comes_last_is_named(tmp_path: Path) -> None:
    root = rules(tmp_path, **{"usr/lib__99-nfs": NFS_UTILS, "etc__90-azure": VENDOR})
    assert find_writer(root) == "/usr/lib/udev/rules.d/99-nfs.rules"


def test_a_masked_rule_writes_nothing(tmp_path: Path) -> None:
    root = rules(tmp_path, **{"usr/lib__99-nfs": NFS_UTILS, "etc__99-nfs": ""})
    assert find_writer(root) is None


@pytest.mark.parametrize(
    "text",
    [
        "# " + NFS_UTILS,
        'SUBSYSTEM=="block", ACTION=="add", ATTR{bdi/read_ahead_kb}="1024"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", RUN+="/bin/true"\n',
    ],
)
def test_rules_about_something_else_are_no_writers(tmp_path: Path, text: str) -> None:
    assert find_writer(rules(tmp_path, **{"etc__50-x": text})) is None


def test_nfstuned_is_no_writer_beside_itself(tmp_path: Path) -> None:
    assert find_writer(rules(tmp_path, **{"etc__99-nfstuned": VENDOR})) is None
