"""What the kernel's parameters are or will be."""

from __future__ import annotations

from nfstuned.model.facts import Facts


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
