"""Which stanza of mountstats belongs to which superblock, and which transport group it is in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from nfstuned.model.kernel import Mount, Options, Stanza
from nfstuned.model.work import Snapshot


def transport_group(options: Options, source: str) -> str:
    """Name the transport group as the kernel matches it (fs/nfs/client.c, nfs_match_client).

    `/proc/mounts` leaves the port out when it is 2049, and shows the client's own address and version.
    """
    shown = dict(options.pairs)  # of a repeated option the last counts, as everywhere
    address = shown.get("addr") or source
    if ":" in address:
        address = f"[{address}]"
    version, protocol = shown.get("vers") or "?", shown.get("proto") or "?"
    name = f"v{version} {protocol} {address}:{shown.get('port') or '2049'}"
    security = shown.get("xprtsec")
    return name if security in {None, "none"} else f"{name} {security}"


def join(snapshot: Snapshot, stats: Iterable[Stanza]) -> dict[int, Stanza]:
    """Map mount ids to their stanzas, by source and mount point: mountstats names no device."""
    shown = tuple(stats)
    known = {(stanza.source, stanza.point): stanza for stanza in shown}
    mounts = [mount for superblock in snapshot.superblocks for mount in superblock.mounts]
    if len(known) == len(shown) and len({(mount.source, mount.point) for mount in mounts}) == len(mounts):
        places = ((mount.mount_id, known.get((mount.source, mount.point))) for mount in mounts)
        return {mount_id: stanza for mount_id, stanza in places if stanza is not None}
    return _join_alike(mounts, shown)


def _join_alike(mounts: Sequence[Mount], stats: Sequence[Stanza]) -> dict[int, Stanza]:
    """Join where several mounts or stanzas have one source and one mount point."""
    alike: defaultdict[tuple[str, str], list[Mount]] = defaultdict(list)
    stanzas: defaultdict[tuple[str, str], list[Stanza]] = defaultdict(list)
    for mount in mounts:
        alike[mount.source, mount.point].append(mount)
    for stanza in stats:
        stanzas[stanza.source, stanza.point].append(stanza)
    joined: dict[int, Stanza] = {}
    for key, same in alike.items():
        joined.update(_pair(same, stanzas.get(key, ())))
    return joined


def _pair(alike: list[Mount], stanzas: Sequence[Stanza]) -> dict[int, Stanza]:
    """Pair mounts of one source and point with the stanzas of the same; nothing when it is unclear.

    mountinfo was perhaps read in more mount namespaces than mountstats, so that the counts differ. It does
    not matter where all are one superblock: it has one age, and its mounts show the same counters.
    """
    if len({mount.device for mount in alike}) == 1:
        same = len({stanza.age_s for stanza in stanzas}) == 1
        return dict.fromkeys((mount.mount_id for mount in alike), stanzas[0]) if same else {}
    ordered = _bottom_up(alike)
    if len(ordered) != len(stanzas):
        return {}
    return {mount.mount_id: stanza for mount, stanza in zip(ordered, stanzas, strict=True)}


def _bottom_up(stacked: list[Mount]) -> list[Mount]:
    """Put mounts on one point into the order of the kernel's files; none unless each lies on the last."""
    below = {mount.mount_id for mount in stacked}
    above = {mount.parent_id: mount for mount in stacked}
    top = next((mount for mount in stacked if mount.parent_id not in below), None)
    ordered: list[Mount] = []
    while top is not None and len(ordered) < len(stacked):
        ordered.append(top)
        top = above.get(top.mount_id)
    return ordered if len(ordered) == len(stacked) else []
