"""`nfstuned check` in a container with the host's PID namespace judges the host, by its own settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY
from tests.users import may_unshare

_HOST = """
box=$0/box host=$0/host
mkdir "$box" "$host"
mount -t tmpfs box "$box"
for name in /*; do
    if [ -L "$name" ]; then cp -P "$name" "$box$name"
    elif [ "$name" != /etc ] && [ -d "$name" ]; then mkdir "$box$name"; mount --rbind "$name" "$box$name"; fi
done
mkdir -p "$box/etc/nfstuned" "$host/nfstuned"
echo 'nas:/box /box nfs hardd 0 0' >"$box/etc/fstab"
echo 'check = {ignore = ["NFS308"]}' >"$box/etc/nfstuned/nfstuned.toml"
echo 'nas:/host /host nfs harddd 0 0' >"$host/shared"
ln -s /etc/shared "$host/fstab"
echo 'no TOML' >"$host/nfstuned/nfstuned.toml"
mount --bind "$host" /etc
"$@"
exit
"""
"""Process 1's root has an fstab behind an absolute link, and an invalid configuration: the container's own
configuration counts, and its own fstab does not."""
_JUDGED = {("unshare", "--mount", "chroot"): "remove 'harddd'", ("chroot",): "remove 'hardd'"}
"""By the way into the container, without the shell's `exec`: process 1 stays outside."""


@pytest.mark.skipif(not may_unshare(), reason="no mount namespace for this user")
@pytest.mark.parametrize("enter", _JUDGED, ids=" ".join)
def test_a_container_judges_the_host_and_a_chroot_judges_itself(
    enter: tuple[str, ...], tmp_path: Path
) -> None:
    check = "nfstuned check --offline --select NFS308,NFS309 --format json"
    inside = f'cd "$0" && exec {sys.executable} -m {check}'
    host = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-ec", _HOST, str(tmp_path)]
    command = [*enter, str(tmp_path / "box"), "sh", "-ec", inside, str(REPOSITORY)]
    done = subprocess.run([*host, *command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert (report["root"], finding["rule"]) == ("/", "NFS309")
    assert _JUDGED[enter] in finding["remedy"]
