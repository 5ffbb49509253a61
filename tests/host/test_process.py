from __future__ import annotations

import gc

import pytest

from nfstuned.host.process import collector_paused


def test_the_collector_waits_and_goes_on_whatever_happens() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_paused():
        raise ZeroDivisionError
    assert gc.isenabled()
