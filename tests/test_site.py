"""`sh dev/site`: documents have their addresses, links lead somewhere, and no page loads from a network."""

from __future__ import annotations

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.tree import put

ROOT = Path(__file__).parents[1]
LINKS = {
    ("a", "href"),
    ("link", "href"),
    ("img", "src"),
    ("script", "src"),
    ("iframe", "src"),
    ("object", "data"),
}
REPOSITORY = "https://example.org/nfstuned"
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "tests/lab/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MANUAL = sorted((ROOT / "docs/man").iterdir())
ODD_LISTS = re.compile(
    r"""^(?![-*+]\ |\d+\.\ |\ |\#|$).+\n(?:[-*+]|1[.)])\ .*  # a list without an empty line before it
    | ^\ {1,3}(?:[-*+]\ |\d+[.)]\ |```).*                   # a list or a block in a list
    | ^\n\ {1,3}\S.*                                       # a paragraph in a list
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Text that code hosts read as a list and its content, and the site does not: it takes four blanks."""


class Page(HTMLParser):
    """The links and the names of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.names.append(value or "")
            elif (tag, name) in LINKS:
                self.links.append(value or "")
                if tag != "a" and ("rel", "canonical") not in attrs:
                    self.loaded.append(value or "")


def faults(site: Path) -> list[str]:
    """Return the links to nowhere, the names that a page has twice, and the addresses that it loads from."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where}: {name} twice" for name in {*page.names} if page.names.count(name) > 1]
        found += [f"{where} loads {link}" for link in page.loaded if urlsplit(link).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            names = pages[target].names if target in pages else []
            if not target.is_file() or (parts.fragment and parts.fragment not in names):
                found.append(f"{where} links to {link}")
    for style in site.rglob("*.css"):
        found += [
            f"{style.name} loads {url}"
            for url in re.findall(r"(?:url\(|@import) *[\"']?(https?:[^)]+)", style.read_text())
        ]
    return sorted(found)


@pytest.mark.slow
@pytest.mark.timeout(300)  # the first build installs its tools
def test_every_page_has_its_address_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command, environment = ["sh", "dev/site", str(tmp_path)], os.environ | {"SITE_REPOSITORY": REPOSITORY}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert faults(tmp_path) == []
    rules = [page.stem for page in DOCUMENTS if page.parent.name == "rules" and page.stem != "README"]
    addresses = [*(f"rules/{rule}" for rule in rules), *(f"man/{page.name}" for page in MANUAL)]
    assert [address for address in addresses if not (tmp_path / address / "index.html").exists()] == []
    assert len(list(tmp_path.rglob("*.html"))) == len(DOCUMENTS) + len(MANUAL)
    home = Page(tmp_path / "index.html").links
    assert {
        f"{REPOSITORY}/blob/main/LICENSE",
        "guide/index.html#other-writers",
        "man/nfstuned.8/index.html",
    } <= {*home}


def test_faults_are_found(tmp_path: Path) -> None:
    put(tmp_path / "a.css", "@import url(https://example.org/a.css)")
    put(tmp_path / "b/index.html", '<p id="b"><p id="b"><script src="//example.org/b.js"></script>')
    put(
        tmp_path / "index.html",
        '<a href="b/index.html#b"><a href="b/index.html#c"><a href="b/"><img src="c.png">',
    )
    assert faults(tmp_path) == [
        "a.css loads https://example.org/a.css",
        "b/index.html loads //example.org/b.js",
        "b/index.html: b twice",
        "index.html links to b/",
        "index.html links to b/index.html#c",
        "index.html links to c.png",
    ]


def test_the_site_reads_lists_as_code_hosts_do() -> None:
    found = []
    for document in DOCUMENTS:
        prose = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
        found += [f"{document.relative_to(ROOT)}: {text[0].strip()}" for text in ODD_LISTS.finditer(prose)]
    assert found == []
