from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nfstuned.host.root import LARGEST
from nfstuned.model.system import CaFile, Refusal, Tls, TunnelEntry, Unit
from nfstuned.parse.etc.tunnel import LOG_END, MOST_CA_FILES, OVERRIDE, STUNNELS, WATCHDOG, read_tls
from tests.tree import Tree

HEADER = "  sl  local_address rem_address   st tx_queue\n"
LISTENS = "   0: 0100007F:4E51 00000000:0000 0A 00000000\n"


def tls(tree: Tree, *, image: bool = False) -> Tls:
    return read_tls(tree.root, image=image)


@pytest.fixture
def helped(tree: Tree) -> Tree:
    """A host on which AZNFS runs."""
    tree.write("proc/1/mountinfo", "")
    tree.write("proc/1/net/tcp", HEADER + LISTENS)
    tree.write("proc/1/net/tcp6", HEADER.replace("local_address rem", "local_address remote") + "\n")
    tree.write(f"usr/lib/systemd/system/{WATCHDOG}", "[Service]\nExecStart=/usr/sbin/aznfswatchdogv4\n")
    tree.link(f"etc/systemd/system/nfs-client.target.wants/{WATCHDOG}", f"/usr/lib/systemd/system/{WATCHDOG}")
    tree.write("sys/fs/cgroup/system.slice/ssh.service/cgroup.procs", "1\n")
    tree.write(f"sys/fs/cgroup/system.slice/{WATCHDOG}/cgroup.procs", "812\n")
    return tree


def test_only_of_a_running_host_the_state_of_the_helper_is_seen(helped: Tree) -> None:
    assert tls(helped) == Tls(Unit(installed=True, enabled=True, active=True), frozenset({20049}), ())
    helped.write("proc/cmdline", f"systemd.setenv={OVERRIDE}=windows.net")
    assert trusting(helped, "/etc/gone.pem").services
    assert tls(helped, image=True) == Tls(Unit(installed=True, enabled=True, active=None), None, ())


@pytest.mark.parametrize("folder", STUNNELS)
def test_a_host_without_the_helper_does_not_have_its_sockets_read(tree: Tree, folder: str) -> None:
    tree.write("proc/1/mountinfo", "")
    tree.write("proc/1/net/tcp", HEADER + LISTENS)
    assert tls(tree).listening is None
    tree.write(f"{folder}/stunnel_10.0.0.4.conf", "")
    assert tls(tree).listening == frozenset({20049})


def sets(value: str) -> str:
    return f"Environment={OVERRIDE}={value}\n"


def of_all(tree: Tree) -> list[tuple[str, str]]:
    return [(one.value, one.file) for one in tls(tree).overrides]


WEAK, STRONG = "usr/lib/systemd/system", "etc/systemd/system"
MANAGERS = (
    "etc/systemd/system.conf",
    "etc/systemd/system.conf.d/10.conf",
    "run/systemd/system.conf.d/20.conf",
    "usr/local/lib/systemd/system.conf.d/30.conf",
    "usr/lib/systemd/system.conf.d/90.conf",
    "proc/cmdline",
)
UNITS = {
    "etc/environment": "logins",
    f"{STRONG}/mnt-a.mount": "mnt-a.mount",
    f"{STRONG}/mount.d/05-cloud.conf": "mount.d",
    f"{STRONG}/mnt-a.mount.d/10-cloud.conf": "mnt-a.mount.d",
    f"{STRONG}/mnt-.mount.d/15-cloud.conf": "mnt-.mount.d",
    f"{WEAK}/mnt-a.mount.d/20-cloud.conf": "mnt-a.mount.d",
    f"{STRONG}/autofs.service.d/25-cloud.conf": "autofs.service.d",
    "etc/default/autofs": "autofs.service.d",
}
OF_ONE_NAME = {
    f"{folder}/{scope}/cloud.conf": scope
    for folder, scope in (
        (STRONG, "mount.d"),
        (WEAK, "mnt-.mount.d"),
        (WEAK, "mnt-a.mount.d"),
        ("usr/local/lib/systemd/system", "mnt-.mount.d"),
        ("run/systemd/system", "mnt-.mount.d"),
        (STRONG, "mnt-.mount.d"),
        (STRONG, "mnt-a.mount.d"),
    )
}


@pytest.mark.parametrize("scopes", [dict.fromkeys(MANAGERS, ""), UNITS, OF_ONE_NAME])
def test_each_override_has_its_scope_and_the_strongest_comes_last(tree: Tree, scopes: dict[str, str]) -> None:
    assert tls(tree).overrides == ()
    for name in reversed(scopes):
        tree.write(name, sets(".windows.net"))
    assert [(one.value, one.file, one.scope) for one in tls(tree).overrides] == [
        ("windows.net", f"/{name}", scope) for name, scope in scopes.items()
    ]


@pytest.mark.parametrize("text", ["", "[Manager]\n", None])
@pytest.mark.parametrize("name", ["system.conf.d/a.conf", "system/mnt-a.mount"])
def test_a_file_hides_its_name_in_a_weaker_folder(tree: Tree, name: str, text: str | None) -> None:
    for folder, value in (("usr/lib", "chinacloudapi.cn"), ("usr/local/lib", "windows.net")):
        tree.write(f"{folder}/systemd/{name}", sets(value))
    assert of_all(tree) == [("windows.net", f"/usr/local/lib/systemd/{name}")]
    if text is None:
        tree.link(f"etc/systemd/{name}", "/dev/null")
    else:
        tree.write(f"etc/systemd/{name}", text)
    assert of_all(tree) == []


def test_a_drop_in_without_the_variable_is_named_where_one_of_its_name_has_it(tree: Tree) -> None:
    tree.write(f"{WEAK}/mnt-a.mount.d/cloud.conf", sets("windows.net"))
    tree.write(f"{WEAK}/mnt-a.mount.d/other.conf", "[Mount]\nTimeoutSec=9\n")
    tree.write(f"{STRONG}/mnt-a.mount.d/cloud.conf", "")
    assert of_all(tree) == [
        ("windows.net", f"/{WEAK}/mnt-a.mount.d/cloud.conf"),
        ("", f"/{STRONG}/mnt-a.mount.d/cloud.conf"),
    ]


def test_where_usr_is_merged_a_file_of_its_units_is_read_once(tree: Tree) -> None:
    tree.write("usr/lib/systemd/system/mnt-a.mount.d/cloud.conf", sets("windows.net"))
    tree.write("lib/systemd/system/mnt-a.mount.d/cloud.conf", sets("windows.net"))
    assert [file.split("/")[1] for _, file in of_all(tree)] == ["lib", "usr"]
    shutil.rmtree(tree.folder / "lib")
    (tree.folder / "lib").symlink_to("usr/lib")
    assert [file.split("/")[1] for _, file in of_all(tree)] == ["usr"]


ENDED = (Path(__file__).parents[1] / "data/certificates/ended.pem").read_text()


def trusting(tree: Tree, *files: str, verify: str = "verifyChain = yes") -> Tls:
    """Return what is seen where a tunnel trusts each of these."""
    for number, file in enumerate(files):
        tree.write(
            f"{STUNNELS[0]}/stunnel_10.0.0.{number:02}.conf",
            f"CAFile = {file}\n{verify}\n[s]\naccept = {20049 + number}\nconnect = 10.0.0.{number}:2049\n",
        )
    return tls(tree)


def test_the_files_of_cas_that_tunnels_name_are_read_once_each(tree: Tree) -> None:
    tree.write("etc/ca.pem", ENDED + ENDED)
    seen = trusting(tree, "/etc/ca.pem", "/etc/gone.pem", "/etc/ca.pem", "/etc/ca.pem/x")
    assert [service.server for service in seen.services] == [f"10.0.0.{number}" for number in range(4)]
    assert seen.ca_files == {
        "/etc/ca.pem": CaFile((1577836800, 1577836800)),
        "/etc/gone.pem": CaFile(missing=True),
        "/etc/ca.pem/x": CaFile(missing=True),
    }
    assert seen.problems == ()


def test_what_cannot_be_read_or_understood_is_no_file_of_cas(tree: Tree) -> None:
    tree.write("etc/cut.pem", ENDED + ENDED[:200])
    tree.write("etc/large.pem", "x" * (LARGEST + 1))
    seen = trusting(tree, "/etc/cut.pem", "/etc/large.pem", "/etc", "ca.pem", "/etc/../etc/cut.pem")
    assert seen.ca_files == {}
    assert [str(error) for error in seen.problems] == [
        "/etc/cut.pem:11: a certificate that does not end",
        "/etc/../etc/cut.pem:11: a certificate that does not end",
    ]


def test_no_more_files_of_cas_are_read_than_there_can_be(tree: Tree) -> None:
    seen = trusting(tree, *(f"/etc/{number}.pem" for number in range(MOST_CA_FILES + 5)))
    assert list(seen.ca_files) == [f"/etc/{number}.pem" for number in range(MOST_CA_FILES)]


def test_the_helpers_list_of_tunnels_is_read_on_a_running_host(tree: Tree) -> None:
    lists = ("opt/microsoft/aznfs/data/mountmapv4", "opt/microsoft/azfiles-nfs/data/mountmapv4")
    for name in lists:
        tree.write(name, "10.0.0.4;/c;/l;/p;1;mounted;7\n10.0.0.5;/c;/l;/p;1;mounted;x\n")
    seen = tls(tree)
    assert seen.entries == tuple(TunnelEntry(f"/{name}", 1, "10.0.0.4", "/c", "mounted", 7) for name in lists)
    assert [error.file for error in seen.problems] == [f"/{name}" for name in lists]
    assert tls(tree, image=True).entries == ()


REJECTED = "2026.11.25 04:46:34 LOG4[0]: Rejected by CERT at depth=0: CN=a\n"


def test_the_end_of_a_tunnels_log_says_whom_it_refused(tree: Tree) -> None:
    conf = f"{STUNNELS[0]}/stunnel_10.0.0.4.conf"
    tree.write(conf, "output = /var/log/a.log\n[s]\naccept = 20049\nconnect = 10.0.0.4:2049\n")
    assert tls(tree).refusals == {}
    tree.write("var/log/a.log", "x" * LOG_END + "\n" + REJECTED)
    assert tls(tree).refusals == {f"/{conf}": Refusal("2026.11.25 04:46:34", "", "CN=a")}
    tree.write("var/log/a.log", REJECTED + "x" * LOG_END)
    assert tls(tree).refusals == {}


@pytest.mark.parametrize(
    "text",
    [
        "output = a.log\n[s]\naccept = 20049\nconnect = 10.0.0.4:2049\n",
        "output = /var/log\n[s]\naccept = 20049\nconnect = 10.0.0.4:2049\n",
        "output = /var/log/a.log\n[s]\naccept = 1\nconnect = a:1\n[t]\naccept = 2\nconnect = a:2\n",
    ],
)
def test_a_log_of_several_services_or_that_is_none_says_nothing(tree: Tree, text: str) -> None:
    tree.write("var/log/a.log", REJECTED)
    tree.write(f"{STUNNELS[0]}/stunnel_10.0.0.4.conf", text)
    assert tls(tree).refusals == {}
