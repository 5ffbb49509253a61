from __future__ import annotations

import pytest

from nfstuned.core.mounts.kernels import has_nconnect, read_ahead_is_small
from nfstuned.parse.proc.machine import parse_release


@pytest.mark.parametrize(
    ("release", "small", "several"),
    [
        ("6.12.107+deb13-cloud-amd64", True, True),
        ("5.4.0-1103-azure", True, True),
        ("5.4.17-2136.el8uek.x86_64", True, True),
        ("5.3.18-57-default", False, True),
        ("4.18.0-553.el8_10.x86_64", True, True),
        ("4.18.0-240.el8.x86_64", True, True),
        ("4.18.0-240.1.1.el8_3.x86_64", True, True),
        ("4.18.0-193.28.1.el8_2.x86_64", False, False),
        ("4.19.0-27-amd64", False, False),
        ("3.10.0-1160.el7.x86_64", False, False),
        ("4.15.0-213-generic", None, None),
        ("5.3.0-1041-azure", None, True),
        ("4.12.14-197.45-default", None, None),
    ],
)
def test_what_a_kernel_does_is_told_by_its_release_where_that_tells(
    release: str,
    small: bool | None,  # noqa: FBT001 - a column of the table
    several: bool | None,  # noqa: FBT001 - as above
) -> None:
    kernel = parse_release(release)
    assert read_ahead_is_small(kernel) is small
    assert has_nconnect(kernel) is several
