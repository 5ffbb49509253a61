from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
KERNELS = sorted(path.name for path in DATA.iterdir() if path.is_dir())


class Captured:
    """The files of one real kernel, as they were read there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8", errors="surrogateescape")


@pytest.fixture(params=KERNELS)
def captured(request: pytest.FixtureRequest) -> Captured:
    return Captured(DATA / request.param)


@pytest.fixture
def captured_6_12() -> Captured:
    return Captured(DATA / "6.12")
