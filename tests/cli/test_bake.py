"""`nfstuned bake` over images: what it writes, what check then says, and what --undo leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import sections, with_sections
from tests.cli.baked import (
    CONFIG,
    DROP_IN,
    MOUNT_NFS,
    RECORD,
    RULE,
    SESSION,
    SLOTS,
    UNIT,
    WANTED,
    Image,
    everything,
    make,
    with_netapp,
)
from tests.cli.conftest import REPOSITORY
from tests.core.test_udev_mask import STOCK

MASKED = "etc/udev/rules.d/99-nfs.rules"
UNIT_NAME = "nfstuned-identity.service"
IDENTITY = f"etc/systemd/system/{UNIT_NAME}"
IDENTITY_LINK = f"etc/systemd/system/multi-user.target.wants/{UNIT_NAME}"
V41 = "10.1.2.4:/vol1"
HOST = "sa1.file.core.windows.net"
AZURE = f"{HOST}:/sa1/share /mnt/share nfs vers=4.1 0 0\n"
ONLY_THERE = "Azure Files supports nconnect over private endpoints only"
DISTRIBUTIONS = ("image-debian-12", "image-debian-13", "image-rhel-9", "image-sles-15")


@pytest.fixture
def image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Image:
    return with_netapp(make("image-debian-13", tmp_path / "image", capsys))


def test_it_enables_the_service_and_writes_what_the_mounts_need(image: Image) -> None:
    before = everything(image.tree)
    run = image.run("bake", "--format", "json")
    assert (run.status, run.err) == (0, "")
    assert image.outcomes(run) == [
        ("service", "nfstuned.service", "done"),
        ("nconnect", "10.1.2.4", "done"),
        ("nconnect", "10.1.2.5", "done"),
        ("parameter", "sunrpc.tcp_max_slot_table_entries", "done"),
        ("parameter", "nfs.max_session_slots", "done"),
    ]
    assert run.document["root"] == str(image.tree)
    assert (image.tree / WANTED).readlink() == Path("/" + UNIT)
    assert (image.tree / DROP_IN).read_text() == with_sections({"10.1.2.4": 8, "10.1.2.5": 8})
    assert (image.tree / SLOTS).read_text().endswith("\noptions sunrpc tcp_max_slot_table_entries=128\n")
    assert (image.tree / SESSION).read_text().endswith("\noptions nfs max_session_slots=180\n")
    assert not (image.tree / RULE).exists()
    new = {name for name in everything(image.tree).keys() - before if (image.tree / name).is_file()}
    link = {WANTED} if os.path.lexists(image.tree / WANTED) else set()
    assert new | link == {WANTED, DROP_IN, SLOTS, SESSION, RECORD}


def test_the_text_names_each_file_what_it_is_about_and_why(image: Image) -> None:
    run = image.run("bake", "--dry-run")
    lines = [line.split() for line in run.out.splitlines()]
    files = (WANTED, DROP_IN, DROP_IN, SLOTS, SESSION)
    assert [line[0] for line in lines[:-1]] == [f"/{one}" for one in files]
    assert lines[0][1:6] == ["service", "nfstuned.service", "disabled", "->", "enabled"]
    assert lines[1][1:6] == ["nconnect", "10.1.2.4", "none", "->", "8"]
    assert lines[3][1:6] == ["parameter", "sunrpc.tcp_max_slot_table_entries", "65536", "->", "128"]
    assert lines[-1] == ["5", "planned"]


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_check_agrees_with_it_in_images_of_each_family(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = make(case, tmp_path / "image", capsys)
    image.put("etc/nfstuned/nfstuned.toml", CONFIG)
    image.put("etc/fstab", f"{V41} /mnt/vol1 nfs vers=4.1,nconnect=8,_netdev,nofail 0 0\n")
    (program,) = [path for path in image.tree.glob("**/mount.nfs") if "sbin" in str(path)]
    program.write_bytes(MOUNT_NFS % b"2.8.3")
    assert {"NFS701", "NFS211"} <= set(image.findings("NFS2", "NFS7"))
    assert image.run("bake").status == 0
    assert set(image.findings("NFS2", "NFS7")) == {"NFS703"}


def test_a_server_without_nconnect_anywhere_is_no_finding_any_more(image: Image) -> None:
    assert "NFS201" in image.findings("NFS201")
    assert image.run("bake").status == 0
    assert image.findings("NFS2", "NFS701") == []


def test_a_second_bake_changes_nothing_and_says_so(image: Image) -> None:
    image.run("bake")
    before = everything(image.tree)
    times = [path.lstat().st_mtime_ns for path in sorted(image.tree.rglob("*"))]
    run = image.run("bake")
    assert (run.status, run.out, run.err) == (0, "Nothing to do: the image is prepared.\n", "")
    assert everything(image.tree) == before
    assert [path.lstat().st_mtime_ns for path in sorted(image.tree.rglob("*"))] == times
    assert image.run("bake", "--format", "json").document["actions"] == []


def test_a_dry_run_says_the_same_and_changes_nothing(image: Image) -> None:
    before = everything(image.tree)
    dry = image.run("bake", "--dry-run")
    assert (dry.status, everything(image.tree)) == (0, before)
    assert [line.split() for line in image.run("bake").out.replace("done", "planned").splitlines()] == [
        line.split() for line in dry.out.splitlines()
    ]


def test_undo_leaves_the_image_as_it_was(image: Image) -> None:
    before = everything(image.tree)
    image.run("bake")
    planned = image.run("bake", "--undo", "--dry-run", "--format", "json")
    assert {outcome for _, _, outcome in image.outcomes(planned)} == {"planned"}
    assert (image.tree / WANTED).is_symlink()
    run = image.run("bake", "--undo", "--format", "json")
    assert (run.status, run.err) == (0, "")
    assert image.outcomes(run) == [
        ("file", f"/{name}", "done") for name in sorted((WANTED, DROP_IN, SLOTS, SESSION))
    ]
    assert everything(image.tree) == before
    again = image.run("bake", "--undo")
    assert (again.status, again.out) == (0, "Nothing to take back: the image has nothing of bake's.\n")


def test_folders_that_were_there_stay_and_those_with_something_else_in_them(image: Image) -> None:
    (image.tree / "etc/modprobe.d").mkdir()
    image.run("bake")
    image.put("etc/nfsmount.conf.d/60-site.conf", "")
    assert image.run("bake", "--undo").status == 0
    assert (image.tree / "etc/modprobe.d").is_dir()
    assert (image.tree / "etc/nfsmount.conf.d/60-site.conf").exists()
    assert not (image.tree / "etc/systemd").exists()


def test_what_somebody_changed_since_stays_and_is_named(image: Image) -> None:
    image.run("bake")
    image.put(SLOTS, "options sunrpc tcp_max_slot_table_entries=64\n")
    (image.tree / WANTED).unlink()
    (image.tree / WANTED).symlink_to("/opt/other.service")
    run = image.run("bake", "--undo", "--format", "json")
    assert run.status == 1
    kept = {one["path"]: one["reason"] for one in run.document["actions"] if one["outcome"] == "failed"}
    assert kept.keys() == {f"/{SLOTS}", f"/{WANTED}"}
    assert all("was changed after bake had written it" in reason for reason in kept.values())
    assert (image.tree / SLOTS).read_text() == "options sunrpc tcp_max_slot_table_entries=64\n"
    assert os.path.lexists(image.tree / WANTED)
    assert not (image.tree / DROP_IN).exists()
    assert not (image.tree / RECORD).exists()


def test_another_bake_follows_what_somebody_decided_since(image: Image) -> None:
    image.run("bake")
    image.put(SLOTS, "options sunrpc tcp_max_slot_table_entries=64\n")
    run = image.run("bake", "--format", "json")
    assert (run.status, image.outcomes(run)) == (0, [("file", f"/{SLOTS}", "skipped")])


def test_another_bake_follows_the_images_own_files(image: Image) -> None:
    before = everything(image.tree)
    image.run("bake")
    image.put("etc/fstab", f"{V41} /mnt/vol1 nfs vers=4.1,hard 0 0\n10.1.2.6:/v /mnt/v nfs vers=4.1 0 0\n")
    run = image.run("bake", "--format", "json")
    assert image.outcomes(run) == [
        ("nconnect", "10.1.2.5", "done"),
        ("nconnect", "10.1.2.6", "done"),
        ("file", f"/{SLOTS}", "done"),
    ]
    assert sections((image.tree / DROP_IN).read_text()) == {"10.1.2.4": 8, "10.1.2.6": 8}
    assert not (image.tree / SLOTS).exists()
    image.put("etc/fstab", before["etc/fstab"][1])
    image.run("bake", "--undo")
    assert everything(image.tree) == before


def test_an_image_that_mounts_nothing_gets_the_service_alone(image: Image) -> None:
    image.put("etc/fstab", "")
    run = image.run("bake", "--format", "json")
    assert image.outcomes(run) == [("service", "nfstuned.service", "done")]
    assert not (image.tree / "etc/nfsmount.conf.d").exists()


def test_a_policy_may_name_the_servers_that_nothing_mounts_yet(image: Image) -> None:
    image.put("etc/fstab", "")
    image.put("etc/nfstuned/nfstuned.toml", CONFIG.replace("10.1.2.0/24", "nas1.example.com"))
    image.run("bake")
    assert sections((image.tree / DROP_IN).read_text()) == {"nas1.example.com": 8}


class TestTheService:
    def test_a_unit_is_found_wherever_one_may_be_installed(self, image: Image) -> None:
        unit = (image.tree / UNIT).read_bytes()
        (image.tree / UNIT).unlink()
        place = "usr/local/lib/systemd/system/nfstuned.service"
        image.put(place, unit)
        image.run("bake")
        assert (image.tree / WANTED).readlink() == Path("/" + place)

    def test_an_administrators_unit_says_by_what_it_is_started(self, image: Image) -> None:
        place = "etc/systemd/system/nfstuned.service"
        lines = ("no.target", "", "a.target b.target ../x.target")
        wanted = "".join(f"WantedBy={line}\n" for line in lines)
        image.put(place, f"[Install]\n{wanted}RequiredBy=c.target\n")
        image.run("bake")
        folder = image.tree / "etc/systemd/system"
        assert sorted(one.name for one in folder.iterdir() if one.is_dir()) == [
            "a.target.wants",
            "b.target.wants",
            "c.target.requires",
        ]
        assert (folder / "c.target.requires/nfstuned.service").readlink() == Path("/" + place)

    def test_without_a_unit_it_says_what_comes_first_and_does_the_rest(self, image: Image) -> None:
        (image.tree / UNIT).unlink()
        run = image.run("bake", "--format", "json")
        assert run.status == 1
        first, *others = run.document["actions"]
        assert (first["old"], first["outcome"]) == ("not installed", "failed")
        assert "install the package in it, or run nfstuned install-files --root DIR, first" in first["reason"]
        assert {one["outcome"] for one in others} == {"done"}
        assert not os.path.lexists(image.tree / WANTED)

    @pytest.mark.parametrize("mask", ["link", "empty"])
    def test_a_mask_is_left_alone(self, mask: str, image: Image) -> None:
        place = image.tree / "etc/systemd/system/nfstuned.service"
        place.parent.mkdir(parents=True)
        if mask == "link":
            place.symlink_to("/dev/null")
        else:
            place.touch()
        run = image.run("bake", "--format", "json")
        first = run.document["actions"][0]
        assert (run.status, first["old"], first["outcome"]) == (1, "masked", "failed")
        assert not os.path.lexists(image.tree / WANTED)

    def test_one_that_is_started_already_is_not_touched_and_not_taken_back(self, image: Image) -> None:
        (image.tree / WANTED).parent.mkdir(parents=True)
        (image.tree / WANTED).symlink_to("/" + UNIT)
        image.run("bake")
        assert WANTED not in json.loads((image.tree / RECORD).read_text())["files"]
        image.run("bake", "--undo")
        assert (image.tree / WANTED).is_symlink()


class TestDaemonless:
    def test_it_writes_the_rule_and_does_not_enable_the_service(self, image: Image) -> None:
        run = image.run("bake", "--daemonless", "--format", "json")
        assert (run.status, image.outcomes(run)[0]) == (1, ("udev-rule", "read-ahead", "failed"))
        assert "/usr/bin/awk" in run.document["actions"][0]["reason"]
        image.program("usr/bin/mawk")
        (image.tree / "usr/bin/awk").symlink_to("/etc/alternatives/awk")
        image.put("etc/alternatives/.keep", "")
        (image.tree / "etc/alternatives/awk").symlink_to("/usr/bin/mawk")
        assert "NFS701" in image.findings("NFS701")
        run = image.run("bake", "--daemonless", "--format", "json")
        assert (run.status, image.outcomes(run)) == (0, [("udev-rule", "read-ahead", "done")])
        rule = (REPOSITORY / "udev/99-nfstuned.rules").read_text()
        assert (image.tree / RULE).read_text() == rule
        assert f'ATTR{{read_ahead_kb}}="{run.document["actions"][0]["new"].split()[0]}"' in rule
        assert not os.path.lexists(image.tree / WANTED)
        assert image.findings("NFS1", "NFS2", "NFS701") == []

    @pytest.mark.parametrize("own", [False, True])
    def test_nfs_utils_rule_is_masked_unless_it_is_somebodys(self, image: Image, *, own: bool) -> None:
        image.program("usr/bin/awk")
        image.put("usr/lib/udev/rules.d/99-nfs.rules", STOCK)
        if own:
            image.put("etc/nfs.conf", "[nfsrahead]\nnfs4=15360\n")
        before = everything(image.tree)
        run = image.run("bake", "--daemonless", "--format", "json")
        assert (("udev-rule", "99-nfs.rules", "done") in image.outcomes(run)) is not own
        assert (image.tree / MASKED).exists() is not own
        assert image.findings("NFS1", "NFS701") == []
        assert image.run("bake", "--daemonless").out.startswith("Nothing to do")
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    def test_with_the_service_the_rule_stays_in_force_and_a_check_is_content(self, image: Image) -> None:
        image.put("usr/lib/udev/rules.d/99-nfs.rules", STOCK)
        run = image.run("bake", "--format", "json")
        assert (run.status, "udev-rule" in {kind for kind, _, _ in image.outcomes(run)}) == (0, False)
        assert image.findings("NFS1", "NFS701") == []

    def test_the_two_ways_replace_each_other(self, image: Image) -> None:
        image.program("usr/bin/awk")
        before = everything(image.tree)
        image.run("bake")
        run = image.run("bake", "--daemonless", "--format", "json")
        assert image.outcomes(run) == [("udev-rule", "read-ahead", "done"), ("file", f"/{WANTED}", "done")]
        assert not os.path.lexists(image.tree / WANTED)
        image.run("bake")
        assert (image.tree / WANTED).is_symlink()
        assert not (image.tree / RULE).exists()
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    def test_one_that_a_preset_would_start_is_named_until_it_is_masked(self, image: Image) -> None:
        image.program("usr/bin/awk")
        image.put("etc/machine-id", "uninitialized\n")
        actions = image.run("bake", "--daemonless", "--format", "json").document["actions"]
        (reason,) = [one["reason"] for one in actions if one["kind"] == "service"]
        assert reason.endswith("systemctl --root=DIR mask nfstuned.service")
        (image.tree / "etc/systemd/system").mkdir(parents=True)
        (image.tree / "etc/systemd/system/nfstuned.service").symlink_to("/dev/null")
        assert image.run("bake", "--daemonless").out.startswith("Nothing to do")

    def test_undo_needs_no_such_word(self, image: Image) -> None:
        run = image.run("bake", "--undo", "--daemonless")
        assert (run.status, run.out) == (2, "")
        assert "leave --daemonless out" in run.err


class TestTheDropIn:
    def test_one_that_a_host_wrote_before_its_disk_became_an_image_comes_back(self, image: Image) -> None:
        old = with_sections({"10.9.9.9": 4})
        image.put(DROP_IN, old)
        before = everything(image.tree)
        assert image.run("bake").status == 0
        assert sections((image.tree / DROP_IN).read_text()) == {"10.1.2.4": 8, "10.1.2.5": 8, "10.9.9.9": 4}
        assert "Nothing to do" in image.run("bake").out
        run = image.run("bake", "--undo", "--format", "json")
        became = {one["path"]: one["new"] for one in run.document["actions"]}
        assert (became[f"/{DROP_IN}"], became[f"/{SLOTS}"]) == ("as before", "removed")
        assert everything(image.tree) == before

    def test_one_that_says_all_already_is_not_touched(self, image: Image) -> None:
        image.put(DROP_IN, with_sections({"10.1.2.4": 8, "10.1.2.5": 8}))
        run = image.run("bake", "--format", "json")
        assert "nconnect" not in {kind for kind, _, _ in image.outcomes(run)}
        image.run("bake", "--undo")
        assert (image.tree / DROP_IN).exists()

    def test_one_that_a_host_changed_after_the_bake_is_taken_over(self, image: Image) -> None:
        image.run("bake")
        image.put(DROP_IN, with_sections({"10.1.2.4": 8, "10.7.7.7": 4}))
        image.run("bake")
        assert sections((image.tree / DROP_IN).read_text()) == {"10.1.2.4": 8, "10.1.2.5": 8, "10.7.7.7": 4}
        image.run("bake", "--undo")
        assert sections((image.tree / DROP_IN).read_text()) == {"10.1.2.4": 8, "10.7.7.7": 4}

    @pytest.mark.parametrize("kind", ["edited", "folder", "link"])
    def test_what_nfstuned_did_not_write_is_refused(self, kind: str, image: Image) -> None:
        if kind == "edited":
            image.put(DROP_IN, with_sections({"10.1.2.4": 8}) + "# mine\n")
        else:
            path = image.tree / DROP_IN
            path.parent.mkdir(parents=True)
            path.mkdir() if kind == "folder" else path.symlink_to("/nowhere")
        before = everything(image.tree)
        run = image.run("bake", "--format", "json")
        # A folder is no file that could be read, and a command that could not read one ends with 2.
        status = 2 if kind == "folder" else 1
        assert (run.status, ("nconnect", f"/{DROP_IN}", "failed") in image.outcomes(run)) == (status, True)
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    def test_an_old_mount_nfs_gets_one_section(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        image = with_netapp(make("image-debian-12", tmp_path / "old", capsys), b"2.6.2")
        run = image.run("bake", "--format", "json")
        assert ("nconnect", "10.1.2.5", "skipped") in image.outcomes(run)
        assert sections((image.tree / DROP_IN).read_text()) == {"10.1.2.4": 8}

    def test_an_endpoint_that_only_its_network_tells_about_is_left_to_the_service(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        run = image.run("bake", "--format", "json")
        (reason,) = [one["reason"] for one in run.document["actions"] if one["kind"] == "nconnect"]
        assert run.status == 0
        assert "private endpoints only" in reason
        assert 'mode = "persist" under [nconnect]' in reason
        assert not (image.tree / DROP_IN).exists()

    def test_what_the_policy_already_lets_the_service_do_is_not_asked_for_again(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        image.put("etc/nfstuned/nfstuned.toml", '[nconnect]\nmode = "persist"\n')
        assert 'as mode = "persist" asks' in self.reason(image)
        assert "under [nconnect]" not in self.reason(image)

    def test_without_the_service_nobody_finds_it_out_later(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        image.program("usr/bin/awk")
        said = self.reason(image, "--daemonless")
        assert "write nconnect=4 into the options" in said
        assert "the service finds" not in said

    @staticmethod
    def reason(image: Image, *words: str) -> str:
        actions = image.run("bake", "--dry-run", "--format", "json", *words).document["actions"]
        return next(str(one["reason"]) for one in actions if one["kind"] == "nconnect")

    def test_an_address_that_the_image_itself_gives_counts(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        image.put("etc/hosts", "10.10.10.10 sa1.file.core.windows.net\n")
        assert ("nconnect", HOST, "done") in image.outcomes(image.run("bake", "--format", "json"))
        assert sections((image.tree / DROP_IN).read_text()) == {HOST: 4}

    def test_a_public_address_in_it_is_said_and_no_way_is_shown(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        image.put("etc/hosts", "52.239.238.8 sa1.file.core.windows.net\n")
        assert self.reason(image) == f"{HOST} is a public endpoint; {ONLY_THERE}"


class TestParameters:
    def test_a_package_that_says_otherwise_is_overruled_by_a_later_file(self, image: Image) -> None:
        image.put("usr/lib/sysctl.d/80-nfs.conf", "sunrpc.tcp_max_slot_table_entries = 256\n")
        image.run("bake")
        written = image.tree / "etc/sysctl.d/sunrpc-slots.conf"
        assert written.read_text().endswith("\nsunrpc.tcp_max_slot_table_entries=128\n")
        assert image.findings("NFS210") == []
        assert image.run("bake", "--undo").status == 0
        assert not written.parent.exists()

    def test_what_the_administrator_says_is_left_and_named(self, image: Image) -> None:
        image.put("etc/modprobe.d/site.conf", "options sunrpc tcp_max_slot_table_entries=256\n")
        run = image.run("bake", "--format", "json")
        (one,) = [one for one in run.document["actions"] if one["target"].startswith("sunrpc.")]
        assert (run.status, one["outcome"], one["old"], one["path"]) == (1, "failed", 256, None)
        assert "in /etc/modprobe.d/site.conf:1" in one["reason"]

    def test_a_file_of_that_name_is_not_overwritten(self, image: Image) -> None:
        image.put(SLOTS, "# ours\n")
        run = image.run("bake", "--format", "json")
        assert ("parameter", "sunrpc.tcp_max_slot_table_entries", "failed") in image.outcomes(run)
        assert (image.tree / SLOTS).read_text() == "# ours\n"

    def test_nothing_is_written_where_no_profile_of_netapp_is_in_use(self, image: Image) -> None:
        image.put("etc/nfstuned/nfstuned.toml", "")
        image.run("bake")
        assert not (image.tree / "etc/modprobe.d").exists()


class TestIdentity:
    """Clones of one name get identifiers of their own for their NFSv4 client."""

    @pytest.fixture
    def named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Image:
        image = make("image-one-name", tmp_path / "image", capsys)
        (image.tree / "etc/machine-id").unlink()
        return image

    def test_the_unit_is_written_where_no_package_brought_it_and_taken_back(self, named: Image) -> None:
        named.program("usr/bin/awk")
        before = everything(named.tree)
        run = named.run("bake", "--daemonless", "--format", "json")
        assert [one for one in named.outcomes(run) if one[0] == "identity"] == [
            ("identity", "NFSv4 client", "done"),
            ("identity", "nfstuned-identity.service", "done"),
            ("identity", "50-nfstuned-identity.preset", "done"),
        ]
        assert (named.tree / IDENTITY).read_bytes() == (REPOSITORY / "systemd" / UNIT_NAME).read_bytes()
        assert (named.tree / IDENTITY_LINK).readlink() == Path("/" + IDENTITY)
        assert "NFS413" not in named.run("check").out
        assert "identity" not in named.run("bake", "--daemonless").out
        assert named.run("bake", "--undo").status == 0
        assert everything(named.tree) == before

    def test_a_packages_unit_is_linked(self, named: Image) -> None:
        unit = named.tree / "usr/lib/systemd/system" / UNIT_NAME
        unit.write_bytes((REPOSITORY / "systemd" / UNIT_NAME).read_bytes())
        run = named.run("bake", "--format", "json")
        assert ("identity", "NFSv4 client", "done") in named.outcomes(run)
        assert (named.tree / IDENTITY_LINK).readlink() == Path(f"/usr/lib/systemd/system/{UNIT_NAME}")
        assert not (named.tree / IDENTITY).exists()

    @pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemctl")
    @pytest.mark.parametrize("package", [True, False])
    def test_presets_leave_it_enabled(self, named: Image, *, package: bool) -> None:
        """mkosi applies all presets after its scripts, Fedora and Azure Linux at a first boot."""
        presets = named.tree / "usr/lib/systemd/system-preset"
        presets.mkdir(parents=True, exist_ok=True)
        (presets / "99-default-disable.preset").write_text("disable *\n")
        if package:
            (presets / "90-nfstuned.preset").write_bytes(
                (REPOSITORY / "systemd/90-nfstuned.preset").read_bytes()
            )
            unit = named.tree / "usr/lib/systemd/system" / UNIT_NAME
            unit.write_bytes((REPOSITORY / "systemd" / UNIT_NAME).read_bytes())
        (named.tree / "etc/machine-id").write_text("uninitialized\n")
        before = everything(named.tree)
        named.run("bake")
        command = ["systemctl", f"--root={named.tree}", "preset", UNIT_NAME]
        subprocess.run(command, check=True, capture_output=True)
        assert os.path.lexists(named.tree / IDENTITY_LINK)
        assert named.run("bake", "--undo").status == 0
        assert everything(named.tree) == before

    def test_a_machine_id_that_all_clones_would_share_is_named(self, named: Image) -> None:
        (named.tree / "etc/machine-id").write_text("4a1f0c3e9b7d42d6a5c8e1f20b3d4c5e\n")
        run = named.run("bake", "--format", "json")
        assert ("identity", "NFSv4 client", "skipped") in named.outcomes(run)
        assert not os.path.lexists(named.tree / IDENTITY_LINK)

    def test_so_is_that_of_dbus_of_which_systemd_would_make_one(self, named: Image) -> None:
        named.put("var/lib/dbus/machine-id", "4a1f0c3e9b7d42d6a5c8e1f20b3d4c5e\n")
        reason = self.left(named)
        assert reason.endswith("would share: remove its /var/lib/dbus/machine-id, bake again")
        (named.tree / "etc/machine-id").write_text("4a1f0c3e9b7d42d6a5c8e1f20b3d4c5e\n")
        both = "empty its /etc/machine-id and remove its /var/lib/dbus/machine-id, bake again"
        assert self.left(named).endswith(both)

    @pytest.mark.parametrize(
        ("file", "text", "way"),
        [
            (
                "etc/modprobe.d/nfs.conf",
                "options nfs nfs4_unique_id=golden\n",
                "take nfs4_unique_id=golden out of /etc/modprobe.d/nfs.conf:1",
            ),
            (
                "etc/default/grub",
                "GRUB_CMDLINE_LINUX=nfs.nfs4_unique_id=golden\n",
                "take nfs.nfs4_unique_id=golden off the kernel's command line (/etc/default/grub)",
            ),
        ],
    )
    def test_an_identifier_that_all_clones_would_share_is_named(
        self, named: Image, file: str, text: str, way: str
    ) -> None:
        named.put(file, text)
        assert f"the identifier golden, which the unit would leave: {way}, bake again" in self.left(named)
        assert f"{way}; then sudo nfstuned bake --root DIR" in named.run("check").out
        (named.tree / file).write_text("")
        assert named.run("bake").status == 0
        assert os.path.lexists(named.tree / IDENTITY_LINK)
        assert "NFS413" not in named.run("check").out
        named.put(file, text)
        assert "NFS413" in named.run("check").out
        assert "the identifier golden" in self.left(named)

    def left(self, named: Image) -> str:
        """Bake, and return why the clones get no identity of their own."""
        run = named.run("bake", "--format", "json")
        (one,) = [one for one in run.document["actions"] if one["kind"] == "identity"]
        assert one["outcome"] == "skipped"
        assert not os.path.lexists(named.tree / IDENTITY_LINK)
        return str(one["reason"])

    def test_a_mask_is_somebodys_decision(self, named: Image) -> None:
        (named.tree / IDENTITY).parent.mkdir(parents=True, exist_ok=True)
        (named.tree / IDENTITY).symlink_to("/dev/null")
        assert "identity" not in {
            kind for kind, _, _ in named.outcomes(named.run("bake", "--format", "json"))
        }
