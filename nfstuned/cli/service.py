"""`nfstuned daemon`, `nfstuned udev` and `nfstuned exporter`, the commands of the units.

The entry point starts the first two without any of this.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from nfstuned.cli.terminal import Commands, note
from nfstuned.host.root import Root
from nfstuned.host.telemetry.sinks import EXPORTED

if TYPE_CHECKING:
    from prometheus_client.core import Metric

FAILED, USAGE = 1, 2


def _only_alone(context: click.Context) -> int:
    """Refuse a command that the entry point runs without any of this: it must stay small, and start fast."""
    click.echo(f"{context.command_path}: only works as the program's only arguments", err=True)
    return USAGE


@click.command()
@click.pass_context
def daemon(context: click.Context) -> int:
    """Run the service: tune mounts as they appear.

    nfstuned.service runs it; it also samples the rates of each mount. It needs no option; see nfstuned(8).

    \b
    Examples:
      systemctl enable --now nfstuned.service
      sudo nfstuned daemon

    \b
    Exit status:
      0  stopped by SIGTERM or SIGINT
      1  it could not start; the reason is shown
    """
    return _only_alone(context)


@click.group(cls=Commands)
def udev() -> None:
    """Mask udev's default read-ahead rules, or unmask them.

    The unit does it: nfstuned.service masks them before it starts, and unmasks them when it has stopped.
    """


@udev.command("mask")
@click.pass_context
def udev_mask(context: click.Context) -> int:
    """Let no default rule of the distribution write a read-ahead.

    nfs-utils' 99-nfs.rules writes 128 KiB to every NFS mount, a moment after nfstuned has written the
    policy's value; 53-ec2-read-ahead-kb.rules of Amazon Linux writes 15360 to each. A file of the same name
    in /run/udev/rules.d hides such a rule. One that an administrator has changed, or that [nfsrahead] of
    /etc/nfs.conf gives values to, stays in force. It changes no file below /etc or /usr.

    \b
    Examples:
      sudo nfstuned udev mask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be read or written, or udev could not reload its rules; the reason is shown
    """
    return _only_alone(context)


@udev.command("unmask")
@click.pass_context
def udev_unmask(context: click.Context) -> int:
    """Take back the masks of `nfstuned udev mask`.

    \b
    Examples:
      sudo nfstuned udev unmask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be removed, or udev could not reload its rules; the reason is shown
    """
    return _only_alone(context)


LISTEN = "127.0.0.1:9814"
SAMPLED, INTERVAL = "nfstuned_last_sample_timestamp_seconds", "nfstuned_sample_interval_seconds"
USABLE, AGE = "nfstuned_exporter_file_usable", "nfstuned_exporter_file_age_seconds"
HELP = MappingProxyType(
    {
        USABLE: "1 if the service's file is complete and fresh; with 0 none of its metrics are served.",
        AGE: "Time since the sample in the service's file.",
    }
)
"""The exporter's own metrics."""
_SPARE_S = 30.0
_ABSENT = (
    "nfstuned.service writes it at each sample while nfstuned-exporter.service runs; "
    "another file of [prometheus] textfile needs --file"
)


class MetricsCollector:
    """The service's metrics as its file has them, where it is whole and fresh, and the file's own state.

    A file is stale when its sample is older than three intervals: none of its numbers is served then.
    """

    def __init__(self, root: Root, path: str, now: Callable[[], float] = time.time) -> None:
        self._root = root
        self._path = path
        self._now = now
        self._problem = ""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as the library's registry asks for them."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - slow to load, and only for the exporter
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - as above

        age_s: float | None = None
        families: list[Metric] = []
        try:
            text = b"".join(self._root.read_parts(self._path.removeprefix("/"))).decode()
            families = list(text_string_to_metric_families(text))
            values = {one.name: one.value for family in families for one in family.samples}
            age_s = self._now() - values[SAMPLED]
            is_stale = abs(age_s) > 3 * values[INTERVAL] + _SPARE_S
            problem = (
                "its sample is older than three intervals; does nfstuned.service run?" if is_stale else ""
            )
        except FileNotFoundError:
            problem = f"it is absent; {_ABSENT}"
        except OSError as error:
            problem = error.strerror or str(error)
        except (ValueError, KeyError, IndexError, OverflowError) as error:  # all that the parser raises
            problem = f"it is damaged: {error!r}"
        if problem and problem != self._problem:
            note(f"{self._path}: no metrics are served: {problem}")
        self._problem = problem
        yield GaugeMetricFamily(USABLE, HELP[USABLE], value=0 if problem else 1)
        if age_s is not None:
            yield GaugeMetricFamily(AGE, HELP[AGE], value=age_s)
        if not problem:
            yield from families


@click.command("exporter")
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    default=LISTEN,
    show_default=True,
    help="The address and port for Prometheus.",
)
@click.option(
    "--file",
    "path",
    default=EXPORTED,
    show_default=True,
    metavar="FILE",
    help="The service's file of metrics.",
)
def exporter_command(listen: str, path: str) -> int:
    """Serve the metrics of the service to Prometheus.

    nfstuned-exporter.service runs it, as a user without rights. It only reads a file that nfstuned.service
    writes at each sample. A file that is absent, damaged or too old is not served:
    nfstuned_exporter_file_usable is 0 then, and stderr has the reason.

    \b
    Examples:
      systemctl enable --now nfstuned-exporter.service
      nfstuned exporter --listen '[::1]:9814'

    \b
    Exit status:
      1  the address is in use, or not of this machine
      2  the command line is wrong
    """
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - as above

    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        note(f"--listen {listen}: give an address and a port such as {LISTEN} or [::1]:9814")
        return USAGE
    registry = CollectorRegistry()
    registry.register(MetricsCollector(Root(), path))
    try:
        start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, OverflowError) as error:
        note(f"--listen {listen}: {error}")
        return FAILED
    while True:
        signal.pause()
