"""The list of files that `nfstuned install-files` or `nfstuned bake` wrote: a JSON document."""

from __future__ import annotations

import hashlib
import json
import re

from nfstuned.errors import ParseError
from nfstuned.model.change import Content, Installed, Link

SCHEMA = "nfstuned.installed/1"
_LINK = "-> "
_DIGEST = rf"(?s)[0-9a-f]{{64}}|{_LINK}.+"


def digest(content: Content) -> str:
    """Return a file's fingerprint: the SHA-256 of its bytes; of a link "-> " and its target."""
    return f"{_LINK}{content.target}" if isinstance(content, Link) else hashlib.sha256(content).hexdigest()


def is_file(fingerprint: str | None) -> bool:
    """Return whether a digest belongs to a regular file; None is the digest of no file."""
    return bool(fingerprint) and not str(fingerprint).startswith(_LINK)


def encoded(text: str) -> bytes:
    """Return the bytes of a text that was read; surrogate escapes become the bytes that were not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def parse_installed(text: str, file: str) -> Installed:
    """Return the content of a list; raises ParseError for damage: it names files that are to be removed."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ParseError(file, 0, f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        files, texts = document["files"], document.get("before", {})
        digests = {_checked_text(path): _checked_digests(values) for path, values in files.items()}
        folders = tuple(_checked_text(folder) for folder in document["folders"])
        before = {_checked_text(path): _checked_text(value) for path, value in texts.items()}
    except RecursionError:
        raise ParseError(file, 0, "is damaged (nested too deep): remove it, and the files") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ParseError(
            file, 0, f"is damaged ({type(error).__name__}: {error}): remove it, and the files"
        ) from None
    return Installed(digests, folders, before)


def render_installed(installed: Installed) -> str:
    """Return the text of a list; `parse_installed` reads it back."""
    files = {path: list(digests) for path, digests in sorted(installed.digests.items())}
    document: dict[str, object] = {"schema": SCHEMA, "files": files, "folders": list(installed.folders)}
    if installed.before:
        document["before"] = dict(sorted(installed.before.items()))
    return json.dumps(document, indent=1) + "\n"


def _checked_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    encoded(value)  # JSON can have halves of a character, which no file and no name has
    return value


def _checked_digests(values: object) -> tuple[str, ...]:
    digests = tuple(map(str, values)) if isinstance(values, list) else ()
    if not digests or not all(re.fullmatch(_DIGEST, each) for each in digests):
        raise ValueError(f"no digests: {values!r}")
    return digests
