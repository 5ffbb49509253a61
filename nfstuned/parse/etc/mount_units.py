"""Mount units and the boot: which units ask for a mount, in which order, and which are absent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from nfstuned.errors import ParseError
from nfstuned.model.mounts import (
    EARLY,
    GRAPHICAL,
    GSSD,
    NFS_TYPES,
    WAIT_ONLINE,
    EarlyService,
    Local,
    Maker,
    Misnamed,
    Request,
    UnitSetting,
    Unloaded,
    Unstarted,
)
from nfstuned.parse.etc.requests import Intent, local_lines, parse_fstab
from nfstuned.parse.etc.units import (
    GENERATED,
    STRONG_UNIT_FOLDERS,
    SUFFIX,
    UNIT_FOLDERS,
    drop_in_folders,
    enabled_by_preset,
    is_mask,
    mount_request,
    parse_unit,
    read_unit,
    strongest_files,
    unit_path,
    wanted_units,
)
from nfstuned.parse.fields import clean_path, nearest_point, unit_name, unmangle
from nfstuned.parse.tree import ELF, FSTAB, FileTree

AUTOMOUNT = ".automount"
_ENABLED = "etc/systemd/system"
_KINDS = (".service", ".target", ".timer", ".path", ".socket", ".mount", ".automount")
"""The units that may ask for another unit."""
_STRICT = ("Requires", "BindsTo", "Requisite", "x-systemd.requires")
"""The settings, and the option of fstab, for which a mount needs another unit."""
_NAMING = (*_STRICT, "After", "Wants", "x-systemd.after", "x-systemd.wants")
_FILED = ("service", "socket", "timer", "path")
"""The kinds of units that systemd makes of files alone; it makes other kinds itself."""
_ATTACHED = ("etc/systemd/system.attached", "run/systemd/system.attached")
_QUADLETS = ("etc/containers/systemd", "run/containers/systemd", "usr/share/containers/systemd")
"""Of the files there podman's generator makes services."""
_INIT = ("etc/init.d", "etc/rc.d/init.d")
_GENERATORS = tuple(
    f"{place}/systemd/system-generators" for place in ("etc", "run", "usr/local/lib", "usr/lib", "lib")
)
_TARGET = ".target"
_ONLINE, _REMOTE = "network-online.target", "remote-fs.target"
_MULTI_USER = "multi-user.target"
_OWN = (_ONLINE, _REMOTE, _MULTI_USER, GRAPHICAL, "basic.target", "network.target")
"""The targets of systemd that mounts name: an incomplete tree may lack them."""
_DEFAULT = "default.target"
_EVERYWHERE = "sysinit.target"
"""A tree without it lacks systemd's own units."""
_MOST_NAMES = 100
"""The most names of units that are looked for everywhere: no host's mounts need as many."""
_NEARNESS = 0.85
"""How alike the name of an absent unit is to the right one, at least: as difflib measures it."""
_SCRIPTS = (
    *("etc/NetworkManager/dispatcher.d", "etc/networkd-dispatcher/routable.d", "etc/udev/rules.d"),
    *("etc/network/if-up.d", "etc/network/interfaces.d", "etc/cron.d", "etc/cloud/cloud.cfg.d"),
    *("usr/lib/udev/rules.d", "var/spool/cron", "var/spool/cron/crontabs", *_GENERATORS),
)
_SCRIPT_FILES = (
    "etc/network/interfaces",
    "etc/rc.local",
    "etc/rc.d/rc.local",
    "etc/crontab",
    "etc/cloud/cloud.cfg",
    "proc/cmdline",
)
_MOST_OF_SCRIPT = 262_144
_INSTALL_LINE = r"(?m)^[ \t]*(?:WantedBy|RequiredBy|UpheldBy)[ \t]*=(.*)"
_MOST_LINKS = 4
_READ_AT_START = r"(?:^[-@:+!|]*|\s(?:-f|-c|--file|--config(?:-file)?)[ =])(/[^\s'\";:,|&<>()$%]+)(?!\S)"
"""A command's program, and the file that it is given."""
_ELSEWHERE = (
    r"mount|\b(?:(?:docker|podman|nerdctl|ctr|crictl|lxc) (?:run|exec)|bwrap|systemd-nspawn|chroot|ssh|rsync"
    r"|until|while)\b"
)
_ORDERED_LINE = r"\b(?:noauto|x-systemd\.before|x-initrd\.mount)\b"
_BEFORE_ANY_MOUNT = {
    *("network.target", "network-online.target", "local-fs.target", "sysinit.target", "basic.target"),
    *("docker.service", "containerd.service", "docker.socket", "syslog.target", "time-sync.target"),
    *("nss-lookup.target", "dbus.service", "dbus.socket", "postgresql.service", "redis.service"),
}
"""Units that order no service after the mounts of a network."""
_MOUNT_SECTION = r"(?m)^\[Mount\]"
_INSTALL = re.compile(r"(?m)^[ \t]*(?:WantedBy|RequiredBy|UpheldBy)[ \t]*=[ \t]*\S")
_INERT = re.compile(
    r"\s*(?:[#;]|(?:After|Before|Description|Documentation|PartOf|Conflicts|(?:Wanted|Required|Upheld)By"
    r"|(?:Condition|Assert)\w+)\s*=)"
)
"""Lines that start no other unit."""
_ALL = ("-a", "-at", "-av", "--all", "-t nfs -a", "-t nfs4 -a", "-t nfs,nfs4 -a")
_AUTOFS, _TLSHD = "autofs.service", "tlshd.service"
_STARTERS = {
    _AUTOFS: ("autofs", "/usr/sbin/automount", "/sbin/automount"),
    _REMOTE: (
        "mountall",
        *(f"{folder}mount {how}" for folder in ("", "/bin/", "/usr/bin/") for how in _ALL),
    ),
    _TLSHD: ("tlshd", "/usr/sbin/tlshd", "/sbin/tlshd"),
    GSSD: ("/usr/sbin/rpc.gssd", "/sbin/rpc.gssd"),
}
"""The units that mounts of files need, and the words of scripts that start the same; nfs-client.target starts
rpc-gssd.service, so that only its mask counts."""
_TLS = r"(?:^|,)xprtsec=m?tls(?:,|$)"
_KERBEROS = r"(?:^|,)sec=(?:[a-z0-9]+:)*krb5[ip]?(?:[,:]|$)"
_RUNLEVELS, _NETMOUNT = "etc/runlevels", "etc/init.d/netmount"
_NETMOUNTS = ("netmount", "nfsmount", "mountnfs", "mountnfs.sh", "autofs")
"""Of OpenRC, with the services that mount network file systems: Alpine's and Gentoo's."""
_NETWORKD = "systemd-networkd.service"
_OTHER_NETWORKS = ("NetworkManager.service", "networking.service", "cloud-init.service", "dhcpcd.service")
_AFTER_NETWORK = {"network.target", "network-online.target", "remote-fs-pre.target"}
_LATE_NETWORKS = ("NetworkManager.service", "networking.service")
"""They start after the local file systems; systemd-networkd does not."""
_OF_NETWORK = ("nfs", "nfs4", "cifs", "smb3")
"""The types of fstype_is_network() in systemd that are judged here; it knows neither aznfs nor efs."""
_DIRECTORIES = {"t": "/run", "S": "/var/lib", "C": "/var/cache", "L": "/var/log", "E": "/etc"}


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
        self.specifiers = _DIRECTORIES | {letter: value for letter, value in values.items() if value}
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

    def add_local(self) -> None:
        """Add local file systems of fstab on a network's mount, and automounts after the network.

        systemd orders automount units before the local file systems, too (systemd.automount(5)).
        """
        lines = [*local_lines(self.root.read_or_empty(FSTAB), self.collected.requests, self.fstab)]
        if self.root.names(_RUNLEVELS):  # OpenRC, which mounts these lines after the others
            return
        automounts = (each for each in self.collected.requests if each.maker is Maker.AUTOMOUNT)
        for request in automounts:
            for setting in self.dependencies(request):
                late = setting.name == "After" and not _AFTER_NETWORK.isdisjoint(setting.value.split())
                if late and setting.file.endswith(AUTOMOUNT):
                    place = request._replace(file=setting.file, line=setting.line)
                    lines.append(Local(place, request))
        network = next((name for name in _LATE_NETWORKS if lines and name in self.services), "")
        self.collected.local += [line._replace(network=network) for line in lines]

    def add_linked(self, resolve: Callable[[str], str]) -> None:
        """Add the started units with a mount point that is behind a link.

        See unit_fail_if_noncanonical() of systemd. A line of fstab is mounted past its links.
        """
        made = self._made()
        for request in self.collected.requests:
            names = _unit_names(request.point)
            wanted = [name for name in names if name in self._wanted and self._files(name)]
            if request.maker not in {Maker.UNIT, Maker.AUTOMOUNT} or not wanted or names[1] in made:
                continue
            real = resolve(request.point)
            if real != request.point:
                file = f"/{self._files(wanted[0])[0]}"
                self.collected.unloaded.append(
                    Unloaded(file, request.point, unit_name(real), setting="Where", near=real)
                )

    def add_early_services(self) -> None:
        """Add administrators' enabled services with a program, or a file of its command, on a mount.

        Nothing orders them after that mount.

        systemd orders a service after the mounts of some paths by itself, such as WorkingDirectory=. A
        service with drop-ins, with an order after units that may wait, with the path in another setting, or
        with a command that mounts or runs elsewhere is left out.
        """
        points = {
            request.point: request
            for request in self.collected.requests
            if request.maker in {Maker.MOUNT, Maker.UNIT}
            and not request.at_first_use
            and not re.search(_ORDERED_LINE, request.options)
            and request.point not in EARLY
        }
        changed = frozenset[str]().union(*self.drops.values())
        if any("service.d" in self.drops[folder] for folder in STRONG_UNIT_FOLDERS):
            return
        for name in sorted(self.services) if points else ():
            file = f"{_ENABLED}/{name}"
            if name not in self.folders[_ENABLED] or f"{name}.d" in changed or self.root.link(file):
                continue
            items = parse_unit(self.root.read_or_empty(file), f"/{file}")
            settings = [item for item in items if isinstance(item, UnitSetting)]
            commands = [
                item for item in settings if item.name in {"ExecStart", "ExecStartPre"} and item.value
            ]
            others = [item for item in settings if not item.name.startswith("Exec")]
            after = {word for item in others if item.name == "After" for word in item.value.split()}
            if after - _BEFORE_ANY_MOUNT or any(f"{word}.d" in changed for word in after):
                continue
            if any(item.name == "DefaultDependencies" for item in others):
                continue
            text = " ".join(item.value for item in others)
            if any(re.search(_ELSEWHERE, item.value) for item in commands) or len(commands) > _MOST_NAMES:
                continue
            found = ((item, path) for item in commands for path in re.findall(_READ_AT_START, item.value))
            for item, path in found:
                point = nearest_point(clean_path(path), points)
                unit = unit_name(point)
                files = (*self._files(unit), *self._drop_in_files(unit))
                known = point in text or any(name in self.root.read_or_empty(each) for each in files)
                if point != "/" and not known:
                    self.collected.early.append(EarlyService(item.file, item.line, path, points[point]))
                    break

    def add_unloaded(self) -> None:
        """Add the enabled units that are not there, and .automount units without a mount unit that counts.

        Any line of fstab makes a unit, as systemd's generators do on a running host. systemd refuses such an
        .automount unit: unit_test_trigger_loaded() in src/core/unit.c.
        """
        made = self._made()
        misnamed = {unit.request.file for unit in self.collected.misnamed}
        groups = (group for group in self.root.names(_ENABLED) if group.endswith((".wants", ".requires")))
        links = [
            f"{_ENABLED}/{group}/{name}"
            for group in groups
            for name in self.root.names(f"{_ENABLED}/{group}")
        ]
        for link in links:
            name = link.rpartition("/")[2]
            mount = name.removesuffix(AUTOMOUNT) + SUFFIX if name.endswith(AUTOMOUNT) else name
            unit = self.automounts.get(name)
            if not mount.endswith(SUFFIX) or (unit and unit.file in misnamed):
                continue
            files = self._files(mount if unit else name)
            mask = f"/{files[0]}" if unit and files and is_mask(self.root, files[0]) else ""
            if mask or not (files or mount in made):
                file, lacking = (unit.file, mount) if unit else (f"/{link}", name)
                near = file if unit and re.search(_MOUNT_SECTION, self.root.read_or_empty(file[1:])) else ""
                self.collected.unloaded.append(Unloaded(file, unit_path(mount), lacking, mask, near=near))

    def add_unmet(self) -> None:
        """Add the units that a mount's unit or line of fstab names, and that are not there or masked.

        systemd cannot queue the start of a unit with such a Requires= ("not found", "is masked"). It passes
        over such an After=, which is added only where a unit of the same stem is there.
        """
        seen: set[tuple[str, str, str]] = set()
        made, absent = self._made(), dict[str, bool]()
        for request in self.collected.requests:
            for setting in self.dependencies(request):
                for name in setting.value.split():
                    key = request.point, setting.name, name
                    strict = setting.name in _STRICT
                    files = self._files(name) if strict else []
                    mask = f"/{files[0]}" if files and is_mask(self.root, files[0]) else ""
                    if name not in absent and len(absent) < _MOST_NAMES:
                        absent[name] = self._is_absent(name, made)
                    if key in seen or not (mask or absent.get(name)):
                        continue
                    seen.add(key)
                    near = "" if mask else self._near(name)
                    if strict or _stem_and_kind(near)[0] == _stem_and_kind(name)[0]:
                        place = f"{setting.file}:{setting.line}"
                        self.collected.unloaded.append(
                            Unloaded(place, request.point, name, mask, setting.name, near)
                        )

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
            automount, mount = _unit_names(request.point)
            units = (mount, automount) if request.maker is Maker.AUTOMOUNT else (mount,)
            files = [file for name in units for file in (*self._files(name)[:1], *self._drop_in_files(name))]
            for file in files:
                for item in parse_unit(self.root.read_or_empty(file), f"/{file}"):
                    if isinstance(item, UnitSetting) and item.section == "Unit" and item.name in _NAMING:
                        yield item

    def _is_absent(self, name: str, made: set[str]) -> bool:
        """Return whether nothing makes a unit of this name, as far as files show; `made` are the generators'.

        Generators, which run at boot, make units of scripts for init, of containers' files and of names in
        their own text; a script or cloud-init may write a unit, and an alias come with an enabled unit.
        """
        (stem, kind), root = _stem_and_kind(name), self.root
        if not re.fullmatch(r"[\w.:-]+", stem, re.ASCII):
            return False
        if kind in {"", "mount"}:
            return name not in made and not self._files(name) and bool(self._files(f"{stem}.service"))
        folders = (*GENERATED, *_ATTACHED)
        if kind not in _FILED or self._files(name) or any(name in root.names(each) for each in folders):
            return False
        if any(map(root.names, _QUADLETS)) or not self._files(_EVERYWHERE):
            return False
        if any(root.exists(f"{folder}/{script}") for folder in _INIT for script in (stem, f"{stem}.sh")):
            return False
        generators = (f"{folder}/{each}" for folder in _GENERATORS for each in root.names(folder))
        if any(stem in self._start(generator) for generator in generators):
            return False
        word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return not any(
            word.search(line)
            for file, line in self._lines
            if file != FSTAB and (line.startswith("Alias") or not file.removesuffix(".d").endswith(_KINDS))
        )

    def _near(self, name: str) -> str:
        """Return the unit of nearly the same name: of the same stem a target, else one of the same kind."""
        # Few mounts name a unit that is not there.
        from difflib import get_close_matches  # noqa: PLC0415

        stem, kind = _stem_and_kind(name)
        names = frozenset[str]().union(*self.folders.values())
        same = f"{stem}.target", f"{stem}.service"
        if right := next((each for each in same if each in {*names, _ONLINE}), None):
            return right
        close = get_close_matches(name, sorted(each for each in names if each.endswith(kind)), 1, _NEARNESS)
        return close[0] if close else ""

    def add_unstarted(self) -> None:
        """Add the units that nothing starts at boot, although a file asks for their mounts.

        These are administrators' units with an [Install] section or with a link of an idle target, and those
        of _STARTERS; who masks autofs.service wants no maps. Nothing is added where a preset, another unit or
        a script may start it.
        """
        made = self._made()
        for request in self.collected.requests:
            if request.maker in {Maker.UNIT, Maker.AUTOMOUNT} and unit_name(request.point) not in made:
                self._add_idle(request.point)
        for name, words in _STARTERS.items():
            asking, unit = self._asking(name), read_unit(self.root, name, image=True)
            if not asking:
                continue
            started = unit.enabled or unit.masked or enabled_by_preset(self.root, name)
            idle = name in self._idle_targets if name == _REMOTE else unit.installed and not started
            masked = unit.masked and name != _AUTOFS
            for request in asking if masked or (idle and name != GSSD) else ():
                own = (name, FSTAB, *_unit_names(request.point))
                if not self._is_named(own, words, request.point if name == _REMOTE else ""):
                    self._add_unstarted(name, request, masked=masked)
                    break
        self._add_wait()

    def _asking(self, name: str) -> list[Request]:
        """Return the requests that need a unit of _STARTERS; of many for one reason the first."""
        requests = self.collected.requests
        if name == _AUTOFS:
            return [request for request in requests if request.maker is Maker.AUTOFS][:1]
        if name == _REMOTE:
            return [request for request in requests if self._is_by_remote_fs(request)]
        asked = _TLS if name == _TLSHD else _KERBEROS
        return [
            request
            for request in requests
            if request.fstype in NFS_TYPES
            and re.search(asked, request.options)
            and "noauto" not in request.options.split(",")
        ][:1]

    def add_runlevel(self) -> None:
        """Add OpenRC's netmount where no runlevel has it or its like, and fstab has a line of a network's.

        Any mention of it, or of mount(8), in the settings and scripts of services counts as a start.
        """
        root = self.root
        services = {name for level in root.names(_RUNLEVELS) for name in root.names(f"{_RUNLEVELS}/{level}")}
        request = next(filter(self._is_by_remote_fs, self.collected.requests), None)
        if not request or not services or not root.exists(_NETMOUNT) or not services.isdisjoint(_NETMOUNTS):
            return
        files = [*(f"etc/init.d/{name}" for name in services), "etc/rc.conf"]
        files += [
            f"{folder}/{name}" for folder in ("etc/conf.d", "etc/local.d") for name in root.names(folder)
        ]
        if not any(re.search(r"\b(?:net)?mount\b", self._start(file)) for file in files):
            place = f"{request.file}:{request.line}"
            self.collected.unstarted.append(Unstarted("netmount", f"/{_NETMOUNT}", place=place))

    def _add_wait(self) -> None:
        """Add networkd's wait for the network where it is off, no other unit waits, and a mount needs it."""
        for request in filter(self._is_by_remote_fs, self.collected.requests):
            if "bg" not in request.options.split(",") and not request.at_first_use:
                break
        else:
            return
        networkd, wait = (read_unit(self.root, name, image=True) for name in (_NETWORKD, WAIT_ONLINE))
        others = [
            name
            for name in wanted_units(self.root, ("wait-online.service", *_OTHER_NETWORKS))
            if not read_unit(self.root, name, image=True).masked
        ]
        known = wait.installed or wait.masked
        if networkd.enabled and known and not others and not enabled_by_preset(self.root, WAIT_ONLINE):
            self._add_unstarted(WAIT_ONLINE, request, masked=wait.masked)

    def _is_by_remote_fs(self, request: Request) -> bool:
        """Return whether systemd mounts a line of fstab only for remote-fs.target (systemd.mount(5))."""
        options = request.options.split(",")
        wants = ("x-systemd.wanted-by=", "x-systemd.required-by=")
        other = any(option.startswith(wants) for option in options)
        known = request.fstype in _OF_NETWORK or "_netdev" in options
        early = request.point in EARLY or "x-initrd.mount" in options
        return request.file == self.fstab and known and "noauto" not in options and not other and not early

    def _add_unstarted(self, name: str, request: Request, *, masked: bool) -> None:
        file, place = f"/{self._files(name)[0]}", f"{request.file}:{request.line}"
        self.collected.unstarted.append(Unstarted(name, file, place=place, masked=masked))

    def _add_idle(self, point: str) -> None:
        """Add a mount unit, or its .automount unit, that somebody means to enable and that nothing starts."""
        names, root = _unit_names(point), self.root
        texts = {name: root.read_or_empty(f"{_ENABLED}/{name}") for name in names}
        wanting = [name for name in names if name in self._wanted and self._files(name)]
        able = [name for name in names if _INSTALL.search(texts[name])]
        targets = {target for name in wanting for target in self._wanted[name]}
        if not (wanting or able) or targets - self._idle_targets or self._is_named(names, names, point):
            return
        installing = {
            word for name in able for line in re.findall(_INSTALL_LINE, texts[name]) for word in line.split()
        }
        if not (installing - self._idle_targets and any(enabled_by_preset(root, name) for name in able)):
            name, target = (wanting or able)[0], min(targets, default="")
            absent = bool(target) and not self._files(target)
            file = f"/{self._files(name)[0]}"
            self.collected.unstarted.append(Unstarted(name, file, point, target=target, absent=absent))

    @cached_property
    def services(self) -> frozenset[str]:
        """The services that another unit wants."""
        return frozenset(wanted_units(self.root, ".service"))

    @cached_property
    def _wanted(self) -> Mapping[str, set[str]]:
        return wanted_units(self.root, (SUFFIX, AUTOMOUNT, _TARGET))

    @cached_property
    def _idle_targets(self) -> set[str]:
        """The targets that nothing starts at boot, of those with links to mounts, and remote-fs.target.

        They are not there, or lack a link: remote-fs.target, administrators' targets with an [Install]
        section, and graphical.target where the default is another target. Others may be started by systemd
        itself, by devices or by people.
        """
        if not self._files(_EVERYWHERE):
            return set()
        boot = {_DEFAULT}
        for _ in range(_MOST_LINKS):
            files = [file for name in boot for file in self._files(name)]
            boot |= {link.rpartition("/")[2] for file in files if (link := self.root.link(file))}
        runlevel = {"2", "3", "4", "5"}.intersection(self.root.read_or_empty("proc/cmdline").split())
        graphical = {GRAPHICAL} if _MULTI_USER in boot and not runlevel else set()
        links = [self.root.link(f"{_ENABLED}/{n}") for n in self.folders[_ENABLED] if n.endswith(_TARGET)]
        aliased = {link.rpartition("/")[2] for link in links if link}
        wanting = set[str]().union(*self._wanted.values(), {_REMOTE})
        idle = set()
        for name in wanting - boot - aliased:
            files = self._files(name)
            made = any(name in self.root.names(each) for each in (*GENERATED, *_ATTACHED))
            own = _INSTALL.search(self.root.read_or_empty(f"{_ENABLED}/{name}"))
            if files and (own or name in {_REMOTE, *graphical}):
                enabled = enabled_by_preset(self.root, name)
            else:
                enabled = bool(files) or made or name in _OWN or "@" in name or not name.endswith(_TARGET)
            if not enabled:
                idle.add(name)
        idle = self._without_wanted(idle)
        return self._without_wanted({name for name in idle if not self._is_named((name,), (name,), "")})

    def _without_wanted(self, idle: set[str]) -> set[str]:
        """Return the idle units without those that another unit wants."""
        while wanted := {name for name in idle if self._wanted.get(name, set()) - idle}:
            idle = idle - wanted
        return idle

    def _is_named(self, own: Sequence[str], words: Sequence[str], point: str) -> bool:
        """Return whether any unit or script may start a mount, or a unit known by these words.

        The files of units in `own` do not count. A path at or below the mount point makes systemd mount it,
        but for commands; a template's specifier stands for any text.
        """
        ends = "|".join(map(re.escape, words))
        named = re.compile(rf"(?<![\w/.-])(?:{ends})(?![\w-])")
        path = re.compile(rf"(?<![\w/.]){re.escape(point)}(?![\w.-])") if point else None
        for file, line in self._lines:
            if file.removesuffix(".d") in own:
                continue
            command = line.lstrip().startswith("Exec") and "mount" not in line
            if named.search(line) or (path and not command and path.search(line)):
                return True
            for word in re.split(r"[\s=:]", line) if "%" in line else ():
                parts = re.split("%[A-Za-z]", word)
                pattern = ".*".join(map(re.escape, parts))
                if re.search(r"\w", "".join(parts)) and any(
                    re.fullmatch(pattern, each) for each in (*words, point)
                ):
                    return True
        return False

    @cached_property
    def _lines(self) -> list[tuple[str, str]]:
        """The lines of all files that may start a unit, each with its unit or folder of drop-ins."""
        files = [(name, name) for name in (*_SCRIPT_FILES, FSTAB)]
        files += [(f"{folder}/{name}", name) for folder in _SCRIPTS for name in self.root.names(folder)]
        for folder in (*UNIT_FOLDERS, *GENERATED):
            for name in self.root.names(folder):
                drops = self.root.names(f"{folder}/{name}") if name.endswith(".d") else ()
                files += [(f"{folder}/{name}/{drop}", name) for drop in drops if drop.endswith(".conf")]
                files += [(f"{folder}/{name}", name)] if name.endswith(_KINDS) else []
        return [
            (name, line)
            for file, name in files
            for line in self._start(file).replace("\\\n", " ").split("\n")
            if line and not _INERT.match(line)
        ]

    def _start(self, file: str) -> str:
        """Return a script's or a unit's text; "" for a program, such as systemd's own generators."""
        try:
            text = self.root.read_start(file, _MOST_OF_SCRIPT).decode("utf-8", "surrogateescape")
            return "" if text.startswith(ELF) else text
        except OSError:
            self.root.faults.forget(file)
            return ""

    def _made(self) -> set[str]:
        """Return the names of the units that systemd's generators make, of fstab and on a running host."""
        lines = (line.split() for line in self.root.read_or_empty(FSTAB).split("\n"))
        made = {unit_name(unmangle(words[1])) for words in lines if len(words) > 1 and words[0][0] != "#"}
        return made | {name for folder in GENERATED for name in self.root.names(folder)}

    def _files(self, name: str) -> list[str]:
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

    def _drop_in_files(self, name: str) -> list[str]:
        *own, of_all_mounts = drop_in_folders(name)
        places = [(folder, drop) for folder in UNIT_FOLDERS for drop in own]
        # Weaker than all others, wherever it is (unit_file_find_dropin_paths in src/shared/dropin.c).
        places += [(folder, of_all_mounts) for folder in UNIT_FOLDERS]
        drops = [f"{folder}/{drop}" for folder, drop in places if drop in self.drops[folder]]
        return strongest_files(self.root, drops, ".conf")

    def _drop_ins(self, name: str) -> list[UnitSetting]:
        return [
            setting
            for file in self._drop_in_files(name)
            for setting in self._settings(parse_unit(self.root.read_or_empty(file), "/" + file))
        ]

    def _settings(self, items: Iterable[UnitSetting | ParseError]) -> list[UnitSetting]:
        """Return the settings; errors are collected."""
        items = list(items)
        self.collected.add(item for item in items if isinstance(item, ParseError))
        return [item for item in items if isinstance(item, UnitSetting)]


def _stem_and_kind(name: str) -> tuple[str, str]:
    stem, _, kind = name.rpartition(".")
    return (stem, kind) if stem else (name, "")


def _unit_names(point: str) -> tuple[str, str]:
    """Return the names of a mount point's .automount and .mount unit."""
    mount = unit_name(point)
    return mount.removesuffix(SUFFIX) + AUTOMOUNT, mount
