"""Volumes of Docker, also in Compose files: the mounts of its driver "local" over NFS or SMB.

The driver hands `type`, `o` and `device` to mount(2) itself (volume/local/local_unix.go of moby). Compose has
them as `driver_opts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nfstuned.model.mounts import AZNFS, NFS_TYPES, SMB_TYPES, Maker, Request, Unexpanded
from nfstuned.parse.fields import is_placeholder, split_options, with_brackets
from nfstuned.parse.yaml import Node

VOLUME_TYPES = frozenset((*NFS_TYPES, *SMB_TYPES)) - {AZNFS}
"""The types of a volume that is a mount from a server: mount(2) knows no helper."""
_ADDRESS = "addr="
_OPTIONS = "driver_opts"
_LOCAL = ("", "local")


def docker_request(opts: Mapping[str, tuple[str, int]], file: str) -> Iterator[Request | Unexpanded]:
    """Yield the request of a volume's `type`, `o` and `device`, each with its line, where these are a mount.

    For NFS the driver looks up the name in `addr=`, the server of a device without a name: it stands in the
    source, too. The text of the options stays as it is.
    """
    fstype, _ = opts.get("type", ("", 0))
    device, source_line = opts.get("device", ("", 0))
    options, line = opts.get("o", ("", source_line))
    if fstype not in VOLUME_TYPES or not device:
        return
    words = split_options(options)
    if any(map(is_placeholder, words)):
        yield Unexpanded("an option with a placeholder", file, line)
        words = [word for word in words if not is_placeholder(word)]
        options = ",".join(words)
    if fstype in NFS_TYPES and device.startswith(":"):
        server = next((word.removeprefix(_ADDRESS) for word in words if word.startswith(_ADDRESS)), "")
        device = with_brackets(server) + device
    elsewhere = source_line if source_line != line else 0
    yield Request(
        device,
        "",
        options,
        file,
        line,
        fstype=fstype,
        maker=Maker.DOCKER,
        field="the option o",
        source_line=elsewhere,
    )


def is_compose(document: Node) -> bool:
    """Whether a document is a Compose file, or a part of one."""
    has_options = any(_OPTIONS in volume.pairs for volume in document.at("volumes").pairs.values())
    return has_options or bool(document.at("services").pairs)


def compose_requests(document: Node, file: str) -> Iterator[Request | Unexpanded]:
    """Yield the request of each volume with the local driver and a type of its own."""
    for volume in document.at("volumes").pairs.values():
        if volume.text_at("driver") in _LOCAL:
            yield from driver_requests(volume.at(_OPTIONS), file)


def driver_requests(options: Node, file: str) -> Iterator[Request | Unexpanded]:
    """Yield the request of a mapping with options of Docker's local driver."""
    texts = {key: (node.text or "", node.line) for key, node in options.pairs.items()}
    yield from docker_request(texts, file)
