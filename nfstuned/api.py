"""The Python API of nfstuned: its commands for programs, with typed values and no terminal.

    observe    a host or an image     -> its NFS mounts
    plan       the observed mounts    -> the changes of read-aheads, each with its reason
    apply      the planned changes    -> the result of each change
    diagnose   a host and its network -> findings, each with its remedy
    rates      two looks at counters  -> the rates of each mount in between

`configuration` and `look` read the arguments of `plan` and `rates`. docs/api.md has an example of each.

Stable within a major version (0.x is one) are the names in `__all__`, their parameters, and the meaning of
the fields of these values. New fields, keyword parameters and members of enumerations may come. A field with
a type that is not in `__all__`, and every other module of nfstuned, is internal and may change at any time.

`root` is the folder that the files are below: "/" is this host; another folder with proc, sys and etc in it
is judged as a host of its own. No function touches a mount, so that a dead server holds none of them up. All
values are frozen, their names carry the units (`_kb` is KiB), and None means unknown.

Errors: OSError for a folder or file that cannot be read at all, ConfigError for a configuration that is
invalid (`problems` has all of them), ParseError for a host without a known kernel release. Anything less is
part of the result: `Snapshot.problems`, `Diagnosis.doubts` and `Outcome.reason`.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterable
from dataclasses import replace

from nfstuned.app.facts import Scope, denied_files, examine
from nfstuned.app.read_ahead import carry_out, plan_without_holds
from nfstuned.core.rules import catalogue
from nfstuned.core.samples.rates import make_look, rates
from nfstuned.errors import ParseError
from nfstuned.host import observe as host
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.network.outside import FixedOutside, LiveOutside, Outside
from nfstuned.host.policy import image_policy, read_configuration
from nfstuned.host.root import Root, demand_folder, read_proposal
from nfstuned.host.system import observe_image
from nfstuned.model.facts import Diagnosis, Finding, Severity
from nfstuned.model.kernel import Distribution, KernelRelease, Mount, Options
from nfstuned.model.mounts import Action, Maker, Outcome, Request, Result, Snapshot, Superblock
from nfstuned.model.policy import Assignment, ConfigError, Match, Policy, Profile, ReadAhead
from nfstuned.model.samples import Look, OpRate, Sample, TransportRate
from nfstuned.model.system import Answer, Interface, Network, Reach, Reachable, Route

__all__ = [
    "Action",
    "Answer",
    "Assignment",
    "ConfigError",
    "Diagnosis",
    "Distribution",
    "Finding",
    "Interface",
    "KernelRelease",
    "Look",
    "Maker",
    "Match",
    "Mount",
    "Network",
    "OpRate",
    "Options",
    "Outcome",
    "ParseError",
    "Policy",
    "Profile",
    "Reach",
    "Reachable",
    "ReadAhead",
    "Request",
    "Result",
    "Route",
    "Sample",
    "Scope",
    "Severity",
    "Snapshot",
    "Superblock",
    "TransportRate",
    "apply",
    "configuration",
    "diagnose",
    "look",
    "observe",
    "plan",
    "rates",
]

Folder = str | os.PathLike[str]
_HERE = "/"


def observe(root: Folder = _HERE, *, image: bool = False) -> Snapshot:
    """Return the NFS mounts of a host, or with `image` those that an image's files ask for.

    `problems` also names the files that this user may not read; root can read all of them. Raises
    OSError where `root` is no folder, ParseError where it is no host.
    """
    opened = _opened(root, image=image)
    snapshot = observe_image(opened) if image else host.observe_host(opened)
    return replace(
        snapshot, problems=(*snapshot.problems, *opened.faults.unreported(), *denied_files(opened, snapshot))
    )


def configuration(root: Folder = _HERE, *, image: bool = False) -> Policy:
    """Return the configuration below /etc/nfstuned; the built-in profiles without files there.

    Raises OSError where `root` is no folder, ConfigError with every problem of every file.
    """
    return read_configuration(_opened(root, image=image))


def plan(snapshot: Snapshot, policy: Policy | None = None) -> tuple[Outcome, ...]:
    """Return the changes of read-aheads that `nfstuned apply` would make; a mount that is right has none.

    A change is `Result.PLANNED`, also where `nfstuned undo` took the value back: a plan asks for it again.
    Where something that values depend on could not be read, it is `Result.FAILED`.
    The policy is the configuration of the snapshot's root unless another is given; reading it raises OSError
    and ConfigError. An image has no read-aheads, so that nothing is planned for it.
    """
    if not snapshot.superblocks:
        return ()
    return plan_without_holds(snapshot, configuration(snapshot.root) if policy is None else policy)


def apply(planned: Iterable[Outcome], root: Folder = _HERE) -> tuple[Outcome, ...]:
    """Make the changes that `plan` returned for a snapshot of `root`, and return the result of each.

    It takes the rights of root. Each is done, failed or skipped, with the reason; a refusal is no exception.
    The value from before is kept below run/nfstuned first, for `nfstuned undo`; the new value is read back. A
    superblock that is gone is skipped, also where its device number is another's by now or `root` is not the
    plan's. Outcomes that are not planned are returned as they are. Raises OSError where `root` is no folder.
    """
    return carry_out(_opened(root, image=False), tuple(planned))


def diagnose(
    root: Folder = _HERE,
    *,
    network: Network | None = None,
    scope: Scope | None = None,
    policy: Policy | None = None,
    rules: str = "",
) -> Diagnosis:
    """Return the findings about a host or an image, as `nfstuned check` does.

    `network` has the network's answers: nobody is asked then, and a name or port without an answer is a
    doubt. Without it this host's own network is asked, which takes a few seconds at most; another root's
    network is not known, and rules that need it are skipped. `scope` is by default a host, looked at once;
    with `sample_s` it takes that many seconds. `rules` are ids, starts of ids ("NFS1") or
    names, with commas between; "" is all of them.

    `skipped` are the ids of rules that lacked the network, a second look or a running kernel. The policy is
    the root's configuration unless another is given; of an image with an invalid configuration the
    built-in profiles, which a finding reports. Raises OSError, ParseError, ConfigError, and ValueError for a
    word without a rule.
    """
    scope = scope or Scope()
    words = catalogue.split_words((rules,))
    if word := catalogue.first_unknown(words):
        raise ValueError(catalogue.correction(word))
    opened = _opened(root, image=scope.image)
    if scope.proposal:
        opened.propose(scope.proposal, read_proposal(scope.proposal))
    if policy is None:
        policy = image_policy(opened) if scope.image else read_configuration(opened)
    outside: Outside = FixedOutside(network or Network())
    if network is None and opened.prefix == _HERE:
        outside = LiveOutside(opened)
    elif network is None:
        scope = replace(scope, offline=True)
    facts = examine(opened, policy, scope, outside)
    diagnosis = catalogue.run_rules(facts, catalogue.select_rules(catalogue.RULES, words, ()))
    unreadable = map(str, denied_files(opened, facts.snapshot))
    return replace(diagnosis, doubts=tuple(dict.fromkeys((*diagnosis.doubts, *unreadable))))


def look(root: Folder = _HERE, *, time: float | None = None, monotonic_s: float | None = None) -> Look:
    """Return the counters of every visible NFS superblock now, for `rates`.

    `time` (Unix seconds) and `monotonic_s` (seconds of CLOCK_MONOTONIC) are those of this moment; give them
    where the files below `root` are of another. Raises OSError where `root` is no folder, ParseError where
    the counters, or their superblocks, could not be read.
    """
    opened = _opened(root, image=False)
    snapshot, stanzas = host.observe_superblocks(opened, deep=False), host.observe_stanzas(opened)
    if stanzas is None or snapshot.faults:
        raise next(iter(opened.faults))
    return make_look(
        snapshot,
        stanzas,
        clock.time() if time is None else time,
        clock.monotonic() if monotonic_s is None else monotonic_s,
        host.observe_major_faults(opened),
    )


def _opened(root: Folder, *, image: bool) -> Root:
    folder = os.fspath(root)
    demand_folder(folder)
    return ImageRoot(folder) if image else Root(folder)
