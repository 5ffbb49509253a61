"""The configuration: its files, the built-in policy, and the validation in a child of the service.

A child validates because pydantic is too large to stay in the daemon.
"""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress

import nfstuned
from nfstuned.host.root import Root
from nfstuned.host.tools import GRACE_S
from nfstuned.model.policy import OBSERVE, ConfigError, Policy, UnvalidatedError, policy_from_json

MAIN = "etc/nfstuned/nfstuned.toml"
DROP_INS = "etc/nfstuned/conf.d"
INVALID, UNREAD = 2, 3
"""The exit statuses of a validation that found problems; its output then holds them, one a line.

UNREAD where a file could not be read."""


def find_files(root: Root) -> tuple[str, ...]:
    """Return the names of the administrator's files in their order: the main file, then the drop-ins by name.

    Raises UnvalidatedError where a folder cannot be looked at.
    """
    try:
        main = (MAIN,) if root.demand_existence(MAIN) else ()
    except OSError as error:
        raise UnvalidatedError((f"{root.path(MAIN)}: cannot be read: {error.strerror}",)) from None
    try:
        names = root.listing(DROP_INS)
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise UnvalidatedError((f"{root.path(DROP_INS)}: cannot be listed: {error.strerror}",)) from None
    # A leading dot is an editor's: `.#50-site.toml` is Emacs's lock, a link to nowhere.
    wanted = (name for name in names if name.endswith(".toml") and not name.startswith("."))
    return (*main, *(f"{DROP_INS}/{name}" for name in wanted))


def sets_observe(root: Root) -> bool:
    """Return whether the files ask for mode = "observe"; the validation reports files that are no TOML."""
    from nfstuned.parse.toml import parse_toml  # noqa: PLC0415 - most hosts have no file, and mounts wait

    mode = ""
    with suppress(ConfigError, OSError):
        for name in find_files(root):
            table = parse_toml(name, root.read(name)).values.get("daemon")
            mode = table.get("mode", mode) if isinstance(table, dict) else mode
    return mode == OBSERVE


_DATA = os.path.join(os.path.dirname(nfstuned.__file__), "data")
PROFILES, WORKLOADS = os.path.join(_DATA, "profiles"), os.path.join(_DATA, "workloads")
FILE = os.path.join(_DATA, "builtin.json")
"""Made of data/profiles; tests/host/test_config.py holds both together."""


def builtin_policy() -> Policy:
    """Return the built-in profiles as a policy."""
    with open(FILE, encoding="utf-8") as file:
        return policy_from_json(file.read())


_BOOT = (
    "import sys; sys.path[:] = sys.argv.pop(1).split(':'); "
    "from nfstuned.host.policy import print_policy; sys.exit(print_policy(sys.argv[1]))"
)
"""The child finds the same packages as this process, wherever they come from (-sE drops PYTHONPATH)."""


class Child:
    """A child that validates the configuration.

    Poll `fileno()`; when it is readable, or the child is `overdue()`, call `finish()`.
    """

    def __init__(self, root: Root, timeout_s: float) -> None:
        self.deadline = time.monotonic() + timeout_s
        """From when on the child is overdue, in seconds of time.monotonic()."""
        command = [sys.executable, "-sE", "-X", "utf8", "-c", _BOOT, ":".join(sys.path), root.prefix]
        from subprocess import DEVNULL, Popen  # noqa: PLC0415 - it is slow to load, and only the service needs it

        self._fd, theirs = os.pipe()
        try:
            self._process = Popen(command, stdin=DEVNULL, stdout=theirs)  # noqa: S603 - itself
        except OSError:
            os.close(self._fd)
            raise
        finally:
            os.close(theirs)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the child answers or ends; -1 after finish()."""
        return self._fd

    def overdue(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline

    def finish(self) -> Policy:
        """Return the policy.

        Raises ConfigError with the problems, and UnvalidatedError where the child could not find out.
        """
        try:
            output = self._output()
            status = self._wait(max(0.0, self.deadline - time.monotonic()) + 1.0)
        except TimeoutError:
            raise UnvalidatedError(("the configuration could not be validated in time",)) from None
        except OSError as error:
            raise UnvalidatedError((f"the configuration could not be validated: {error}",)) from None
        finally:
            self.kill()
        text = output.decode("utf-8", "replace")
        if status in {INVALID, UNREAD} and text.strip():
            kind = ConfigError if status == INVALID else UnvalidatedError
            raise kind(tuple(text.split("\n")))
        if status != 0:
            reason = f"the configuration could not be validated: its child ended with {status}"
            raise UnvalidatedError((reason,))
        try:
            return policy_from_json(text)
        except ValueError as error:
            raise UnvalidatedError((f"the configuration could not be validated: {error}",)) from None

    def kill(self) -> None:
        """End the child, if it has not ended; a child that waits in the kernel ends when it can."""
        self._process.kill()
        with suppress(TimeoutError):
            self._wait(GRACE_S)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _wait(self, seconds: float) -> int:
        """Return the child's exit status. Raises TimeoutError."""
        from subprocess import TimeoutExpired  # noqa: PLC0415 - as above

        try:
            return self._process.wait(seconds)
        except TimeoutExpired:
            raise TimeoutError from None

    def _output(self) -> bytes:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        chunks: list[bytes] = []
        while poll.poll(max(0.0, self.deadline - time.monotonic()) * 1000):
            chunk = os.read(self._fd, 1 << 16)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
        raise TimeoutError


def start_load(root: Root, timeout_s: float) -> Child:
    """Start a child that validates the configuration. Raises UnvalidatedError where none can be started."""
    try:
        return Child(root, timeout_s)
    except OSError as error:
        raise UnvalidatedError((f"the configuration cannot be validated: {error}",)) from None
