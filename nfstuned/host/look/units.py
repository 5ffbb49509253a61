"""systemd's mount units, and fstab: drop-ins change the units that systemd makes of its entries, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nfstuned.errors import ParseError
from nfstuned.host.look.folders import UNIT_FOLDERS
from nfstuned.host.look.nfsmount import Collected
from nfstuned.host.root import FSTAB, Root
from nfstuned.model.mounts import Maker, Misnamed, Request
from nfstuned.model.requests import UnitSetting
from nfstuned.parse.etc.fstab import parse_fstab
from nfstuned.parse.etc.units import SUFFIX, drop_in_folders, mount_request, parse_unit, unit_name

AUTOMOUNT = ".automount"
_DIRECTORIES = {"t": "/run", "S": "/var/lib", "C": "/var/cache", "L": "/var/log", "E": "/etc"}


class MountUnits:
    """A reader of mount units; `seen` are the names that need not be looked at again."""

    def __init__(self, root: Root, collected: Collected) -> None:
        self.root = root
        self.collected = collected
        self.seen: set[str] = set()
        names = {"H": "proc/sys/kernel/hostname", "v": "proc/sys/kernel/osrelease", "m": "etc/machine-id"}
        values = {letter: root.read_or_empty(name).strip() for letter, name in names.items()}
        values["l"] = values["H"].partition(".")[0]
        self.specifiers = _DIRECTORIES | {letter: value for letter, value in values.items() if value}
        folders = {folder: self.root.names(folder) for folder in UNIT_FOLDERS}
        self.names = {folder: [n for n in names if n.endswith(SUFFIX)] for folder, names in folders.items()}
        self.automounts = {f: {n for n in names if n.endswith(AUTOMOUNT)} for f, names in folders.items()}
        self.drops = {folder: {n for n in names if n.endswith(".d")} for folder, names in folders.items()}

    def read(self, folders: Sequence[str]) -> None:
        """Add the mount units of some folders; an empty file, or a link to /dev/null, masks a weaker file."""
        for folder in folders:
            for name in self.names[folder]:
                if name in self.seen:
                    continue
                self.seen.add(name)
                text = self.root.read_or_empty(f"{folder}/{name}")
                if text:
                    settings = self._settings(parse_unit(text, f"/{folder}/{name}"))
                    items = mount_request(name, [*settings, *self._drop_ins(name)], self.specifiers)
                    self.collected.add(self._with_maker(name, item) for item in items)

    def read_fstab(self) -> None:
        """Add fstab's entries; drop-ins change the units that systemd makes of them."""
        for item in parse_fstab(self._fstab(), self.root.shown(FSTAB)):
            if isinstance(item, ParseError):
                self.collected.refuse(item)
                continue
            name = unit_name(item.point)
            changes = self._drop_ins(name)
            if changes:
                # The unit that systemd-fstab-generator(8) makes of the entry.
                values = {
                    "What": item.source,
                    "Where": item.point,
                    "Options": item.options,
                    "Type": item.fstype if item.named is None else item.named,
                }
                unit = [
                    UnitSetting("Mount", key, value.replace("%", "%%"), item.file, item.line)
                    for key, value in values.items()
                ]
                requests = mount_request(name, [*unit, *changes], self.specifiers)
                # mount(8) still mounts an entry of fstab where its options are its own.
                self.collected.add(
                    replace(request, maker=Maker.MOUNT)
                    if isinstance(request, Request) and request.file == item.file
                    else request
                    for request in requests
                )
            else:
                self.collected.add([item])

    def _fstab(self) -> str:
        """Return fstab's text; that it is there and cannot be read is a problem that is told."""
        try:
            return self.root.read(FSTAB)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            self.collected.refuse(ParseError(self.root.shown(FSTAB), 0, error.strerror or str(error)))
            return ""

    def _with_maker(
        self, name: str, item: Request | Misnamed | ParseError
    ) -> Request | Misnamed | ParseError:
        """Say whether an .automount unit of the same name makes the mount, at its first use."""
        partner = name.removesuffix(SUFFIX) + AUTOMOUNT
        automounted = any(partner in names for names in self.automounts.values())
        if not isinstance(item, Request) or not automounted or not self._unmasked(partner):
            return item
        return replace(item, maker=Maker.AUTOMOUNT)

    def _unmasked(self, name: str) -> bool:
        """Return whether the strongest file of a unit says something."""
        folder = next(folder for folder in UNIT_FOLDERS if name in self.automounts[folder])
        return bool(self.root.read_or_empty(f"{folder}/{name}"))

    def _drop_ins(self, name: str) -> list[UnitSetting]:
        files: dict[str, str] = {}
        *own, of_all_mounts = drop_in_folders(name)
        places = [(folder, drop) for folder in UNIT_FOLDERS for drop in own]
        # Weaker than all others, wherever it is (unit_file_find_dropin_paths in src/shared/dropin.c).
        places += [(folder, of_all_mounts) for folder in UNIT_FOLDERS]
        for folder, drop in places:
            if drop in self.drops[folder]:
                for file in self.root.names(f"{folder}/{drop}"):
                    files.setdefault(file, f"{folder}/{drop}/{file}")
        return [
            setting
            for file in sorted(files)
            if file.endswith(".conf")
            for setting in self._settings(parse_unit(self.root.read_or_empty(files[file]), "/" + files[file]))
        ]

    def _settings(self, items: Iterable[UnitSetting | ParseError]) -> list[UnitSetting]:
        """Return the settings; errors are collected."""
        items = list(items)
        self.collected.add(item for item in items if isinstance(item, ParseError))
        return [item for item in items if isinstance(item, UnitSetting)]
