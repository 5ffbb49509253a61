"""The settings of nfs-utils (nfsmount.conf(5), nfs.conf(5)), and of programs that write a read-ahead.

The grammar is nfs-utils 2.8.3's: conf_parse and conf_parse_line in support/nfs/conffile.c. The settings that
count for a mount are selected in nfstuned.core.mounts.requests. TuneD, efs-utils and AZNFS have formats of
their own.

The version of mount.nfs is read from the program's file, which holds the text that `mount.nfs -V` prints
(PACKAGE_STRING) and the names of its functions: nothing is run, so that an image's program can be asked too.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cmp_to_key

from nfstuned.errors import ParseError
from nfstuned.model.mounts import AZNFS, EFS_UTILS, NFSRAHEAD, TUNED, ConfInclude, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.requests import SECTIONS_WITH_NAMES, Intent
from nfstuned.parse.fields import below, clean_path, quoted
from nfstuned.parse.tree import FileTree

FILE = "/etc/nfsmount.conf"
VENDOR_FILE = "/usr/etc/nfsmount.conf"
"""Read first, and forgotten with its folder of drop-ins where FILE exists (conf_init_file)."""
OUTSIDE = "an assignment outside of a section has no effect"
_BLANK = " \t"
_SPACE = " \t\n\v\f\r"

Item = Setting | ConfInclude | ParseError


@dataclass(slots=True, eq=False)
class _Reader:
    """The items of a file's lines, and the section that they are in; None where assignments do not count."""

    file: str
    section: str | None
    argument: str | None
    items: list[Item] = field(default_factory=list)

    def refuse(self, line: int, message: str) -> None:
        self.items.append(ParseError(self.file, line, message))

    def begin_section(self, line: int, content: str) -> None:
        """Enter the section of `content`, a line without its opening bracket."""
        self.section = self.argument = None
        inside, bracket, _ = content.partition("]")
        if not bracket:
            self.refuse(line, f"a section without a closing bracket: {quoted('[' + content)}")
            return
        name, quote, rest = inside.strip(_BLANK).partition('"')
        self.section = name.rstrip(_BLANK).lower()
        if quote:
            argument, closing, _ = rest.partition('"')
            self.argument = argument if closing else None
        if self.argument is None and self.section in SECTIONS_WITH_NAMES:
            # The bracket that closes an IPv6 address ends the section, before the second quote.
            self.refuse(line, f"a section without a name makes mount.nfs crash: {quoted('[' + inside + ']')}")
        elif quote and self.argument is None:
            self.refuse(line, f"a section's name without a closing quote: {quoted('[' + inside + ']')}")

    def assign(self, line: int, content: str) -> None:
        """Take an assignment in the current section: a setting, or the include of another file."""
        name, _, rest = content.partition("=")
        name, rest = name.rstrip(_BLANK), rest.lstrip(_BLANK)
        value = _value(rest)
        place = (self.section or "", self.argument)
        if value is None:
            self.refuse(line, f"a quote that does not close: {quoted(rest)}")
        elif not name:
            self.refuse(line, f"a value without a name: {quoted(content)}")
        elif not value:
            self.refuse(line, f"an assignment without a value has no effect: {quoted(content)}")
        elif name.lower() == "include":
            path = value.removeprefix("-")
            self.items.append(ConfInclude(path, path != value, *place, self.file, line))
        else:
            self.items.append(Setting(*place, name, value, self.file, line))


def parse_nfsmount(
    text: str, file: str = FILE, section: str | None = None, argument: str | None = None
) -> tuple[Item, ...]:
    """Return settings and includes in the file's order; an included file begins in its parent's section."""
    reader = _Reader(file, section, argument)
    for number, line, ended in _joined_lines(text.partition("\0")[0]):
        content = line.lstrip(_SPACE)
        if not content or content.startswith(("#", ";")):
            continue
        if not ended:
            reader.refuse(number, f"the last line does not end, and so has no effect: {quoted(content)}")
        elif content.startswith("["):
            reader.begin_section(number, content[1:])
        elif "=" not in content:
            reader.refuse(number, f"neither a section nor an assignment: {quoted(content)}")
        elif reader.section is None:
            reader.refuse(number, f"{OUTSIDE}: {quoted(content)}")
        else:
            reader.assign(number, content)
    return tuple(reader.items)


def drop_ins(names: list[str]) -> list[str]:
    """Return the files of a `.d` folder that conf_init_dir reads, in its order: a later setting counts."""
    return in_version_order([name for name in names if name.endswith(".conf") and not name.startswith(".")])


def included(include: ConfInclude) -> str:
    """Return the absolute path of an included file: it stands relative to the file that names it."""
    return clean_path(posixpath.join(posixpath.dirname(include.file), include.path))


def _joined_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each line's number, its text and whether it ends; a backslash joins a line with the next."""
    start = 1
    held: list[str] = []
    *lines, last = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.endswith("\\"):
            held.append(line[:-1] + "  ")
            continue
        yield start, "".join([*held, line]), True
        start, held = number + 1, []
    yield start, "".join([*held, last]), False


def _value(text: str) -> str | None:
    """Return a value without quotes and comment; None where a quote does not close."""
    if text.startswith(('"', "'")):
        value, closing, _ = text[1:].partition(text[0])
        return value if closing else None
    return text.partition("#")[0].partition(";")[0].rstrip(_SPACE)


_VERSION = rb"\(linux nfs-utils ([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})[^)\n\0]{0,20}\)\n"
_DROP_INS = b"conf_init_dir: "
"""Since nfs-utils 2.5.3 ("conffile: process config.d directory config files"), and in backports of it."""


def parse_mount_nfs(program: bytes) -> NfsUtils:
    """Return the version and features of mount.nfs by its file; another program has no version."""
    match = re.search(_VERSION, program)
    version = tuple(int(part) for part in match[1].split(b".")) if match else None
    return NfsUtils(version, _DROP_INS in program)


NFS_CONF = "/etc/nfs.conf"
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_DEEPEST = 16
"""How deep files may include each other here; mount.nfs knows no bound, and crashes."""
MOST_INCLUDES = 100
"""Files that are included, each as often as it is."""


@dataclass(slots=True, eq=False)
class MountConf:
    """A reader of a configuration of nfs-utils; nothing below the points in `mounted` is read."""

    root: FileTree
    mounted: Sequence[str]
    collected: Intent
    file: str = FILE
    includes: int = 0

    def read(self) -> None:
        """Read it as conf_init_file does: the vendor's own files count only where the file is absent."""
        vendors = VENDOR_FILE.replace(FILE, self.file)
        if not self._read_file(self.file):
            self._read_file(vendors)
            self._read_drop_ins(vendors)
        self._read_drop_ins(self.file)

    def _read_drop_ins(self, file: str) -> None:
        for name in drop_ins(self.root.names(f"{file[1:]}.d")):
            self._read_file(f"{file}.d/{name}")

    def _read_file(self, file: str) -> bool:
        try:
            text = self.root.read(file[1:])
        except OSError as error:
            self._note_unread(file, error)
            return False
        self._keep(parse_nfsmount(text, file), (file,))
        return True

    def _keep(self, items: Iterable[Setting | ConfInclude | ParseError], chain: tuple[str, ...]) -> None:
        for item in items:
            if isinstance(item, Setting):
                self.collected.set(item)
            elif isinstance(item, ParseError):
                self.collected.refuse(item)
            else:
                self._include(item, chain)

    def _include(self, include: ConfInclude, chain: tuple[str, ...]) -> None:
        path = included(include)
        if path in chain or len(chain) > _DEEPEST:
            message = f"{path} includes itself, which makes mount.nfs crash"
            self.collected.refuse(ParseError(include.file, include.line, message))
            return
        self.includes += 1
        if self.includes > MOST_INCLUDES:
            if self.includes == MOST_INCLUDES + 1:
                message = f"more than {MOST_INCLUDES} includes: nothing of this and of later files was read; "
                message += "remove repeated includes"
                self.collected.refuse(ParseError(include.file, include.line, message))
            return
        try:
            text = "" if below(path, self.mounted) else self.root.read(path[1:])
        except OSError as error:
            self._note_unread(path, error)
            if not include.optional:
                message = f"the included file cannot be read: {path}"
                self.collected.refuse(ParseError(include.file, include.line, message))
            return
        self._keep(parse_nfsmount(text, path, include.section, include.argument), (*chain, path))

    def _note_unread(self, file: str, error: OSError) -> None:
        if error.errno not in _ABSENT:
            self.collected.faults.append(f"{file}: {error.strerror}")


_STORAGES = {
    "etc/docker/daemon.json": ("Docker", r'"(?:data-root|graph)"\s*:\s*"(/[^"]*)"'),
    "etc/containerd/config.toml": ("containerd", r"""(?m)^root\s*=\s*["'](/[^"']*)"""),
    "etc/containers/storage.conf": ("Podman and CRI-O", r"""(?m)^\s*graphroot\s*=\s*["'](/[^"']*)"""),
}
"""The settings of container engines for the folder of their storage."""


def read_storages(root: FileTree) -> dict[str, str]:
    """Return the container engines with a configured folder for their storage, by the folder."""
    found = {}
    for file, (engine, pattern) in _STORAGES.items():
        if match := re.search(pattern, root.read_or_empty(file)):
            found[clean_path(match[1])] = engine
    return found


def misplaced_lines(root: FileTree, mounted: Sequence[str]) -> Iterator[ParseError]:
    """Yield the lines of nfs.conf that no program of nfs-utils reads; `mounted` as in MountConf."""
    collected = Intent()
    MountConf(root, mounted, collected, NFS_CONF).read()
    yield from (problem for problem in collected.problems if problem.message.startswith(OUTSIDE))
    for setting in collected.settings:
        if "ahead" in setting.section and setting.section != NFSRAHEAD:
            message = f"{setting.name} stands in [{setting.section}], which no program reads"
            yield ParseError(setting.file, setting.line, message)
        elif setting.section == NFSRAHEAD and setting.name.lower() not in _OF_NFSRAHEAD:
            message = f"nfsrahead has no setting {setting.name}: it has default, nfs and nfs4"
            yield ParseError(setting.file, setting.line, message)


_OF_NFSRAHEAD = ("default", "nfs", "nfs4", "debug")
"""Its settings (nfs-utils, tools/nfsrahead/main.c): two types, all others, and its log."""
_MOUNT_NFS = ("sbin/mount.nfs", "usr/sbin/mount.nfs")
"""mount(8) looks in /sbin (FS_SEARCH_PATH of util-linux), which is /usr/sbin nearly everywhere."""


def read_nfs_utils(root: FileTree) -> NfsUtils | None:
    """Return the version and features of the installed mount.nfs; None where it cannot be read."""
    for name in _MOUNT_NFS:
        with suppress(OSError):
            return parse_mount_nfs(root.read_bytes(name))
    return None


def in_version_order(names: list[str]) -> list[str]:
    """Return the names in the order of versionsort(3): "9-a" before "10-a", "01" before "1"."""
    if len(names) < 2:  # noqa: PLR2004 - nothing to sort, and the library takes a while to load
        return names
    from ctypes import CDLL  # noqa: PLC0415

    key = cmp_to_key(CDLL(None).strverscmp)
    return sorted(names, key=lambda name: key(name.encode("utf-8", "surrogateescape")))


_GAP = r"[^\S\n]*"
_AZNFS = (
    rf"(?m)^{_GAP}(?:export(?=\s){_GAP})?AZNFS_READ_AHEAD_KB="
    r"""["']?(?:\$\{AZNFS_READ_AHEAD_KB:-)?([0-9]{1,9})\b"""
)


def parse_ini(text: str, file: str) -> Iterator[Setting]:
    """Yield the assignments of a file as Python's configparser reads it, with `=` alone and `#` anywhere.

    So TuneD's Loader does (tuned/profiles/loader.py). Names keep their case, and so do sections.
    """
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        content = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if not content or content.startswith(";"):
            continue
        if heading := re.match(r"\[([^]]+)\]", content):
            section = heading[1]
            continue
        name, sign, value = content.partition("=")
        if sign and section:
            yield Setting(section, None, name.strip(), value.strip(), file, number)


def parse_aznfs(text: str, file: str, section: str) -> Setting | None:
    """Return the setting of AZNFS_READ_AHEAD_KB in common.sh or in /etc/environment; the last line counts."""
    matches = list(re.finditer(_AZNFS, text))
    if not matches:
        return None
    line = text.count("\n", 0, matches[-1].start(1)) + 1
    return Setting(section, None, "AZNFS_READ_AHEAD_KB", matches[-1][1], file, line)


_EFS_CONF = "etc/amazon/efs/efs-utils.conf"
_AZNFS_HELPERS = ("sbin/mount.aznfs", "usr/sbin/mount.aznfs")
_AZNFS_SCRIPTS = ("opt/microsoft/aznfs/common.sh", "opt/microsoft/azfiles-nfs/common.sh")
_ENVIRONMENT = "etc/environment"
_TUNED_FOLDERS = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
"""The first that has a profile counts (tuned/profiles/locator.py)."""
_TUNED_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BDI = r"/sys/(?:class|devices/virtual)/bdi/[^/]+/read_ahead_kb"


def read_writers(root: FileTree, mounted: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Return those settings with file and line; nothing below the points in `mounted` is read."""
    collected = Intent()
    MountConf(root, mounted, collected, NFS_CONF).read()
    nfsrahead = (
        setting for setting in collected.settings if setting.section == NFSRAHEAD and setting.argument is None
    )
    efs_utils = (
        setting._replace(section=EFS_UTILS)
        for setting in parse_ini(root.read_or_empty(_EFS_CONF), "/" + _EFS_CONF)
        if (setting.section, setting.name.lower()) == ("mount", "optimize_readahead")
    )
    return (*nfsrahead, *_read_aznfs(root), *efs_utils, *_tuned(root))


def _read_aznfs(root: FileTree) -> Iterator[Setting]:
    """Yield AZNFS's value; a release without one in its scripts writes none (Azure/AZNFS-mount)."""
    if not any(root.executable(helper) for helper in _AZNFS_HELPERS):
        return
    scripts = (parse_aznfs(root.read_or_empty(script), "/" + script, AZNFS) for script in _AZNFS_SCRIPTS)
    built_in = next(filter(None, scripts), None)
    if built_in is not None:
        yield parse_aznfs(root.read_or_empty(_ENVIRONMENT), "/" + _ENVIRONMENT, AZNFS) or built_in


def _tuned(root: FileTree) -> Iterator[Setting]:
    """Yield the settings of bdis in the active TuneD profile and those that it includes (plugin sysfs)."""
    merged: dict[tuple[str, str], Setting] = {}
    seen: set[str] = set()
    for name in root.read_or_empty("etc/tuned/active_profile").split():
        for setting in _tuned_profile(root, name, seen):
            merged[setting.section, posixpath.normpath(setting.name)] = setting
    types = {section: setting.value for (section, name), setting in merged.items() if name == "type"}
    for (section, path), setting in merged.items():
        if types.get(section, section) == "sysfs" and re.fullmatch(_BDI, path):
            yield setting._replace(section=TUNED, name=path)


def _tuned_profile(root: FileTree, name: str, seen: set[str]) -> Iterator[Setting]:
    """Yield a profile's settings, those of its includes first: the last setting counts."""
    folders = _TUNED_FOLDERS if _TUNED_NAME.fullmatch(name) else ()
    places = (f"{folder}/{name}/tuned.conf" for folder in folders)
    file = next((place for place in places if place not in seen and root.read_or_empty(place)), None)
    if file is None:
        return
    seen.add(file)
    settings = tuple(parse_ini(root.read_or_empty(file), "/" + file))
    for setting in settings:
        if (setting.section, setting.name) == ("main", "include"):
            for included in re.split(r"\s*[,;]\s*", setting.value):
                yield from _tuned_profile(root, included, seen)
    yield from settings
