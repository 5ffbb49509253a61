"""Names of a kubelet's volumes, from its files: no API is asked, and no file on a mount is opened.

The kubelet names the folder of a pod's logs by namespace, name and UID (BuildPodLogsDirectory in
pkg/kubelet/kuberuntime/helpers.go), and writes vol_data.json next to the mount of a CSI volume
(saveVolumeData in pkg/volume/csi/csi_util.go).
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from contextlib import suppress
from itertools import accumulate

from nfstuned.host.root import Root, demand_local
from nfstuned.model.mounts import KubeletNames
from nfstuned.parse.proc.mounts import remote_type

LOGS = "var/log/pods"
DATA = "vol_data.json"
MOST_BYTES = 65536
"""Of a file: the kubelet writes less than a thousand."""
MOST_FILES = 1000
_VOLUMES = "/kubernetes.io"
_FOLDERS = ("/volumes/kubernetes.io~csi/", "/plugins/kubernetes.io/csi/")
_PARTS = 3


def read_kubelet_names(root: Root, points: Iterable[str]) -> KubeletNames:
    """Return the names of the pods on this host, and of the CSI volumes at these mount points.

    A file that is absent, or not for this user to read, gives no name.
    """
    shown = tuple(points)
    pods: dict[str, str] = {}
    if not any(_VOLUMES in point for point in shown):
        return KubeletNames(pods, {})
    with suppress(OSError):
        demand_local(root, f"/{LOGS}", root.view)
        for folder in root.listing(LOGS):
            parts = folder.split("_")  # no name in Kubernetes has one
            if len(parts) == _PARTS:
                namespace, name, uid = parts
                pods[uid] = f"{namespace}/{name}"
    try:
        mounts = root.mount_types(root.view)
    except OSError:
        return KubeletNames(pods, {})
    remote = {point for point, kind in mounts if remote_type([(point, kind)], point)}
    volumes = [point for point in shown if any(folder in point for folder in _FOLDERS)]
    handles = ((point, _handle(root, point.rpartition("/")[0], remote)) for point in volumes[:MOST_FILES])
    return KubeletNames(pods, {point: handle for point, handle in handles if handle})


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
        return f"{data['driverName']}, volume {data['volumeHandle']}"
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return ""
