"""Names of a kubelet's volumes, from its files: no API is asked, and no file on a mount is opened.

The kubelet names the folder of a pod's logs by namespace, name and UID (BuildPodLogsDirectory in
pkg/kubelet/kuberuntime/helpers.go), a moment after it mounted the pod's volumes, and writes vol_data.json
next to the mount of a CSI volume before it mounts it (saveVolumeData in pkg/volume/csi/csi_util.go). Neither
has the name of a claim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice

from nfstuned.host.root import Root, demand_local
from nfstuned.model.mounts import KubeletNames
from nfstuned.parse.proc.mounts import remote_type

LOGS = "var/log/pods"
MOST_FOLDERS = 10_000
"""Of LOGS: a kubelet runs some hundred pods, and removes the logs of earlier ones."""
DATA = "vol_data.json"
MOST_BYTES = 65536
"""Of a file: the kubelet writes less than a thousand."""
MOST_FILES = 1000
_FOLDERS = ("/volumes/kubernetes.io~csi/", "/plugins/kubernetes.io/csi/")
_POD = re.compile(r"/pods/([0-9a-f-]{32,36})/volume")
_LOGS_OF_POD = re.compile(r"([a-z0-9-]{1,63})_([a-z0-9.-]{1,253})_([0-9a-f-]{32,36})")
"""A namespace is a label of DNS and a pod's name a subdomain: no other folder is a kubelet's."""


class KubeletFiles:
    """Reads a file once for a mount, and forgets it with the mount.

    A file that is absent, or not for this user to read, gives no name.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._pods: dict[str, str] = {}
        self._handles: dict[tuple[Hashable, str], str] = {}

    def pods(self, points: Iterable[str]) -> Mapping[str, str]:
        """Return the names of the pods with these mount points, by UID: "media/web-0".

        The folder of logs is read while a pod has no name yet.
        """
        uids = {found[1] for point in points if (found := _POD.search(point))}
        self._pods = {uid: name for uid, name in self._pods.items() if uid in uids}
        if missing := uids - self._pods.keys():
            self._pods.update(_read_pods(self._root, missing))
        return self._pods

    def names(self, superblocks: Iterable[tuple[Hashable, Sequence[str]]]) -> KubeletNames:
        """Return the names of the pods and CSI volumes of superblocks, by their keys and mount points."""
        shown = tuple(superblocks)
        pods = self.pods(point for _, points in shown for point in points)
        places = [(key, point) for key, points in shown for point in points]
        volumes = [place for place in places if any(folder in place[1] for folder in _FOLDERS)][:MOST_FILES]
        new = [place for place in volumes if place not in self._handles]
        known = self._handles | _read_handles(self._root, new)
        self._handles = {place: known[place] for place in volumes if place in known}
        return KubeletNames(pods, {point: handle for (_, point), handle in self._handles.items() if handle})


def read_kubelet_names(root: Root, points: Iterable[str]) -> KubeletNames:
    """Return the names at mount points now."""
    return KubeletFiles(root).names([(None, tuple(points))])


def _read_pods(root: Root, uids: Container[str]) -> dict[str, str]:
    pods: dict[str, str] = {}
    with suppress(OSError):
        demand_local(root, f"/{LOGS}", root.view)
        for folder in islice(root.each_name(LOGS), MOST_FOLDERS):
            found = _LOGS_OF_POD.fullmatch(folder)
            if found and found[3] in uids:
                pods[found[3]] = f"{found[1]}/{found[2]}"
    return pods


def _read_handles(root: Root, places: Collection[tuple[Hashable, str]]) -> dict[tuple[Hashable, str], str]:
    """Return the driver and the handle of each volume, "" where a file has none."""
    try:
        mounts = root.mount_types(root.view) if places else ()
    except OSError:
        return {}
    wanted = {point for _, point in places}
    remote = {point for point, kind in mounts if remote_type([(point, kind)], point)}
    handles = {point: _handle(root, point.rpartition("/")[0], remote) for point in wanted}
    return {place: handles[place[1]] for place in places}


def _handle(root: Root, folder: str, remote: Container[str]) -> str:
    """Return the driver and the handle of the volume that is mounted in a folder; "" where a file has none.

    The folders on the way are no links: the kernel names a mount point without any.
    """
    file = f"{folder}/{DATA}"
    above = accumulate(folder.split("/")[1:], "{}/{}".format, initial="")
    if any((part or "/") in remote for part in above) or root.link(file[1:]) is not None:
        return ""
    try:
        data = json.loads(root.read_start(file[1:], MOST_BYTES))
        name = f"{data['driverName']}, volume {data['volumeHandle']}"
        name.encode()  # JSON can hold halves of characters, which no output has
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return ""
    return name
