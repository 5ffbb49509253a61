"""Saved copies of mountstats: people cut them, append one to another, and name two in any order.

A line that is not there, or that is damaged, is not known: it never counts as zeros.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nfstuned.core.policy.endpoint import split_source
from nfstuned.core.samples.delta import began_again, is_moment_later, zeroed
from nfstuned.core.samples.rates import rates, transport_group
from nfstuned.core.samples.sample import sample_to_json
from nfstuned.core.samples.top import Frame, TopEntry, figures_of
from nfstuned.errors import ParseError
from nfstuned.model.kernel import MountStats, Options, Stanza
from nfstuned.model.mounts import PodVolume
from nfstuned.model.samples import Counted, Look, Sample, fields_of
from nfstuned.parse.fields import mask_secrets, octal_escapes, some
from nfstuned.parse.proc.mountstats import DAMAGED, kernel_text, parse_mountstats, parse_stanzas

Place = tuple[str, str]
"""Source and mount point."""
_Trait = tuple[object, ...]
_CUT = b"\n" + DAMAGED
_LAST_OPERATIONS = frozenset({
    b"COMMIT", b"GETDEVICELIST", b"DESTROY_CLIENTID", b"SEEK", b"DEALLOCATE", b"LAYOUTSTATS", b"CLONE",
    b"COPY", b"LOOKUPP", b"LAYOUTERROR", b"COPY_NOTIFY", b"REMOVEXATTR", b"READ_PLUS", b"OFFLOAD_STATUS",
})  # fmt: skip
"""The last operation of each kernel: of nfs3_procedures (fs/nfs/nfs3xdr.c), and of the list that starts with
NFSPROC4_CLNT_NULL (include/linux/nfs4.h), which ends with OFFLOAD_STATUS since Linux 6.15."""
_OF_V3 = frozenset(
    b"NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME "
    b"LINK READDIR READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT".split()
)
_OF_V4 = frozenset(
    b"NULL READ WRITE COMMIT OPEN OPEN_DOWNGRADE CLOSE SETATTR FSINFO RENEW LOCK LOCKT LOCKU ACCESS GETATTR "
    b"LOOKUP REMOVE RENAME LINK SYMLINK CREATE PATHCONF STATFS READLINK READDIR DELEGRETURN".split()
)
"""Operations that every kernel lists."""
_LEAST_OPERATIONS = len(_OF_V3)
_IDLE = b" 0 0 0 0 0 0 0"
_CUT_HEADER = "the header of a mount is cut off or wrapped, and the mount is left out"
_ASTRAY = (
    "{} belongs to no mount: lines before it are missing, or it is there twice; the lines up to the next "
    "mount are left out"
)
_FIXED = ("vers", "proto", "rsize", "wsize", "addr", "clientaddr")
"""Options that no remount changes."""
_MOST_TIMES = 16
"""Times between two copies that are tried."""
_HEADER = re.compile(rb" with fstype (?!nf?$)[^ ]")
_NFS = re.compile(rb" with fstype nfs4?(?:\s|$)")
_MANY_BYTES = re.compile(rb"[1-9][0-9]{6}")
"""Two superblocks may have read the same small file, but do not move the same megabytes in the same time."""
_MOVED_BYTES = re.compile(rb"(?:^|\s)(?:READ|READ_PLUS|WRITE): *[1-9]")


@dataclass(frozen=True, slots=True)
class SavedCopy:
    """A saved copy of mountstats; `name` is the file's, and stanzas and options are of the same text.

    It names neither superblocks nor a time. Mounts of the same age are one superblock if they have the same
    source and options, or if they moved bytes and their counters are nearly the same: the kernel prints one
    mount after the other, and those of a busy superblock differ a little.
    """

    name: str
    stanzas: tuple[Stanza, ...]
    options: Mapping[Place, Options]

    @classmethod
    def of(cls, name: str, stanzas: tuple[Stanza, ...], mounts: Iterable[MountStats]) -> SavedCopy:
        """Return the copy with its stanzas and its parsed mounts."""
        return cls(name, stanzas, {(mount.source, mount.point): mount.options for mount in mounts})


def parse_copies(name: str, data: bytes) -> tuple[tuple[SavedCopy, ...], list[str]]:
    """Return the copies in a file of this name, the earliest first, and its faults.

    A last line without its line break may lack digits, and is left out. Nothing is raised.
    """
    problems: list[ParseError | str] = []
    text, _, last = data.rpartition(b"\n")
    if last and _is_complete(last, text):
        data += b"\n"
    elif _is_doubtful(last, text):
        problems.append(ParseError(name, data.count(b"\n") + 1, "the last line is cut off and left out"))
        data = text + b"\n" + DAMAGED + b"\n"
    parsed, stanzas = parse_mountstats(data, name), parse_stanzas([data])
    rows = enumerate(data.split(b"\n"), 1)
    headers = [(number, row) for number, row in rows if row.lstrip().startswith(b"device ")]
    cut = [
        ParseError(name, number, _CUT_HEADER) for number, row in headers if not _HEADER.search(row.rstrip())
    ]
    # A mount with few lines may have taken the next one's header for a part of its server's name.
    hidden = sum(1 for _, row in headers if _NFS.search(row)) > len(stanzas)
    damage = any(isinstance(item, ParseError) for item in parsed)
    repaired = kernel_text(data)
    complete = all(each.whole and each.operations for each in stanzas)
    if damage or cut or hidden or repaired.astray or not complete:
        data, numbers = repaired.data, repaired.numbers
        cut += [ParseError(name, number, _ASTRAY.format(first)) for number, first in repaired.astray]
        parsed = parse_mountstats(data, name)
        damaged = [item for item in parsed if isinstance(item, ParseError)]
        marked = _marked(data, numbers, {error.line for error in damaged})
        stanzas = tuple(map(_without_mark, parse_stanzas([marked])))
        problems[:0] = cut + [ParseError(name, numbers[error.line - 1], error.message) for error in damaged]
    mounts = [item for item in parsed if isinstance(item, MountStats)]
    first: dict[Place, Options] = {}
    alike = all(
        _may_be_one(first.setdefault((mount.source, mount.point), mount.options), mount.options)
        for mount in mounts
    )
    whole = SavedCopy.of(name, stanzas, mounts)
    copies = _split(whole) if alike else (whole,)
    if len(copies) == 1:
        copies = (SavedCopy.of(name, *_told_apart(stanzas, mounts)),)
    twice = [point for copy in copies for (_, point), found in _by_place(copy).items() if len(found) > 1]
    if twice:
        points = some([octal_escapes(mask_secrets(point)) for point in dict.fromkeys(twice)])
        reasons = "mounts on each other, or several copies; give each copy a file of its own"
        problems.append(f"{name}: has {points} more than once, with other counters: {reasons}")
    return copies, [str(problem) for problem in problems]


def _is_complete(last: bytes, before: bytes) -> bool:
    """Return whether a line without its line break has all columns of the line before.

    Its last number is 0, which can lack no digits.
    """
    columns = len(before[before.rfind(b"\n") + 1 :].split())
    return last.rstrip().endswith(b" 0") and len(last.split()) == columns


def _is_doubtful(last: bytes, before: bytes) -> bool:
    """Return whether a line without its line break belongs to a mount: behind an empty line only a header.

    Blanks do: a copy may end before the name of an operation.
    """
    if last.lstrip().startswith(b"device"):
        return _HEADER.search(last.strip()) is None
    return bool(last) and not before.rstrip(b" \t\r").endswith(b"\n")


def _marked(data: bytes, numbers: list[int], damaged: set[int]) -> bytes:
    """Return the text of `kernel_text` with DAMAGED for damaged lines, and behind mounts without an end.

    A header stays, and begins what is damaged.
    """
    lines = data.split(b"\n")
    for number in damaged:
        line = lines[number - 1].lstrip()
        if not line.startswith(b"device "):
            lines[number - 1] = b"\txprt:\t?" if line.startswith(b"xprt") else DAMAGED
    for index, (number, following) in enumerate(pairwise([*numbers, *numbers[-1:]])):
        if number == following and lines[index] == b"" and index:
            lines[index - 1] += _CUT
        elif index == len(numbers) - 1 and lines[index]:
            lines[index] += _CUT
    return b"\n".join(lines)


def _without_mark(stanza: Stanza) -> Stanza:
    """Return the stanza without the mark of a missing end where its operations are complete all the same."""
    operations = (stanza.operations or b"").removesuffix(_CUT)
    lines = operations.split(b"\n")
    last = lines[-1].partition(b":")[0].strip()
    if len(lines) >= _LEAST_OPERATIONS and last in _LAST_OPERATIONS:
        return stanza._replace(operations=operations)
    return stanza


def _split(whole: SavedCopy) -> tuple[SavedCopy, ...]:
    """Return the copies that follow each other in a file; the whole where that is not certain.

    Each has the same mounts, and time passed from one to the next: a mount that lies on another is younger.
    """
    copies: list[dict[Place, Stanza]] = [{}]
    for stanza in whole.stanzas:
        place = stanza.source, stanza.point
        if place in copies[-1]:
            copies.append({})
        copies[-1][place] = stanza
    for before, now in pairwise(copies):
        pairs = [(before[place], now[place]) for place in now if place in before]
        try:
            _seconds_between(pairs, whole.name, whole.name)
        except ValueError:
            return (whole,)
        if before.keys() != now.keys():
            return (whole,)
    if len(copies) == 1:
        return (whole,)
    return tuple(
        SavedCopy(f"{whole.name} (copy {number})", tuple(copy.values()), whole.options)
        for number, copy in enumerate(copies, 1)
    )


def _told_apart(
    stanzas: tuple[Stanza, ...], mounts: Sequence[MountStats]
) -> tuple[tuple[Stanza, ...], Sequence[MountStats]]:
    """Add the option by which they differ to the mount points of mounts that lie on each other."""
    places = defaultdict[Place, list[int]](list)
    for number, stanza in enumerate(stanzas):
        places[stanza.source, stanza.point].append(number)
    if [(mount.source, mount.point) for mount in mounts] != [(each.source, each.point) for each in stanzas]:
        return stanzas, mounts
    points = [mount.point for mount in mounts]
    for numbers in places.values():
        options = [mounts[number].options for number in numbers]
        for name, _ in options[0].pairs:
            values = [each.get(name) for each in options]
            if None not in values and len(set(values)) == len(values) > 1:
                for number, value in zip(numbers, values, strict=True):
                    points[number] += f" ({name}={value})"
                break
    return (
        tuple(each._replace(point=point) for each, point in zip(stanzas, points, strict=True)),
        [replace(each, point=point) for each, point in zip(mounts, points, strict=True)],
    )


def _seconds_between(pairs: Sequence[tuple[Stanza, Stanza]], earlier: str, later: str) -> int:
    """Return the time between two copies of these names: most mounts are older by it.

    A mount that was made in between is older by any number, and younger than that time. Raises ValueError
    where no time fits.
    """
    ages = ((before.age_s, now.age_s) for before, now in pairs)
    older_s = Counter(now - before for before, now in ages if before is not None and now is not None)
    if not older_s:
        raise ValueError(
            f"{earlier} and {later} have no mount with an age in common: the time between them is not known"
        )
    likely = sorted(older_s, key=lambda seconds: (older_s[seconds], seconds))[-_MOST_TIMES:]
    seconds = max(likely, key=lambda seconds: (_mounts_for(seconds, pairs), seconds))
    if _mounts_for(seconds, pairs) <= 0:
        raise ValueError(
            f"no time from {earlier} to {later} fits the ages and counters of their mounts: either the "
            "later copy was named first, or all was mounted again in between (a restart, a remount); then "
            "name only the later copy"
        )
    if seconds == 0:
        raise ValueError(f"no second passed between {earlier} and {later}: name two copies")
    return seconds


def _mounts_for(seconds: int, pairs: Iterable[tuple[Stanza, Stanza]]) -> int:
    """Return how many mounts lasted for so long; -1 where a mount shows that another time passed.

    Such a mount is older by another time, and too old to have been made in between. Ages are whole seconds.
    """
    mounts = 0
    for before, now in pairs:
        if before.age_s is None or now.age_s is None:
            continue
        if abs(now.age_s - before.age_s - seconds) <= 1:
            mounts += not began_again(before, now)
        elif now.age_s > seconds + 1:
            return -1
    return mounts if seconds >= 0 else -1


def frame_since_mounted(copy: SavedCopy) -> Frame:
    """Return the mean rates of each superblock since it was mounted.

    Operations of the transport group, which the kernel counts for all mounts of a server, are in it.
    """
    counted, silent, ambiguous = _superblocks(copy)
    return Frame(0.0, None, tuple(map(_entry_since, counted)), silent, ambiguous, (copy.name,))


def _entry_since(now: Counted, note: str = "") -> TopEntry:
    """Return a superblock with its means since it was mounted."""
    before = replace(now, stats=zeroed(now.stats)._replace(age_s=0))
    look = Look(0.0, float(now.stats.age_s or 0), (now,))
    sample = next(iter(rates(Look(0.0, 0.0, (before,)), look)), None)
    if sample is None:
        reason = "too many lines are damaged" if now.stats.age_s else "its age is not known"
        note = "" if now.stats.age_s == 0 else f"no rates: {reason}"
    return _entry(now, sample, note, all_operations=_has_all(now.stats))


def frame_between(earlier: SavedCopy, later: SavedCopy) -> Frame:
    """Return the rates of each superblock of the later copy since the earlier was made.

    A superblock that was mounted in between has its means since then. Raises ValueError where the copies have
    no mount in common, and for the reasons of `_seconds_between`.
    """
    counted, silent, ambiguous = _superblocks(later)
    known = {
        place: stanzas[0]
        for place, stanzas in _by_place(earlier).items()
        if len(stanzas) == 1 and _may_be_one(earlier.options.get(place), later.options.get(place))
    }
    before: dict[str, Stanza] = {}
    for now in counted:
        places = [(now.source, point) for point in now.mount_points]
        if stats := next((known[place] for place in places if place in known), None):
            before[now.device] = stats
    both = f"{earlier.name} and {later.name}"
    if not counted:
        raise ValueError(f"{later.name} has no counters of a mount")
    if not before:
        raise ValueError(f"{both} have no mount in common: name copies of one host")
    pairs = [(before[now.device], now.stats) for now in counted if now.device in before]
    seconds = _seconds_between(pairs, earlier.name, later.name)
    shared = {now.device: _comparable(before[now.device], now) for now in counted if now.device in before}
    first = Look(0.0, 0.0, tuple(old for old, _, _ in shared.values()))
    last = Look(0.0, float(seconds), tuple(new for _, new, _ in shared.values()))
    samples = {sample.device: sample for sample in rates(first, last)}
    entries = []
    for now in counted:
        stats, sample = before.get(now.device), samples.get(now.device)
        if sample is not None:
            entries.append(_entry(now, sample, all_operations=shared[now.device][2]))
        else:
            entries.append(_entry_without(stats, now, seconds, earlier.name))
    return Frame(0.0, float(seconds), tuple(entries), silent, ambiguous, (earlier.name, later.name))


def _may_be_one(before: Options | None, now: Options | None) -> bool:
    """Return whether mounts with these options may be one superblock of one host; unknown options may."""
    pairs = [(before.get(name), now.get(name)) for name in _FIXED] if before and now else []
    return all(old == new for old, new in pairs if None not in {old, new})


def _comparable(before: Stanza, now: Counted) -> tuple[Counted, Counted, bool]:
    """Return a superblock at both moments, without lines that only one has, and whether that lost nothing.

    An operation without use in the later copy had none before.
    """
    stats = now.stats
    if before.totals is None or stats.totals is None:
        before, stats = before._replace(totals=None), stats._replace(totals=None)
    old, new = _operations(before), _operations(stats)
    lost = any(new[name].partition(b":")[2].strip(b" 0") for name in new.keys() - old.keys())
    complete = old.keys() <= new.keys() and _has_all(before) and _has_all(stats) and not lost
    if old.keys() != new.keys():
        common = [name for name in new if name in old]
        before = before._replace(operations=b"\n".join([old[name] for name in common]))
        if stats.operations is not None:
            stats = stats._replace(operations=b"\n".join([new[name] for name in common]))
    return replace(now, stats=before), replace(now, stats=stats), complete


def _operations(stanza: Stanza) -> dict[bytes, bytes]:
    """Return the lines of operations by their names."""
    lines = (stanza.operations or b"").split(b"\n")
    return {line.partition(b":")[0].strip(): line for line in lines if b":" in line}


def _has_all(stanza: Stanza) -> bool:
    """Return whether no operation is missing, but for those without use, where all such lines were cut."""
    rows = _operations(stanza)
    known = _OF_V4 if b"OPEN" in rows else _OF_V3
    idle = any(row.endswith(_IDLE) for row in rows.values())
    lacks = idle and len(rows) >= len(_OF_V3) // 2 and not known <= rows.keys()
    return bool(rows) and not lacks and DAMAGED not in (stanza.operations or DAMAGED)


def _entry_without(before: Stanza | None, now: Counted, seconds: int, earlier: str) -> TopEntry:
    """Return a superblock that has no rates since the earlier copy."""
    age_s = now.stats.age_s
    if before is None:
        made = age_s is not None and age_s < seconds
        return _entry_since(now, f"mounted after {earlier}" if made else f"not in {earlier}")
    if age_s is None or before.age_s is None or age_s <= seconds + 1:
        return _entry_since(now, f"mounted again after {earlier}")
    return _entry(now, None, "no rates: its counters fell, or too many lines are damaged")


def _entry(
    counted: Counted, sample: Sample | None, note: str = "", *, all_operations: bool = True
) -> TopEntry:
    figures = figures_of(sample, all_operations=all_operations) if sample is not None else {}
    return TopEntry(counted, sample, figures=figures, note=note, all_operations=all_operations)


def _by_place(copy: SavedCopy) -> dict[Place, list[Stanza]]:
    """Return the stanzas by source and mount point, those of one superblock once."""
    places: defaultdict[Place, dict[object, Stanza]] = defaultdict(dict)
    for stanza in copy.stanzas:
        moved = _MOVED_BYTES.search(stanza.operations or b"")
        same = (stanza.age_s, stanza.operations) if moved else stanza
        places[stanza.source, stanza.point].setdefault(same, stanza)
    return {place: list(stanzas.values()) for place, stanzas in places.items()}


def _superblocks(copy: SavedCopy) -> tuple[list[Counted], int, int]:
    """Return each superblock once, and the numbers of mounts without counters and with ambiguous ones.

    The latter have several stanzas with their source and mount point.
    """
    superblocks: list[Counted] = []
    known: defaultdict[_Trait, list[int]] = defaultdict(list)
    silent = ambiguous = 0
    for (source, point), stanzas in _by_place(copy).items():
        stanza = stanzas[0]
        if len(stanzas) > 1:
            ambiguous += len(stanzas)
            continue
        if stanza.totals is None and not _operations(stanza):
            silent += 1
            continue
        options = copy.options.get((source, point), Options())
        # mountstats shows no address, and a bind of a folder has that in its source: only the host is shared.
        group = transport_group(options, split_source(source)[0])
        traits, shared = _traits(stanza, options, group)
        same = [number for trait in traits for number in known[trait]]
        peers = [number for trait in shared for number in known[trait]]
        same += [number for number in peers if is_moment_later(superblocks[number].stats, stanza)]
        if same:
            first = superblocks[same[0]]
            superblocks[same[0]] = replace(first, mount_points=(*first.mount_points, point))
            continue
        for trait in (*traits, *shared):
            known[trait].append(len(superblocks))
        # A line that ends there may lack digits: the kernel prints more options behind it.
        is_cut = [name for name, _ in options.pairs[-1:]] == ["rsize"]
        rsize = None if is_cut else options.number("rsize")
        superblocks.append(
            Counted(str(len(superblocks)), None, (point,), source, group, stanza, rsize_bytes=rsize)
        )
    return superblocks, silent, ambiguous


def _traits(stanza: Stanza, options: Options, group: str) -> tuple[list[_Trait], list[_Trait]]:
    """Return the properties that no mount of another superblock has, and those that few others have.

    The bytes of a superblock differ from line to line while somebody saves the file onto it.
    """
    shares = bool(options.pairs) and options.get("nosharecache") is None
    traits: list[_Trait] = [(stanza.source, stanza.age_s, options)] if shares else []
    if _MANY_BYTES.search(stanza.totals or b""):
        traits.append((group, stanza.age_s, stanza.totals, stanza.operations))
    many = _MANY_BYTES.search(stanza.totals or stanza.operations or b"")
    moved = shares and many and _MOVED_BYTES.search(stanza.operations or b"")
    return traits, [(group, stanza.age_s, options)] if moved else []


def copies_to_json(frames: Iterable[Frame], problems: Sequence[str]) -> dict[str, object]:
    """Return frames of saved copies as `nfstuned.top/1` (docs/json.md)."""
    return {
        "schema": "nfstuned.top/1",
        "frames": [
            {
                "copies": list(frame.copies),
                "interval_s": frame.seconds,
                "without_statistics": frame.silent + frame.ambiguous,
                "superblocks": [_entry_to_json(entry) for entry in frame.entries],
            }
            for frame in frames
        ],
        "problems": list(problems),
    }


def _entry_to_json(entry: TopEntry) -> dict[str, object]:
    """Return the keys of a sample; null for those that a copy does not show."""
    known: dict[str, object] = {} if entry.sample is None else sample_to_json(entry.sample)
    if not entry.all_operations:
        known |= {"kinds": None, "ops": known.get("ops") or None}
    keys = [field.key for field in fields_of(Sample)]
    known |= {
        "mount_points": list(entry.counted.mount_points),
        "source": entry.counted.source,
        "rsize_bytes": entry.counted.rsize_bytes,
        **dict.fromkeys(("time", "device", "read_ahead_kb", "stalled_s", "bdp_bytes")),
        **dict.fromkeys((*PodVolume._fields, "pods")),
    }
    return {key: known.get(key) for key in (*keys, "kinds", "ops", "transport")} | {
        "note": entry.note or None
    }
