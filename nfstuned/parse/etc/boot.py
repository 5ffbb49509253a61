"""The boot of a host: units of its mounts that are absent, that nothing starts, or that start too early."""

from __future__ import annotations

import re
from collections.abc import Callable

from nfstuned.model.mounts import (
    EARLY,
    GSSD,
    NFS_TYPES,
    WAIT_ONLINE,
    EarlyService,
    Local,
    Maker,
    Request,
    UnitSetting,
    Unloaded,
    Unstarted,
)
from nfstuned.parse.etc.mount_units import AUTOMOUNT, STRICT, MountUnits, unit_names
from nfstuned.parse.etc.requests import local_lines
from nfstuned.parse.etc.starts import (
    ATTACHED,
    ENABLED,
    EVERYWHERE,
    GENERATOR_FOLDERS,
    INSTALL,
    KINDS,
    ONLINE,
    REMOTE,
    Starts,
)
from nfstuned.parse.etc.units import (
    AFTER_NETWORK,
    GENERATED,
    STRONG_UNIT_FOLDERS,
    SUFFIX,
    enabled_by_preset,
    is_mask,
    parse_unit,
    read_unit,
    unit_path,
    wanted_units,
)
from nfstuned.parse.fields import clean_path, nearest_point, unit_name
from nfstuned.parse.tree import FSTAB

_FILED = ("service", "socket", "timer", "path")
"""The kinds of units that systemd makes of files alone; it makes other kinds itself."""
_QUADLETS = ("etc/containers/systemd", "run/containers/systemd", "usr/share/containers/systemd")
"""Of the files there podman's generator makes services."""
_INIT = ("etc/init.d", "etc/rc.d/init.d")
_MOST_NAMES = 100
"""The most names of units that are looked for everywhere: no host's mounts need as many."""
_NEARNESS = 0.85
"""How alike the name of an absent unit is to the right one, at least: as difflib measures it."""
_INSTALL_LINE = r"(?m)^[ \t]*(?:WantedBy|RequiredBy|UpheldBy)[ \t]*=(.*)"
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
_ALL = ("-a", "-at", "-av", "--all", "-t nfs -a", "-t nfs4 -a", "-t nfs,nfs4 -a")
_AUTOFS, _TLSHD = "autofs.service", "tlshd.service"
_STARTERS = {
    _AUTOFS: ("autofs", "/usr/sbin/automount", "/sbin/automount"),
    REMOTE: (
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
_LATE_NETWORKS = ("NetworkManager.service", "networking.service")
"""They start after the local file systems; systemd-networkd does not."""
_OF_NETWORK = ("nfs", "nfs4", "cifs", "smb3")
"""The types of fstype_is_network() in systemd that are judged here; it knows neither aznfs nor efs."""


class Boot:
    """A judge of the requests so far; it adds its findings to the same collection."""

    def __init__(self, units: MountUnits) -> None:
        self.units, self.root, self.collected = units, units.root, units.collected
        self.starts = Starts(units)

    def add_local(self) -> None:
        """Add local file systems of fstab on a network's mount, and automounts after the network.

        systemd orders automount units before the local file systems, too (systemd.automount(5)).
        """
        lines = [*local_lines(self.root.read_or_empty(FSTAB), self.collected.requests, self.units.fstab)]
        if self.root.names(_RUNLEVELS):  # OpenRC, which mounts these lines after the others
            return
        automounts = (each for each in self.collected.requests if each.maker is Maker.AUTOMOUNT)
        for request in automounts:
            for setting in self.units.dependencies(request):
                late = setting.name == "After" and not AFTER_NETWORK.isdisjoint(setting.value.split())
                if late and setting.file.endswith(AUTOMOUNT):
                    place = request._replace(file=setting.file, line=setting.line)
                    lines.append(Local(place, request))
        network = next((name for name in _LATE_NETWORKS if lines and name in self.units.services), "")
        self.collected.local += [line._replace(network=network) for line in lines]

    def add_linked(self, resolve: Callable[[str], str]) -> None:
        """Add the started units with a mount point that is behind a link.

        See unit_fail_if_noncanonical() of systemd. A line of fstab is mounted past its links.
        """
        made = self.units.made()
        for request in self.collected.requests:
            names = unit_names(request.point)
            wanted = [name for name in names if name in self.starts.wanted and self.units.files(name)]
            if request.maker not in {Maker.UNIT, Maker.AUTOMOUNT} or not wanted or names[1] in made:
                continue
            real = resolve(request.point)
            if real != request.point:
                file = f"/{self.units.files(wanted[0])[0]}"
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
        changed = frozenset[str]().union(*self.units.drops.values())
        if any("service.d" in self.units.drops[folder] for folder in STRONG_UNIT_FOLDERS):
            return
        for name in sorted(self.units.services) if points else ():
            file = f"{ENABLED}/{name}"
            if name not in self.units.folders[ENABLED] or f"{name}.d" in changed or self.root.link(file):
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
                files = (*self.units.files(unit), *self.units.drop_in_files(unit))
                known = point in text or any(name in self.root.read_or_empty(each) for each in files)
                if point != "/" and not known:
                    self.collected.early.append(EarlyService(item.file, item.line, path, points[point]))
                    break

    def add_unloaded(self) -> None:
        """Add the enabled units that are not there, and .automount units without a mount unit that counts.

        Any line of fstab makes a unit, as systemd's generators do on a running host. systemd refuses such an
        .automount unit: unit_test_trigger_loaded() in src/core/unit.c.
        """
        made = self.units.made()
        misnamed = {unit.request.file for unit in self.collected.misnamed}
        groups = (group for group in self.root.names(ENABLED) if group.endswith((".wants", ".requires")))
        links = [
            f"{ENABLED}/{group}/{name}" for group in groups for name in self.root.names(f"{ENABLED}/{group}")
        ]
        for link in links:
            name = link.rpartition("/")[2]
            mount = name.removesuffix(AUTOMOUNT) + SUFFIX if name.endswith(AUTOMOUNT) else name
            unit = self.units.automounts.get(name)
            if not mount.endswith(SUFFIX) or (unit and unit.file in misnamed):
                continue
            files = self.units.files(mount if unit else name)
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
        made, absent = self.units.made(), dict[str, bool]()
        for request in self.collected.requests:
            for setting in self.units.dependencies(request):
                for name in setting.value.split():
                    key = request.point, setting.name, name
                    strict = setting.name in STRICT
                    files = self.units.files(name) if strict else []
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

    def _is_absent(self, name: str, made: set[str]) -> bool:
        """Return whether nothing makes a unit of this name, as far as files show; `made` are the generators'.

        Generators, which run at boot, make units of scripts for init, of containers' files and of names in
        their own text; a script or cloud-init may write a unit, and an alias come with an enabled unit.
        """
        (stem, kind), root = _stem_and_kind(name), self.root
        if not re.fullmatch(r"[\w.:-]+", stem, re.ASCII):
            return False
        if kind in {"", "mount"}:
            return (
                name not in made and not self.units.files(name) and bool(self.units.files(f"{stem}.service"))
            )
        folders = (*GENERATED, *ATTACHED)
        if kind not in _FILED or self.units.files(name) or any(name in root.names(each) for each in folders):
            return False
        if any(map(root.names, _QUADLETS)) or not self.units.files(EVERYWHERE):
            return False
        if any(root.exists(f"{folder}/{script}") for folder in _INIT for script in (stem, f"{stem}.sh")):
            return False
        generators = (f"{folder}/{each}" for folder in GENERATOR_FOLDERS for each in root.names(folder))
        if any(stem in self.starts.text(generator) for generator in generators):
            return False
        word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return not any(
            word.search(line)
            for file, line in self.starts.lines
            if file != FSTAB and (line.startswith("Alias") or not file.removesuffix(".d").endswith(KINDS))
        )

    def _near(self, name: str) -> str:
        """Return the unit of nearly the same name: of the same stem a target, else one of the same kind."""
        # Few mounts name a unit that is not there.
        from difflib import get_close_matches  # noqa: PLC0415

        stem, kind = _stem_and_kind(name)
        names = frozenset[str]().union(*self.units.folders.values())
        same = f"{stem}.target", f"{stem}.service"
        if right := next((each for each in same if each in {*names, ONLINE}), None):
            return right
        close = get_close_matches(name, sorted(each for each in names if each.endswith(kind)), 1, _NEARNESS)
        return close[0] if close else ""

    def add_unstarted(self) -> None:
        """Add the units that nothing starts at boot, although a file asks for their mounts.

        These are administrators' units with an [Install] section or with a link of an idle target, and those
        of _STARTERS; who masks autofs.service wants no maps. Nothing is added where a preset, another unit or
        a script may start it.
        """
        made = self.units.made()
        for request in self.collected.requests:
            if request.maker in {Maker.UNIT, Maker.AUTOMOUNT} and unit_name(request.point) not in made:
                self._add_idle(request.point)
        for name, words in _STARTERS.items():
            asking, unit = self._asking(name), read_unit(self.root, name, image=True)
            if not asking:
                continue
            started = unit.enabled or unit.masked or enabled_by_preset(self.root, name)
            idle = name in self.starts.idle_targets if name == REMOTE else unit.installed and not started
            masked = unit.masked and name != _AUTOFS
            for request in asking if masked or (idle and name != GSSD) else ():
                own = (name, FSTAB, *unit_names(request.point))
                if not self.starts.is_named(own, words, request.point if name == REMOTE else ""):
                    self._add_unstarted(name, request, masked=masked)
                    break
        self._add_wait()

    def _asking(self, name: str) -> list[Request]:
        """Return the requests that need a unit of _STARTERS; of many for one reason the first."""
        requests = self.collected.requests
        if name == _AUTOFS:
            return [request for request in requests if request.maker is Maker.AUTOFS][:1]
        if name == REMOTE:
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
        if not any(re.search(r"\b(?:net)?mount\b", self.starts.text(file)) for file in files):
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
        return (
            request.file == self.units.fstab and known and "noauto" not in options and not other and not early
        )

    def _add_unstarted(self, name: str, request: Request, *, masked: bool) -> None:
        file, place = f"/{self.units.files(name)[0]}", f"{request.file}:{request.line}"
        self.collected.unstarted.append(Unstarted(name, file, place=place, masked=masked))

    def _add_idle(self, point: str) -> None:
        """Add a mount unit, or its .automount unit, that somebody means to enable and that nothing starts."""
        names, root = unit_names(point), self.root
        texts = {name: root.read_or_empty(f"{ENABLED}/{name}") for name in names}
        wanting = [name for name in names if name in self.starts.wanted and self.units.files(name)]
        able = [name for name in names if INSTALL.search(texts[name])]
        targets = {target for name in wanting for target in self.starts.wanted[name]}
        if (
            not (wanting or able)
            or targets - self.starts.idle_targets
            or self.starts.is_named(names, names, point)
        ):
            return
        installing = {
            word for name in able for line in re.findall(_INSTALL_LINE, texts[name]) for word in line.split()
        }
        if not (
            installing - self.starts.idle_targets and any(enabled_by_preset(root, name) for name in able)
        ):
            name, target = (wanting or able)[0], min(targets, default="")
            absent = bool(target) and not self.units.files(target)
            file = f"/{self.units.files(name)[0]}"
            self.collected.unstarted.append(Unstarted(name, file, point, target=target, absent=absent))


def _stem_and_kind(name: str) -> tuple[str, str]:
    stem, _, kind = name.rpartition(".")
    return (stem, kind) if stem else (name, "")
