"""The findings that a site or a project accepts: its [check] tables, and its baseline."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from fnmatch import fnmatch

from nfstuned.core.rules.accepted import configured, known, without_known
from nfstuned.core.rules.catalogue import correction, first_unknown
from nfstuned.host.config import find_files
from nfstuned.host.root import Root, demand_text, read_proposal
from nfstuned.model.check import CheckSettings, Known
from nfstuned.model.facts import Report
from nfstuned.model.policy import ConfigError

PROJECT = ".nfstuned.toml"
_MARK = "check"


class _Settings:
    """The [check] tables of a host, and of the nearest .nfstuned.toml above each file of a check.

    Raises ConfigError with the problems of all of them.
    """

    def __init__(self, root: Root, files: Iterable[str]) -> None:
        texts = ((root.path(name), root.read(name)) for name in find_files(root))
        self._own = [_checked(name, text, project=False) for name, text in texts if _MARK in text]
        self._projects: dict[str, tuple[str, CheckSettings] | None] = {}
        self._of: dict[str, list[CheckSettings]] = {}
        for file in files:
            own = [part for settings in self._own for part in _for(settings, file)]
            project = self._project(os.path.dirname(os.path.abspath(file)))
            below = _for(project[1], os.path.relpath(file, project[0])) if project else []
            self._of[file] = [*own, *below]

    def of(self, place: str) -> list[CheckSettings]:
        """Return the tables for a judged file, or for another subject, the strongest last."""
        tables = self._of.get(place) or self._of.get(place.partition("#")[0])
        return tables or [part for settings in self._own for part in _for(settings, place)]

    def _project(self, folder: str) -> tuple[str, CheckSettings] | None:
        """Return the nearest folder with a .nfstuned.toml, and its settings."""
        if folder not in self._projects:
            name, above = os.path.join(folder, PROJECT), os.path.dirname(folder)
            if os.path.lexists(name):
                self._projects[folder] = folder, _checked(name, _text(name), project=True)
            else:
                self._projects[folder] = None if above == folder else self._project(above)
        return self._projects[folder]


def _text(name: str) -> str:
    """Return the text of a file. Raises ConfigError where it cannot be read."""
    try:
        demand_text(os.stat(name), name)
        return read_proposal(name)
    except OSError as error:
        raise ConfigError((f"{name}: {error.strerror}",)) from None


def _for(settings: CheckSettings, path: str) -> list[CheckSettings]:
    parts = (part for part in settings.parts if any(fnmatch(path, glob) for glob in part.match))
    return [settings, *parts]


def _checked(name: str, text: str, *, project: bool) -> CheckSettings:
    """Return the settings of a file, with words that mean rules. Raises ConfigError."""
    from nfstuned.parse.check_settings import parse_own, parse_project  # noqa: PLC0415 - pydantic is slow to load

    settings = parse_project(name, text) if project else parse_own(name, text)
    words = [word for table in (settings, *settings.parts) for word in (*table.ignore, *table.severity)]
    if word := first_unknown(words):
        raise ConfigError((f"{name}: check: {correction(word)}",))
    return settings


def accept(report: Report, root: Root) -> Report:
    """Return a report without the findings that [check] accepts. Raises ConfigError and OSError.

    An image is not judged by its own files' wishes.
    """
    if report.facts.image:
        return report
    findings = tuple(configured(report.diagnosis.findings, _Settings(root, report.facts.files).of))
    accepted = len(report.diagnosis.findings) - len(findings)
    return replace(report, diagnosis=replace(report.diagnosis, findings=findings, accepted=accepted))


def without_baseline(report: Report, name: str) -> Report:
    """Return a report without the findings of a baseline. Raises ParseError and OSError."""
    from nfstuned.parse.check_settings import parse_baseline  # noqa: PLC0415 - as above

    demand_text(os.stat(name), name)
    rows = parse_baseline(read_proposal(name), name)
    rules = {rule.id for rule in report.rules} - {*report.diagnosis.skipped}
    diagnosis = report.diagnosis
    findings, gone = without_known(
        diagnosis.findings, report.sources, rows, lambda each: _is_judged(each, rules, report.facts.files)
    )
    stale = f"{name}: {gone} of its findings are gone: write the file again with --write-baseline"
    return replace(
        report,
        diagnosis=replace(
            diagnosis,
            findings=findings,
            accepted=diagnosis.accepted + len(diagnosis.findings) - len(findings),
            doubts=(*diagnosis.doubts, *((stale,) if gone else ())),
        ),
    )


def _is_judged(each: Known, rules: Collection[str], files: Collection[str]) -> bool:
    return each.rule in rules and (not files or each.file.partition("#")[0] in files)


def write_baseline(report: Report, name: str) -> None:
    """Write the findings of a report as a baseline. Raises OSError; the old file stays then."""
    from nfstuned.host.files.write import write_file  # noqa: PLC0415 - as above
    from nfstuned.parse.check_settings import baseline_text  # noqa: PLC0415 - as above

    sources = report.sources
    text = baseline_text(known(finding, sources) for finding in report.diagnosis.findings)
    write_file(name, text.encode("utf-8", "surrogateescape"))
