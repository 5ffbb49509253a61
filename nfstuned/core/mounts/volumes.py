"""Names of a kubelet's volumes: mount points of 200 characters, shown by their volume and their pod."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nfstuned.model.mounts import KubeletNames, PodVolume
from nfstuned.parse.fields import mask_secrets, octal_escapes

UNNAMED = KubeletNames({}, {})
"""The names where no file of the host was read."""
_POD = re.compile(
    r"/.*/pods/(?P<uid>[0-9a-f-]{32,36})"
    r"/(?:volumes/kubernetes\.io~[^/]+/(?P<volume>[^/]+)(?:/mount)?"
    r"|volume-subpaths/(?P<part>[^/]+)/(?P<container>[^/]+)/\d+)"
)
_STAGED = re.compile(r"/.*/plugins/kubernetes\.io/csi/(?P<driver>[^/]+)/(?P<volume>[^/]+)/globalmount")
_OLD_DRIVER = "pv"
"""This folder of kubelets before 1.24 has a folder for each volume's name, and names no driver."""
_SHORT = 8
"""The characters of a UID, or of a hash of 64, that people compare."""


def pod_volumes(
    points: Sequence[str], names: KubeletNames = UNNAMED, source: str = ""
) -> tuple[PodVolume, ...]:
    """Return the volume of each mount point that a kubelet made for a pod, each volume of a pod once."""
    found = (_POD.fullmatch(point) for point in points)
    return tuple(dict.fromkeys(_volume(match, names, source) for match in found if match))


def pods_of(points: Sequence[str]) -> tuple[str, ...]:
    """Return the UIDs of the pods that a kubelet made mount points for, in their order."""
    found = (_POD.fullmatch(point) for point in points)
    return tuple(dict.fromkeys(match["uid"] for match in found if match))


def volume_name(points: Sequence[str], names: KubeletNames = UNNAMED, source: str = "") -> str:
    """Return the name of a superblock by its mount points; "" where the first is not a kubelet's.

    It is the claim or the volume with its pod, the first of them: "pvc-1, pod media/web-0 and 1 more", or
    with the start of the pod's UID where no file names the pod. A CSI driver's own mount has a name only
    without a pod's. A single mount of a subPath has its container, by which it differs from the volume's.
    """
    if not points or not (_POD.fullmatch(points[0]) or _STAGED.fullmatch(points[0])):
        return ""
    others = [point for point in points if not _POD.fullmatch(point) and not _STAGED.fullmatch(point)]
    volumes = list(dict.fromkeys(filter(None, (_of_pod(point, names, source) for point in points))))
    first, *more = [*(volumes or [_staged(points[0], names)]), *others]
    if len(points) == 1 and (part := _POD.fullmatch(points[0])) and part["container"]:
        first += f" ({part['container']})"
    name = octal_escapes(mask_secrets(first))
    return f"{name} and {len(more)} more" if more else name


def volume_paths(points: Sequence[str], names: KubeletNames = UNNAMED) -> tuple[str, ...]:
    """Return the whole mount points, with the driver and its handle where a file has them."""
    lines = (f"{point} ({names.handles[point]})" if point in names.handles else point for point in points)
    return tuple(octal_escapes(mask_secrets(line)) for line in lines)


def _of_pod(point: str, names: KubeletNames, source: str) -> str:
    found = _POD.fullmatch(point)
    if found is None:
        return ""
    uid, volume = found["uid"], _volume(found, names, source)
    shown = volume.persistentvolumeclaim or volume.persistentvolume
    return f"{shown}, pod {names.pods.get(uid, uid[:_SHORT])}"


def _volume(found: re.Match[str], names: KubeletNames, source: str) -> PodVolume:
    """Return the names of a volume by the mount point that was found.

    No file of a kubelet names a claim. nfs-subdir-external-provisioner names its folders on the server
    NAMESPACE-CLAIM-VOLUME, unless its StorageClass has a pathPattern
    (cmd/nfs-subdir-external-provisioner/provisioner.go).
    """
    volume = found["volume"] or found["part"]
    namespace, _, pod = names.pods.get(found["uid"], "").partition("/")
    start, end = f"{namespace}-", f"-{volume}"
    folders = (part for part in source.split("/") if part.startswith(start) and part.endswith(end))
    claims = (part[len(start) : -len(end)] for part in folders if namespace)
    return PodVolume(namespace or None, next(filter(None, claims), None), volume, pod or None)


def _staged(point: str, names: KubeletNames) -> str:
    found = _STAGED.fullmatch(point)
    if found is None or found["driver"] == _OLD_DRIVER:
        return found["volume"] if found else ""
    return names.handles.get(point, f"{found['driver']}, volume {found['volume'][:_SHORT]}")
