from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules.nfs7_image import config_invalid, kernel_defaults, module_missing, not_enabled
from nfstuned.host.config import builtin_policy
from nfstuned.model.facts import Facts, Need
from nfstuned.model.kernel import Distribution
from nfstuned.model.mounts import Request, Snapshot
from nfstuned.model.system import ImageKernel, System, Unit
from nfstuned.model.udev import UdevFile

RULE = Path(__file__).parents[2] / "udev/99-nfstuned.rules"
ALL = frozenset({"nfs", "nfsv3", "nfsv4", "cifs"})
HELPER = frozenset({"mount.nfs"})
NEW, OLD = "6.1.0-50-cloud-amd64", "4.19.0-27-cloud-amd64"


def facts(*requests: Request, system: System | None = None, distribution: str = "debian") -> Facts:
    policy = builtin_policy()
    snapshot = Snapshot(requests=requests, distribution=Distribution(distribution, "", ""))
    return Facts(
        has=frozenset({Need.IMAGE}),
        snapshot=snapshot,
        policy=policy,
        targets=targets(snapshot, policy),
        system=system or System(),
    )


def kernels(*installed: ImageKernel, helpers: frozenset[str] = frozenset()) -> System:
    return System(kernels=installed, helpers=helpers)


def ask(options: str, fstype: str = "nfs") -> Request:
    return Request("srv:/a", "/mnt/a", options, "/etc/fstab", 2, fstype=fstype)


@pytest.mark.parametrize(
    ("unit", "found"), [(Unit(), 0), (Unit(installed=True, enabled=True), 0), (Unit(installed=True), 1)]
)
def test_only_an_installed_service_can_lack_a_start(unit: Unit, found: int) -> None:
    assert len(list(not_enabled.judge(facts(system=System(daemon=unit))))) == found


@pytest.mark.parametrize(("kb", "found"), [(15360, 0), (128, 1)])
def test_a_udev_rule_that_raises_every_mount_does_the_services_work(kb: int, found: int) -> None:
    text = RULE.read_text().replace('"15360"', f'"{kb}"')
    rule = UdevFile("/etc/udev/rules.d/99-nfstuned.rules", text)
    ruled = replace(facts(system=System(daemon=Unit(installed=True))), udev=(rule,))
    assert len(list(not_enabled.judge(ruled))) == found


def test_a_masked_unit_is_unmasked_before_it_is_enabled() -> None:
    (fault,) = not_enabled.judge(facts(system=System(daemon=Unit(installed=True, masked=True))))
    assert fault.observed == "masked"
    assert fault.remedy.startswith(
        "systemctl --root=DIR unmask nfstuned.service && systemctl --root=DIR enable nfstuned.service, "
    )


@pytest.mark.parametrize(
    ("requests", "helpers", "modules", "missing"),
    [
        ((), HELPER, ALL, ""),
        ((), HELPER, {"nfs", "nfsv3"}, "no nfsv4,"),
        ((), HELPER, set(), "no nfs and no nfsv4,"),
        ((), frozenset(), set(), ""),
        ((), {"mount.cifs"}, set(), ""),
        ((ask("vers=4.1"),), HELPER, {"nfs", "nfsv4"}, ""),
        ((ask("vers=4.1"),), frozenset(), {"nfs", "nfsv3"}, "no nfsv4,"),
        ((ask("vers=3"),), HELPER, {"nfs", "nfsv3"}, ""),
        ((ask("nfsvers=3"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
        ((ask("v3"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
        ((ask("vers=4.1,vers=3"),), HELPER, {"nfs", "nfsv4"}, "no nfsv3,"),
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
    system = kernels(ImageKernel(NEW, frozenset(modules)), helpers=frozenset(helpers))
    found = list(module_missing.judge(facts(*requests, system=system)))
    assert [fault.subject for fault in found] == ([f"kernel {NEW}"] if missing else [])
    assert all(f"has {missing}" in fault.message for fault in found)


def test_every_kernel_is_judged_and_the_remedy_is_the_distributions() -> None:
    system = kernels(ImageKernel(OLD), ImageKernel(NEW), helpers=HELPER)
    found = list(module_missing.judge(facts(system=system, distribution="ubuntu")))
    assert [fault.remedy for fault in found] == [
        f"install linux-modules-extra-{release}" for release in (OLD, NEW)
    ]
    arm = kernels(ImageKernel("6.12.107+deb13-arm64"), helpers=HELPER)
    assert (
        next(module_missing.judge(facts(system=arm))).remedy
        == "install linux-image-6.12.107+deb13-arm64 again"
    )
    assert "all modules" in next(module_missing.judge(facts(system=system, distribution="arch"))).remedy


@pytest.mark.parametrize(
    ("release", "observed"),
    [
        (NEW, "a read-ahead of 128 KiB; as many connections as nconnect asks for"),
        (OLD, "a read-ahead of 15 times rsize; one connection, as it has no nconnect"),
        ("5.3.0-1041-azure", "as many connections as nconnect asks for"),
    ],
)
def test_the_newest_kernels_defaults_are_reported(release: str, observed: str) -> None:
    system = kernels(ImageKernel("3.10.0"), ImageKernel(release), helpers=HELPER)
    found = list(kernel_defaults.judge(facts(system=system)))
    assert [(fault.subject, fault.observed) for fault in found] == [(f"kernel {release}", observed)]


@pytest.mark.parametrize(
    "system",
    [
        System(helpers=HELPER),
        kernels(ImageKernel(NEW)),
        kernels(ImageKernel("4.15.0-213-generic"), helpers=HELPER),
        kernels(ImageKernel("latest"), helpers=HELPER),
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
    found = list(config_invalid.judge(facts(system=System(config_problems=problems))))
    assert [fault.subject for fault in found] == [
        "/etc/nfstuned/nfstuned.toml:2",
        "/etc/nfstuned/conf.d",
        "/etc/nfstuned",
    ]
    assert found[0].remedy.startswith("edit /etc/nfstuned/nfstuned.toml in the image, ")
