"""The configuration: what is wrong is said, what was right stays, what is new reaches the mounts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import ETC, nfstuned
from tests.lab.kit.expect import becomes, tuned

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

MAIN = ETC / "nfstuned.toml"
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]

BROKEN = {
    "a value out of bounds": (
        "[profile.azure-files]\nread_ahead_kb = 99999\n",
        ("profile.azure-files.read_ahead_kb", "99999", "65536"),
    ),
    "a misspelt key": (
        "[profile.azure-files]\nread_ahed_kb = 4096\n",
        ("profile.azure-files.read_ahed_kb", "4096", "read_ahead_kb"),
    ),
    "an unknown profile": (
        '[[policy]]\nmatch = {}\nprofile = "azure-fils"\n',
        ("policy[1].profile", "azure-fils", "azure-files"),
    ),
    "profiles in a circle": (
        '[profile.one]\ninherits = "two"\n[profile.two]\ninherits = "one"\n',
        ("profile.", "inherits", "one", "two"),
    ),
    "an interval that is none": (
        '[daemon]\nsample_interval = "often"\n',
        ("daemon.sample_interval", "often", "60s"),
    ),
    "no TOML": ("[daemon\n", ("[daemon",)),
}


@pytest.mark.parametrize("case", BROKEN)
def test_check_names_file_key_and_value_of(case: str, stopped_daemon: Daemon) -> None:
    text, words = BROKEN[case]
    stopped_daemon.configure(text)
    done = nfstuned("config", "check")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert lines, "nothing on stderr"
    assert all(line.startswith(f"{MAIN}:") for line in lines), lines
    missing = [word for word in words if word not in done.stderr]
    assert not missing, f"without {missing}: {done.stderr}"


def test_check_is_content_without_a_file_and_with_a_good_one(stopped_daemon: Daemon) -> None:
    assert nfstuned("config", "check").returncode == 0
    stopped_daemon.configure(_azure(4096))
    stopped_daemon.configure(_azure(8192), drop_in="10-more")
    done = nfstuned("config", "check")
    assert done.returncode == 0, done.stderr
    assert str(MAIN) in done.stdout
    assert "10-more.toml" in done.stdout


def test_a_broken_file_at_a_reload_leaves_the_last_good_configuration(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    stopped_daemon.configure(_azure(4096))
    stopped_daemon.start()
    before, pid = mount("a"), stopped_daemon.pid
    tuned(4096, before)
    text, words = BROKEN["a value out of bounds"]
    stopped_daemon.configure(text)
    stopped_daemon.reload()
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    assert entry["NFSTUNED_FILE"] == str(MAIN)
    missing = [word for word in (str(MAIN), *words, "last good") if word not in entry["MESSAGE"]]
    assert not missing, f"without {missing}: {entry['MESSAGE']}"
    becomes("active", lambda: stopped_daemon.show("ActiveState"))
    after = mount("b")
    tuned(4096, before, after)
    assert stopped_daemon.pid == pid


def test_each_problem_is_an_entry_of_its_own(daemon: Daemon) -> None:
    daemon.configure("[profile.azure-files]\nread_ahead_kb = 99999\nread_ahed_kb = 4096\n")
    daemon.configure(BROKEN["an unknown profile"][0], drop_in="50-site")
    daemon.reload()
    expected = [f"{ETC}/conf.d/50-site.toml", str(MAIN), str(MAIN)]
    becomes(expected, lambda: sorted(_field(daemon, Message.CONFIG_INVALID, "NFSTUNED_FILE")))


def test_a_broken_file_at_the_first_start_tunes_nothing_until_it_is_mended(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    stopped_daemon.configure(BROKEN["a misspelt key"][0])
    stopped_daemon.start()
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    assert "no mount is tuned" in entry["MESSAGE"], entry["MESSAGE"]
    mounted = mount("a")
    assert stopped_daemon.status_text.endswith("configuration invalid, tuning nothing")
    assert mounted.read_ahead_kb == 128
    stopped_daemon.configure(_azure(4096))
    stopped_daemon.reload()
    tuned(4096, mounted)
    becomes("1 NFS superblock, 1 tuned", lambda: stopped_daemon.status_text)


@pytest.mark.parametrize(("first", "then"), [(4096, 8192), (8192, 2048)])
def test_a_new_value_at_a_reload_reaches_mounts_that_exist(
    stopped_daemon: Daemon, mount: Mounts, first: int, then: int
) -> None:
    stopped_daemon.configure(_azure(first))
    stopped_daemon.start()
    mounted = mount("a")
    tuned(first, mounted)
    stopped_daemon.configure(_azure(then))
    stopped_daemon.reload()
    tuned(then, mounted)


def test_drop_ins_count_more_than_the_main_file(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(_azure(2048))
    stopped_daemon.configure(_azure(4096), drop_in="10-less")
    last = stopped_daemon.configure(_azure(8192), drop_in="20-more")
    stopped_daemon.configure("this is for no one\n", drop_in=".#20-more")
    stopped_daemon.start()
    mounted = mount("a")
    tuned(8192, mounted)
    loaded = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_LOADED.id)
    assert loaded["NFSTUNED_FILE"] == f"{MAIN}, {ETC}/conf.d/10-less.toml, {last}"
    last.unlink()
    stopped_daemon.reload()
    tuned(4096, mounted)


def test_a_file_that_the_service_may_not_read_is_a_problem(daemon: Daemon, mount: Mounts) -> None:
    """Root without capabilities reads only what root owns, or what all may read."""
    file = daemon.configure(_azure(4096))
    shutil.chown(file, "nobody")
    file.chmod(0o600)
    daemon.reload()
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    assert entry["NFSTUNED_FILE"] == str(MAIN)
    assert "cannot be read: Permission denied" in entry["MESSAGE"]
    tuned(15360, mount("a"))


def test_a_link_to_nowhere_is_a_problem(stopped_daemon: Daemon) -> None:
    stopped_daemon.configure("").unlink()
    MAIN.symlink_to("/nowhere")
    done = nfstuned("config", "check")
    assert done.returncode == 2
    assert f"{MAIN}: cannot be read: No such file" in done.stderr, done.stderr


def _azure(kb: int) -> str:
    return f"[profile.azure-files]\nread_ahead_kb = {kb}\n"


def _field(daemon: Daemon, message: Message, name: str) -> list[str]:
    return [entry[name] for entry in daemon.entries(MESSAGE_ID=message.id)]
