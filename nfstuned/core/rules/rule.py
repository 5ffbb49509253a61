"""The parts of rules: the arguments of `@rule`, the manuals, and remedies with the place of each change."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nfstuned.core.mounts.requests import last_asked
from nfstuned.core.mounts.targets import definition, renewal
from nfstuned.core.policy.decision import as_glob, matcher
from nfstuned.model.facts import Facts, Fault, Need, Rule, Severity, Target
from nfstuned.model.mounts import AZURE_FILES, UTAB, Asked, Maker
from nfstuned.model.policy import Profile, Provider
from nfstuned.model.system import RUNNING, CommandLine, KernelSetting, System, Unit
from nfstuned.parse.fields import quote, some

ERROR, WARNING, ADVICE, INFO = Severity
HOST, LIVE, NETWORK, SAMPLE, IMAGE, KERNEL, NFS_UTILS = Need


def rule(  # noqa: PLR0913 - a rule carries itself
    id_: str,
    name: str,
    severity: Severity,
    *,
    source: str,
    needs: tuple[Need, ...] = (),
    default: bool = True,
) -> Callable[[Callable[[Facts], Iterator[Fault | Need | str]]], Rule]:
    """Make a Rule of the function that yields its faults.

    An id and a name never change their meaning, even for a removed rule. `source` is the page, the kernel
    file or the manual on which the rule is based. Without its `needs` a rule is skipped.
    """
    return lambda judge: Rule(id_, name, severity, judge, source, frozenset(needs), default)


class Manual:
    """The pages and manuals that several rules rest on."""

    ACCELERATED = "https://learn.microsoft.com/azure/virtual-network/accelerated-networking-how-it-works"
    AZNFS = "https://github.com/Azure/AZNFS-mount"
    CLIENT_ID = "https://docs.kernel.org/filesystems/nfs/client-identifier.html"
    MOUNTING = "https://learn.microsoft.com/en-us/azure/storage/files/storage-files-how-to-mount-nfs-shares"
    NETAPP = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options"
    NETAPP_SMB = (
        "https://learn.microsoft.com/en-us/azure/azure-netapp-files/azure-netapp-files-smb-performance"
    )
    NETWORKING = "https://learn.microsoft.com/en-us/azure/storage/files/storage-files-networking-overview"
    NFS = "https://man7.org/linux/man-pages/man5/nfs.5.html"
    PERFORMANCE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"
    SLOTS = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-concurrency-session-slots"
    SLOW = "https://learn.microsoft.com/en-us/troubleshoot/azure/azure-storage/files/performance/files-troubleshoot-performance"
    SMB = "https://learn.microsoft.com/en-us/azure/storage/files/smb-performance"
    SMB_MOUNTING = "https://learn.microsoft.com/en-us/azure/storage/files/storage-how-to-use-files-linux"
    STUNNEL = "https://www.stunnel.org/static/stunnel.html"
    SYSTEMCTL = "https://www.freedesktop.org/software/systemd/man/latest/systemctl.html"
    TLS = "https://learn.microsoft.com/en-us/azure/storage/files/encryption-in-transit-for-nfs-shares"
    TROUBLE = "https://learn.microsoft.com/en-us/troubleshoot/azure/azure-storage/files/linux/files-troubleshoot-linux-nfs"
    UDEV = "https://www.freedesktop.org/software/systemd/man/latest/udev.html"


SERVICE, WATCHDOG = "nfstuned.service", "aznfswatchdogv4"
"""nfstuned's own service, and the service that keeps the TLS tunnels of AZNFS."""
_DROP_INS = "/etc/nfstuned/conf.d"


def known_provider(facts: Facts, *names: str) -> Provider | None:
    """Return the provider with one of these names; None where none of them is a provider's."""
    return next((provider for provider in facts.policy.providers if provider.name in names), None)


def provider_by_name(facts: Facts, host: str) -> Provider | None:
    """Return the provider with servers named like `host`; None where no provider has such names."""
    return known_provider(facts, matcher(facts.policy).providers.by_name(host))


def names_azure_files(facts: Facts, host: str) -> bool:
    """Whether a name is a server's of Azure Files."""
    return matcher(facts.policy).providers.by_name(host) == AZURE_FILES


def place_of(target: Target, *names: str) -> str:
    """Return the subject of a finding about options of a mount.

    It is the mount's own, and in a file with a line for each option the line of the first of them.
    """
    request = target.request
    return target.subject if target.live is not None or request is None else request.place_of(*names)


def where(target: Target) -> str:
    """Return the place with the options of a mount, for people."""
    asked = target.request.place if target.request else ""
    return asked or definition(target, "place") or "the mount command"


def source_of(profile: Profile, key: str) -> str:
    """Return the address of the page that a key of a profile is from; "" where it has none."""
    return next((source.url for source in profile.sources if key in source.keys), "")


def by_superblock(targets: Iterable[Target]) -> list[list[Target]]:
    """Return the mounts of each superblock; a mount that is only asked for stands alone."""
    sharing: dict[object, list[Target]] = {}
    for target in targets:
        sharing.setdefault(superblock_key(target), []).append(target)
    return list(sharing.values())


def superblock_key(target: Target) -> object:
    """Return the key of a mount's superblock: of SMB its device; of a mount only asked for its own."""
    if target.superblock is not None:
        return target.superblock.key
    return target.identity if target.live is None else target.live.device


def name_others(others: Sequence[Target]) -> str:
    """Name more mounts, or lines, with the same finding."""
    return f"; the same for {some([other.subject for other in others])}" if others else ""


def give_workload(match: Mapping[str, Iterable[str]], profile: str, workload: str) -> str:
    """Return the command that adds the [[policy]] entry for mounts to a drop-in; "" keeps their profile.

    `match` has the texts of each key that mean these mounts.
    It makes the folder of drop-ins, which no package brings. A `?`, which matches any character, replaces a
    character that TOML or a terminal cannot hold.
    """
    conditions = []
    for key, texts in match.items():
        globs = ("".join(char if char.isprintable() else "?" for char in as_glob(text)) for text in texts)
        patterns = ",".join(json.dumps(glob, ensure_ascii=False) for glob in globs)
        conditions.append(f"{key}=[{patterns}]")
    keys = [f"match={{{','.join(conditions)}}}"]
    keys += [f'profile="{profile}"'] if profile else []
    words = " ".join(quote(line) for line in ("[[policy]]", *keys, f'workload="{workload}"'))
    written = f"printf '%s\\n' {words} | sudo tee -a {_DROP_INS}/workloads.toml"
    return f"sudo mkdir -p {_DROP_INS} && {written}"


def of_conf(target: Target, *names: str) -> list[Asked]:
    """Return the options of these names that nfsmount.conf adds to a mount's own line."""
    own = {UTAB, target.request.file if target.request else ""}
    asked = (last_asked(target.asked, name) for name in names)
    return [option for option in asked if option is not None and option.file not in own]


def out_of_conf(target: Target, *names: str) -> str:
    """Return how to take options out of nfsmount.conf, "" where the mount's own line has them.

    An opposite option with another name does not keep them away: `hard` does not prevent `soft`.
    """
    added = [f"{option.name} from {option.origin}" for option in of_conf(target, *names)]
    return f"remove {', '.join(added)}" if added else ""


def bake(facts: Facts) -> str:
    """Return the command that prepares the image."""
    return f"sudo nfstuned bake --root {quote(facts.folder)}"


def systemctl(facts: Facts) -> str:
    """Return the command for the units of the host, or of the image."""
    return f"sudo systemctl --root={quote(facts.folder)}" if facts.image else "sudo systemctl"


def unmask(facts: Facts, unit: Unit, name: str) -> str:
    """Return the command that must precede enabling or starting a service; "" where it is not masked."""
    return f"{systemctl(facts)} unmask {name} && " if unit.masked else ""


def enable(facts: Facts, unit: Unit, name: str) -> str:
    """Return the command that starts a service now and at every boot, or at an image's boots."""
    if facts.image and not unit.installed:
        return f"install the package with {name} in the image"
    now = "" if facts.image else "--now "
    return f"{unmask(facts, unit, name)}{systemctl(facts)} enable {now}{name}"


def name_after(file: str, known: str) -> str:
    """Return the name of a new file that is read after a known file: these folders are sorted by name."""
    return file if file > known else f"{known.removesuffix('.conf')}_nfs.conf"


def then_remount(target: Target) -> str:
    """Return how a change comes into effect for a live mount: remounting changes none of these options."""
    return f", then {mount_again(target)}" if target.live is not None else ""


def place_to_change(target: Target) -> str:
    """Return the place that has to be changed, and how the change comes into effect."""
    return where(target) + then_remount(target)


def mount_again(target: Target, unmounted: str = " and mount it again") -> str:
    """Return how a mount comes back; `unmounted` follows the command that unmounts it.

    In words where another mount namespace has the mount: its mount point is a path of that namespace, and the
    host may have something else at the same path.
    """
    if target.foreign:
        return f"unmount {target.point} in its own mount namespace{unmounted}"
    by_program = renewal([target])
    if by_program:
        return by_program
    command = f"sudo umount {quote(target.point)}"
    if target.maker is Maker.AUTOFS:
        return f"sudo systemctl reload autofs && {command}: the next access mounts it"
    return command + unmounted


def mount_all_again(targets: Sequence[Target], words: str) -> str:
    """Return how several mounts come back: in these words where people make all of them."""
    by_programs = renewal(targets)
    others = [each.point for each in targets if each.live and not each.foreign and not each.by_program]
    meanwhile = f"; meanwhile unmount {some(others)} and mount them again" if others else ""
    return by_programs + meanwhile if by_programs else words


class ParameterWish(NamedTuple):
    """The right value of a parameter, and a test for other right values."""

    name: str
    """With the module's: "nfs.max_session_slots"."""
    value: str
    fits: Callable[[str], bool]
    file: str
    """The name of a file for it."""


def parameter(facts: Facts, name: str) -> tuple[str, str] | None:
    """Return a module parameter's value and its source; None where the default holds.

    The running kernel has precedence.
    """
    system = facts.system
    if name in system.parameters:
        return system.parameters[name], f"/sys/module/{name.replace('.', '/parameters/')}"
    word, setting = _decider(system, name)
    if word:
        return word.partition("=")[2], system.cmdline.file
    return (setting.value, f"{setting.file}:{setting.line}") if setting else None


def permanent_setting(facts: Facts, wish: ParameterWish) -> str:
    """Return how to set a parameter permanently, "" where its value at the next boot will be right.

    The deciding line is changed, because no earlier line would count. A package's file is left alone: a new
    file, of the wish's name where the order allows it, comes after it.
    """
    word, setting = _decider(facts.system, wish.name)
    old = word.partition("=")[2] if word else setting.value if setting else ""
    if old and wish.fits(old):
        return ""
    if word:
        place = _booted_with(facts.system.cmdline)
        return f"write {wish.name}={wish.value} instead of {word} on {place}"
    if setting is not None and setting.file.startswith("/etc/"):
        name = wish.name if by_sysctl(setting) else wish.name.partition(".")[2]
        return f"write {name}={wish.value} instead of {name}={old} in {setting.file}:{setting.line}"
    file, line = _new_file(wish, setting)
    return f"write {line} into {file}"


def out_of_files(facts: Facts, name: str) -> str:
    """Return how to take the deciding line of a parameter out of its file, "" where no file sets it."""
    word, setting = _decider(facts.system, name)
    if word:
        return f"remove {word} from {_booted_with(facts.system.cmdline)}"
    if setting is None:
        return ""
    key = name if by_sysctl(setting) else name.partition(".")[2]
    return f"remove {key}={setting.value} from {setting.file}:{setting.line}"


def new_file(facts: Facts, wish: ParameterWish) -> tuple[str, str] | None:
    """Return the new file that sets a parameter permanently, and its line.

    None where an existing line has to be changed (see `permanent_setting`).
    """
    word, setting = _decider(facts.system, wish.name)
    if word or (setting is not None and setting.file.startswith("/etc/")):
        return None
    return _new_file(wish, setting)


def _new_file(wish: ParameterWish, setting: KernelSetting | None) -> tuple[str, str]:
    """Return the file and the line, after a package's own setting where there is one."""
    module, _, key = wish.name.partition(".")
    folder, line = "modprobe.d", f"options {module} {key}={wish.value}"
    if setting is not None and by_sysctl(setting):
        folder, line = "sysctl.d", f"{wish.name}={wish.value}"
    file = name_after(wish.file, posixpath.basename(setting.file) if setting else "")
    return f"/etc/{folder}/{file}", line


def _decider(system: System, name: str) -> tuple[str, KernelSetting | None]:
    """Return the word of the kernel's command line that sets a parameter, or else the setting that does.

    modprobe puts the options of its files before the word. sysctl changes the loaded sunrpc, and does not
    know nfs.
    """
    known = (line for line in reversed(system.settings) if line.name == name)
    setting = next((line for line in known if name.startswith("sunrpc.") or not by_sysctl(line)), None)
    words = (word for word in reversed(system.cmdline.words) if "=" in word)
    word = next((word for word in words if word.partition("=")[0].replace("-", "_") == name), "")
    if setting is not None and by_sysctl(setting):
        word = ""
    return word, None if word else setting


def _booted_with(cmdline: CommandLine) -> str:
    """Return the kernel's command line for people, with the file to change."""
    file = cmdline.file
    made = file.endswith("grub.cfg")
    shown = f"{file}, which grub-mkconfig makes of /etc/default/grub: change that" if made else file
    return "the kernel's command line" + ("" if file == RUNNING else f" ({shown})")


def by_sysctl(setting: KernelSetting) -> bool:
    """Whether a file of sysctl.d has a setting, not of modprobe.d."""
    return "/modprobe.d/" not in setting.file
