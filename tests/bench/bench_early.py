"""Print what deciding between event and write costs: python -m tests.bench.bench_early."""

from __future__ import annotations

from timeit import repeat

from nfstuned.core.policy.decision import decide_early
from nfstuned.model.kernel import Server, Volume
from nfstuned.model.policy import Assignment, Match, Policy, Profile, ReadAhead

ENTRIES, SERVERS, ROUNDS = 32, 50, 1000


def main() -> None:
    profiles = Profile("generic", ReadAhead(kb=1024)), Profile("scratch", ReadAhead(kb=4096))
    matches = (Match(server=(f"10.{number}.0.0/16", f"srv{number}-*")) for number in range(1, ENTRIES + 1))
    entries = tuple(Assignment(match, "scratch", "bench") for match in matches)
    rows = tuple(Server(4, f"10.99.0.{number}", 2049, 2, f"host{number}") for number in range(SERVERS))
    seen = Volume(4, rows[-1].address, 2049, "0:43", "1:2")
    policy = Policy(profiles, entries)
    best = min(repeat(lambda: decide_early(policy, seen, rows, ()), number=ROUNDS, repeat=7)) / ROUNDS
    print(f"one of {SERVERS} servers against {ENTRIES} policies: {best * 1e6:.0f} us")


if __name__ == "__main__":
    main()
