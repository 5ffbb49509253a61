"""The files in which people ask for mounts: their kinds by content, and the requests of many files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request, Unexpanded
from nfstuned.model.udev import UdevFile
from nfstuned.parse.deploy.ansible import PlayFile, ansible_requests, is_ansible, is_variables_path
from nfstuned.parse.deploy.deployment import RELEVANT, Deployment, Found, JudgedFile, Kind, add_fstab, placed
from nfstuned.parse.deploy.docker import compose_requests, is_compose
from nfstuned.parse.deploy.hostfiles import (
    automount_requests,
    is_drop_in,
    machine_of,
    unit_requests,
    written_requests,
)
from nfstuned.parse.deploy.kubernetes import is_manifest, kubernetes_requests
from nfstuned.parse.deploy.mime import is_multipart, parse_parts
from nfstuned.parse.deploy.script import MOUNT, SERVICE, UNITS
from nfstuned.parse.deploy.terraform import is_plan, plan_requests
from nfstuned.parse.deploy.written import script_requests
from nfstuned.parse.etc.cloud import DEFAULTS, CloudConfig, cloud_lines, cloud_requests, parse_cloud
from nfstuned.parse.etc.requests import local_lines, parse_fstab
from nfstuned.parse.etc.settings import parse_nfsmount
from nfstuned.parse.ignores import parse_ignores
from nfstuned.parse.yaml import Node, parse_documents

_RELEVANT_NAME = re.compile(r"auto[._].+|.+\.(?:autofs|mount|automount)")
_PLAY = re.compile(r"(?m)^(?:- |  )hosts:")
_CLOUD = re.compile(r"(?:## template: jinja[ \t]*\n)?#cloud-config\b")
_SHELL_TYPES = ("text/x-shellscript", "text/cloud-boothook")
_SCRIPT = re.compile(r"#![ \t]*/\S{0,200}/(?:env[ \t]+)?(?:ba|da|z|k)?sh\b")
_SCRIPT_NAME = re.compile(r".*\.(?:sh|bash|bats)", re.DOTALL)
_OPEN = frozenset(
    ["", ".tpl", ".tmpl", ".tftpl", ".j2", ".txt", ".example", ".sample", ".dist", ".new", ".orig", ".conf"]
)
"""Suffixes that say nothing of a file's kind."""
_YAML_NAME = re.compile(
    r".*\.ya?ml(?:\.(?:tpl|tmpl|j2|example|sample|dist))?|(?:docker-)?compose\S*", re.DOTALL
)
_JSON_NAME = re.compile(r".*\.json(?:\.\w+)?", re.DOTALL)
_OBJECT = re.compile(
    r"(?m)^[ \t]*\"?(?:apiVersion|services|volumes|provisioner|planned_values|storageDriverName)\"?[ \t]*:"
    r"|^- (?:hosts|name):|\A\s{0,100}\{[^{}]{0,200}\"format_version\""
)
"""Keys that show the documents of a file whatever its name."""
_RENDERED = frozenset({".j2", ".tpl", ".tmpl", ".tftpl", ".gotmpl"})
_TEMPLATE = re.compile(r"\{\{-? |\{%|<%")
_TEMPLATE_MAP = re.compile(rf"(?m)^[^#\n]*(?:{_TEMPLATE.pattern})")
"""Its statements, and expressions with blanks, are no entries."""
_OTHER_API = ("openapi", "swagger")
_UNIT_TEMPLATES = frozenset({*_RENDERED, ".in"})
_NFS_UNIT = re.compile(r"(?m)^(?:Type=.*(?:nfs|cifs|smb|efs)|What=\S*(?:[^/]:/|//))")
_UNIT = re.compile(r"(?m)^\[(?:Mount|Automount|Service)\]")
_CONF_NAME = re.compile(r"nfs(?:mount)?(?:\.conf)?.*\.conf")
_CONF = re.compile(r"(?im)^[ \t]*\[[ \t]*(?:nfsmount_global_options|(?:mountpoint|server)[ \t]+\")")
_ABOUT_READ_AHEAD = re.compile(r"read_ahead_kb|\bbdi\b")
_PARAMETERS = re.compile(r"(?m)^[ \t]*(?:options[ \t]+(?:nfs\w*|sunrpc)[ \t]|(?:sunrpc|fs\.nfs)\.\S+[ \t]*=)")
_MAP_NAME = re.compile(r"auto[._].+|.+\.autofs", re.DOTALL)
_MAP_LINE = re.compile(r"\S+[ \t]+(?:-\S+[ \t]+)?[^\s:]+:/(?!/)\S*[ \t]*")
_FSTAB_NAME = re.compile(r"(?:.*[._-])?fstab(?:[._-].*)?", re.DOTALL)
_FSTAB_LINE = re.compile(r"[ \t]*\S+[ \t]+(?:/\S*|none|swap)[ \t]+\S+(?:[ \t]|\r?$)")
_TERRAFORM = re.compile(r".*\.(?:tf|hcl)", re.DOTALL)
_RENDER = "a template: render it first"
_OF_TERRAFORM = "Terraform's source: give the plan (terraform show -json)"


def read_sources(sources: Iterable[JudgedFile]) -> Deployment:
    """Return the requests of files; a file of no known kind is not among the kinds."""
    reader = _Reader()
    for source in sources:
        reader.add(source)
    return reader.finish()


class _Reader:
    """The files so far. Units, maps, plays and variables are read when all of them are known."""

    def __init__(self) -> None:
        self._deployment = Deployment()
        self._units: dict[str, str] = {}
        self._maps: dict[str, str] = {}
        self._plays: list[PlayFile] = []
        self._variables: list[JudgedFile] = []

    def add(self, source: JudgedFile) -> None:
        """Read a file, or keep it until all files are known."""
        name = posixpath.basename(source.name)
        stem, suffix = posixpath.splitext(name)
        drop_in = is_drop_in(source.name)
        if not (source.named or drop_in or RELEVANT.search(source.text) or _RELEVANT_NAME.fullmatch(name)):
            # A play of roles has variables for them.
            if is_variables_path(source.name) or _PLAY.search(source.text):
                self._variables.append(source)
        elif drop_in or (name.endswith(UNITS) and _UNIT.search(source.text)):
            self._units[source.name] = source.text
            self._recognise(source, Kind.UNIT)
        elif stem.endswith(MOUNT) and suffix in _UNIT_TEMPLATES and _NFS_UNIT.search(source.text):
            self._unread(source, _RENDER, 0)
        elif not _is_user_data(source.text) and _has_documents(source):
            self._add_documents(source)
        else:
            self._add_text(source)

    def finish(self) -> Deployment:
        """Return the requests of all files."""
        for file, row in unit_requests(self._units):
            self._deployment.add([row], machine_of(file))
        for file, row in automount_requests(self._maps):
            self._deployment.add([row], machine_of(file))
        if self._plays:
            for source in self._variables:
                self._add_documents(source)
            self._deployment.add(ansible_requests(self._plays))
        self._deployment.part_alternatives()
        return self._deployment

    def _recognise(self, source: JudgedFile, kind: Kind) -> None:
        self._deployment.kinds[source.name] = kind
        self._deployment.ignores += parse_ignores(source.text, source.name)

    def _unread(self, source: JudgedFile, text: str, line: int) -> None:
        """Name a file that was recognised and not read; an error where the user named it."""
        self._recognise(source, Kind.UNREAD)
        if source.named:
            self._deployment.add([ParseError(source.name, line, f"was not read: {text}")])
        else:
            self._deployment.unexpanded.append(Unexpanded(text, source.name, line))

    def _add_documents(self, source: JudgedFile) -> None:
        """Add a file of YAML or JSON; a template that is no YAML before it is rendered is named."""
        if posixpath.splitext(source.name)[1] in _RENDERED and _TEMPLATE.search(source.text):
            self._unread(source, _RENDER, 0)
            return
        try:
            documents = parse_documents(source.text, source.name)
            kind = _kind_of_documents(documents, source.name)
        except ParseError as error:
            if _TEMPLATE.search(source.text):
                self._unread(source, _RENDER, error.line)
            elif source.named or _YAML_NAME.fullmatch(source.name) or _OBJECT.search(source.text):
                self._deployment.add([error])
            return
        if kind is not None:
            self._recognise(source, kind)
        elif source.named:
            self._recognise(source, Kind.OTHER)
        if kind is Kind.ANSIBLE:
            self._plays.append(PlayFile(source.name, documents))
            return
        group = "" if kind is Kind.KUBERNETES else source.name
        try:
            for document in documents if kind is not None else ():
                self._deployment.add(_document_requests(kind, document, source.name), group)
        except ParseError as error:
            self._deployment.add([error])

    def _add_text(self, source: JudgedFile) -> None:
        """Add a file that is no YAML."""
        name, text = source.name, source.text
        kind = _kind_of_text(source)
        if kind is None:
            return
        if kind is Kind.UNREAD:
            self._unread(source, _OF_TERRAFORM, 0)
            return
        if kind is Kind.MAP and _TEMPLATE_MAP.search(text):
            self._unread(source, _RENDER, 0)
            return
        self._recognise(source, kind)
        if kind is Kind.CLOUD:
            _add_user_data(self._deployment, source)
        elif kind is Kind.SCRIPT:
            self._deployment.add(script_requests(text, name), name)
        elif kind is Kind.MAP:
            self._maps[name] = text
        elif kind is Kind.CONF:
            self._deployment.add(item for item in parse_nfsmount(text, name) if isinstance(item, ParseError))
        elif kind is Kind.UDEV:
            self._deployment.udev.append(UdevFile(name, text))
        elif kind is Kind.FSTAB:
            add_fstab(self._deployment, source, machine_of(name))


def _has_documents(source: JudgedFile) -> bool:
    """Whether a file has documents of YAML or JSON, by its name or by their keys."""
    name = posixpath.basename(source.name)
    if _YAML_NAME.fullmatch(name) or _JSON_NAME.fullmatch(name):
        return True
    return posixpath.splitext(name)[1] in _OPEN and _OBJECT.search(source.text) is not None


def _kind_of_documents(documents: Sequence[Node], name: str) -> Kind | None:
    """Return the kind of a file of YAML or JSON. Raises ParseError."""
    for document in documents:
        if is_plan(document):
            return Kind.PLAN
        if is_manifest(document):
            return Kind.KUBERNETES
        if is_compose(document):
            return Kind.COMPOSE
    if is_variables_path(name) or is_ansible(tuple(documents)):
        return Kind.ANSIBLE
    values = (document for document in documents if not any(key in document.pairs for key in _OTHER_API))
    found = (found for document in values for found in kubernetes_requests(document, name))
    return Kind.VALUES if next(found, None) is not None else None


def _document_requests(kind: Kind | None, document: Node, name: str) -> Iterator[Found]:
    if kind is Kind.PLAN:
        return plan_requests(document, name, embedded_requests)
    if kind is Kind.COMPOSE:
        return compose_requests(document, name)
    return kubernetes_requests(document, name)


def embedded_requests(text: str, file: str) -> Iterator[Found]:
    """Yield the requests of a text within another: user data, a script, or a chart's values."""
    deployment = Deployment()
    if _is_user_data(text):
        _add_user_data(deployment, JudgedFile(file, text))
    elif _OBJECT.search(text) or re.match(r"[\w-]+:[ \t]*\n", text):
        try:
            for document in parse_documents(text, file):
                deployment.add(kubernetes_requests(document, file))
        except ParseError as error:
            deployment.unexpanded.append(Unexpanded("a text that is no YAML", file, error.line))
    else:
        deployment.add(script_requests(text, file))
    yield from _rows(deployment)


def _of_parts(text: str, file: str) -> Iterator[Found]:
    """Yield the requests of user data of several parts."""
    for part in parse_parts(text):
        deployment = Deployment()
        if part.type == "text/cloud-config" or _CLOUD.match(part.text):
            _add_cloud(deployment, JudgedFile(file, part.text))
        elif part.type.startswith(_SHELL_TYPES) or _SCRIPT.match(part.text):
            deployment.add(script_requests(part.text, file), file)
        yield from (placed(row, part.line, is_block=part.is_block) for row in _rows(deployment))


def _rows(deployment: Deployment) -> Iterator[Found]:
    yield from deployment.intent.requests
    yield from deployment.intent.misnamed
    yield from deployment.intent.problems
    yield from deployment.unexpanded


def _is_user_data(text: str) -> bool:
    return _CLOUD.match(text) is not None or is_multipart(text)


def _add_user_data(deployment: Deployment, source: JudgedFile) -> None:
    if is_multipart(source.text):
        deployment.add(_of_parts(source.text, source.name), source.name)
    else:
        _add_cloud(deployment, source)


def _kind_of_text(source: JudgedFile) -> Kind | None:
    name, text = posixpath.basename(source.name), source.text
    is_open = posixpath.splitext(name)[1] in _OPEN
    tests = {
        Kind.CLOUD: _is_user_data(text),
        Kind.SCRIPT: _SCRIPT.match(text) or _SCRIPT_NAME.fullmatch(name),
        Kind.CONF: _CONF_NAME.fullmatch(name) or (is_open and _CONF.search(text)),
        Kind.UNREAD: _TERRAFORM.fullmatch(name),
        Kind.UDEV: name.endswith(".rules") and _ABOUT_READ_AHEAD.search(text),
        Kind.PARAMETERS: is_open and _PARAMETERS.search(text),
        Kind.FSTAB: _is_fstab(source, is_open=is_open),
        Kind.MAP: _is_map(source, is_open=is_open),
    }
    return next((kind for kind, test in tests.items() if test), None)


def _is_fstab(source: JudgedFile, *, is_open: bool) -> bool:
    """Whether a file is an fstab by its name, or has nothing but lines of an fstab."""
    name = posixpath.basename(source.name)
    if _FSTAB_NAME.fullmatch(name) and (is_open or name.endswith(".fstab") or source.named):
        return True
    lines = [line for line in source.text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    if not is_open or not all(map(_FSTAB_LINE.match, lines)):
        return False
    rows = parse_fstab(source.text, source.name)
    return bool(rows) and all(isinstance(row, Request) for row in rows)


def _is_map(source: JudgedFile, *, is_open: bool) -> bool:
    """Whether a file is a map of the automounter by its name, or has nothing but entries of a map."""
    name = posixpath.basename(source.name)
    if source.text.startswith("#!"):  # automount(8) runs it
        return False
    if _MAP_NAME.fullmatch(name):
        return posixpath.splitext(name)[1] not in {".py", ".go", ".c", ".md", ".html", ".js"}
    lines = [line for line in source.text.split("\n") if line.strip() and not line.startswith("#")]
    return is_open and bool(lines) and all(map(_MAP_LINE.fullmatch, lines))


def _add_cloud(deployment: Deployment, source: JudgedFile) -> None:
    """Add the mounts, the commands and the files of cloud-init's configuration."""
    name, text = source.name, source.text
    try:
        config = parse_cloud(text, name)
    except ParseError as error:
        deployment.add([error])
        return
    _add_entries(deployment, config, name)
    for command in config.commands:
        rows = script_requests(command.text, name)
        deployment.add((placed(row, command.line, is_block=command.is_block) for row in rows), name)
    for content, line, is_block, path in config.files:
        found: Iterable[Found] = ()
        if path.endswith(UNITS) and not path.endswith(SERVICE):
            found = written_requests({path: content}, name)
        elif path.endswith("/etc/fstab"):
            found = parse_fstab(content, name)
        elif _SCRIPT.match(content):
            found = script_requests(content, name)
        deployment.add((placed(row, line, is_block=is_block) for row in found), name)
    deployment.unexpanded += [Unexpanded("a file in another encoding", name, line) for line in config.encoded]


def _add_entries(deployment: Deployment, config: CloudConfig, name: str) -> None:
    mounts, defaults = config.mounts or (), config.defaults or DEFAULTS
    requests = [*cloud_requests(mounts, defaults, name)]
    deployment.add(requests, name)
    own = [request for request in requests if isinstance(request, Request)]
    for row in cloud_lines(mounts, defaults):
        if not isinstance(row, ParseError):
            entry, text = row
            for local in local_lines(text, own, name):
                deployment.add([local._replace(request=local.request._replace(line=entry.line))])
