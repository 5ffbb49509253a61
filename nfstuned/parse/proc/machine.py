"""The kernel's release, its modules, processors and slabs, and the distribution (os-release(5))."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Distribution, KernelRelease
from nfstuned.model.system import ImageKernel
from nfstuned.parse.fields import quoted
from nfstuned.parse.tree import FileTree

RELEASE = "/proc/sys/kernel/osrelease"
_VERSION = r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?![0-9])"
_ASSIGNMENT = r"([A-Za-z0-9_]+)=(?:\"(.*)\"|'(.*)'|([^\"'].*)?)"
_ESCAPE = r"\\([\\\"'$`])"


def parse_release(text: str, file: str = RELEASE) -> KernelRelease:
    """Return the release with its version triple, missing parts 0; ParseError when there is no number."""
    release = text.strip()
    match = re.match(_VERSION, release)
    if match is None:
        raise ParseError(file, 1, f"not a kernel release: {quoted(release)}")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return KernelRelease((major, minor, patch), release)


def parse_os_release(text: str) -> Distribution:
    """Return the distribution, with os-release(5)'s defaults; lines that are no assignment do not count."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        match = re.fullmatch(_ASSIGNMENT, line.strip())
        if match is not None:
            name, double, single, bare = match.groups()
            values[name] = single if single is not None else re.sub(_ESCAPE, r"\1", double or bare or "")
    return Distribution(
        id=values.get("ID", "linux"),
        version_id=values.get("VERSION_ID", ""),
        pretty_name=values.get("PRETTY_NAME", "Linux"),
        like=tuple(values.get("ID_LIKE", "").split()),
    )


_SUFFIX = r"\.ko(?:\.(?:xz|zst|gz))?$"
_CHOICE = r"(?a)(CONFIG_\w+)=([ym])"


def module_name(file: str) -> str:
    """Return the module in a file, "" for another file; `-` and `_` are the same to the kernel."""
    name, endings = re.subn(_SUFFIX, "", posixpath.basename(file))
    return name.replace("-", "_") if endings else ""


def parse_modules(text: str) -> dict[str, str]:
    """Return name and path of each module in modules.dep or modules.builtin; other lines do not count.

    A path is relative to the kernel's folder, or absolute where an old depmod wrote it.
    """
    paths = (line.partition(":")[0].strip() for line in text.splitlines())
    return {name: path for path in paths if (name := module_name(path))}


def parse_kernel_config(text: str) -> dict[str, str]:
    """Return the options of a kernel's .config that are y or m (Documentation/kbuild/kconfig.rst)."""
    pattern = re.compile(_CHOICE)
    choices = (pattern.fullmatch(line.strip()) for line in text.splitlines())
    return {choice[1]: choice[2] for choice in choices if choice}


_RANGE = r"([0-9]{1,6})(?:-([0-9]{1,6}))?"


def parse_cpu_list(text: str) -> int | None:
    """Return how many processors "0-3,7" names; None where it is not such a list."""
    count = 0
    for match in (re.fullmatch(_RANGE, part) for part in text.strip().split(",")):
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        count += max(0, last - first + 1)
    return count


def parse_major_faults(text: str) -> int | None:
    """Return the page faults since the boot that waited for data, by the text of /proc/vmstat."""
    match = re.search(r"(?m)^pgmajfault (\d{1,20})$", text)
    return int(match[1]) if match else None


def parse_nfs_inodes(text: str) -> int | None:
    """Return how many inodes of NFS the kernel holds, by the text of /proc/slabinfo."""
    match = re.search(r"(?m)^nfs_inode_cache +([0-9]{1,20}) ", text)
    return int(match[1]) if match else None


MODULES = ("usr/lib/modules", "lib/modules")
"""Both are one folder where /lib is a link to usr/lib."""
WANTED = {"nfs": "CONFIG_NFS_FS", "nfsv3": "CONFIG_NFS_V3", "nfsv4": "CONFIG_NFS_V4", "cifs": "CONFIG_CIFS"}
"""The modules that mounts need, and the option that builds each (fs/nfs/Makefile, fs/smb/client/Makefile)."""
CHARSET = "nls_"
"""The modules of character sets begin so (load_nls in fs/nls/nls_base.c)."""
_HOMES = ("kernel/fs/nfs", "kernel/fs/smb/client", "kernel/fs/cifs", "kernel/fs/nls")
"""The folders of these modules and of the character sets. cifs was in the third before Linux 6.4."""


def read_kernels(root: FileTree) -> tuple[ImageKernel, ...]:
    """Return the kernels that are installed in an image, the newest last."""
    kernels = []
    for release, folder in read_releases(root).items():
        # Debian has the file in /boot, Fedora and SUSE with the modules.
        places = (f"boot/config-{release}", f"{folder}/config", f"{folder}/build/.config")
        text = next((text for name in places if (text := root.read_or_empty(name))), "")
        config = parse_kernel_config(text)
        built_in = parse_modules(root.read_or_empty(f"{folder}/modules.builtin"))
        files = (module_name(file) for home in _HOMES for file in root.names(f"{folder}/{home}"))
        present = {*built_in, *files, *(name for name, key in WANTED.items() if config.get(key) == "y")}
        if not present.issuperset(WANTED):
            present |= _listed_modules(root, folder)
        modules = frozenset(name for name in present if name in WANTED or name.startswith(CHARSET))
        kernels.append(ImageKernel(release, modules, MappingProxyType(config)))
    return tuple(kernels)


def read_releases(root: FileTree) -> dict[str, str]:
    """Return the folder of each kernel's modules by its release, the newest last.

    The folder of a kernel that was removed can stay, with depmod's files; modules.builtin was packaged.
    """
    folders: dict[str, str] = {}
    for parent in MODULES:
        for release in root.names(parent):
            with suppress(ParseError):
                parse_release(release)
                if root.exists(f"{parent}/{release}/modules.builtin"):
                    folders.setdefault(release, f"{parent}/{release}")
    return {release: folders[release] for release in newest_last(list(folders))}


def _listed_modules(root: FileTree, folder: str) -> set[str]:
    """Return the wanted modules that depmod lists in other folders and that exist."""
    paths = parse_modules(root.read_or_empty(f"{folder}/modules.dep"))
    places = {
        name: path[1:] if path.startswith("/") else f"{folder}/{path}"
        for name in WANTED
        if (path := paths.get(name)) is not None
    }
    return {name for name, place in places.items() if root.exists(place)}


def newest_last(releases: list[str]) -> list[str]:
    """Return kernel releases from the oldest to the newest.

    As rpm and dpkg see them: 5.10.0-9 is before 5.10.0-10, 5.14.0-362.el9 before 5.14.0-362.8.1.el9, and a
    release candidate before its release.
    """

    def key(release: str) -> list[tuple[int, int, str]]:
        # Candidates, then the end, then words, then numbers.
        parts = re.findall(r"[0-9]+|[A-Za-z]+", release)
        keys = [
            (3, int(part), "") if part.isdigit() else (0 if part == "rc" else 2, 0, part) for part in parts
        ]
        return [*keys, (1, 0, "")]

    return sorted(releases, key=key)
