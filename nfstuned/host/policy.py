"""The policy of a host or an image: its own configuration, or the built-in profiles where it has none.

The daemon runs only `print_policy`, in a child: the validation loads pydantic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from nfstuned.host.config import INVALID, PROFILES, UNREAD, WORKLOADS, builtin_policy, find_files
from nfstuned.host.root import Root
from nfstuned.model.policy import ConfigError, Policy, UnvalidatedError, policy_to_json


def read_configuration(root: Root) -> Policy:
    """Return the policy of the files below `root`; raises ConfigError with every problem of every file."""
    return load_policy(root) if find_files(root) else builtin_policy()


def image_policy(root: Root) -> Policy:
    """Return an image's policy; the built-in profiles when its files are invalid, which a rule reports."""
    try:
        return read_configuration(root)
    except ConfigError:
        return builtin_policy()


def builtin_texts() -> tuple[tuple[str, str], ...]:
    """Return the name and the text of each built-in profile's file, and then of each workload's."""
    texts = []
    for folder in (PROFILES, WORKLOADS):
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".toml")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append((f"built-in {name}", file.read()))
    return tuple(texts)


def load_policy(root: Root) -> Policy:
    """Return the validated policy of the files below `root`; raises ConfigError as `read_configuration`.

    It is an UnvalidatedError where a file could not be read.
    """
    problems: list[str] = []
    names: tuple[str, ...] = ()
    try:
        names = find_files(root)
    except ConfigError as error:
        problems.extend(error.problems)
    texts: list[tuple[str, str]] = []
    for name in names:
        try:
            texts.append((root.path(name), root.read(name)))
        except OSError as error:  # noqa: PERF203 - a handful
            problems.append(f"{root.path(name)}: cannot be read: {error.strerror}")
    try:
        return policy_of_files(texts, problems)
    except ConfigError as error:
        raise (UnvalidatedError(error.problems) if problems else error) from None


def policy_of_files(texts: Iterable[tuple[str, str]], problems: Sequence[str] = ()) -> Policy:
    """Return the policy of files, each a path and a text; raises ConfigError with `problems` and theirs."""
    from nfstuned.parse.policy import parse_config  # noqa: PLC0415 - pydantic is slow to load

    bad, good = [*problems], list[tuple[str, str]]()
    for path, text in texts:
        try:
            # A byte that is not UTF-8 was read as a surrogate.
            text.encode("utf-8")
        except UnicodeEncodeError as error:  # noqa: PERF203 - a handful
            line = text.count("\n", 0, error.start) + 1
            bad.append(f"{path}:{line}: not UTF-8, which TOML is written in")
        else:
            good.append((path, text))
    try:
        policy = parse_config(builtin_texts(), good)
    except ConfigError as error:
        raise ConfigError((*bad, *error.problems)) from None
    if bad:
        raise ConfigError(tuple(bad))
    return policy


def print_policy(prefix: str) -> int:
    """Print the policy as JSON, or the problems one a line; return the status of this child of the daemon."""
    try:
        text, status = policy_to_json(load_policy(Root(prefix))), 0
    except ConfigError as error:
        text = "\n".join(error.problems)
        status = UNREAD if isinstance(error, UnvalidatedError) else INVALID
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    return status
