"""mkdocs' hooks: the pages of the site are the repository's documents, and its manual as mandoc renders it.

`docs/rules/NFS101.md` has the address `rules/NFS101/`, and `docs/man/nfstuned.8` has `man/nfstuned.8/`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PLACES = {"README.md": "README.md", "CHANGELOG.md": "changelog.md", "tests/lab/README.md": "lab/README.md"}
"""The documents outside of docs/, and their places among those of docs/."""
ASSETS = ("site.css", "iframe-worker.js")

_CODE = r"^```.*?^```$|`[^`\n]+`"
_LINK = re.compile(
    rf"{_CODE}|\[(?P<text>[^]]*)\]\((?P<path>[^)#:]+)(?P<heading>#[^)]*)?\)", re.DOTALL | re.MULTILINE
)
_CLOSED = r"<(?P<tag>a|code|h\d|pre)\b.*?</(?P=tag)>"
_REFERENCE = re.compile(
    rf"{_CLOSED}|(?:<b>)?(?P<page>nfstuned[\w.-]*)(?:</b>)?\((?P<section>\d)\)|<[^>]*>|\b(?P<rule>(?:NFS|SMB)\d{{3}})\b",
    re.DOTALL,
)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Name each document by its path in the repository, and give it its address."""
    walked = [file for file in files if file.src_dir == config.docs_dir]
    for file in walked:
        files.remove(file)
        if file.inclusion.is_included():
            files.append(_file(f"docs/{file.src_uri}", file.src_uri, config))
    for name, place in {**PLACES, **{f"dev/pages/{name}": name for name in ASSETS}}.items():
        files.append(_file(name, place, config))
    for source in sorted((ROOT / "docs/man").iterdir()):
        page = File.generated(config, f"docs/man/{source.name}.md", content=manual(source))
        page.dest_uri = f"man/{source.name}/index.html"
        files.append(page)
    if not config.site_url:
        # 404.html and sitemap.xml need it.
        config.theme.static_templates.clear()
    names = [file.src_uri for file in files.documentation_pages()]
    config.nav = list(_filled(config.nav, _assigned(str(config.nav), names)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Change the links to folders, to the manual, and to files that are not on the site."""
    folder = PurePosixPath(page.file.src_uri).parent
    if page.file.src_uri == "CHANGELOG.md":
        # It has every word, and is the answer to few searches.
        page.meta["search"] = {"boost": 0.1}

    def changed(link: re.Match[str]) -> str:
        path = normpath(folder / (link["path"] or ""))
        if link["path"] is None or path in files.src_uris or not (ROOT / path).exists():
            return link[0]
        for name in (f"{path}.md", f"{path}/README.md"):
            if name in files.src_uris:
                return f"[{link['text']}]({relpath(name, folder)}{link['heading'] or ''})"
        host = config.extra["repository"]
        return f"[{link['text']}]({host}/blob/main/{path})" if host else link["text"]

    return _LINK.sub(changed, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Make links of the names of rules and of pages of the manual."""

    def linked(name: re.Match[str]) -> str:
        manual_page = f"docs/man/{name['page']}.{name['section']}.md"
        target = files.src_uris.get(f"docs/rules/{name['rule']}.md" if name["rule"] else manual_page)
        if target is None or target is page.file:
            return name[0]
        return f'<a href="{target.url_relative_to(page.file)}">{name[0]}</a>'

    return _REFERENCE.sub(linked, html)


def manual(source: Path) -> str:
    """Return a page of the manual as Markdown: its headings, and below them HTML by mandoc."""
    command = ["mandoc", "-T", "html", "-O", "fragment", str(source)]
    html = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    body = html.partition('<div class="manual-text">')[2].rpartition("</div>")[0]
    body = re.sub(r"</?section[^>]*>", "", body)
    # A heading and a term are links to themselves.
    body = re.sub(r'<a class="permalink"[^>]*>(.*?)</a>', r"\1", body, flags=re.DOTALL)
    # The space around an example, which the style has.
    body = re.sub(r'<p class="Pp">\s*<br/>\s*</p>|(?<=</pre>)\s*<br/>', "", body)
    body = re.sub(r'<h(\d) class="S[hs]" id="([^"]+)">(.*?)</h\1>', _heading, body, flags=re.DOTALL)
    name, _, section = source.name.rpartition(".")
    return f"# {name}({section})\n\n{body}"


def _heading(found: re.Match[str]) -> str:
    # Between two _ the name would be emphasised.
    name = found[2].replace("_", "-")
    return f"\n#{'#' * int(found[1])} {' '.join(found[3].split())} {{: #{name} }}\n"


def _file(path: str, place: str, config: MkDocsConfig) -> File:
    """Return a file of the repository at the address that belongs to its place."""
    address = PurePosixPath(place)
    if address.name == "README.md":
        address = address.with_name("index.html")
    elif address.suffix == ".md":
        address = address.with_suffix("") / "index.html"
    return File(path, str(ROOT), config.site_dir, config.use_directory_urls, dest_uri=str(address))


def _assigned(nav: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the pages of each line of the navigation: a page belongs to the longest line that fits it."""
    lines = re.findall(r"[\w./*-]+\.md", nav)
    pages: dict[str, list[str]] = {line: [] for line in lines}
    for name in sorted(names):
        if fitting := [line for line in lines if fnmatchcase(name, line)]:
            pages[max(fitting, key=len)].append(name)
    return pages


def _filled(entries: Iterable[object], pages: dict[str, list[str]]) -> Iterator[object]:
    """Yield the entries of the navigation, with their pages in place of patterns."""
    for entry in entries:
        if isinstance(entry, dict):
            for title, below in entry.items():
                yield {title: list(_filled(below, pages)) if isinstance(below, list) else below}
        elif "*" in str(entry):
            yield from _grouped(PurePosixPath(str(entry)).parent, pages[str(entry)])
        else:
            yield entry


def _grouped(folder: PurePosixPath, pages: list[str]) -> Iterator[object]:
    """Yield pages below the headings under which the README.md of their folder links to them."""
    index = ROOT / folder / "README.md"
    sections = re.split(r"^## ", index.read_text() if index.exists() else "", flags=re.MULTILINE)
    left = dict.fromkeys(pages)
    for number, section in enumerate(sections):
        title, _, body = section.partition("\n")
        names = [f"{folder}/{name}" for name in re.findall(r"\]\(([\w.-]+\.md)\)", body)]
        listed = [name for name in dict.fromkeys(names) if name in left]
        for name in listed:
            del left[name]
        if number == 0:
            yield from listed
        elif listed:
            yield {title.replace("`", ""): listed}
    yield from left
