"""The commands: a name, and the module that is loaded when it is used."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click

from nfstuned import __version__

PLACES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "status": ("status", "command"),
        "undo": ("apply", "undo_command"),
        "daemon": ("service", "daemon"),
        "udev": ("service", "udev"),
        "config": ("config", "config"),
        "completion": ("completion", "command"),
        "apply": ("apply", "command"),
        "bake": ("bake", "command"),
        "check": ("check", "command"),
        "explain": ("explain", "explain"),
        "exporter": ("exporter", "command"),
        "install-files": ("install_files", "command"),
        "rules": ("explain", "rules"),
        "samples": ("samples", "command"),
        "top": ("top", "command"),
        "report": ("report", "command"),
        "bench": ("bench", "command"),
    }
)
"""By name: the module of nfstuned.cli, and what click knows the command by there."""


def load(name: str) -> click.Command:
    """Return a command. Raises KeyError for a name that is none."""
    module, attribute = PLACES[name]
    command: click.Command = getattr(import_module(f"nfstuned.cli.{module}"), attribute)
    if not gc.isenabled():  # so `nfstuned.__main__` left it: all that there is now stays to the end
        gc.freeze()
        gc.enable()
    return command


class _Commands(click.Group):
    """The commands, each loaded by itself: most take long to import what only they need."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Return the names as `--help` shows them."""
        return sorted(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return a command by its name; None where there is none."""
        return load(cmd_name) if cmd_name in PLACES else None


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Keep NFS mounts at the speed that their server can give.

    Kernels since 5.4 give every NFS mount a read-ahead of 128 KiB, far less than Azure Files, Azure NetApp
    Files and other servers need for sequential reads. The service nfstuned.service tunes each mount as it
    appears; these commands show what mounts have, and do the same once by hand.

    \b
    Start here:
      nfstuned status            what every NFS mount has, and what it should have
      nfstuned check             what is wrong on this host, why, and what to do about it
      nfstuned top               what the mounts deliver now
      nfstuned bench MOUNT       what a mount delivers to fio, and whether another read-ahead gives more
      nfstuned samples           what the mounts delivered during the last day; `report` draws it
      nfstuned apply --dry-run   what would be changed
      sudo nfstuned apply        change it, without disturbing a mount
      sudo nfstuned undo         put everything back

    The configuration is /etc/nfstuned/nfstuned.toml, see nfstuned.toml(5). It is optional.
    """


def children(command: click.Command) -> dict[str, click.Command]:
    """Return the commands below a command."""
    if command is app:
        return {name: load(name) for name in PLACES}
    return dict(command.commands) if isinstance(command, click.Group) else {}
