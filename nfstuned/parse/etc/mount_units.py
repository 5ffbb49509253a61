"""The requests of mount units and of fstab, with their drop-ins, as systemd reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Maker, Misnamed, Request, UnitSetting
from nfstuned.parse.etc.requests import Intent, parse_fstab
from nfstuned.parse.etc.units import (
    GENERATED,
    SUFFIX,
    UNIT_FOLDERS,
    drop_in_folders,
    mount_request,
    parse_unit,
    strongest_files,
    unit_path,
    wanted_units,
)
from nfstuned.parse.fields import clean_path, unit_name, unmangle
from nfstuned.parse.tree import FSTAB, FileTree

AUTOMOUNT = ".automount"
STRICT = ("Requires", "BindsTo", "Requisite", "x-systemd.requires")
"""The settings, and the option of fstab, for which a mount needs another unit."""
_NAMING = (*STRICT, "After", "Wants", "x-systemd.after", "x-systemd.wants")


class MountUnits:
    """A reader of mount units; `seen` are the names that need not be looked at again."""

    def __init__(self, root: FileTree, collected: Intent) -> None:
        self.root = root
        self.collected = collected
        self.fstab = root.shown(FSTAB)
        """The name of fstab, or of its proposal."""
        self.seen: set[str] = set()
        names = {"H": "proc/sys/kernel/hostname", "v": "proc/sys/kernel/osrelease", "m": "etc/machine-id"}
        values = {letter: root.read_or_empty(name).strip() for letter, name in names.items()}
        values["l"] = values["H"].partition(".")[0]
        self.specifiers = {letter: value for letter, value in values.items() if value}
        folders = {folder: self.root.names(folder) for folder in UNIT_FOLDERS}
        self.folders = {folder: frozenset(names) for folder, names in folders.items()}
        self.names = {folder: [n for n in names if n.endswith(SUFFIX)] for folder, names in folders.items()}
        self.drops = {folder: {n for n in names if n.endswith(".d")} for folder, names in folders.items()}
        self.automounts = self._automounts(folders)

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
                fstype = item.fstype if item.named is None else item.named
                values = {"What": item.source, "Where": item.point, "Options": item.options, "Type": fstype}
                unit = [
                    UnitSetting("Mount", key, value.replace("%", "%%"), item.file, item.line)
                    for key, value in values.items()
                ]
                requests = mount_request(name, [*unit, *changes], self.specifiers)
                # mount(8) still mounts an entry of fstab where its options are its own.
                self.collected.add(
                    request._replace(maker=Maker.MOUNT)
                    if isinstance(request, Request) and request.file == item.file
                    else request
                    for request in requests
                )
            else:
                self.collected.add([item])

    def _fstab(self) -> str:
        """Return fstab's text, "" for an absent file; an unreadable file is a problem."""
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
        """Return the item with its maker: an .automount unit of the same name mounts at the first use."""
        if not isinstance(item, Request):
            return item
        unit = self.automounts.get(name.removesuffix(SUFFIX) + AUTOMOUNT)
        return item._replace(maker=Maker.AUTOMOUNT) if unit and unit.value == item.point else item

    def add_misnamed_automounts(self) -> None:
        """Add the .automount units of the requests so far that systemd refuses for their names.

        See automount_verify() in src/core/automount.c.
        """
        refused = [unit.request for unit in self.collected.misnamed]
        points = {request.point: request for request in (*self.collected.requests, *refused)}
        for name, unit in self.automounts.items():
            right = unit_name(unit.value).removesuffix(SUFFIX) + AUTOMOUNT
            own = unit_path(name.removesuffix(AUTOMOUNT))
            request = points.get(unit.value, points.get(own))
            if right != name and request is not None:
                request_of_unit = request._replace(
                    point=unit.value, file=unit.file, line=unit.line, options=""
                )
                partner = "" if unit.value in points else own
                self.collected.add([Misnamed(request_of_unit, right, partner)])

    def dependencies(self, request: Request) -> Iterator[UnitSetting]:
        """Yield the settings of a mount's units, or the options of its line, that name other units.

        systemd-fstab-generator(8) takes a name without a kind for a mount unit's.
        """
        if request.file == self.fstab and request.maker is Maker.MOUNT:
            for option in request.options.split(","):
                name, _, value = option.partition("=")
                if name in _NAMING:
                    kind = "" if "." in value or "/" in value else SUFFIX
                    yield UnitSetting("", name, value + kind, request.file, request.line)
        elif request.maker in {Maker.UNIT, Maker.AUTOMOUNT}:
            automount, mount = unit_names(request.point)
            units = (mount, automount) if request.maker is Maker.AUTOMOUNT else (mount,)
            files = [file for name in units for file in (*self.files(name)[:1], *self.drop_in_files(name))]
            for file in files:
                for item in parse_unit(self.root.read_or_empty(file), f"/{file}"):
                    if isinstance(item, UnitSetting) and item.section == "Unit" and item.name in _NAMING:
                        yield item

    @cached_property
    def services(self) -> frozenset[str]:
        """The services that another unit wants."""
        return frozenset(wanted_units(self.root, ".service"))

    def made(self) -> set[str]:
        """Return the names of the units that systemd's generators make, of fstab and on a running host."""
        lines = (line.split() for line in self.root.read_or_empty(FSTAB).split("\n"))
        made = {unit_name(unmangle(words[1])) for words in lines if len(words) > 1 and words[0][0] != "#"}
        return made | {name for folder in GENERATED for name in self.root.names(folder)}

    def files(self, name: str) -> list[str]:
        """Return the files of a unit, the strongest first."""
        return [f"{folder}/{name}" for folder, names in self.folders.items() if name in names]

    def _automounts(self, folders: Mapping[str, Iterable[str]]) -> dict[str, UnitSetting]:
        """Return the Where= of each .automount unit by the unit's name, which gives it where none is known.

        The strongest file counts, and masks the unit where it is empty.
        """
        files = {n: d for d in reversed(UNIT_FOLDERS) for n in folders[d] if n.endswith(AUTOMOUNT)}
        units = {}
        for name, folder in files.items():
            file = f"/{folder}/{name}"
            text = self.root.read_or_empty(file[1:])
            where = UnitSetting("Automount", "Where", unit_path(name.removesuffix(AUTOMOUNT)), file, 0)
            changed = any(f"{name}.d" in drops for drops in self.drops.values())
            for item in () if changed else parse_unit(text, file):
                if isinstance(item, UnitSetting) and (item.section, item.name) == ("Automount", "Where"):
                    where = where if "%" in item.value else item._replace(value=clean_path(item.value))
            if text:
                units[name] = where
        return units

    def drop_in_files(self, name: str) -> list[str]:
        """Return the drop-ins of a unit in the order in which systemd reads them."""
        *own, of_all_mounts = drop_in_folders(name)
        places = [(folder, drop) for folder in UNIT_FOLDERS for drop in own]
        # Weaker than all others, wherever it is (unit_file_find_dropin_paths in src/shared/dropin.c).
        places += [(folder, of_all_mounts) for folder in UNIT_FOLDERS]
        drops = [f"{folder}/{drop}" for folder, drop in places if drop in self.drops[folder]]
        return strongest_files(self.root, drops, ".conf")

    def _drop_ins(self, name: str) -> list[UnitSetting]:
        return [
            setting
            for file in self.drop_in_files(name)
            for setting in self._settings(parse_unit(self.root.read_or_empty(file), "/" + file))
        ]

    def _settings(self, items: Iterable[UnitSetting | ParseError]) -> list[UnitSetting]:
        """Return the settings; errors are collected."""
        items = list(items)
        self.collected.add(item for item in items if isinstance(item, ParseError))
        return [item for item in items if isinstance(item, UnitSetting)]


def unit_names(point: str) -> tuple[str, str]:
    """Return the names of a mount point's .automount and .mount unit."""
    mount = unit_name(point)
    return mount.removesuffix(SUFFIX) + AUTOMOUNT, mount
