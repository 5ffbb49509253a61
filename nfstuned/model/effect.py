"""The reads of a superblock before and after a change of its read-ahead, and the file that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from nfstuned.model.samples import SuperblockKey


class Pace(NamedTuple):
    """The reads of an interval under a read-ahead."""

    read_ahead_kb: int
    read_bytes_per_s: float
    """Programs' reads; 0 where they mapped the files."""
    server_bytes_per_s: float
    rtt_ms: float | None
    """The mean round trip of READ."""
    over_fetch_ratio: float | None


class Effect(NamedTuple):
    """The last interval with reads before a change, and the first one after it."""

    before: Pace
    after: Pace
    unlike: str = ""
    """Why the two cannot be compared, for people; "" where the counters show no other load."""


class Seen(NamedTuple):
    """The service's knowledge of a superblock's reads."""

    bdp_bytes: float | None = None
    """As in a sample."""
    effect: Effect | None = None
    """The effect of the last change."""


def seen_to_json(seen: Mapping[SuperblockKey, Seen]) -> str:
    """Return the text of SEEN_READS."""
    return json.dumps({"reads": [[*key, *each] for key, each in seen.items()]})


def seen_from_json(text: str) -> dict[SuperblockKey, Seen]:
    """Return the reads by the text of SEEN_READS; none where it is absent or not whole."""
    try:
        return {
            (str(device), bdi): Seen(None if bdp is None else float(bdp), effect and _effect(*effect))
            for device, bdi, bdp, effect in json.loads(text)["reads"]
        }
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return {}


def _effect(before: list[float | None], after: list[float | None], unlike: str) -> Effect:
    return Effect(_pace(*before), _pace(*after), str(unlike))


def _pace(
    kb: float | None, read: float | None, sent: float | None, rtt_ms: float | None, ratio: float | None
) -> Pace:
    if kb is None or read is None or sent is None:
        raise TypeError
    known = (None if each is None else float(each) for each in (rtt_ms, ratio))
    return Pace(int(kb), float(read), float(sent), *known)
