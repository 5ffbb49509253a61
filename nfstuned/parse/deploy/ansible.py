"""Ansible's playbooks, roles, task files and variables: the mounts for which their tasks ask.

The tasks call ansible.posix.mount, community.docker.docker_volume, a module that writes a line of /etc/fstab
or one that runs a command. They are read in the order in which Ansible runs them, with the variables that
have literals in the files (playbook_guide/playbooks_variables, "Understanding variable precedence"). Nothing
is rendered: `{{ name }}` with or without `default` is read, any other expression stays as it is written.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Maker, Request, Unexpanded
from nfstuned.parse.deploy.deployment import Found, placed
from nfstuned.parse.deploy.docker import docker_request
from nfstuned.parse.deploy.hostfiles import written_requests
from nfstuned.parse.deploy.kubernetes import kubernetes_requests
from nfstuned.parse.deploy.script import UNITS
from nfstuned.parse.deploy.written import script_requests
from nfstuned.parse.etc.requests import TYPES, mounted_type, parse_fstab
from nfstuned.parse.fields import shell_line
from nfstuned.parse.yaml import ABSENT, Node

MOST_STEPS = 50_000
"""Tasks of a run, with those of loops and of files that are included again."""
_TOO_MANY = f"this and all later tasks were not read: more than {MOST_STEPS} with those of loops"
MOST_NESTED = 20
"""Blocks, roles and task files within each other."""
MOST_ITEMS = 200
"""Of a loop."""
MOST_DEPTH = 10
"""Variables that name each other in turn."""
MOST_TEXT = 4096
"""Characters of a text with its expressions expanded."""
MOST_EXPRESSIONS = 200_000
"""Of a run: they take a few seconds."""
_READ_SO_FAR = "read"
_MOST_LOOKUPS = 200
"""Expressions that are read for one value."""

_MOUNTS = frozenset({"mount", "ansible.posix.mount"})
_VOLUMES = frozenset({"docker_volume", "community.docker.docker_volume"})
_COMMANDS = frozenset({"command", "raw", "shell"})
_WRITERS = frozenset({"blockinfile", "copy", "lineinfile"})
_TASK_FILES = frozenset({"import_tasks", "include", "include_tasks"})
_ROLES = frozenset({"import_role", "include_role"})
_OBJECTS = frozenset({"k8s", "kubernetes.core.k8s"})
_READ = _MOUNTS | _VOLUMES | _OBJECTS | _COMMANDS | _WRITERS | _TASK_FILES | _ROLES
TASK_MODULES = _READ | {
    *("apt", "assert", "cron", "debug", "dnf", "fail", "file", "firewalld", "get_url", "git", "group"),
    *("include_vars", "meta", "package", "pip", "reboot", "replace", "seboolean", "service", "set_fact"),
    *("stat", "sysctl", "systemd", "template", "unarchive", "uri", "user", "wait_for", "yum"),
}
"""Modules that show a list of tasks, without `ansible.builtin.`."""
_KEYWORDS = {
    *("become", "changed_when", "delegate_to", "failed_when", "ignore_errors", "loop_control", "notify"),
    *("register", "run_once", "when", "with_items"),
}
_PLAY = frozenset({"hosts", "import_playbook"})
_LOOPS = ("loop", "with_items")
_BLOCKS = ("block", "rescue", "always")
_BUILTIN = re.compile(r"\Aansible\.(?:builtin|legacy)\.")
_OF_COLLECTION = r"[a-z]\w*\.[a-z]\w*\.[a-z]\w*"
_FOLDERS = frozenset({"vars", "defaults", "group_vars", "host_vars"})
_IN_INVENTORY = re.compile(r"(?:(.*)/)?(?:group|host)_vars/.+", re.DOTALL)
_FOR_ALL = re.compile(r"(?:^|/)group_vars/all(?:/|\.[^/]*$|$)")
MOST_HOSTS = 100
"""Files of variables for a group or a host, of an inventory: the tasks are read with each."""
_IN_ROLE = re.compile(r"(?:(?P<role>.*)/)?(?P<kind>tasks|handlers|vars|defaults)/(?P<name>.+)", re.DOTALL)

_EXPRESSION = re.compile(r"\{\{[-+]?([^{}]*?)[-+]?\}\}")
_MARK = re.compile(r"\{[{%#]|[}%#]\}")
_STRING = r"'[^']*'|\"[^\"]*\""
_OPERAND = rf"(?:{_STRING}|[0-9]+|[A-Za-z_]\w*(?:\.\w+|\[(?:{_STRING})\])*)"
_NAMED = re.compile(rf"\s*({_OPERAND})((?:\s*\|\s*(?:d|default)\(\s*{_OPERAND}\s*\))*)\s*")
_ARGUMENT = re.compile(rf"\(\s*({_OPERAND})\s*\)")
_WORD = re.compile(rf"(?<!\S)(\w+)=((?:\{{\{{[^{{}}]*\}}\}}|{_STRING}|[^\s\"'])*)")
_QUOTES = "\"'"
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})
_MAKERS = {"mounted": Maker.TASK, "present": Maker.TASK, "ephemeral": Maker.COMMAND}
"""By the states of the mount module that mount something or write a line of fstab."""


class PlayFile(NamedTuple):
    """A file of a run: a playbook, tasks, or variables."""

    file: str
    documents: tuple[Node, ...]


def is_ansible(documents: tuple[Node, ...]) -> bool:
    """Return whether a document is a list of plays, or of tasks; a file of variables shows it by its path."""
    lists = (document.items for document in documents)
    return any(all(item.pairs for item in items) and any(map(_is_step, items)) for items in lists)


def is_variables_path(file: str) -> bool:
    """Return whether Ansible reads variables from files in this folder."""
    return not _FOLDERS.isdisjoint(file.split("/")[:-1])


def ansible_requests(files: Sequence[PlayFile]) -> Iterator[Found]:
    """Yield the requests of all files of a run, each where the text of its options stands.

    Roles and task files that no play names are read, too. A request with an option that is an expression, or
    with one in its type, is Unexpanded: nothing is known about the options that are missing there.
    """
    seen = set[object]()
    for row in _Run(files).rows():
        place = (row.file, row.line, row.source, row.point, row.options) if isinstance(row, Request) else None
        if (place or str(row)) not in seen:
            seen.add(place or str(row))
            yield row


def _is_step(node: Node) -> bool:
    keys = {_BUILTIN.sub("", key) for key in node.pairs}
    if keys & (_PLAY | TASK_MODULES) or any(node.at(key).items for key in _BLOCKS):
        return True
    calls = (
        re.fullmatch(_OF_COLLECTION, key) or (key != "name" and _WORD.match(value.text or ""))
        for key, value in node.pairs.items()
    )
    return "name" in keys and (bool(keys & _KEYWORDS) or any(calls))


class _Value(NamedTuple):
    node: Node
    file: str


def _is_text(node: Node) -> bool:
    return node.is_scalar and not node.tag


class _Text(NamedTuple):
    """A text, and the place of its literal."""

    text: str
    file: str
    line: int
    is_block: bool = False

    @property
    def is_unread(self) -> bool:
        """Whether the text of options has an expression other than the value of an option."""
        names = " ".join(name for name, _ in parse_options(self.text).pairs)
        return _MARK.search(f"{names} {_EXPRESSION.sub('', self.text)}") is not None


_OMITTED = _Value(ABSENT, "")
"""The value `omit`: the module does not get the argument."""
_UNKNOWN = _Value(ABSENT, "?")
"""The item of a loop that is not known: no default stands for a part of it."""
_Variables = Mapping[str, _Value]


def _variables(node: Node, file: str) -> _Variables:
    return {name: _Value(value, file) for name, value in node.pairs.items()}


class _Scope(NamedTuple):
    """The variables that a task sees, of each kind the nearest first; the first kind counts most."""

    groups: _Variables
    budget: Counter[str]
    """The expressions of the run that were read."""
    play: tuple[_Variables, ...] = ()
    near: tuple[_Variables, ...] = ()
    """Of loops, tasks, blocks, and those that a role or a task file gets."""
    roles: tuple[_Variables, ...] = ()
    defaults: tuple[_Variables, ...] = ()
    depth: int = 0
    is_conditional: bool = False
    """The task, or a block with it, has a condition."""

    def find(self, name: str) -> _Value | None:
        layers = (*self.near, *self.roles, *self.play, self.groups, *self.defaults)
        return next((layer[name] for layer in layers if name in layer), None)

    def with_nearer(self, *layers: _Variables) -> _Scope:
        return self._replace(near=(*layers, *self.near))


class _Expansion:
    """The variables of one value, within bounds: at these a cycle ends."""

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope
        self._left = _MOST_LOOKUPS

    def value(self, value: _Value, depth: int = 0) -> _Value:
        """Return the value that is named by a text of one expression; any other value as it is."""
        match = _EXPRESSION.fullmatch((value.node.text or "").strip())
        found = self._look_up(match[1], value, depth) if match else None
        return value if found is None else found

    def text(self, value: _Value, depth: int = 0) -> _Text | None:
        """Return a text with its expressions expanded to texts of one line; None where it is omitted.

        A list, a mapping or a value with a tag is no text: its expression stays.
        """
        named = self.value(value, depth)
        if not named.node:
            return None
        node, file = named if _is_text(named.node) else value
        text = (node.text or "").rstrip() if _is_text(node) else "{{ }}"
        own = _Text(text, file, node.line + node.is_block, node.is_block)
        if "{{" not in text or "{%" in text or "{#" in text:
            return own

        def expanded(match: re.Match[str]) -> str:
            found = self._look_up(match[1], _Value(node, file), depth)
            part = self.text(found, depth + 1) if found and _is_text(found.node) else None
            return match[0] if part is None or len(part.text) > MOST_TEXT or "\n" in part.text else part.text

        text = _EXPRESSION.sub(expanded, text)
        return own._replace(text=text) if len(text) <= MOST_TEXT else own

    def _look_up(self, expression: str, place: _Value, depth: int) -> _Value | None:
        """Return the first operand of an expression that has a value; None for an expression not read."""
        self._left -= 1
        self._scope.budget[_READ_SO_FAR] += 1
        is_left = self._left >= 0 and self._scope.budget[_READ_SO_FAR] <= MOST_EXPRESSIONS
        match = _NAMED.fullmatch(expression) if depth <= MOST_DEPTH and is_left else None
        operands = (match[1], *_ARGUMENT.findall(match[2])) if match else ()
        if operands and self._scope.find(re.split(r"[.\[]", operands[0], maxsplit=1)[0]) is _UNKNOWN:
            return None
        values = (self._operand(operand, place, depth + 1) for operand in operands)
        return next((value for value in values if value is not None), None)

    def _operand(self, operand: str, place: _Value, depth: int) -> _Value | None:
        if operand == "omit":
            return _OMITTED
        if operand[0] in _QUOTES or operand[0].isdigit():
            line = place.node.line + place.node.is_block
            return place._replace(node=Node(line, text=operand.strip(_QUOTES), is_scalar=True))
        name, *keys = re.findall(rf"{_STRING}|\w+", operand)
        found = self._scope.find(name)
        for key in keys:
            whole = self.value(found or _OMITTED, depth)
            found = whole._replace(node=whole.node.at(key.strip(_QUOTES)))
        return self.value(found, depth) if found and found.node else None


class _Call(NamedTuple):
    """A task that calls a module, for one item of its loop."""

    module: str
    arguments: _Variables
    file: str
    scope: _Scope

    def _given(self, *names: str) -> _Value:
        return next((self.arguments[name] for name in names if name in self.arguments), _OMITTED)

    def value(self, name: str) -> _Value:
        """Return an argument, or the value that it names."""
        return _Expansion(self.scope).value(self._given(name))

    def find(self, *names: str) -> _Text | None:
        """Return the text of the first argument with one of the names; None where it has none."""
        return _Expansion(self.scope).text(self._given(*names))

    def text(self, *names: str) -> str:
        found = self.find(*names)
        return found.text.strip() if found else ""

    def unread(self, name: str) -> Unexpanded:
        """Return the request that an argument keeps from being judged."""
        node, file = self.arguments[name]
        return Unexpanded("a task with an expression", file, node.line + node.is_block)


def _arguments(module: str, node: Node, file: str) -> _Variables:
    """Return the arguments of a module, also in the old form `name=/srv fstype=nfs`."""
    if not node.text:
        return _variables(node, file)
    if module in _COMMANDS | _TASK_FILES:
        return {"file" if module in _TASK_FILES else "cmd": _Value(node, file)}
    words = _WORD.findall(node.text[:MOST_TEXT])
    line = node.line + node.is_block
    return {name: _Value(Node(line, text=text.strip(_QUOTES), is_scalar=True), file) for name, text in words}


def _mount(call: _Call) -> Iterator[Found]:
    """Yield the request of ansible.posix.mount; without options it writes `defaults`."""
    state, fstype, point = call.text("state"), call.find("fstype"), call.text("path", "name")
    source, options = call.find("src"), call.find("opts")
    maker = Maker.TASK if "{" in state or not state else _MAKERS.get(state)
    if maker is None or fstype is None or source is None:
        return
    named = fstype.text.strip()
    kind = mounted_type("" if "{" in named else named, source.text.strip())
    place = options or source
    if kind not in TYPES:
        return
    if "{" in named or (options and options.is_unread):
        yield call.unread("fstype" if "{" in named else "opts")
        return
    text = options.text.strip() if options else ""
    if maker is Maker.TASK and call.text("boot").lower() in _FALSE and "noauto" not in text:
        text = f"{text},noauto".lstrip(",")
    yield Request(
        source.text.strip(),
        point,
        text,
        place.file,
        place.line,
        fstype=kind,
        maker=maker,
        named=None if kind == named else named,
        field="opts",
        group=call.file,
        is_conditional=call.scope.is_conditional,
        source_line=source.line if source.file == place.file and source.line != place.line else 0,
    )


def _volume(call: _Call) -> Iterator[Found]:
    """Yield the request of a volume of Docker's own driver."""
    driver, whole = call.text("driver"), call.value("driver_options")
    expansion = _Expansion(call.scope)
    found = {key: expansion.text(_Value(node, whole.file)) for key, node in whole.node.pairs.items()}
    texts = {key: text for key, text in found.items() if text}
    if not texts or call.text("state") == "absent" or driver not in {"", "local"}:
        return
    place = texts.get("o", next(iter(texts.values())))
    if "o" in texts and place.is_unread:
        if "type" in texts and texts["type"].text in TYPES:
            yield call.unread("driver_options")
        return
    lines = {key: text.line if text.file == place.file else place.line for key, text in texts.items()}
    yield from docker_request({key: (text.text, lines[key]) for key, text in texts.items()}, place.file)


def _command(call: _Call) -> Iterator[Found]:
    """Yield the rows of a command, or of a shell's script."""
    words = call.value("argv")
    text = call.find("cmd")
    if words.node.items:
        found = (_Expansion(call.scope).text(_Value(node, words.file)) for node in words.node.items)
        text = _Text(shell_line(word.text for word in found if word), words.file, words.node.line)
    if text:
        rows = script_requests(text.text, text.file)
        yield from (placed(row, text.line, is_block=text.is_block) for row in rows)


def _file(call: _Call) -> Iterator[Found]:
    """Yield the rows of a unit that a task writes, or of lines for /etc/fstab."""
    text, path = call.find("line", "value", "block", "content"), call.text("path", "dest", "destfile", "name")
    if not text or call.text("state") == "absent":
        return
    if path.endswith(UNITS) and call.find("content"):
        rows = written_requests({path: text.text}, text.file)
        yield from (placed(row, text.line, is_block=text.is_block) for row in rows)
    elif path.endswith("/etc/fstab") and call.text("backrefs").lower() in {"", *_FALSE}:
        yield from _lines(text)


def _lines(text: _Text) -> Iterator[Found]:
    """Yield the rows of lines for /etc/fstab."""
    rows, lines = parse_fstab(text.text, text.file), text.text.split("\n")
    judged = {row.line for row in rows if isinstance(row, Request)}
    for row in rows:
        line = text.line + (row.line - 1) * text.is_block
        entry = lines[row.line - 1]
        if isinstance(row, Request):
            yield row._replace(line=line, maker=Maker.TASK)
        elif "{{" not in entry and "{%" not in entry:
            yield ParseError(row.file, line, row.message)
        elif row.line not in judged and TYPES.intersection(entry.split()):
            yield Unexpanded("a task with an expression", text.file, line)


def _object(call: _Call) -> Iterator[Found]:
    """Yield the rows of an object of Kubernetes that a task applies."""
    definition = call.value("definition")
    for node in definition.node.items or (definition.node,):
        yield from kubernetes_requests(node, definition.file)


_JUDGES: dict[str, Callable[[_Call], Iterator[Found]]] = {
    **dict.fromkeys(_MOUNTS, _mount),
    **dict.fromkeys(_VOLUMES, _volume),
    **dict.fromkeys(_OBJECTS, _object),
    **dict.fromkeys(_COMMANDS, _command),
    **dict.fromkeys(_WRITERS, _file),
}


def _nearest(paths: Iterable[str], wanted: str, file: str) -> str:
    """Return the path, relative to any folder, that is nearest to a file; "" where there is no such path."""
    end = "/" + re.sub(r"\A(?:\.{0,2}/|\{\{[^{}]*\}\}/)+", "", wanted)
    found = [path for path in paths if f"/{path}".endswith(end)]
    return max(found, key=lambda path: len(posixpath.commonprefix((path, file))), default="")


def _texts(node: Node) -> Iterator[str]:
    """Yield all texts in a value but a loop's own."""
    if node.text:
        yield node.text
    for part in (*node.items, *(value for key, value in node.pairs.items() if key not in _LOOPS)):
        yield from _texts(part)


def _scopes(step: Node, file: str, scope: _Scope) -> list[_Scope]:
    """Return the scope of each item of a task's loop; with an unknown item where the loop is not known."""
    key = next((key for key in _LOOPS if step.at(key)), "")
    if not key:
        return [scope]
    whole = _Expansion(scope).value(_Value(step.at(key), file))
    items: list[_Value] = []
    for node in whole.node.items[:MOST_ITEMS]:
        item = _Expansion(scope).value(_Value(node, whole.file))
        parts = item.node.items if key == "with_items" else ()
        items += [item._replace(node=part) for part in parts] or [item]
    name = step.at("loop_control").text_at("loop_var") or "item"
    if not any(name in text for text in _texts(step)):
        items = items[:1]
    return [scope.with_nearer({name: item}) for item in items[:MOST_ITEMS] or [_UNKNOWN]]


class _Run:
    """The files of a run, and the tasks of them that were read."""

    def __init__(self, files: Sequence[PlayFile]) -> None:
        self._plays: list[tuple[Node, str]] = []
        self._tasks: dict[str, list[Node]] = {}
        self._variables: dict[str, _Variables] = {}
        self._groups: dict[str, dict[str, _Variables]] = {}
        """The files of group_vars and host_vars, by their folder's parent: an inventory."""
        self._of_roles: dict[tuple[str, str], _Variables] = {}
        """By a role's folder, and `vars` or `defaults`."""
        self._roles: dict[str, list[str]] = {}
        """The files with tasks, by a role's folder."""
        self._read = set[str]()
        self._left = MOST_STEPS
        self._budget = Counter[str]()
        for file, documents in sorted(files, key=lambda each: each.file):
            self._add(file, documents)

    def _add(self, file: str, documents: tuple[Node, ...]) -> None:
        steps = [item for document in documents for item in document.items if item.pairs]
        plays = [step for step in steps if "hosts" in step.pairs]
        self._plays += [(play, file) for play in plays]
        match = _IN_ROLE.fullmatch(file)
        role = (match["role"] or "") if match else None
        if steps and not plays:
            self._tasks[file] = steps
            if role is not None:
                self._roles.setdefault(role, []).append(file)
        variables = {name: value for root in documents for name, value in _variables(root, file).items()}
        self._variables[file] = variables
        inventory = _IN_INVENTORY.fullmatch(file)
        if inventory:
            self._groups.setdefault(inventory[1] or "", {})[file] = variables
        elif match and role is not None and re.match(r"main(?:[./]|\Z)", match["name"]):
            known = self._of_roles.get((role, match["kind"]), {})
            self._of_roles[role, match["kind"]] = {**variables, **known}

    def rows(self) -> Iterator[Found]:
        """Yield the rows of all plays, then those of the tasks that no play names, for each group and host.

        No host has the variables of two groups' files, but for those of all: they are never put together.
        An expression without a value for any of them was not read.
        """
        runs = [[*self._rows_of(groups)] for groups in self._hosts()]
        unread = set.intersection(*({row for row in run if isinstance(row, Unexpanded)} for run in runs))
        for row in (row for run in runs for row in run):
            if not isinstance(row, Unexpanded) or row in unread:
                yield row

    def _hosts(self) -> Iterator[_Variables]:
        """Yield the variables of each file for a group or a host, with those for all hosts."""
        found = False
        for files in self._groups.values():
            everyone = [variables for file, variables in files.items() if _FOR_ALL.search(file)]
            base = {name: value for variables in everyone for name, value in variables.items()}
            others = [variables for file, variables in files.items() if not _FOR_ALL.search(file)]
            for variables in others[:MOST_HOSTS] or [{}]:
                found = True
                yield {**base, **variables}
        if not found:
            yield {}

    def _rows_of(self, groups: _Variables) -> Iterator[Found]:
        self._read = set()
        for play, file in self._plays:
            yield from self._of_play(play, file, groups)
        for file in self._tasks:
            match = _IN_ROLE.fullmatch(file)
            if file not in self._read and match:
                yield from self._of_role(match["role"] or "", self._scope(groups))
            elif file not in self._read:
                yield from self._of_file(file, self._scope(groups))

    def _scope(self, groups: _Variables, play: tuple[_Variables, ...] = ()) -> _Scope:
        return _Scope(groups, self._budget, play)

    def _of_play(self, play: Node, file: str, groups: _Variables) -> Iterator[Found]:
        whole = play.at("vars_files")
        names = [name for item in whole.items or (whole,) for name in item.items or (item,)]
        paths = [_nearest(self._variables, name.text, file) for name in names if name.text]
        layers = [self._variables[path] for path in reversed(paths) if path]
        scope = self._scope(groups, (*layers, _variables(play.at("vars"), file)))
        yield from self._steps(play.at("pre_tasks").items, file, scope)
        for role in play.at("roles").items:
            name = role.text or role.text_at("role") or role.text_at("name")
            given = scope.with_nearer(_variables(role, file), _variables(role.at("vars"), file))
            yield from self._of_role(self._role_named(name, file), given)
        for key in ("tasks", "post_tasks", "handlers"):
            yield from self._steps(play.at(key).items, file, scope)

    def _role_named(self, name: str, file: str) -> str | None:
        """Return the folder of a role; a collection's role has its collection before its name."""
        return (
            _nearest(self._roles, name, file) or _nearest(self._roles, name.rpartition(".")[2], file) or None
        )

    def _of_role(self, role: str | None, scope: _Scope, start: str = "") -> Iterator[Found]:
        """Yield the rows of a role from its main file, or only those of the file with which a task starts it.

        A role may include its other files by expressions: those that nothing has included follow.
        """
        if role is None:
            return
        variables, defaults = (self._of_roles.get((role, kind), {}) for kind in ("vars", "defaults"))
        inner = scope._replace(roles=(variables, *scope.roles), defaults=(defaults, *scope.defaults))
        first = posixpath.join(role, "tasks", posixpath.splitext(start or "main")[0])
        files = self._roles.get(role, [])
        for file in (name for name in files if posixpath.splitext(name)[0] == first):
            yield from self._of_file(file, inner)
        for file in () if start else files:
            if file not in self._read:
                yield from self._of_file(file, inner)

    def _of_file(self, file: str, scope: _Scope) -> Iterator[Found]:
        self._read.add(file)
        yield from self._steps(self._tasks.get(file, ()), file, scope)

    def _steps(self, steps: Iterable[Node], file: str, scope: _Scope) -> Iterator[Found]:
        """Yield the rows of tasks and blocks."""
        inner = scope._replace(depth=scope.depth + 1)
        for step in steps if inner.depth <= MOST_NESTED else ():
            own = inner.with_nearer(_variables(step.at("vars"), file))
            if step.at("when"):
                own = own._replace(is_conditional=True)
            modules = ((_BUILTIN.sub("", key), node) for key, node in step.pairs.items())
            calls = [(module, node) for module, node in modules if module in _READ]
            scopes = _scopes(step, file, own) if calls else [own]
            if self._left < 0:
                return
            self._left -= len(scopes)
            if self._left < 0:
                yield ParseError(file, step.line, _TOO_MANY)
                return
            for key in _BLOCKS:
                yield from self._steps(step.at(key).items, file, own)
            for module, node in calls:
                arguments = _arguments(module, node, file)
                for each in scopes:
                    yield from self._of_call(_Call(module, arguments, file, each))

    def _of_call(self, call: _Call) -> Iterator[Found]:
        if call.module in _JUDGES:
            yield from _JUDGES[call.module](call)
        elif call.module in _ROLES:
            role = self._role_named(call.text("name"), call.file)
            yield from self._of_role(role, call.scope, call.text("tasks_from"))
        else:
            words = call.text("file").split() or [""]
            yield from self._of_file(_nearest(self._tasks, words[0], call.file), call.scope)
