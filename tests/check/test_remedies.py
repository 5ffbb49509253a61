"""Over every host tree, and in each context of its mounts: a remedy can be followed where it is printed.

Its commands are words of a shell, of known programs with known options; its mount options are options of the
mount's type; its files are there, or are to be made; its placeholders are explained. A command about an image
names files below its folder, and needs no running system. A program's mounts are not unmounted by hand.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import click
import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.cli.app import app, children
from nfstuned.core.mounts.options import option_names, wanted, wanted_by_smb
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules.catalogue import CATALOGUE, RULES, run_rules
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.policy import image_policy, load_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Finding
from nfstuned.model.kernel import Mount, parse_options
from nfstuned.model.mounts import UTAB, Unread, UnreadMap
from nfstuned.parse.tree import FSTAB
from tests.check import hosts

WORD = r"""(?:\$?'(?:[^'\\]|\\.)*'|"[^"]*"|[^\s,;:()'"&|<>]|[,:](?=[^\s)]))+"""
PATH = rf"(?=\$?'?/){WORD}"
COMMANDS = {
    "az": r"network nic update --resource-group GROUP --name NIC --accelerated-networking true"
    r"|vm resize --resource-group GROUP --name VM --size SIZE",
    "chmod": f"(?:600|a-x) {PATH}",
    "chroot": f"{PATH} rc-update add {WORD}",
    "cp": f"(?:-n |--remove-destination ){PATH} {PATH}|{PATH} {PATH}",
    "dmesg": "",
    "docker": rf"volume (?:create(?: --opt o=\.\.\.)?|rm {WORD}(?: {WORD})*)",
    "echo": r"\w+",
    "ethtool": rf"-l {WORD}|-L {WORD} combined \d+",
    "findmnt": r"-t nfs4 -O port=\d+",
    "getent": f"hosts {WORD}",
    "hostnamectl": "set-hostname NAME",
    "ip": rf"link set {WORD} (?:mtu \d+|up)|route get {WORD}"
    rf"|route replace {WORD} via GATEWAY dev {WORD} mtu \d+",
    "journalctl": f"-u {WORD}(?: NFSTUNED_MOUNT_POINT={WORD})?",
    "kill": "-9 PID",
    "ln": f"-s /dev/null {PATH}",
    "ls": f"{PATH} >/dev/null",
    "mkdir": f"-p {PATH}",
    "modprobe": r"-a \w+ \w+",
    "mount": rf"(?:-t \w+ -o {WORD} {WORD} )?{PATH}",
    "mv": f"(?:-n )?{PATH} {PATH}",
    "nc": rf"-zv {WORD} \d+",
    "nfstuned": rf"apply|nconnect persist|bake --root {PATH}|bench {PATH}(?: --suite {WORD})?"
    rf"|check --select {WORD}|explain \w+",
    "nomad": "volume register",
    "openssl": f"s_client -connect {WORD} </dev/null",
    "pgrep": "-a mount.nfs",
    "pkill": "-HUP stunnel",
    "podman": rf"volume (?:create(?: --opt o=\.\.\.)?|rm {WORD}(?: {WORD})*)",
    "printf": r"'[^']*'(?: '[^']*')*",
    "pvesm": rf"set {WORD} --(?:disable [01]|options \.\.\.)",
    "rc-update": f"add {WORD}",
    "rm": PATH,
    "sysctl": r"[\w.]+=\d+",
    "systemctl": rf"(?:--root={PATH} )?(?:disable|(?:re)?enable(?: --now)?|reload|restart|start|unmask)"
    rf" {WORD}|daemon-reload|daemon-reexec",
    "tee": f"(?:-a )?{PATH}",
    "truncate": f"--size=0 {PATH}",
    "tuned-adm": "profile",
    "udevadm": "control --reload",
    "umount": rf"(?:-l )?{PATH}(?: {PATH})*",
    "update-ca-certificates": "--fresh",
}
"""The commands of remedies, by their programs."""
END = (
    r"(?=$|[,;:)]|\s(?:again|and|for|has|in|lets|measures|on|or|says|shows|to|tries|where|which|with"
    r"|[(]|&&|[|]))"
)
COMMAND = re.compile(
    r"(?<![\w./='-])(?P<sudo>sudo )?(?P<program>"
    + "|".join(map(re.escape, sorted(COMMANDS, key=len, reverse=True)))
    + r")(?![\w./'-])"
)
PROSE = {"mount", "nfstuned"}
"""Programs with names that are also nouns and verbs of remedies, where no sudo precedes them."""
ACRONYMS = frozenset({
    *("AZNFS", "CA", "CPU", "CPUS", "DNS", "IP", "MTU", "NFS", "RHEL", "SLES", "SMB", "SSD", "SUSE", "TLS"),
    *("VE", "VM", "VPN"),
})  # fmt: skip
HELP = {
    "docker": ("volume", "create"), "podman": ("volume", "create"), "openssl": ("s_client",),
    "udevadm": ("control",),
}  # fmt: skip
"""The words before --help that show the options."""
FOREIGN = (
    "/dev/null", "/etc/default/autofs", "/etc/default/grub", "/etc/pki/ca-trust/", "/etc/ssl/certs/",
    "/etc/sysconfig/autofs", "/opt/microsoft/aznfs/data/aznfs.log", "/sys/class/net/",
)  # fmt: skip
"""Files of other packages and of the kernel, which the trees need not have."""
PLACES = re.compile(
    r"(?<![\w.:/=\[-])/(?:boot|dev|etc|lib|opt|proc|run|sys|usr|var)/[^\s,;()'\"]*[^\s,;()'\".:]"
)
MADE = re.compile(
    r"(?:\binto|\bto|below \[\w+\] in|\bnew file|\btee|\btee -a|\bmkdir -p|-s /dev/null"
    r"|\b(?:mv|cp)(?: -[-\w]+)? \S+) '?$"
)
"""The words before a file that the remedy makes."""
EDIT = re.compile(
    r"\b(?:add|put|set|write) (?P<new>[a-z_0-9]+(?:=[^\s,]+)?(?:,[a-z_0-9]+(?:=[^\s,]+)?)*)(?: also)?"
    r"(?: instead of (?P<old>\S+))? (?:at the end of|in|into|to) (?:the options in )?"
    r"(?P<place>/\S+?(?=:\d)|its |\w+'s )"
)
GONE = re.compile(r"\btake (?P<old>[^;]+?) out of (?:the options in )?(?P<place>/[^\s,;]+?):\d+")
RUNNING = re.compile(
    r"umount|unmount|mount (?:it|them|all of them)? ?again|reboot|boot it|daemon-re|udevadm|--now"
    r"|(?<![./])sysctl |nfstuned apply|nfstuned nconnect|journalctl|dmesg"
)
BY_HAND = re.compile(
    r"umount|unmount|mount (?:it|them|all of them)? ?again|mount command|nconnect persist|nconnect remount"
)
KEPT = {
    "the kubelet": "/var/lib/kubelet/pods/7c1d-{}/volumes/kubernetes.io~csi/pv-{}/mount",
    "a kubelet with a folder of its own": "/data/k8s/pods/7c1d-{}/volumes/kubernetes.io~nfs/pv-{}",
    "Docker": "/var/lib/docker/volumes/vol{}/_data",
    "Docker with a folder of its own": "/srv/containers/volumes/vol{}/_data",
    "Podman": "/var/lib/containers/storage/volumes/vol{}/_data",
    "Nomad": "/opt/nomad/data/client/csi/node/nfs/per-alloc/vol{}/rw-file-system",
}
"""Mount points of programs that make mounts of their own accord."""


@dataclass(frozen=True)
class Context:
    """The place where remedies are printed."""

    name: str
    facts: Facts
    tree: Path

    def findings(self) -> Iterator[Finding]:
        yield from (finding for finding in run_rules(self.facts, RULES).findings if finding.remedy)


def contexts(case: hosts.Case, folder: Path) -> Iterator[Context]:
    """Yield a host as it is, as an image, as a proposed file, and with the mounts of each program."""
    world = hosts.world(case, folder)
    image = ImageRoot(str(folder))
    policy = image_policy(image)
    yield Context("image", examine(image, policy, Scope(image=True), world), folder)
    if (folder / FSTAB).is_file():
        root = Root(str(folder))
        root.propose("/new/fstab", (folder / FSTAB).read_text(errors="surrogateescape"))
        scope = Scope(offline=True, proposal="/new/fstab", nfs_utils=(2, 6, 4))
        yield Context("file", examine(root, policy, scope, world), folder)
    if case.image:
        return
    root = Root(str(folder))
    facts = examine(root, load_policy(root), case.scope, world)
    yield Context("host", facts, folder)
    if facts.snapshot.superblocks or any(target.live for target in facts.smb_mounts):
        for name, pattern in KEPT.items():
            yield Context(name, moved(facts, pattern), folder)
        asked = UnreadMap(Unread.ASKED, "/net", "ldap", "auto.net", "/etc/auto.master", 1)
        mapped = replace(facts, snapshot=replace(facts.snapshot, maps=(asked,)))
        yield Context("host", moved(mapped, "/net/vol{}"), folder)


def moved(facts: Facts, pattern: str) -> Facts:
    """Return facts in which a program made every mount, at mount points of its own."""
    snapshot = facts.snapshot
    points: dict[str, str] = {}

    def move(mount: Mount) -> Mount:
        number = len(points)
        point = points.setdefault(mount.point, pattern.format(*[number] * pattern.count("{}")))
        return replace(mount, point=point, foreign=False)

    superblocks = tuple(
        superblock._replace(mounts=tuple(map(move, superblock.mounts))) for superblock in snapshot.superblocks
    )
    smb = [move(target.live) for target in facts.smb_mounts if target.live is not None]
    snapshot = replace(
        snapshot,
        superblocks=superblocks,
        requests=tuple(
            row._replace(point=points.get(row.point, row.point))
            for row in snapshot.requests
            if row.file == UTAB
        ),
        stats=tuple(replace(stat, point=points.get(stat.point, stat.point)) for stat in snapshot.stats),
    )
    return replace(facts, snapshot=snapshot, targets=targets(snapshot, facts.policy, smb), absent=())


def faults(finding: Finding, context: Context) -> Iterator[str]:
    text, folder = finding.remedy, context.facts.folder
    prose, commands, end = text, [], 0
    for start in COMMAND.finditer(text):
        program, rest = start["program"], text[start.end() :]
        if start.start() < end or (program in PROSE and not start["sudo"] and not is_ours(rest)):
            continue
        match = re.match(f"(?: (?:{COMMANDS[program]}))?{END}", rest)
        if match is None or (COMMANDS[program] and not match[0]):
            yield f"no command: {text[start.start() :][:60]}"
            continue
        end = start.end() + match.end()
        commands.append(text[start.start() : end])
        prose = prose.replace(commands[-1], "", 1)
    yield from (fault for command in commands for fault in command_faults(command, folder))
    yield from prose_faults(prose)
    yield from placeholder_faults(text)
    yield from option_faults(finding, context)
    points = {target.point for target in context.facts.targets}
    yield from place_faults(text.replace(folder, "") if folder else text, context.tree, points)
    if context.name in {"image", "file"} and (match := RUNNING.search(text)):
        yield f"needs a running system: {match[0]}"
    if context.name == "file" and commands:
        yield f"a command about a file that is not this host's: {commands[0]}"
    if context.name in KEPT and (match := BY_HAND.search(text)):
        yield f"a mount of {context.name} is not made by hand: {match[0]}"


def prose_faults(prose: str) -> Iterator[str]:
    """Yield why the words around the commands are not clear by themselves."""
    if "sudo " in prose:
        yield "an unknown program after sudo"
    for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", prose):
        if option not in own_options() and f"{option} aznfs" not in prose:
            yield f"{option} of no command"


def is_ours(rest: str) -> bool:
    """Return whether a command of nfstuned's follows its name."""
    return rest.startswith(" ") and rest.split(maxsplit=1)[0].strip(",;") in children(app)


def command_faults(command: str, folder: str) -> Iterator[str]:
    """Yield why a shell, or nfstuned itself, does not take a command; an image's is about its folder."""
    words = shlex.split(command.removeprefix("sudo ").partition(" <")[0].partition(" >")[0])
    if words[0] == "nfstuned":
        # click makes a command's --help once, with the names that the first context has for it.
        parent = click.Context(app, info_name="nfstuned", **app.context_settings)
        try:
            children(app)[words[1]].make_context(words[1], words[2:], parent)
        except click.ClickException as error:
            yield f"{command}: {error.format_message()}"
        if words[1] == "explain" and words[2] not in {rule.id for rule in CATALOGUE}:
            yield f"no rule {words[2]}"
    if folder and words[0] != "nfstuned" and folder not in command:
        yield f"not about the image: {command}"


def option_faults(finding: Finding, context: Context) -> Iterator[str]:
    """Yield mount options that a mount's type does not take, and old options that are not in its file."""
    names, smb = option_names(), finding.rule.startswith("SMB")
    of_helpers = names.aznfs | {"iam", "tls"}  # mount.aznfs and mount.efs
    known = names.common | (names.smb if smb else names.nfs | names.rare_nfs | of_helpers)
    files = {request.file for request in context.facts.snapshot.requests}
    for edit in EDIT.finditer(finding.remedy):
        if edit["place"].startswith("/") and edit["place"] not in files:
            continue
        for name, value in parse_options(edit["new"]).pairs:
            if name not in known or (wanted_by_smb if smb else wanted)(name, value):
                yield f"no mount option: {name}={value}"
    for edit in (*EDIT.finditer(finding.remedy), *GONE.finditer(finding.remedy)):
        file = context.tree / edit["place"].lstrip("/")
        if edit["old"] and file.is_file() and "if it is not there" not in finding.remedy:
            text = file.read_text(errors="replace").lower()
            for option in re.split(",| and ", edit["old"].replace("'", "")):
                if option.strip().lower().removeprefix("no") not in text:
                    yield f"{option} is not in {edit['place']}"


def place_faults(text: str, tree: Path, points: Container[str]) -> Iterator[str]:
    """Yield the files and lines that a remedy names and that neither exist nor are to be made."""
    for match in PLACES.finditer(text):
        place, _, line = match[0].partition(":")
        file = tree / place.lstrip("/")
        if (
            place.startswith(FOREIGN)
            or MADE.search(text[: match.start()])
            or "*" in match[0]
            or place in points
        ):
            continue
        if not os.path.lexists(file):
            yield f"no file {place}"
        elif line and int(line) > file.read_text(errors="replace").count("\n") + 1:
            yield f"{place} has no line {line}"


def placeholder_faults(text: str) -> Iterator[str]:
    """Yield the placeholders that nobody explains: "with the share's name for SHARE"."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^]]*\]", "", text)
    for name in re.findall(r"(?<![\w=/.'$\\-])[A-Z]{2,}(?![\w=])", plain):
        if name not in ACRONYMS and not re.search(rf"\bfor (?:\w+ and )?{name}\b", text):
            yield f"nobody explains {name}"


@cache
def own_options() -> frozenset[str]:
    return frozenset(
        option for command in children(app).values() for each in command.params for option in each.opts
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", hosts.names())
def test_a_remedy_can_be_followed_where_it_is_printed(name: str, tmp_path: Path) -> None:
    case = hosts.load(name)
    wrong = [
        f"{context.name}: {finding.rule} {fault}\n    {finding.remedy}"
        for context in contexts(case, case.build(tmp_path / "host"))
        for finding in context.findings()
        for fault in faults(finding, context)
    ]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize(
    "program", [name for name in COMMANDS if name != "nfstuned" and "-" in COMMANDS[name]]
)
def test_the_options_of_remedies_are_in_the_programs_help(program: str) -> None:
    path = shutil.which(program)
    options = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", COMMANDS[program])
    if path is None or program == "pkill":
        pytest.skip("it is not here, or has no list of signals")
    shown = subprocess.run(
        [path, *HELP.get(program, ()), "--help"], capture_output=True, text=True, check=False
    )
    assert [option for option in options if option not in shown.stdout + shown.stderr] == []
