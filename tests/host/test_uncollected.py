from __future__ import annotations

import gc

import pytest

from nfstuned.host.process import uncollected


def test_the_collector_waits_and_goes_on_whatever_happens() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), uncollected():
        raise ZeroDivisionError
    assert gc.isenabled()
