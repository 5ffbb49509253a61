"""Pages of HTML as a browser takes them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

LINKS = "https://learn.microsoft.com/"


def element(text: str) -> ET.Element:
    """Parse an element that nfstuned wrote."""
    return ET.fromstring(text)  # noqa: S314 - our own text


def parsed(page: str) -> ET.Element:
    return element(page.partition("\n")[2])


def shown(page: str) -> str:
    """Return the words of a page, as a browser shows them."""
    return re.sub(r"\s+", " ", " ".join(parsed(page.replace("<wbr/>", "")).itertext()))


def tags(root: ET.Element, name: str) -> Iterator[ET.Element]:
    return (inner for inner in root.iter() if inner.tag.rpartition("}")[2] == name)


def loads_nothing(page: str, *links: str) -> bool:
    """Return whether a page runs and loads nothing, and links to the vendor or to the given places alone."""
    for inner in parsed(page).iter():
        tag = inner.tag.rpartition("}")[2]
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "use", "image"}
        assert not {"src", "srcset", "onclick", "style", "background"} & inner.attrib.keys()
        assert inner.attrib.get("href", LINKS).startswith((LINKS, *links))
    return not re.search(r"url\(|@import|javascript:", page)
