"""The validation of the configuration in a child: pydantic is too large to stay in the daemon."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from nfstuned.errors import ConfigError
from nfstuned.host.config import INVALID
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy
from nfstuned.parse.config.policy_json import policy_from_json

_BOOT = (
    "import sys; sys.path[:] = sys.argv.pop(1).split(':'); "
    "from nfstuned.host.config_load import main; sys.exit(main(sys.argv[1]))"
)
"""The child finds the same packages as this process, wherever they come from (-sE drops PYTHONPATH)."""


class Child:
    """A child that validates the configuration. Watch `fileno`; when it is readable or overdue, `finish`."""

    def __init__(self, root: Root, timeout_s: float) -> None:
        self.deadline = time.monotonic() + timeout_s
        """When it is overdue, on the clock of time.monotonic."""
        self._fd, theirs = os.pipe()
        command = [sys.executable, "-sE", "-X", "utf8", "-c", _BOOT, ":".join(sys.path), root.prefix]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs)  # noqa: S603 - itself
        except OSError as error:
            os.close(self._fd)
            raise ConfigError((f"the configuration cannot be validated: {error}",)) from None
        finally:
            os.close(theirs)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the child answers or ends; -1 afterwards."""
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
        """End the child, if it has not ended, and leave nothing of it behind."""
        self._process.kill()
        self._process.wait()
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
    """Start validating the configuration; raises ConfigError when not even that is possible."""
    return Child(root, timeout_s)
