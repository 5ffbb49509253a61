from __future__ import annotations

import pytest

from nfstuned.parse.etc.services import preset_enables

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
