"""The part of a page between two marks, which a script fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


def filled(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """Return the page with these lines between its marks; each mark is a line. Raises ValueError without."""
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise ValueError(f"the page has no {begin.strip()} with {end.strip()} behind it")
    return f"{before}{begin}" + "".join(f"{line}\n" for line in lines) + f"{end}{after}"


@dataclass(frozen=True)
class Part:
    """A part made from one file of a guest, which is kept in tests/data."""

    page: Path
    kept: Path
    begin: str
    end: str
    table: Callable[[str, str], Iterable[str]]
    """Its lines, from the file's text and the kernel's release."""

    def filled(self, old: str, text: str, kernel: str) -> str:
        """Return the page with this part replaced."""
        return filled(old, self.begin, self.end, self.table(text, kernel))

    def make(self, folder: Path, kernel: str) -> list[Path]:
        """Keep the results, and write the page; return both files."""
        text = (folder / self.kept.name).read_text()
        self.kept.write_text(text)
        self.page.write_text(self.filled(self.page.read_text(), text, kernel))
        return [self.kept, self.page]
