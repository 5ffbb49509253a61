"""The TLS helper of Azure Files: AZNFS, which runs one stunnel for each endpoint and watches over them.

What is said here of AZNFS was read in https://github.com/Azure/AZNFS-mount: src/nfsv4mountscript.sh,
src/aznfswatchdogv4, src/aznfswatchdogv4.service and lib/common.sh.
"""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.host.unit import observe_unit
from nfstuned.model.facts import Tls
from nfstuned.parse.environment import parse_variable
from nfstuned.parse.sockets import parse_listening

WATCHDOG = "aznfswatchdogv4.service"
"""The one for NFSv4.1. `aznfswatchdog.service`, which the vendor's page names, is for Blob storage."""
STUNNELS = "etc/stunnel/microsoft/aznfs/nfsv4_fileShare"
OVERRIDE = "AZURE_ENDPOINT_OVERRIDE"
_ENVIRONMENTS = (
    "etc/environment",
    "etc/systemd/system.conf",
    "etc/default/autofs",
    "etc/sysconfig/autofs",
    "proc/cmdline",
)
_CONF_FOLDERS = tuple(
    f"{folder}/systemd/system.conf.d" for folder in ("usr/lib", "usr/local/lib", "run", "etc")
)


def observe_tls(root: Root, *, image: bool) -> Tls:
    """Return what is known of the helper; of an image only what its files say.

    No process is looked at: reading a command line may wait for a program that waits for a dead server. A
    stunnel that lives listens on its port, which is what a mount needs of it.
    """
    watchdog = observe_unit(root, WATCHDOG, image=image)
    helped = watchdog.installed or bool(root.names(STUNNELS))
    return Tls(
        watchdog=watchdog,
        # A busy server has a hundred thousand sockets: they are only read where a tunnel may be.
        listening=_listening(root) if helped and not image else None,
        overrides=_overrides(root, image=image),
    )


def _listening(root: Root) -> frozenset[int] | None:
    """Return the ports on which something listens in the network namespace of init's mounts."""
    ports = parse_listening(root.read_or_empty(f"{root.view}/net/tcp"))
    if ports is None:
        return None
    return ports | (parse_listening(root.read_or_empty(f"{root.view}/net/tcp6")) or frozenset())


def _overrides(root: Root, *, image: bool) -> dict[str, str]:
    """Return the endpoint override where some file has it, the strongest place last.

    mount.aznfs takes it from its environment only: a login's for a mount by hand, the service manager's at
    boot, automount's own otherwise. Which of them counts depends on who mounts, so that any will do.
    """
    files = [name for name in _ENVIRONMENTS if not (image and name.startswith("proc/"))]
    for folder in _CONF_FOLDERS:
        files += [f"{folder}/{name}" for name in root.names(folder) if name.endswith(".conf")]
    files += _mount_units(root)
    values = [parse_variable(root.read_or_empty(name), OVERRIDE) for name in files]
    return next(({OVERRIDE: value} for value in reversed(values) if value), {})


def _mount_units(root: Root) -> list[str]:
    """Return the files that may set the environment of a mount that systemd makes."""
    found = []
    for folder in ("usr/lib/systemd/system", "run/systemd/system", "etc/systemd/system"):
        for name in root.names(folder):
            if name.endswith(".mount"):
                found.append(f"{folder}/{name}")
            elif name.endswith((".mount.d", "autofs.service.d")):
                drops = (drop for drop in root.names(f"{folder}/{name}") if drop.endswith(".conf"))
                found += [f"{folder}/{name}/{drop}" for drop in drops]
    return found
