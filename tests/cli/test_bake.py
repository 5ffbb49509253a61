"""`nfstuned bake` over images: its files, the findings of check afterwards, and the files after --undo."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import with_sections
from tests.cli.baked import (
    DROP_IN,
    MACHINE_ID,
    RECORD,
    RULE,
    SESSION,
    SLOTS,
    UNIT,
    WANTED,
    Image,
    make,
    with_netapp,
)
from tests.cli.conftest import CONFIG, REPOSITORY
from tests.core.test_udev_faults import STOCK
from tests.tree import everything

MASKED = "etc/udev/rules.d/99-nfs.rules"
MASK = "etc/systemd/system/nfstuned.service"
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


def test_it_enables_the_service_and_writes_the_mounts_settings(image: Image) -> None:
    before = everything(image.tree)
    assert image.bake() == (
        0,
        [
            ("service", "nfstuned.service", "done"),
            ("nconnect", "10.1.2.4", "done"),
            ("nconnect", "10.1.2.5", "done"),
            ("parameter", "sunrpc.tcp_max_slot_table_entries", "done"),
            ("parameter", "nfs.max_session_slots", "done"),
        ],
    )
    assert (image.tree / WANTED).readlink() == Path("/" + UNIT)
    assert (image.tree / DROP_IN).read_text() == with_sections({"10.1.2.4": 8, "10.1.2.5": 8})
    assert (image.tree / SLOTS).read_text().endswith("\noptions sunrpc tcp_max_slot_table_entries=128\n")
    assert (image.tree / SESSION).read_text().endswith("\noptions nfs max_session_slots=180\n")
    new = {name for name in everything(image.tree).keys() - before if not (image.tree / name).is_dir()}
    assert new == {WANTED, DROP_IN, SLOTS, SESSION, RECORD}


def test_the_text_names_each_file_its_value_and_the_reason(image: Image) -> None:
    out = image.run("bake", "--dry-run").out
    assert max(map(len, out.splitlines())) <= 80
    *changes, summary = re.sub(r"\n +", " ", out).splitlines()
    assert " ".join(changes[0].split()) == (
        f"planned /{WANTED} service nfstuned.service disabled -> enabled (as its [Install] section says: "
        "multi-user.target.wants)"
    )
    assert " nconnect 10.1.2.4 none -> 8 (azure-netapp-files asks for nconnect=8)" in changes[1]
    assert [change.split()[1] for change in changes] == [
        f"/{one}" for one in (WANTED, DROP_IN, DROP_IN, SLOTS, SESSION)
    ]
    assert summary == "5 planned"


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_check_agrees_in_each_family(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = make(case, tmp_path / "image", capsys)
    (program,) = [path for path in image.tree.glob("**/mount.nfs") if "sbin" in str(path)]
    with_netapp(image, place=str(program.relative_to(image.tree)))
    image.put("etc/fstab", f"{V41} /mnt/vol1 nfs vers=4.1,nconnect=8,_netdev,nofail 0 0\n")
    assert {"NFS701", "NFS211"} <= set(image.findings("NFS2", "NFS7"))
    assert image.run("bake").status == 0
    assert set(image.findings("NFS2", "NFS7")) == {"NFS703"}


def test_a_server_without_nconnect_anywhere_is_no_finding_any_more(image: Image) -> None:
    assert "NFS201" in image.findings("NFS201")
    assert image.run("bake").status == 0
    assert image.findings("NFS2", "NFS701") == []


def test_a_dry_run_says_what_a_bake_does_and_a_second_bake_has_nothing_to_do(image: Image) -> None:
    def look() -> object:
        return everything(image.tree), [path.lstat().st_mtime_ns for path in sorted(image.tree.rglob("*"))]

    before = look()
    dry = image.run("bake", "--dry-run")
    assert (dry.status, look()) == (0, before)
    assert image.run("bake").out.replace("done", "planned").split() == dry.out.split()
    before = look()
    run = image.run("bake")
    assert (run.status, run.out, run.err) == (0, "Nothing to do: the image is prepared.\n", "")
    assert image.actions() == (0, [])
    assert look() == before


def test_undo_leaves_the_image_as_it_was(image: Image) -> None:
    before = everything(image.tree)
    image.run("bake")
    status, planned = image.bake("--undo", "--dry-run")
    assert (status, {outcome for _, _, outcome in planned}) == (0, {"planned"})
    assert (image.tree / WANTED).is_symlink()
    files = sorted((WANTED, DROP_IN, SLOTS, SESSION))
    assert image.bake("--undo") == (0, [("file", f"/{name}", "done") for name in files])
    assert everything(image.tree) == before
    again = image.run("bake", "--undo")
    assert (again.status, again.out) == (0, "Nothing to take back: the image has nothing of bake's.\n")


def test_folders_that_were_there_stay_and_those_with_something_else_in_them(image: Image) -> None:
    (image.tree / "etc/modprobe.d").mkdir()
    image.run("bake")
    image.put("etc/nfsmount.conf.d/60-site.conf", "")
    assert image.run("bake", "--undo").status == 0
    stay = "etc/modprobe.d", "etc/nfsmount.conf.d/60-site.conf"
    assert [image.has(name) for name in (*stay, "etc/systemd")] == [True, True, False]


def test_a_file_that_somebody_changed_since_stays_and_is_named(image: Image) -> None:
    text = "options sunrpc tcp_max_slot_table_entries=64\n"
    image.run("bake")
    image.put(SLOTS, text)
    (image.tree / WANTED).unlink()
    image.link(WANTED, "/opt/other.service")
    status, actions = image.actions("--undo")
    kept = {one["path"]: one["reason"] for one in actions if one["outcome"] == "failed"}
    assert (status, set(kept)) == (1, {f"/{SLOTS}", f"/{WANTED}"})
    assert all("was changed after bake had written it" in reason for reason in kept.values())
    assert (image.tree / SLOTS).read_text() == text
    assert [image.has(name) for name in (WANTED, DROP_IN, RECORD)] == [True, False, False]


def test_another_bake_follows_the_images_own_files(image: Image) -> None:
    before = everything(image.tree)
    image.run("bake")
    image.put("etc/fstab", f"{V41} /mnt/vol1 nfs vers=4.1,hard 0 0\n10.1.2.6:/v /mnt/v nfs vers=4.1 0 0\n")
    assert image.bake()[1] == [
        ("nconnect", "10.1.2.5", "done"),
        ("nconnect", "10.1.2.6", "done"),
        ("file", f"/{SLOTS}", "done"),
    ]
    assert (image.sections(), image.has(SLOTS)) == ({"10.1.2.4": 8, "10.1.2.6": 8}, False)
    image.put("etc/fstab", before["etc/fstab"][1])
    image.run("bake")
    image.put(SLOTS, "options sunrpc tcp_max_slot_table_entries=64\n")
    assert image.bake() == (0, [("file", f"/{SLOTS}", "skipped")])
    (image.tree / SLOTS).unlink()
    image.run("bake", "--undo")
    assert everything(image.tree) == before


def test_an_image_without_mounts_gets_the_service_and_sections_of_a_policy(image: Image) -> None:
    image.put("etc/fstab", "")
    assert image.bake()[1] == [("service", "nfstuned.service", "done")]
    assert not (image.tree / "etc/nfsmount.conf.d").exists()
    image.put("etc/nfstuned/nfstuned.toml", CONFIG.replace("10.1.2.0/24", "nas1.example.com"))
    image.run("bake")
    assert image.sections() == {"nas1.example.com": 8}


class TestTheService:
    def test_a_unit_is_found_wherever_one_may_be_installed(self, image: Image) -> None:
        place = image.tree / "usr/local/lib/systemd/system/nfstuned.service"
        place.parent.mkdir(parents=True)
        (image.tree / UNIT).rename(place)
        image.run("bake")
        assert (image.tree / WANTED).readlink() == Path("/" + str(place.relative_to(image.tree)))

    def test_an_administrators_unit_names_its_targets(self, image: Image) -> None:
        lines = "no.target", "", "a.target b.target ../x.target"
        wanted = "".join(f"WantedBy={line}\n" for line in lines)
        image.put(MASK, f"[Install]\n{wanted}RequiredBy=c.target\n")
        image.run("bake")
        folder = image.tree / "etc/systemd/system"
        found = sorted(one.name for one in folder.iterdir() if one.is_dir())
        assert found == ["a.target.wants", "b.target.wants", "c.target.requires"]
        assert (folder / "c.target.requires/nfstuned.service").readlink() == Path("/" + MASK)

    @pytest.mark.parametrize("words", [("--dry-run",), (), ("--daemonless", "--dry-run"), ("--daemonless",)])
    def test_an_image_that_lacks_the_package_is_refused_as_a_whole(
        self, words: tuple[str, ...], image: Image
    ) -> None:
        (image.tree / UNIT).unlink()
        before = everything(image.tree)
        status, actions = image.actions(*words)
        assert (status, [one["outcome"] for one in actions]) == (1, ["failed"])
        remedy = "install mawk" if "--daemonless" in words else f"install-files --root {image.tree}/, first"
        assert remedy in actions[0]["reason"]
        assert everything(image.tree) == before

    @pytest.mark.parametrize("link", [True, False])
    def test_with_a_mask_it_says_so_and_does_the_rest(self, image: Image, *, link: bool) -> None:
        if link:
            image.link(MASK, "/dev/null")
        else:
            image.put(MASK, "")
        status, (first, *others) = image.actions()
        assert (status, first["old"], first["outcome"]) == (1, "masked", "failed")
        assert f"systemctl --root={image.tree}/ unmask" in first["reason"]
        assert {one["outcome"] for one in others} == {"done"}
        assert not image.has(WANTED)

    def test_a_service_that_is_started_already_is_not_touched_and_not_taken_back(self, image: Image) -> None:
        image.link(WANTED, "/" + UNIT)
        image.run("bake")
        assert WANTED not in json.loads((image.tree / RECORD).read_text())["files"]
        image.run("bake", "--undo")
        assert (image.tree / WANTED).is_symlink()


class TestDaemonless:
    def test_it_writes_the_rule_and_does_not_enable_the_service(self, image: Image) -> None:
        status, (first, *_) = image.actions("--daemonless")
        assert (status, first["target"], first["outcome"]) == (1, "read-ahead", "failed")
        assert "/usr/bin/awk" in first["reason"]
        image.program("usr/bin/mawk")
        image.link("usr/bin/awk", "/etc/alternatives/awk")
        image.link("etc/alternatives/awk", "/usr/bin/mawk")
        assert "NFS701" in image.findings("NFS701")
        status, done = image.bake("--daemonless")
        assert (status, done[0]) == (0, ("udev-rule", "read-ahead", "done"))
        rule = (REPOSITORY / "udev/99-nfstuned.rules").read_text()
        assert (image.tree / RULE).read_text() == rule
        assert f'ATTR{{read_ahead_kb}}="{first["new"].split()[0]}"' in rule
        assert not image.has(WANTED)
        assert image.findings("NFS1", "NFS2", "NFS701") == []

    @pytest.mark.parametrize("own", [False, True])
    def test_nfs_utils_rule_is_masked_unless_it_is_somebodys(self, image: Image, *, own: bool) -> None:
        image.program("usr/bin/awk")
        image.put("usr/lib/udev/rules.d/99-nfs.rules", STOCK)
        if own:
            image.put("etc/nfs.conf", "[nfsrahead]\nnfs4=15360\n")
        before = everything(image.tree)
        assert "udev-rule" not in {kind for kind, _, _ in image.bake()[1]}
        assert image.findings("NFS1", "NFS701") == (["NFS104"] if own else [])
        assert (("udev-rule", "99-nfs.rules", "done") in image.bake("--daemonless")[1]) is not own
        assert (image.tree / MASKED).exists() is not own
        assert image.findings("NFS1", "NFS701") == []
        assert image.run("bake", "--daemonless").out.startswith("Nothing to do")
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    def test_the_two_ways_replace_each_other(self, image: Image) -> None:
        image.program("usr/bin/awk")
        before = everything(image.tree)
        image.run("bake")
        rule, service = ("udev-rule", "read-ahead", "done"), ("file", f"/{WANTED}", "done")
        assert image.bake("--daemonless")[1] == [rule, service]
        assert not image.has(WANTED)
        image.run("bake")
        assert (image.has(WANTED), image.has(RULE)) == (True, False)
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    def test_undo_takes_no_daemonless(self, image: Image) -> None:
        run = image.run("bake", "--undo", "--daemonless")
        assert (run.status, run.out) == (2, "")
        assert "leave --daemonless out" in run.err


class TestTheDropIn:
    def test_a_hosts_own_drop_in_comes_back(self, image: Image) -> None:
        old = with_sections({"10.9.9.9": 4})
        image.put(DROP_IN, old)
        before = everything(image.tree)
        assert image.run("bake").status == 0
        assert image.sections() == {"10.1.2.4": 8, "10.1.2.5": 8, "10.9.9.9": 4}
        assert "Nothing to do" in image.run("bake").out
        became = {one["path"]: one["new"] for one in image.actions("--undo")[1]}
        assert (became[f"/{DROP_IN}"], became[f"/{SLOTS}"]) == ("as before", "removed")
        assert everything(image.tree) == before

    def test_a_drop_in_that_a_host_changed_after_the_bake_is_taken_over(self, image: Image) -> None:
        image.run("bake")
        image.put(DROP_IN, with_sections({"10.1.2.4": 8, "10.7.7.7": 4}))
        image.run("bake")
        assert image.sections() == {"10.1.2.4": 8, "10.1.2.5": 8, "10.7.7.7": 4}
        image.run("bake", "--undo")
        assert image.sections() == {"10.1.2.4": 8, "10.7.7.7": 4}
        image.put(DROP_IN, with_sections({"10.1.2.4": 8, "10.1.2.5": 8}))
        assert "nconnect" not in {kind for kind, _, _ in image.bake()[1]}
        image.run("bake", "--undo")
        assert image.has(DROP_IN)

    @pytest.mark.parametrize(("kind", "broken"), [("edited", 1), ("folder", 2), ("link", 1)])
    def test_a_foreign_drop_in_is_refused(self, kind: str, broken: int, image: Image) -> None:
        """A folder is no file that could be read, and a command that could not read one ends with 2."""
        if kind == "edited":
            image.put(DROP_IN, with_sections({"10.1.2.4": 8}) + "# mine\n")
        elif kind == "link":
            image.link(DROP_IN, "/nowhere")
        else:
            (image.tree / DROP_IN).mkdir(parents=True)
        before = everything(image.tree)
        status, outcomes = image.bake()
        assert (status, ("nconnect", f"/{DROP_IN}", "failed") in outcomes) == (broken, True)
        image.run("bake", "--undo")
        assert everything(image.tree) == before

    @pytest.mark.parametrize(
        ("policy", "words", "remedy"),
        [
            ("", (), 'mode = "persist" under [nconnect]'),
            ('[nconnect]\nmode = "persist"\n', (), "the service finds out where the image boots, as mode"),
            ("", ("--daemonless",), "write nconnect=4 into the options"),
        ],
    )
    def test_an_endpoint_that_only_its_network_knows_is_left_with_a_remedy(
        self, policy: str, words: tuple[str, ...], remedy: str, image: Image
    ) -> None:
        image.put("etc/fstab", AZURE)
        image.put("etc/nfstuned/nfstuned.toml", policy)
        image.program("usr/bin/awk")
        status, actions = image.actions(*words)
        (reason,) = [one["reason"] for one in actions if one["kind"] == "nconnect"]
        assert (status, "private endpoints only" in reason, remedy in reason) == (0, True, True)
        for part in ("under [nconnect]", "the service finds"):
            assert (part in reason) == (part in remedy)
        assert not (image.tree / DROP_IN).exists()

    def test_an_address_that_the_image_itself_gives_counts(self, image: Image) -> None:
        image.put("etc/fstab", AZURE)
        image.put("etc/hosts", f"52.239.238.8 {HOST}\n")
        (reason,) = [one["reason"] for one in image.actions()[1] if one["kind"] == "nconnect"]
        assert reason == f"{HOST} is a public endpoint; {ONLY_THERE}"
        image.put("etc/hosts", f"10.10.10.10 {HOST}\n")
        assert ("nconnect", HOST, "done") in image.bake()[1]
        assert image.sections() == {HOST: 4}


class TestParameters:
    def test_a_package_that_says_otherwise_is_overruled_by_a_later_file(self, image: Image) -> None:
        image.put("usr/lib/sysctl.d/80-nfs.conf", "sunrpc.tcp_max_slot_table_entries = 256\n")
        image.run("bake")
        written = image.tree / "etc/sysctl.d/sunrpc-slots.conf"
        assert written.read_text().endswith("\nsunrpc.tcp_max_slot_table_entries=128\n")
        assert image.findings("NFS210") == []
        assert image.run("bake", "--undo").status == 0
        assert not written.parent.exists()

    def test_an_administrators_parameter_or_file_of_that_name_is_left_and_named(self, image: Image) -> None:
        image.put("etc/modprobe.d/site.conf", "options sunrpc tcp_max_slot_table_entries=256\n")
        status, actions = image.actions()
        (one,) = [one for one in actions if one["target"].startswith("sunrpc.")]
        assert (status, one["outcome"], one["old"], one["path"]) == (1, "failed", 256, None)
        assert "in /etc/modprobe.d/site.conf:1" in one["reason"]
        image.put("etc/modprobe.d/site.conf", "")
        image.put(SLOTS, "# ours\n")
        assert ("parameter", "sunrpc.tcp_max_slot_table_entries", "failed") in image.bake()[1]
        assert (image.tree / SLOTS).read_text() == "# ours\n"


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
        written = "NFSv4 client", "nfstuned-identity.service", "50-nfstuned-identity.preset"
        identity = [one for one in named.bake("--daemonless")[1] if one[0] == "identity"]
        assert identity == [("identity", name, "done") for name in written]
        assert (named.tree / IDENTITY).read_bytes() == (REPOSITORY / "systemd" / UNIT_NAME).read_bytes()
        assert (named.tree / IDENTITY_LINK).readlink() == Path("/" + IDENTITY)
        assert "NFS413" not in named.run("check").out
        assert "identity" not in named.run("bake", "--daemonless").out
        assert named.run("bake", "--undo").status == 0
        assert everything(named.tree) == before

    def test_a_packages_unit_is_linked(self, named: Image) -> None:
        named.put(f"usr/lib/systemd/system/{UNIT_NAME}", (REPOSITORY / "systemd" / UNIT_NAME).read_bytes())
        assert ("identity", "NFSv4 client", "done") in named.bake()[1]
        assert (named.tree / IDENTITY_LINK).readlink() == Path(f"/usr/lib/systemd/system/{UNIT_NAME}")
        assert not (named.tree / IDENTITY).exists()

    @pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemctl")
    @pytest.mark.parametrize("package", [True, False])
    def test_presets_leave_it_enabled(self, named: Image, *, package: bool) -> None:
        """mkosi applies all presets after its scripts, Fedora and Azure Linux at a first boot."""
        named.put("usr/lib/systemd/system-preset/99-default-disable.preset", "disable *\n")
        for name in ("system-preset/90-nfstuned.preset", f"system/{UNIT_NAME}") if package else ():
            source = REPOSITORY / "systemd" / Path(name).name
            named.put(f"usr/lib/systemd/{name}", source.read_bytes())
        (named.tree / "etc/machine-id").write_text("uninitialized\n")
        before = everything(named.tree)
        named.run("bake")
        command = ["systemctl", f"--root={named.tree}", "preset", UNIT_NAME]
        subprocess.run(command, check=True, capture_output=True)
        assert named.has(IDENTITY_LINK)
        assert named.run("bake", "--undo").status == 0
        assert everything(named.tree) == before

    def test_machine_ids_that_all_clones_would_share_are_named(self, named: Image) -> None:
        """Systemd would make one of D-Bus's."""
        named.put("var/lib/dbus/machine-id", MACHINE_ID)
        reason = self.left(named)
        assert reason.endswith("would share: remove its /var/lib/dbus/machine-id, bake again")
        named.put("etc/machine-id", MACHINE_ID)
        both = "empty its /etc/machine-id and remove its /var/lib/dbus/machine-id, bake again"
        assert self.left(named).endswith(both)

    @pytest.mark.parametrize(
        ("file", "text", "way"),
        [
            ("etc/modprobe.d/nfs.conf", "options nfs {}\n", "take {} out of /etc/modprobe.d/nfs.conf:1"),
            (
                "etc/default/grub",
                "GRUB_CMDLINE_LINUX=nfs.{}\n",
                "take nfs.{} off the kernel's command line (/etc/default/grub)",
            ),
        ],
    )
    def test_an_identifier_of_all_clones_is_named(self, named: Image, file: str, text: str, way: str) -> None:
        text, way = (one.format("nfs4_unique_id=golden") for one in (text, way))
        named.put(file, text)
        assert f"the identifier golden, which the unit would leave: {way}, bake again" in self.left(named)
        assert f"{way}; then sudo nfstuned bake --root {named.tree}" in named.run("check").out
        named.put(file, "")
        assert (named.run("bake").status, named.has(IDENTITY_LINK)) == (0, True)
        assert "NFS413" not in named.run("check").out
        named.put(file, text)
        assert "NFS413" in named.run("check").out
        assert "the identifier golden" in self.left(named)

    def left(self, named: Image) -> str:
        """Bake, and return why the clones get no identity of their own."""
        (one,) = [one for one in named.actions()[1] if one["kind"] == "identity"]
        assert one["outcome"] == "skipped"
        assert not named.has(IDENTITY_LINK)
        return str(one["reason"])

    def test_a_mask_is_somebodys_decision(self, named: Image) -> None:
        named.link(IDENTITY, "/dev/null")
        assert "identity" not in {one["kind"] for one in named.actions()[1]}
