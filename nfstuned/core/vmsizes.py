"""What Microsoft publishes of Azure VM sizes: how much they may send, and which share old chipsets."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes"


@dataclass(frozen=True, slots=True)
class Series:
    """The "Max Network Bandwidth" column of one page, read 2026-11-20; it counts what the VM sends."""

    page: str
    pattern: str
    """The name of a size; {} stands for the number of CPUs."""
    mbit_per_s: tuple[tuple[int, int], ...]
    """CPUs, and millions of bits a second."""


@dataclass(frozen=True, slots=True)
class Egress:
    """How much one VM may send, on all of its interfaces together."""

    mbit_per_s: int
    page: str


_V4 = ((2, 5000), (4, 10000), (8, 12500), (16, 12500), (32, 16000), (48, 24000), (64, 30000))
_V5 = ((2, 12500), (4, 12500), (8, 12500), (16, 12500), (32, 16000), (48, 24000), (64, 30000), (96, 35000))
_V5E = (*_V5, (20, 12500))

_SERIES = (
    # The page gives 2000 for 8 and for 16 CPUs, as for 4: that does not fit the sizes above, and is left out.
    Series(
        f"{_SIZES}/general-purpose/dsv3-series",
        "Standard_D{}s_v3",
        ((2, 1000), (4, 2000), (32, 16000), (48, 24000), (64, 30000)),
    ),
    Series(f"{_SIZES}/general-purpose/dv4-series", "Standard_D{}_v4", _V4),
    Series(f"{_SIZES}/general-purpose/dsv5-series", "Standard_D{}s_v5", _V5),
    Series(f"{_SIZES}/general-purpose/ddsv5-series", "Standard_D{}ds_v5", _V5),
    Series(f"{_SIZES}/memory-optimized/esv5-series", "Standard_E{}s_v5", _V5E),
    Series(f"{_SIZES}/memory-optimized/esv5-series", "Standard_E{}is_v5", ((104, 100000),)),
    Series(f"{_SIZES}/memory-optimized/edv5-series", "Standard_E{}d_v5", _V5E),
    Series(f"{_SIZES}/memory-optimized/edv5-series", "Standard_E{}id_v5", ((104, 100000),)),
    Series(f"{_SIZES}/memory-optimized/edsv5-series", "Standard_E{}ds_v5", _V5E),
    Series(f"{_SIZES}/memory-optimized/edsv5-series", "Standard_E{}ids_v5", ((104, 100000),)),
)
_EGRESS = {
    series.pattern.format(cpus).lower(): Egress(mbit_per_s, series.page)
    for series in _SERIES
    for cpus, mbit_per_s in series.mbit_per_s
}
# D16s_v3, D2_v3, E64-16s_v3 (fewer CPUs), E64i_v3 (isolated), L8s_v2; not DC2s_v3, which is another family.
_OLD = re.compile(r"standard_(?:[de]\d+(?:-\d+)?i?s?_v3|l\d+s_v2)", re.IGNORECASE)


def egress(size: str) -> Egress | None:
    """Return how much a VM of this size may send; None where that is not known."""
    return _EGRESS.get(size.lower())


def is_old(size: str) -> bool:
    """Return whether a size is of the families E_v3, D_v3 or Lv2, which run on several chipsets."""
    return _OLD.fullmatch(size) is not None
