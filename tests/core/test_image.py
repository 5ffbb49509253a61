"""The steps and the rules of images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core import image
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules.nfs2_connections import ineffective
from nfstuned.core.rules.nfs3_entries import misnamed_unit
from nfstuned.core.rules.nfs5_host import missing_helper
from nfstuned.core.rules.nfs7_image import config_invalid, kernel_defaults, module_missing, not_enabled
from nfstuned.errors import ParseError
from nfstuned.host.config import builtin_policy
from nfstuned.model.change import Change, ChangeKind, FileStep, Installed, Placement, digest, settled
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import Distribution
from nfstuned.model.mounts import Misnamed, Request, Result, Snapshot
from nfstuned.model.system import ImageKernel, System, Unit
from nfstuned.model.udev import UdevFile

UNIT = "usr/lib/systemd/system/nfstuned.service"
INSTALLED = Unit(installed=True)


@pytest.mark.parametrize(
    "install",
    [
        *("", "[Install]\nAlias=a.service\n", "[Install]\nWantedBy=\n", "[Unit]\nWantedBy=a.target\n"),
        "[Install]\nWantedBy=%i.target a/b.target\n",
    ],
)
def test_a_unit_that_names_no_target_is_not_started(install: str) -> None:
    wanted = image.wanted_service(image.ImageUnit(INSTALLED, UNIT, install))
    (change,) = wanted.changes
    assert dict(wanted.contents) == {}
    assert (change.kind, change.target, change.result) == (ChangeKind.SERVICE, image.SERVICE, Result.FAILED)


def test_a_mask_counts_before_a_unit_that_is_not_there() -> None:
    (change,) = image.wanted_service(image.ImageUnit(Unit(masked=True))).changes
    assert (change.old, change.new, change.place, change.result) == ("masked", "enabled", "", Result.FAILED)


def test_the_rule_needs_no_service() -> None:
    wanted = image.wanted_rule(b"rule", has_awk=True, linked=True, starts=True)
    assert wanted.contents == {image.RULE: b"rule"}
    assert [one.result for one in wanted.changes] == [Result.PLANNED, Result.SKIPPED]
    assert wanted.changes[1].reason.endswith("systemctl --root=DIR disable nfstuned.service")


def test_a_change_has_the_result_of_its_file() -> None:
    def change(path: str) -> Change:
        return Change(ChangeKind.PARAMETER, path, 1, 2, Result.PLANNED, "why", f"/{path}")

    names = ("written", "same", "refused")
    wanted = image.joined(image.Wanted((change(name),), {name: b""}) for name in names)
    steps = (
        Placement("written", FileStep.WRITE),
        Placement("same", FileStep.SAME),
        Placement("refused", FileStep.REFUSE, "foreign"),
        Placement("gone", FileStep.REMOVE),
        Placement("kept", FileStep.KEEP, "edited"),
    )
    changes = settled(image.results(wanted, steps), Result.DONE)
    assert [(one.place, one.result, one.reason) for one in changes] == [
        ("/written", Result.DONE, "why"),
        ("/refused", Result.FAILED, "foreign"),
        ("/gone", Result.DONE, "nothing needs it any more"),
        ("/kept", Result.SKIPPED, "edited"),
    ]
    half = image.interrupted(changes, {"/gone"}, "no space")
    assert [(one.place, one.reason) for one in half if one.result is Result.FAILED] == [
        ("/written", "no space"),
        ("/refused", "foreign"),
    ]


NEW_TEXT = b"new"
OLD, NEW, OTHER = "0" * 64, digest(NEW_TEXT), "2" * 64
OWN_UNIT = "usr/local/lib/systemd/system/nfstuned.service"
WRITE, SAME, REFUSE = FileStep.WRITE, FileStep.SAME, FileStep.REFUSE


@pytest.mark.parametrize(
    ("found", "ours", "step"),
    [
        *((None, (), WRITE), (None, (OLD,), WRITE), (OLD, (OLD,), WRITE), (OLD, (NEW, OLD), WRITE)),
        *((NEW, (), SAME), (NEW, (NEW,), SAME)),
        *((OLD, (), REFUSE), ("", (), REFUSE), (OTHER, (OLD,), REFUSE), ("", (OLD,), REFUSE)),
    ],
)
def test_all_but_changed_files_are_written(found: str | None, ours: tuple[str, ...], step: FileStep) -> None:
    known = Installed({OWN_UNIT: ours} if ours else {})
    (one,) = image.plan_files({OWN_UNIT: NEW_TEXT}, {OWN_UNIT: found}, known, "install-files")
    assert one.step is step
    assert bool(one.reason) is (step is REFUSE)


RULE_FILE = Path(__file__).parents[2] / "udev/99-nfstuned.rules"
ALL = frozenset({"nfs", "nfsv3", "nfsv4", "cifs"})
HELPER = frozenset({"mount.nfs"})
NEW_KERNEL, OLD_KERNEL = "6.1.0-50-cloud-amd64", "4.19.0-27-cloud-amd64"


def facts(
    *requests: Request, system: System | None = None, distribution: str = "debian", **seen: object
) -> Facts:
    policy = builtin_policy()
    known = Distribution(distribution, "", "")
    image = Snapshot(requests=requests, distribution=known, root="/image/")
    snapshot = replace(image, **seen)  # type: ignore[arg-type]  # keyword arguments of any field
    has, wanted = Scope(image=True).has, targets(snapshot, policy)
    return Facts(has=has, snapshot=snapshot, policy=policy, targets=wanted, system=system or System())


def kernels(*installed: ImageKernel, helpers: frozenset[str] = HELPER) -> System:
    return System(kernels=installed, helpers=helpers)


def ask(options: str, fstype: str = "nfs") -> Request:
    return Request("srv:/a", "/mnt/a", options, "/etc/fstab", 2, fstype=fstype)


@pytest.mark.parametrize(("kb", "found"), [(15360, 0), (128, 1)])
def test_a_udev_rule_that_raises_every_mount_does_the_services_work(kb: int, found: int) -> None:
    text = RULE_FILE.read_text().replace('"15360"', f'"{kb}"')
    rule = UdevFile("/etc/udev/rules.d/99-nfstuned.rules", text)
    ruled = replace(facts(system=System(daemon=Unit(installed=True))), udev=(rule,))
    assert len(list(not_enabled.judge(ruled))) == found


def test_a_masked_unit_is_unmasked_before_it_is_enabled() -> None:
    (fault,) = not_enabled.judge(facts(system=System(daemon=Unit(installed=True, masked=True))))
    assert fault.observed == "masked"
    systemctl = "sudo systemctl --root=/image"
    assert fault.remedy == f"{systemctl} unmask nfstuned.service && {systemctl} enable nfstuned.service"


@pytest.mark.parametrize(
    ("requests", "helpers", "modules", "missing"),
    [
        ((), HELPER, ALL, ""),
        ((), HELPER, {"nfs", "nfsv3"}, "no nfsv4,"),
        ((), HELPER, set(), "no nfs and no nfsv4,"),
        ((), frozenset(), set(), ""),
        ((ask("vers=4.1"),), HELPER, {"nfs", "nfsv4"}, ""),
        ((ask("vers=4.1"),), frozenset(), {"nfs", "nfsv3"}, "no nfsv4,"),
        ((ask("vers=3"),), HELPER, {"nfs", "nfsv3"}, ""),
        ((ask("nfsvers=3"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
        ((ask("v3"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
        ((ask("vers=3", "aznfs"),), HELPER, {"nfs", "nfsv3"}, ""),
        ((ask("nfsvers=3", "aznfs"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
        ((ask("vers=4,minorversion=1", "aznfs"),), HELPER, {"nfs", "nfsv3"}, "no nfsv4,"),
        ((ask("vers=3", "nfs4"),), HELPER, {"nfs", "nfsv3"}, "no nfsv4,"),
        ((ask("", "cifs"),), HELPER, {"nfs", "nfsv4"}, "no cifs,"),
        ((ask("", "cifs"),), frozenset(), {"cifs"}, ""),
    ],
)
def test_a_kernel_lacks_only_modules_of_the_images_mounts(
    requests: tuple[Request, ...], helpers: set[str], modules: set[str], missing: str
) -> None:
    system = kernels(ImageKernel(NEW_KERNEL, frozenset(modules)), helpers=frozenset(helpers))
    found = list(module_missing.judge(facts(*requests, system=system)))
    assert [fault.subject for fault in found] == ([f"kernel {NEW_KERNEL}"] if missing else [])
    assert all(f"has {missing}" in fault.message for fault in found)


@pytest.mark.parametrize(
    ("distribution", "package"),
    [
        *(("ubuntu", "nfs-common"), ("fedora", "nfs-utils"), ("sles", "nfs-client")),
        ("x", "nfs-common (Debian, "),
    ],
)
def test_a_missing_helper_has_the_package_of_the_known_distribution(distribution: str, package: str) -> None:
    (fault,) = missing_helper.judge(facts(ask("vers=4"), distribution=distribution))
    assert fault.remedy.startswith(f"install the package {package}")
    assert ("RHEL" in fault.remedy) is (distribution == "x")


def test_a_misnamed_unit_of_an_image_has_the_command_and_the_names_elsewhere() -> None:
    refused = Misnamed(ask("vers=4")._replace(file="/etc/systemd/system/a.mount"), "mnt-a.mount")
    (fault,) = misnamed_unit.judge(facts(misnamed=(refused,)))
    move = "sudo mv /image/etc/systemd/system/a.mount /image/etc/systemd/system/mnt-a.mount"
    assert fault.remedy.startswith("sudo systemctl --root=/image disable a.mount, where it is enabled; ")
    assert f"; {move}; sudo systemctl --root=/image enable mnt-a.mount, where it was; " in fault.remedy
    (fault,) = misnamed_unit.judge(facts(misnamed=(refused._replace(right_point="/mnt/b"),)))
    assert fault.remedy.startswith("write Where=/mnt/b in /etc/systemd/system/a.mount:")


def test_a_misnamed_unit_of_a_script_has_the_name_to_write() -> None:
    script = Misnamed(ask("vers=4")._replace(file="a.sh"), "mnt-a.mount", unit="/etc/systemd/system/a.mount")
    (fault,) = misnamed_unit.judge(replace(facts(misnamed=(script,)), has=Scope(files=("a.sh",)).has_of_file))
    assert (fault.subject, fault.observed) == ("a.sh:2", "a.mount")
    assert fault.remedy == "give the unit the name mnt-a.mount in a.sh, also where others name it"


def test_a_line_outside_of_a_section_is_put_below_a_section() -> None:
    problem = ParseError("/etc/nfsmount.conf", 1, "an assignment outside of a section has no effect: 'x=1'")
    (fault,) = ineffective.judge(facts(problems=(problem,)))
    assert fault.remedy.startswith("put it below [ NFSMount_Global_Options ]")


def remedies(*releases: str, distribution: str = "ubuntu", request: Request | None = None) -> list[str]:
    """Return the remedies for kernels without a module."""
    system = kernels(*map(ImageKernel, releases), helpers=frozenset() if request else HELPER)
    asked = (request,) if request else ()
    return [
        fault.remedy
        for fault in module_missing.judge(facts(*asked, system=system, distribution=distribution))
    ]


def test_every_kernel_is_judged_and_the_remedy_is_the_distributions() -> None:
    either = "linux-modules-6.8.0-1015-gcp or linux-modules-extra-6.8.0-1015-gcp"
    assert remedies("6.8.0-1015-gcp", "6.8.0-45-generic", "6.8.0-1015-azure") == [
        f"install {either}: apt-file search nfs.ko names the package",
        "install linux-modules-6.8.0-45-generic again",
        "install linux-modules-6.8.0-1015-azure again",
    ]
    (smb,) = remedies("6.8.0-45-generic", request=ask("", "cifs"))
    assert "apt-file search cifs.ko" in smb
    assert remedies("6.12.107+deb13-arm64", distribution="debian") == [
        "install linux-image-6.12.107+deb13-arm64 again"
    ]
    (arch,) = remedies("6.8.0-1015-gcp", distribution="arch")
    assert "all modules" in arch


@pytest.mark.parametrize(
    ("release", "observed"),
    [
        (NEW_KERNEL, "a read-ahead of 128 KiB; as many connections as nconnect asks for"),
        (OLD_KERNEL, "a read-ahead of 15 times rsize; one connection, as it has no nconnect"),
        ("5.3.0-1041-azure", "as many connections as nconnect asks for"),
    ],
)
def test_the_newest_kernels_defaults_are_reported(release: str, observed: str) -> None:
    system = kernels(ImageKernel("3.10.0"), ImageKernel(release, frozenset({"nfs"})))
    (fault,) = kernel_defaults.judge(facts(system=system))
    assert (fault.subject, fault.observed) == (f"kernel {release}", observed)


@pytest.mark.parametrize(
    "system",
    [
        System(helpers=HELPER),
        kernels(ImageKernel(NEW_KERNEL, frozenset({"nfs"})), helpers=frozenset()),
        kernels(ImageKernel(NEW_KERNEL)),
        kernels(ImageKernel("4.15.0-213-generic", frozenset({"nfs"}))),
        kernels(ImageKernel("latest", frozenset({"nfs"}))),
    ],
)
def test_nothing_is_reported_without_a_kernel_nfs_or_a_known_release(system: System) -> None:
    assert list(kernel_defaults.judge(facts(system=system))) == []
    assert list(kernel_defaults.judge(facts(ask("vers=3"), system=replace(system, kernels=())))) == []


def test_each_problem_of_the_configuration_has_its_place() -> None:
    problems = (
        "/etc/nfstuned/nfstuned.toml:2: daemon.x: there is no such key",
        "/etc/nfstuned/conf.d: cannot be listed: Not a directory",
        "something else",
    )
    first, *others = config_invalid.judge(facts(system=System(config_problems=problems)))
    assert first.subject == "/etc/nfstuned/nfstuned.toml:2"
    assert [fault.subject for fault in others] == ["/etc/nfstuned/conf.d", "/etc/nfstuned"]
    assert first.remedy.startswith("edit /etc/nfstuned/nfstuned.toml in the image, ")
