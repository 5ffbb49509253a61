"""Let two names of a folder change their files in one step: renameat2(2), which Python does not have."""

from __future__ import annotations

import ctypes
import errno
import os

_RENAME_EXCHANGE = 2
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL})
"""A kernel without the call, and a file system (NFS is one) that cannot exchange."""


def exchange(place: int, one: str, other: str) -> bool:
    """Exchange two names in the folder `place`; return False where that is not possible. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        call = libc.renameat2
    except AttributeError:  # glibc before 2.28, musl before 1.2.6
        return False
    names = (os.fsencode(one), os.fsencode(other))
    if call(place, names[0], place, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), other)
