"""What the kernel's parameters are or will be."""

from __future__ import annotations

import posixpath

from nfstuned.model.facts import Facts, KernelSetting, System


def parameter(facts: Facts, name: str) -> tuple[str, str] | None:
    """Return a module parameter's value and who says so; None where nothing does and the default holds.

    The running kernel is asked first. Where the module is not loaded, the kernel's command line counts before
    modprobe.d, as modprobe puts it behind.
    """
    system = facts.system
    if name in system.parameters:
        return system.parameters[name], f"/sys/module/{name.replace('.', '/parameters/')}"
    word = _booted_with(system, name)
    if word:
        return word.partition("=")[2], "/proc/cmdline"
    setting = _setting(system, name)
    return (setting.value, f"{setting.file}:{setting.line}") if setting else None


def lasting(facts: Facts, name: str, value: str, file: str) -> str:
    """Return how a module parameter gets a value for good, "" where it will have it at the next boot.

    What decides now is changed, for nothing that comes before it would count. What a package brought is left
    alone: a new file, `file` where its name allows that, comes after it.
    """
    module, _, key = name.partition(".")
    word, setting = _booted_with(facts.system, name), _setting(facts.system, name)
    if word:
        same = word.partition("=")[2] == value
        return "" if same else f"write {name}={value} in the place of {word} on the kernel's command line"
    if setting is None:
        return f"write options {module} {key}={value} into /etc/modprobe.d/{file}"
    if setting.value == value:
        return ""
    if setting.file.startswith("/etc/"):
        return f"write {key}={value} in the place of {key}={setting.value} in {setting.file}:{setting.line}"
    folder, known = posixpath.split(setting.file)
    later = file if file > known else f"{known.removesuffix('.conf')}_nfs.conf"
    if folder.endswith("/sysctl.d"):
        return f"write {name} = {value} into /etc/sysctl.d/{later}"
    return f"write options {module} {key}={value} into /etc/modprobe.d/{later}"


def _booted_with(system: System, name: str) -> str:
    """Return the word of the kernel's command line that sets a parameter, "" where none does."""
    words = (word for word in reversed(system.cmdline.split()) if "=" in word)
    return next((word for word in words if word.partition("=")[0].replace("-", "_") == name), "")


def _setting(system: System, name: str) -> KernelSetting | None:
    return next((one for one in reversed(system.settings) if one.name == name), None)
