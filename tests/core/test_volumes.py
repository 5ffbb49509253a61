"""Names of a kubelet's volumes by their mount points, and by files of the host."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path

import pytest

from nfstuned.core.mounts.volumes import UNNAMED, pod_volumes, volume_name, volume_paths
from nfstuned.core.samples.sample import label, named
from nfstuned.host.root import Root
from nfstuned.host.volumes import LOGS, MOST_FOLDERS, KubeletFiles, read_kubelet_names
from nfstuned.model.mounts import KubeletNames, PodVolume
from tests.parse.test_samples import SAMPLE
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
        ((PART,), "pvc-1, pod 5d1e8f3a (web)"),
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
    "text",
    [
        *("", "[]", "{", '{"driverName": "a"}', 10_000 * "[", json.dumps(["y" * 70_000])),
        HANDLE.replace("share", "\\ud800"),
    ],
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


NAMED = KubeletNames({UID: "media/web-0"}, {})


@pytest.mark.parametrize(
    ("source", "names", "claim"),
    [
        ("nas:/export/media-web-data-pvc-1", NAMED, "web-data"),
        ("nas:/export/media-web-data-pvc-1/logs", NAMED, "web-data"),
        ("nas:/export/media-web-data-pvc-1", UNNAMED, None),
        ("nas:/export/-web-data-pvc-1", UNNAMED, None),
        ("nas:/export/media-web-data-pvc-2", NAMED, None),
        ("nas:/export/other-web-data-pvc-1", NAMED, None),
        ("nas:/export/media-pvc-1", NAMED, None),
        ("nas:/export/media--pvc-1", NAMED, None),
    ],
)
def test_a_folder_of_the_provisioner_names_the_claim(
    source: str, names: KubeletNames, claim: str | None
) -> None:
    namespace, pod = ("media", "web-0") if names is NAMED else (None, None)
    assert pod_volumes((STAGED, IN_POD, PART), names, source) == (PodVolume(namespace, claim, "pvc-1", pod),)
    shown = "media/web-0" if names is NAMED else "5d1e8f3a"
    assert volume_name((IN_POD,), names, source) == f"{claim or 'pvc-1'}, pod {shown}"


def test_each_volume_of_a_pod_is_there_once_and_other_mounts_are_not() -> None:
    assert [volume.pod for volume in pod_volumes((STAGED, IN_OTHER, IN_POD, "/data"), NAMED)] == [
        None,
        "web-0",
    ]
    assert pod_volumes((STAGED, "/data")) == ()


def test_a_file_is_read_once_for_a_mount_and_again_for_the_next(host: Path) -> None:
    file, files = host / f"{STAGED[1:].rpartition('/')[0]}/vol_data.json", KubeletFiles(Root(str(host)))
    first = files.names([(1, (STAGED, IN_POD))])
    file.write_text(HANDLE.replace("share", "other"))
    (host / LOGS).rename(host / "gone")
    assert files.names([(1, (STAGED, IN_POD))]) == first
    assert first.pods == {UID: "media/web-0"}
    assert files.names([(2, (STAGED,))]).handles == {STAGED: "file.csi.azure.com, volume rg#account#other"}
    assert files.pods([IN_POD]) == {}, "the pod had no mount at the last look"


def test_a_pod_whose_logs_come_after_its_mount_gets_its_name(host: Path) -> None:
    files = KubeletFiles(Root(str(host)))
    assert files.pods([IN_POD, IN_OTHER]) == {UID: "media/web-0"}
    put(host / f"{LOGS}/shop_api_{OTHER}/api/0.log", "")
    assert files.pods([IN_POD, IN_OTHER]) == {UID: "media/web-0", OTHER: "shop/api"}


@pytest.mark.parametrize(
    "folder",
    [
        f"media_a\x1b[2J_{UID}",
        f"media_a\n_{UID}",
        f"media_\udcff_{UID}",
        f"Media_web_{UID}",
        f"media_web_0_{UID}",
        f"{'n' * 64}_a_{UID}",
        f"_web_{UID}",
        f"media_\u0430_{UID}",
    ],
)
def test_a_folder_that_no_kubelet_makes_names_no_pod(host: Path, folder: str) -> None:
    (host / LOGS / f"media_web-0_{UID}").rename(host / LOGS / folder)
    assert read_kubelet_names(Root(str(host)), (IN_POD,)).pods == {}


def test_the_folder_of_logs_is_no_link_and_on_no_server(host: Path) -> None:
    (host / LOGS).rename(host / "pods")
    (host / LOGS).symlink_to(host / "pods")
    assert read_kubelet_names(Root(str(host)), (IN_POD,)).pods == {}
    (host / LOGS).unlink()
    (host / "pods").rename(host / LOGS)
    assert read_kubelet_names(Root(str(host)), (IN_POD,)).pods
    put(host / "proc/self/mountinfo", mountinfo("/var/log nfs4"))
    assert read_kubelet_names(Root(str(host)), (IN_POD,)).pods == {}


class Crowded(Root):
    """A host with folders of logs without end; that of the pod is behind as many others as `before` has."""

    before = 0

    def each_name(self, folder: str) -> Iterator[str]:
        assert folder == LOGS
        others = (f"media_{n}_{OTHER[:-7]}{n:07}" for n in count())
        return chain(islice(others, self.before), (f"media_web-0_{UID}",), others)


def test_of_folders_without_end_the_first_ten_thousand_are_read(host: Path) -> None:
    root = Crowded(str(host))
    root.before = MOST_FOLDERS - 1
    assert read_kubelet_names(root, (IN_POD,)).pods == {UID: "media/web-0"}
    root.before = MOST_FOLDERS
    assert read_kubelet_names(root, (IN_POD,)).pods == {}


def test_a_sample_has_its_first_pod_and_the_number_of_pods() -> None:
    points = (STAGED, IN_POD, PART, IN_OTHER)
    sample = named(replace(SAMPLE, mount_points=points), pod_volumes(points, NAMED))
    assert (sample.namespace, sample.pod, sample.persistentvolume, sample.pods) == (
        "media",
        "web-0",
        "pvc-1",
        2,
    )
    assert label(sample) == "pvc-1, pod media/web-0 and 1 more"
    assert named(SAMPLE, ()) is SAMPLE
    assert label(replace(sample, pod="a\x1b[2J")) == "pvc-1, pod media/a\\033[2J and 1 more"


def test_a_huge_file_and_a_fifo_give_no_handle_and_hold_nobody_up(host: Path) -> None:
    huge, fifo = (host / f"{point[1:].rpartition('/')[0]}/vol_data.json" for point in (STAGED, IN_POD))
    os.truncate(huge, 100_000_000)
    fifo.unlink()
    os.mkfifo(fifo)
    root = Root(str(host))
    assert (read_kubelet_names(root, (STAGED, IN_POD)).handles, list(root.faults)) == ({}, [])
