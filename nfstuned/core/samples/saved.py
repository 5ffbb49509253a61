"""Saved copies of mountstats: what each superblock delivered since it was mounted, or between two of them.

A copy names neither superblocks nor a time. Mounts of the same age are one superblock if they have the same
source and options, or if they moved bytes and their counters are the same: the kernel prints one mount after
the other, and those of a busy superblock differ a little. How much time passed is by how much most mounts are
older, in whole seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nfstuned.core.policy.endpoint import split_source
from nfstuned.core.samples.delta import unused
from nfstuned.core.samples.rates import rates, transport_group
from nfstuned.core.samples.top import Frame, TopEntry, figures_of
from nfstuned.model.kernel import MountStats, Options, Stanza
from nfstuned.model.samples import Counted, Look, Sample

Place = tuple[str, str]
"""Source and mount point."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A copy of mountstats; `name` is the file's, and stanzas and options are of the same text."""

    name: str
    stanzas: tuple[Stanza, ...]
    options: Mapping[Place, Options]

    @classmethod
    def of(cls, name: str, stanzas: tuple[Stanza, ...], mounts: Iterable[MountStats]) -> Saved:
        """Return the copy with what both parsers say of it."""
        return cls(name, stanzas, {(mount.source, mount.point): mount.options for mount in mounts})


def since_mounted(saved: Saved) -> Frame:
    """Return what each superblock delivered, on average, since it was mounted.

    Operations of the transport group, which the kernel counts for all mounts of a server together, are in it.
    """
    counted, silent = _superblocks(saved)
    entries = []
    for now in counted:
        age_s = float(now.stats.age_s or 0)
        before = Counted(
            now.device, now.bdi, now.mount_points, now.source, now.group, unused(now.stats)._replace(age_s=0)
        )
        samples = rates(Look(0.0, 0.0, (before,)), Look(0.0, age_s, (now,)))
        entries.append(_entry(now, samples[0] if samples else None))
    return Frame(0.0, None, tuple(entries), silent, saved.name, since_mounted=True)


def between(earlier: Saved, later: Saved) -> Frame:
    """Return what each superblock of the later copy delivered after the earlier was made.

    Raises ValueError where the copies have no mount in common whose age both tell, or no time passed.
    """
    counted, silent = _superblocks(later)
    known = {place: stanzas[0] for place, stanzas in _by_place(earlier).items() if len(stanzas) == 1}
    before = {
        now.device: stats
        for now in counted
        for stats in [
            next(filter(None, (known.get((now.source, point)) for point in now.mount_points)), None)
        ]
        if stats is not None
    }
    older_s = [
        now.stats.age_s - stats.age_s
        for now in counted
        if (stats := before.get(now.device)) and now.stats.age_s is not None and stats.age_s is not None
    ]
    if not older_s:
        raise ValueError(f"{earlier.name} and {later.name} have no mount in common: name copies of one host")
    # What was mounted anew in between is older by any number, as a rule by less than the time that passed.
    seconds = float(max(Counter(older_s).items(), key=lambda item: (item[1], item[0]))[0])
    if seconds == 0:
        raise ValueError(f"no second passed between {earlier.name} and {later.name}: name two copies")
    if seconds < 0:
        raise ValueError(f"{later.name} is older than {earlier.name}: name the earlier copy first")
    looked = tuple(
        Counted(now.device, now.bdi, now.mount_points, now.source, now.group, before[now.device])
        for now in counted
        if now.device in before
    )
    samples = {
        sample.device: sample for sample in rates(Look(0.0, 0.0, looked), Look(0.0, seconds, tuple(counted)))
    }
    entries = tuple(_entry(now, samples.get(now.device)) for now in counted)
    return Frame(0.0, seconds, entries, silent, f"{earlier.name} to {later.name}")


def _entry(counted: Counted, sample: Sample | None) -> TopEntry:
    return TopEntry(counted) if sample is None else TopEntry(counted, sample, figures=figures_of(sample))


def _by_place(saved: Saved) -> dict[Place, list[Stanza]]:
    """Return the stanzas by source and mount point, each text once."""
    places: defaultdict[Place, dict[Stanza, None]] = defaultdict(dict)
    for stanza in saved.stanzas:
        places[stanza.source, stanza.point][stanza] = None
    return {place: list(stanzas) for place, stanzas in places.items()}


def _superblocks(saved: Saved) -> tuple[list[Counted], int]:
    """Return each superblock once, and the number of mounts whose counters are nobody's.

    Several stanzas of such a mount have its source and mount point, and nothing says which is whose.
    """
    superblocks: list[Counted] = []
    known: dict[tuple[object, ...], int] = {}
    silent = 0
    for (source, point), stanzas in _by_place(saved).items():
        if len(stanzas) > 1:
            silent += len(stanzas)
            continue
        options = saved.options.get((source, point), Options())
        # mountstats shows no address, and a bind of a folder has that in its source: only the host is shared.
        group = transport_group(options, split_source(source)[0])
        traits = _traits(stanzas[0], options, group)
        number = next((known[trait] for trait in traits if trait in known), len(superblocks))
        known |= dict.fromkeys(traits, number)
        if number < len(superblocks):
            same = superblocks[number]
            superblocks[number] = replace(same, mount_points=(*same.mount_points, point))
        else:
            rsize = options.number("rsize")
            superblocks.append(
                Counted(str(number), None, (point,), source, group, stanzas[0], rsize_bytes=rsize)
            )
    return superblocks, silent


def _traits(stanza: Stanza, options: Options, group: str) -> list[tuple[object, ...]]:
    """Return what no mount of another superblock has."""
    traits: list[tuple[object, ...]] = []
    if options.pairs and options.get("nosharecache") is None:
        traits.append((stanza.source, stanza.age_s, options))
    if stanza.totals is not None and stanza.totals.strip(b" 0"):
        traits.append((group, stanza.age_s, stanza.totals, stanza.operations))
    return traits
