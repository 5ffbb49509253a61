"""The list of files that `nfstuned install-files` wrote: a JSON document that it keeps beside them."""

from __future__ import annotations

import json
import re

from nfstuned.errors import ParseError
from nfstuned.model.files import Installed

SCHEMA = "nfstuned.installed/1"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def parse_installed(text: str, file: str) -> Installed:
    """Return what a list says; raises ParseError for a damaged one: it names files that are to be removed."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ParseError(file, 0, f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        digests = {str(path): _digests(values) for path, values in document["files"].items()}
        folders = tuple(str(folder) for folder in document["folders"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ParseError(
            file, 0, f"is damaged ({type(error).__name__}: {error}): remove it, and the files"
        ) from None
    return Installed(digests, folders)


def render_installed(installed: Installed) -> str:
    """Return the text of a list; `parse_installed` reads it back."""
    files = {path: list(digests) for path, digests in sorted(installed.digests.items())}
    document = {"schema": SCHEMA, "files": files, "folders": list(installed.folders)}
    return json.dumps(document, indent=1) + "\n"


def _digests(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not values or not all(_DIGEST.fullmatch(str(one)) for one in values):
        raise ValueError(f"no digests: {values!r}")
    return tuple(map(str, values))
