"""The validation of the configuration in a child: pydantic is too large to stay in the daemon."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress

from nfstuned.errors import ConfigError
from nfstuned.host.command import GRACE_S
from nfstuned.host.config import INVALID
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy, policy_from_json

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
        self._fd, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs)  # noqa: S603 - itself
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
        """Return the policy; raises ConfigError with the problems, or without an answer by the deadline."""
        try:
            output = self._output()
            status = self._process.wait(max(0.0, self.deadline - time.monotonic()) + 1.0)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise ConfigError(("the configuration could not be validated in time",)) from None
        finally:
            self.kill()
        text = output.decode("utf-8", "replace")
        if status == INVALID and text.strip():
            raise ConfigError(tuple(text.split("\n")))
        if status != 0:
            raise ConfigError((f"the configuration could not be validated: its child ended with {status}",))
        try:
            return policy_from_json(text)
        except ValueError as error:
            raise ConfigError((f"the configuration could not be validated: {error}",)) from None

    def kill(self) -> None:
        """End the child, if it has not ended; a child that waits in the kernel ends when it can."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

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
    """Start a child that validates the configuration. Raises ConfigError where none can be started."""
    try:
        return Child(root, timeout_s)
    except OSError as error:
        raise ConfigError((f"the configuration cannot be validated: {error}",)) from None
