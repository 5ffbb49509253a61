from __future__ import annotations

import pytest

from nfstuned.parse.proc.machine import parse_cpu_list, parse_slabinfo

SLABS = """\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> ...
nfs_inode_cache   1048576 1048590   1072   30    8 : tunables    0    0    0 : slabdata  34953  34953      0
nfs_direct_cache       0      0    352   23    2 : tunables    0    0    0 : slabdata      0      0      0
cut off
"""


@pytest.mark.parametrize(
    ("text", "count"), [("0\n", 1), ("0-3,7\n", 5), ("0-15", 16), ("", None), ("x", None), ("0-", None)]
)
def test_processors_are_counted(text: str, count: int | None) -> None:
    assert parse_cpu_list(text) == count


def test_active_objects_are_read_and_other_lines_left_out() -> None:
    assert parse_slabinfo(SLABS) == {"nfs_inode_cache": 1048576, "nfs_direct_cache": 0}
