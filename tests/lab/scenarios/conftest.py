"""The fixtures of the scenarios. Everything here runs in the guest, under Debian's own pytest."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.lab.kit import rivals
from tests.lab.kit.daemon import Daemon
from tests.lab.kit.fstab import FSTAB
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.server import GENERIC_NUMBER, Server
from tests.lab.kit.shell import restored, run

MARKERS = ("kernel", "system", "release")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--marker", choices=MARKERS, help="run only the tests with this marker")
    parser.addoption("--brief", action="store_true", help="leave out the tests marked newest")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--marker")
    chosen = [item for item in items if _marker(item) == wanted or wanted is None]
    if config.getoption("--brief"):
        chosen = [item for item in chosen if item.get_closest_marker("newest") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _marker(item: pytest.Item) -> str:
    """Return the marker of a test: `release` counts more than others, its own more than its file's."""
    names = [mark.name for mark in item.iter_markers() if mark.name in MARKERS]
    if not names:
        raise pytest.UsageError(f"{item.nodeid} has none of the markers {', '.join(MARKERS)}")
    return "release" if "release" in names else names[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print why a test failed at once: a boot goes on for minutes, and may not end well."""
    report = yield
    terminal = item.config.pluginmanager.getplugin("terminalreporter")
    if report.failed and terminal is not None:
        terminal.write_line(f"\n{report.longreprtext}")
    return report


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[object], None]:
    """Print at once: a guest that prints nothing for minutes seems to hang."""

    def say(line: object) -> None:
        with capsys.disabled():
            print(f"\n  {line}", flush=True)

    return say


@pytest.fixture(scope="session")
def _server() -> Server:
    server = Server()
    server.start()
    return server


@pytest.fixture
def server(_server: Server) -> Server:
    """The guest's NFS server, running; a test may stop it."""
    _server.start()
    return _server


@pytest.fixture
def mount(server: Server) -> Iterator[Mounts]:
    """Make mounts of the server; all are gone after the test."""
    mounts = Mounts()
    yield mounts
    server.start()
    mounts.clean()


@pytest.fixture(autouse=True)
def _nfsrahead(request: pytest.FixtureRequest) -> None:
    """Have nfs-utils' rule as the test wants it; udev reads its rules again only when that changes."""
    if "quiet_udev" in request.fixturenames:
        rivals.mask_nfsrahead()
    else:
        rivals.unmask_nfsrahead()


@pytest.fixture
def quiet_udev(_nfsrahead: None) -> None:
    """No other writer: nfs-utils' rule is masked. Without this it is as the distribution has it."""


@pytest.fixture
def fstab() -> Iterator[Path]:
    """The guest's fstab, afterwards as it was."""
    with restored(FSTAB):
        yield FSTAB
    run("systemctl", "daemon-reload")


def _clean_daemon() -> Iterator[Daemon]:
    daemon = Daemon()
    daemon.clean()
    yield daemon
    daemon.clean()


@pytest.fixture
def stopped_daemon() -> Iterator[Daemon]:
    """The service, without configuration and state, not yet started."""
    yield from _clean_daemon()


@pytest.fixture
def daemon(stopped_daemon: Daemon) -> Daemon:
    """The service with its built-in configuration, READY."""
    stopped_daemon.start()
    return stopped_daemon


@pytest.fixture(scope="module")
def _module_daemon() -> Iterator[Daemon]:
    yield from _clean_daemon()


@pytest.fixture
def running_daemon(_module_daemon: Daemon) -> Daemon:
    """The service with its built-in configuration, shared by a file's tests: a start takes 10 s here.

    Its journal is from the start of the test. A file that uses this cannot use the other two.
    """
    if not _module_daemon.active:
        _module_daemon.start()
    _module_daemon.journal.mark()
    return _module_daemon


@pytest.fixture
def generic_number(running_daemon: Daemon) -> Iterator[None]:
    """A configuration with a read-ahead for every other server: GENERIC_KB."""
    drop_in = running_daemon.configure(GENERIC_NUMBER, "generic")
    running_daemon.reload()
    yield
    drop_in.unlink()
    running_daemon.reload()
