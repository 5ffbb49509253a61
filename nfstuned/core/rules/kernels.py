"""Which kernel rules speak of, and what its parameters are or will be."""

from __future__ import annotations

from nfstuned.errors import ParseError
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import KernelRelease
from nfstuned.parse.kernel import parse_release


def kernel_of(facts: Facts) -> KernelRelease | None:
    """Return the running kernel, of an image the newest one; None where nothing tells."""
    if facts.live:
        return facts.snapshot.kernel
    newest = next((kernel.release for kernel in reversed(facts.system.kernels)), "")
    try:
        return parse_release(newest)
    except ParseError:
        return None


def parameter(facts: Facts, name: str) -> tuple[str, str] | None:
    """Return a module parameter's value and who says so; None where nothing does and the default holds.

    The running kernel is asked first. Where the module is not loaded, the kernel's command line counts before
    modprobe.d, as modprobe puts it behind.
    """
    system = facts.system
    if name in system.parameters:
        return system.parameters[name], f"/sys/module/{name.replace('.', '/parameters/')}"
    for word in reversed(system.cmdline.split()):
        key, separator, value = word.partition("=")
        if separator and key.replace("-", "_") == name:
            return value, "/proc/cmdline"
    setting = next((one for one in reversed(system.settings) if one.name == name), None)
    return (setting.value, f"{setting.file}:{setting.line}") if setting else None
