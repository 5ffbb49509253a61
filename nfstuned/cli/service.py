"""`nfstuned daemon` and `nfstuned udev`, the commands of the unit; the entry point starts them."""

from __future__ import annotations

import click

USAGE = 2


def _only_alone(context: click.Context) -> int:
    """Refuse a command that the entry point runs without any of this: it must stay small, and start fast."""
    click.echo(f"{context.command_path}: only works as the program's only arguments", err=True)
    return USAGE


@click.command()
@click.pass_context
def daemon(context: click.Context) -> int:
    """Run the service: tune mounts as they appear.

    nfstuned.service runs it; it also samples the rates of each mount. It needs no option; see nfstuned(8).

    \b
    Examples:
      systemctl enable --now nfstuned.service
      sudo nfstuned daemon

    \b
    Exit status:
      0  stopped by SIGTERM or SIGINT
      1  it could not start; the reason is shown
    """
    return _only_alone(context)


@click.group()
def udev() -> None:
    """Mask udev's default read-ahead rules, or unmask them.

    The unit does it: nfstuned.service masks them before it starts, and unmasks them when it has stopped.
    """


@udev.command("mask")
@click.pass_context
def udev_mask(context: click.Context) -> int:
    """Let no default rule of the distribution write a read-ahead.

    nfs-utils' 99-nfs.rules writes 128 KiB to every NFS mount, a moment after nfstuned has written the
    policy's value; 53-ec2-read-ahead-kb.rules of Amazon Linux writes 15360 to each. A file of the same name
    in /run/udev/rules.d hides such a rule. One that an administrator has changed, or that [nfsrahead] of
    /etc/nfs.conf gives values to, stays in force. It changes no file below /etc or /usr.

    \b
    Examples:
      sudo nfstuned udev mask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be read or written, or udev could not reload its rules; the reason is shown
    """
    return _only_alone(context)


@udev.command("unmask")
@click.pass_context
def udev_unmask(context: click.Context) -> int:
    """Take back the masks of `nfstuned udev mask`.

    \b
    Examples:
      sudo nfstuned udev unmask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be removed, or udev could not reload its rules; the reason is shown
    """
    return _only_alone(context)
