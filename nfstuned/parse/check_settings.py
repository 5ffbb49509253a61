"""The [check] table of .nfstuned.toml and of nfstuned.toml, and the file of a baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from nfstuned.errors import ParseError
from nfstuned.model.check import CheckSettings, Known
from nfstuned.model.facts import Severity
from nfstuned.parse.config import CheckFile, CheckTable, ConfigFile, PathTable
from nfstuned.parse.policy import parse_check

BASELINE = "nfstuned.baseline/1"


def parse_project(name: str, text: str) -> CheckSettings:
    """Return the settings of a .nfstuned.toml. Raises ConfigError with every problem."""
    return settings_of(parse_check(name, text, CheckFile))


def parse_own(name: str, text: str) -> CheckSettings:
    """Return the settings of an nfstuned.toml, or of one of its drop-ins. Raises ConfigError."""
    return settings_of(parse_check(name, text, ConfigFile))


def settings_of(table: CheckTable | PathTable) -> CheckSettings:
    """Return a table as settings."""
    severities = {word: Severity(level) for word, level in table.severity.items()}
    if isinstance(table, PathTable):
        return CheckSettings(tuple(table.ignore), severities, match=table.match)
    return CheckSettings(tuple(table.ignore), severities, parts=tuple(map(settings_of, table.path)))


def parse_baseline(text: str, file: str) -> Mapping[Known, int]:
    """Return the findings of a baseline, and how often each was found. Raises ParseError."""
    try:
        document = json.loads(text)
        _demand_schema(document.get("schema") if isinstance(document, dict) else None)
        return {
            Known(*(str(row[key]) for key in Known._fields)): _count(row["count"])
            for row in document["findings"]
        }
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        why = f"no key {error}" if isinstance(error, KeyError) else str(error)
        raise ParseError(file, 0, f"not a baseline of nfstuned: {why}; --write-baseline writes one") from None


def _demand_schema(schema: object) -> None:
    if schema != BASELINE:
        raise ValueError(f"its schema is not {BASELINE}")


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"a count is not a number of at least 1: {value!r}")
    return value


def baseline_text(findings: Iterable[Known]) -> str:
    """Return the text of a baseline, in a stable order; `parse_baseline` reads it back."""
    rows = [{**known._asdict(), "count": count} for known, count in sorted(Counter(findings).items())]
    return json.dumps({"schema": BASELINE, "findings": rows}, indent=2, ensure_ascii=False) + "\n"
