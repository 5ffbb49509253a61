from __future__ import annotations

import pytest

from nfstuned.model.mounts import UnitState
from nfstuned.parse.etc.services import parse_units, preset_enables

TEXT = """\
LazyUnmount=no
ForceUnmount=no
Id=srv-vol1.mount
BoundBy=
LoadState=loaded
FragmentPath=/run/systemd/generator/srv-vol1.mount
NeedDaemonReload=yes

Id=mnt-a\\x20b.mount
BoundBy=db.service web.service
LoadState=loaded
FragmentPath=
NeedDaemonReload=no
LazyUnmount=yes
ForceUnmount=yes
"""


def test_each_unit_has_its_block() -> None:
    assert parse_units(TEXT) == {
        "srv-vol1.mount": UnitState(
            loaded=True, fragment="/run/systemd/generator/srv-vol1.mount", stale=True
        ),
        "mnt-a\\x20b.mount": UnitState(
            loaded=True, lazy=True, force=True, bound_by=("db.service", "web.service")
        ),
    }


def test_nothing_is_known_of_what_is_not_said() -> None:
    assert parse_units("") == {}
    assert parse_units("Id=x.mount\n") == {"x.mount": UnitState()}


def test_what_a_unit_would_do_beside_is_said() -> None:
    states = parse_units(TEXT)
    assert states["srv-vol1.mount"].objection == ""
    assert "LazyUnmount=yes" in states["mnt-a\\x20b.mount"].objection


def test_a_condition_counts_once_it_was_judged() -> None:
    text = "Id=a.mount\nLoadState=loaded\nConditionResult=no\nConditionTimestampMonotonic={}\n"
    assert parse_units(text.format(0))["a.mount"].condition
    assert not parse_units(text.format(4711))["a.mount"].condition
    assert not parse_units(text.format(0))["a.mount"].job
    assert parse_units(text.format(0) + "Job=12 /org/freedesktop/systemd1/job/12\n")["a.mount"].job


UNIT = "nfstuned.service"


@pytest.mark.parametrize(
    ("texts", "enabled"),
    [
        ((), True),
        (("enable sshd.service\n",), True),
        (("disable *\n",), False),
        (("enable nfs*.service\n", "disable *\n"), True),
        (("disable nfstuned.service\n", "enable *\n"), False),
        (("ignore nfstuned.service\n", "enable *\n"), False),
        (("# disable *\n; disable *\n\n  enable nfstuned.service\ndisable *\n",), True),
        (("disable\nmask *\ndisable other.service\n",), True),
    ],
)
def test_the_first_line_that_fits_decides_and_no_line_enables(texts: tuple[str, ...], enabled: bool) -> None:  # noqa: FBT001
    assert preset_enables(texts, UNIT) is enabled
