"""docs/providers: a page for each built-in profile, with its numbers as `config show` prints them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.core.mounts.targets import SMB_SUFFIX
from nfstuned.host.config import builtin_policy
from nfstuned.model.policy import Policy, Profile
from nfstuned.view.policy import policy_text
from tests.check import hosts

PAGES = Path(__file__).parents[1] / "docs/providers"
PROFILES = {
    profile.name: profile for profile in builtin_policy().profiles if not profile.name.endswith(SMB_SUFFIX)
}
EACH = pytest.mark.parametrize("name", PROFILES)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
BLOCK = re.compile(r"(?<=^```toml\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text()


def shown(name: str) -> str:
    """Return a profile and its profile for SMB as `nfstuned config show` prints them."""
    policy = builtin_policy()
    members = [profile for profile in policy.profiles if profile.name in {name, name + SMB_SUFFIX}]
    text = policy_text(Policy(tuple(members)))
    return text[text.index("[profile.") :]


def title(name: str) -> str:
    return page(name).splitlines()[0].removeprefix("# ")


def seen_in(name: str) -> list[str]:
    """Return the hosts that a page names."""
    return re.findall(r"^- \[([a-z0-9-]+)\]\(\.\./\.\./tests/hosts/\1\.host\)$", page(name), re.MULTILINE)


def index() -> str:
    """Return the table of docs/providers/README.md."""
    rows = [
        f"| [{title(name)}]({name}.md) | `{name}` | {_read_ahead(profile)} | {_nconnect(profile)} |\n"
        for name, profile in sorted(PROFILES.items(), key=lambda item: title(item[0]).lower())
    ]
    return "| Servers | Profile | Read-ahead | nconnect |\n|---|---|---|---|\n" + "".join(rows)


def _read_ahead(profile: Profile) -> str:
    wanted = profile.read_ahead
    if wanted is None:
        is_known = any("read_ahead_kb" in source.keys for source in profile.sources)
        return "the kernel's" if is_known else "left alone"
    return f"{wanted.kb} KiB" if wanted.kb is not None else f"{wanted.times_rsize} times rsize"


def _nconnect(profile: Profile) -> str:
    most = "none" if profile.nconnect_max == 1 else f"at most {profile.nconnect_max}"
    parts = (
        str(profile.nconnect) if profile.nconnect else "",
        "depends" if profile.nconnect_depends else "",
        most if profile.nconnect_max not in {None, profile.nconnect} else "",
        f"none with NFS {', '.join(profile.nconnect_not_for)}" if profile.nconnect_not_for else "",
    )
    return "; ".join(filter(None, parts)) or "-"


def test_there_is_a_page_for_each_profile_and_an_index(golden: Callable[[Path, str], None]) -> None:
    golden(PAGES / "README.md", TABLE.sub(lambda _: index(), page("README"), count=1))
    assert {path.stem for path in PAGES.glob("*.md")} == {*PROFILES, "README"}


@EACH
def test_a_page_has_the_parts_of_all_and_its_profiles_numbers(
    name: str, golden: Callable[[Path, str], None]
) -> None:
    golden(PAGES / f"{name}.md", BLOCK.sub(lambda _: shown(name), page(name), count=1))
    lines = page(name).splitlines()
    assert lines[2].startswith("*Recognised by:* ")
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == ["## Numbers", "## What the vendor says", "## Hosts in the tests"]


@EACH
def test_the_hosts_of_a_page_have_a_mount_with_the_profile(name: str, tmp_path: Path) -> None:
    assert seen_in(name)
    for host in seen_in(name):
        facts = hosts.facts_of(hosts.load(host), tmp_path / host)
        assert name in {target.profile.name for target in facts.nfs}, host
