"""Names of a kubelet's volumes by their mount points, and by files of the host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nfstuned.core.mounts.volumes import volume_name, volume_paths
from nfstuned.host.root import Root
from nfstuned.host.volumes import read_kubelet_names
from tests.tree import put

UID, OTHER = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
KUBELET = "/var/lib/kubelet"
IN_POD = f"{KUBELET}/pods/{UID}/volumes/kubernetes.io~csi/pvc-1/mount"
IN_OTHER = f"{KUBELET}/pods/{OTHER}/volumes/kubernetes.io~csi/pvc-1/mount"
PART = f"{KUBELET}/pods/{UID}/volume-subpaths/pvc-1/web/0"
IN_TREE = f"/var/snap/microk8s/common{KUBELET}/pods/{UID}/volumes/kubernetes.io~nfs/media"
STAGED = f"{KUBELET}/plugins/kubernetes.io/csi/file.csi.azure.com/{'0f' * 32}/globalmount"
OLD = f"{KUBELET}/plugins/kubernetes.io/csi/pv/pvc-9/globalmount"
HANDLE = json.dumps({"driverName": "file.csi.azure.com", "volumeHandle": "rg#account#share", "nodeName": "n"})


@pytest.mark.parametrize(
    ("points", "name"),
    [
        ((IN_POD,), "pvc-1, pod 5d1e8f3a"),
        ((STAGED, IN_POD, PART), "pvc-1, pod 5d1e8f3a"),
        ((STAGED, IN_POD, IN_OTHER, "/data"), "pvc-1, pod 5d1e8f3a and 2 more"),
        ((IN_TREE,), "media, pod 5d1e8f3a"),
        ((STAGED,), "file.csi.azure.com, volume 0f0f0f0f"),
        ((OLD,), "pvc-9"),
        (("/data", IN_POD), ""),
        ((f"{KUBELET}/pods/{UID}/volumes/kubernetes.io~csi/pvc-1",), "pvc-1, pod 5d1e8f3a"),
        ((f"{IN_POD}/below",), ""),
        ((), ""),
    ],
)
def test_a_volume_has_its_name_and_the_start_of_its_pods_uid(points: tuple[str, ...], name: str) -> None:
    assert volume_name(points) == name


@pytest.fixture
def host(tmp_path: Path) -> Path:
    put(tmp_path / f"var/log/pods/media_web-0_{UID}/web/0.log", "")
    put(tmp_path / "var/log/pods/odd", "")
    for point in (IN_POD, STAGED):
        put(tmp_path / f"{point[1:].rpartition('/')[0]}/vol_data.json", HANDLE)
    put(tmp_path / "proc/self/mountinfo", mountinfo())
    return tmp_path


def mountinfo(*more: str) -> str:
    mounts = ("/ ext4", f"{IN_POD} nfs4", f"{STAGED} nfs4", *more)
    lines = (f"1 0:{n} / {mount.replace(' ', ' rw - ')} s rw\n" for n, mount in enumerate(mounts, 30))
    return "".join(f"{n} {line}" for n, line in enumerate(lines, 30))


def test_files_of_the_host_name_the_pod_and_the_drivers_handle(host: Path) -> None:
    names = read_kubelet_names(Root(str(host)), (IN_POD, STAGED, IN_OTHER))
    assert volume_name((STAGED, IN_POD, IN_OTHER), names) == "pvc-1, pod media/web-0 and 1 more"
    assert volume_name((STAGED,), names) == "file.csi.azure.com, volume rg#account#share"
    handle = "file.csi.azure.com, volume rg#account#share"
    assert volume_paths((STAGED, IN_OTHER), names) == (f"{STAGED} ({handle})", IN_OTHER)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"driverName": "a"}', 10_000 * "[", json.dumps(["y" * 70_000])]
)
def test_a_damaged_file_gives_no_name(host: Path, text: str) -> None:
    put(host / f"{STAGED[1:].rpartition('/')[0]}/vol_data.json", text)
    root = Root(str(host))
    names = read_kubelet_names(root, (STAGED,))
    assert (names.handles, list(root.faults)) == ({}, [])


@pytest.mark.parametrize("above", [KUBELET, "/", IN_POD.rpartition("/")[0]])
def test_no_file_on_a_mount_is_opened(host: Path, above: str) -> None:
    put(host / "proc/self/mountinfo", mountinfo(f"{above} nfs4"))
    assert IN_POD not in read_kubelet_names(Root(str(host)), (IN_POD,)).handles


def test_a_link_to_another_place_is_not_followed(host: Path) -> None:
    file = host / f"{IN_POD[1:].rpartition('/')[0]}/vol_data.json"
    file.rename(host / "elsewhere.json")
    file.symlink_to(host / "elsewhere.json")
    assert IN_POD not in read_kubelet_names(Root(str(host)), (IN_POD,)).handles
