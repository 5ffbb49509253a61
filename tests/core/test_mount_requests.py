"""What mount.nfs would be asked for: the expected options are those of nfs-utils 2.8.3 for the same file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.mounts.requests import (
    Intents,
    asked_options,
    claim,
    effective,
    last_asked,
    requested,
    wants_stand_in,
)
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import UTAB, Asked, Request, Setting, Snapshot, Tunnel
from nfstuned.parse.etc.settings import parse_nfsmount
from tests.parse.damage import TOKENS, any_text

CONF = "/etc/nfsmount.conf"
POINT = "/mnt/a"


def settings(text: str) -> tuple[Setting, ...]:
    return tuple(item for item in parse_nfsmount(text) if isinstance(item, Setting))


def merged(text: str, given: str = "noac", source: str = "nas:/a") -> str:
    asked = requested(Request(source, POINT, given, "/etc/fstab", 7), settings(text))
    return ",".join(one.name if one.value is None else f"{one.name}={one.value}" for one in asked)


def mount(source: str = "nas:/a", point: str = POINT) -> Mount:
    return Mount(60, 27, "0:43", "/", point, "nfs4", source, Options())


MANY = """\
[ NFSMount_Global_Options ]
nconnect=2
timeo=70
[ Server "NAS" ]
nconnect=4
rsize=64k
[ Server "other" ]
nconnect=16
[ MountPoint "/MNT/a" ]
nconnect=8
"""


def test_mount_point_server_and_global_each_fill_in_what_is_absent() -> None:
    assert merged(MANY) == "noac,nconnect=8,rsize=65536,timeo=70"
    assert merged(MANY, "nconnect=1") == "nconnect=1,rsize=65536,timeo=70"
    assert merged(MANY.replace("MNT", "elsewhere")) == "noac,rsize=65536,nconnect=4,timeo=70"
    assert merged(MANY.replace("/MNT/a", "/mnt/a/"), source="third:/a") == "noac,timeo=70,nconnect=2"


@pytest.mark.parametrize(
    ("section", "source", "found"),
    [
        *(('[ Server "nas" ]', "nas:/a", True), ('[ server "NAS" ]', "nas:/a", True)),
        *(('[ Server "nas:/a" ]', "nas:/a", False), ("[ Server nas ]", "nas:/a", False)),
        *(('[ Server "[fd00" ]', "[fd00::10]:/a", True), ('[ Server "[fd00::10]" ]', "[fd00::10]:/a", False)),
        *(("[ Server ]", "nas:/a", False), ('[ NFSMount_Global_Options "nas" ]', "nas:/a", False)),
        ("[ nfsmount_global_OPTIONS ]", "nas:/a", True),
    ],
)
def test_a_section_matches_by_its_name_up_to_a_colon(section: str, source: str, *, found: bool) -> None:
    assert merged(f"{section}\nnconnect=4\n", source=source) == ("noac,nconnect=4" if found else "noac")


@pytest.mark.parametrize(
    ("setting", "option"),
    [
        *(("Rsize=8k", "rsize=8192"), ("rsize=0x10K", "rsize=16384"), ("rsize=-3k", "rsize=-3072")),
        *(("rsize=k", "rsize=0"), ("rsize=9999999999999999999g", "rsize=-1073741824"), ("rsize=$size", "")),
        *(("clientaddr=nas.example.org", "clientaddr=0"), ("ac=True", "ac"), ("Lock=False", "nolock")),
        *(("Background=True", "bg"), ("Foreground=False", "bg"), ("bg=False", "nobg")),
        *(("Sloppy=True", "sloppy"), ("Sloppy=False", ""), ("Defaultvers=4.1", "")),
    ],
)
def test_a_setting_becomes_the_option_that_mount_nfs_makes_of_it(setting: str, option: str) -> None:
    assert merged(f"[ NFSMount_Global_Options ]\n{setting}\n", "") == option


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        *(("ac", "noac=True"), ("noac", "ac=True"), ("fg", "background=True"), ("bg", "foreground=True")),
        *(("vers=4.1", "nfsvers=3"), ("v4.2", "vers=3"), ("minorversion=1", "v4.1=True")),
        ("nconnect=2", "NCONNECT=4"),
    ],
)
def test_an_option_yields_to_its_opposite_and_to_another_name(given: str, setting: str) -> None:
    assert merged(f"[ NFSMount_Global_Options ]\n{setting}\n", given) == given


def test_an_option_of_fstab_that_begins_with_default_is_dropped() -> None:
    assert merged("", "defaults,rw") == "rw"


def test_what_is_not_sloppy_stays_so() -> None:
    assert merged('[ Server "nas" ]\nsloppy=False\n[ NFSMount_Global_Options ]\nsloppy=True\n') == "noac"


def test_the_last_setting_of_a_name_counts_also_against_an_opposite() -> None:
    assert merged("[ NFSMount_Global_Options ]\nlock=True\nnolock=True\nnconnect=4\nNConnect=8\n") == (
        "noac,nconnect=8,nolock"
    )


@pytest.mark.parametrize(
    ("environment", "result"),
    [("n=6", "noac,nconnect=6"), ("n=$n", "noac"), ("n=$m\nM=5", "noac,nconnect=5"), ("x=1", "noac")],
)
def test_a_variable_stands_for_a_value_of_the_environment_section(environment: str, result: str) -> None:
    text = f"[ NFSMount_Global_Options ]\nnconnect=$n\n[environment]\n{environment}\n"
    assert merged(text) == result


FSTAB = Request("nas:/a/", "/mnt/a/", "rw,nconnect=8", "/etc/fstab", 7)
WILD = Request("nas:/home/&", "/home/*/x", "nconnect=3,x=&", "/etc/auto.home", 2, wildcard=True)


def nconnect(*requests: Request, text: str = "", of: Mount | None = None) -> Asked | None:
    return last_asked(Intents(requests, settings(text)).of(of or mount()), "nconnect")


def test_what_utab_says_counts_and_the_file_that_says_the_same_is_named() -> None:
    same = Request("nas:/a", POINT, "rw,nconnect=8,addr=x", UTAB, 1)
    other = Request("nas:/a", POINT, "rw,nconnect=4,addr=x", UTAB, 2)
    none = Request("nas:/a", POINT, "rw,addr=x", UTAB, 3)
    assert nconnect(same, FSTAB) == Asked("nconnect", "8", "/etc/fstab", 7)
    assert nconnect(other, FSTAB) == Asked("nconnect", "4", UTAB, 2)
    assert nconnect(none, FSTAB) is None
    assert nconnect(same, other, FSTAB) == Asked("nconnect", "4", UTAB, 2)


def test_without_utab_the_first_file_counts_with_what_nfsmount_conf_adds() -> None:
    second = Request("nas:/a", POINT, "nconnect=2", "/etc/fstab", 8)
    assert nconnect(FSTAB, second) == Asked("nconnect", "8", "/etc/fstab", 7)
    bare = Request("nas:/a", POINT, "rw", "/etc/fstab", 9)
    assert nconnect(bare, text='[ Server "nas" ]\nnconnect=4\n') == Asked("nconnect", "4", CONF, 2)
    assert nconnect(FSTAB, of=mount(point="/elsewhere")) is None
    assert nconnect(FSTAB, of=mount("other:/a")) is None


TLS = Request("sa1:/sa1/s", POINT, "vers=4.1,nconnect=4", "/etc/fstab", 7, fstype="aznfs")


def test_an_entry_of_aznfs_is_known_by_the_tunnel_that_it_mounts() -> None:
    tunnel = mount("127.0.0.1:/sa1/s")
    assert nconnect(TLS, of=tunnel) == Asked("nconnect", "4", "/etc/fstab", 7)
    assert nconnect(TLS, of=mount("sa1:/sa1/s")) is None
    clear = TLS._replace(options="vers=4.1,nconnect=4,notls")
    assert nconnect(clear, of=tunnel) is None
    assert nconnect(clear, of=mount("sa1:/sa1/s")) == Asked("nconnect", "4", "/etc/fstab", 7)


SERVERS = """\
[ Server "127.0.0.1" ]
rsize=1048576
[ Server "sa1" ]
wsize=1
[ Server "10.161.100.100" ]
wsize=2
[ Server "//nas/s" ]
rsize=2
"""
CLEAR = TLS._replace(options="vers=4,minorversion=1,notls")
STAND_IN = Tunnel(0, "sa1", 0, "azure-files", "/list", "10.161.100.100", "10.0.0.4")


@pytest.mark.parametrize(
    ("entry", "stand_ins", "rsize", "wsize"),
    [
        (TLS, {}, "1048576", None),
        (CLEAR, {}, None, "1"),
        (CLEAR, {"sa1": "10.161.100.100"}, None, "2"),
        (CLEAR._replace(fstype="nfs"), {"sa1": "10.161.100.100"}, None, "1"),
    ],
)
def test_nfsmount_conf_counts_for_aznfs_with_its_tunnel_or_the_address_that_stands_in_as_server(
    entry: Request, stand_ins: dict[str, str], rsize: str | None, wsize: str | None
) -> None:
    asked = asked_options(requested(entry, settings(SERVERS), stand_ins))
    assert (asked.get("rsize"), asked.get("wsize")) == (rsize, wsize)
    if stand_ins:
        assert asked_options(Intents((), settings(SERVERS), (STAND_IN,)).asked(entry)) == asked


def test_nfsmount_conf_never_counts_for_smb() -> None:
    smb = Request("//nas/s", POINT, "vers=3.1.1", "/etc/fstab", 8, fstype="cifs")
    assert asked_options(requested(smb, settings(SERVERS + MANY))).pairs == (("vers", "3.1.1"),)
    live = replace(mount("//nas/s"), fstype="cifs")
    assert asked_options(Intents((smb,), settings(MANY)).of(live)).pairs == (("vers", "3.1.1"),)


@pytest.mark.parametrize(
    ("line", "snapshots"),
    [
        (CLEAR, [False, True, True]),
        (CLEAR._replace(options="vers=3"), [True, True, True]),
        (CLEAR._replace(fstype="nfs"), [False, False, False]),
        (TLS, [False, False, False]),
    ],
)
def test_a_new_aznfs_without_tls_mounts_an_address_of_its_own(line: Request, snapshots: list[bool]) -> None:
    known = (Snapshot(), Snapshot(azfiles=True), Snapshot(tunnels=(STAND_IN,)))
    assert [wants_stand_in(line, snapshot) for snapshot in known] == snapshots


def test_a_wildcard_is_about_every_mount_that_has_its_form() -> None:
    found = nconnect(WILD, of=mount("nas:/home/kim", "/home/kim/x"))
    assert found == Asked("nconnect", "3", "/etc/auto.home", 2)
    exact = Request("nas:/home/kim", "/home/kim/x", "nconnect=5", "/etc/fstab", 1)
    assert nconnect(WILD, exact, of=mount("nas:/home/kim", "/home/kim/x")) == Asked(
        "nconnect", "5", "/etc/fstab", 1
    )


@pytest.mark.parametrize(
    ("source", "point", "asked"),
    [
        ("nas:/home/kim", "/home/kim/x", "nconnect=3,x=kim"),
        *(("nas:/home/lee", "/home/kim/x", None), ("nas:/home/", "/home//x", None)),
        *(("nas:/home/a/b", "/home/a/b/x", None), ("nas:/home/kim", "/home/kim", None)),
        ("nas:/home/x", "/home/x", None),
    ],
)
def test_a_wildcard_takes_one_name_and_puts_it_everywhere(source: str, point: str, asked: str | None) -> None:
    found = claim(WILD, source, point)
    assert (found and found.options) == asked


NAMES = ("nconnect", "rsize", "NoLock", "lock", "sloppy", "background", "vers", "v4.", "no", "")


@given(
    st.lists(
        st.builds(
            Setting,
            section=st.sampled_from(("server", "mountpoint", "nfsmount_global_options", "environment")),
            argument=st.sampled_from((None, "nas", POINT)),
            name=st.sampled_from(NAMES),
            value=st.one_of(
                st.sampled_from((*TOKENS, "4k", "0xzg", "0" * 5000 + "g", "$lock", "true")), any_text
            ),
            file=st.just(CONF),
            line=st.just(1),
        ),
        max_size=12,
    ),
    any_text,
)
def test_any_settings_give_options(many: list[Setting], given_options: str) -> None:
    asked = requested(Request("nas:/a", POINT, given_options, "/etc/fstab", 1), many)
    assert all(isinstance(one, Asked) for one in asked)


def replaced_one_by_one(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """What conf_set_now does: before each setting, conf_remove_now takes the last that it replaces away."""
    kept: list[Setting] = []
    for setting in settings:
        for known in kept:
            arguments = [one and one.lower() for one in (setting.argument, known.argument)]
            alike = setting.alone or setting.argument is None or arguments[0] == arguments[1]
            if (setting.section, setting.name.lower()) == (known.section, known.name.lower()) and alike:
                kept.remove(known)
                break
        kept.insert(0, setting)
    return tuple(kept)


@given(
    st.lists(
        st.builds(
            Setting,
            st.sampled_from(["server", "mountpoint"]),
            st.sampled_from([None, "a", "A", "b"]),
            st.sampled_from(["rsize", "RSIZE", "vers"]),
            st.just("1"),
            st.just("f"),
            st.integers(1, 1000),
            st.booleans(),
        ),
        max_size=30,
        unique_by=lambda setting: setting.line,
    )
)
def test_what_later_settings_replace_is_what_removing_each_in_turn_leaves(settings: list[Setting]) -> None:
    assert effective(settings) == replaced_one_by_one(settings)
