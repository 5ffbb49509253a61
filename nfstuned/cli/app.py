"""The commands as click knows them: names, options and the help that teaches them."""

from __future__ import annotations

import click

from nfstuned import __version__
from nfstuned.cli.app_apply import apply
from nfstuned.cli.app_bake import bake
from nfstuned.cli.app_check import check, explain, rules
from nfstuned.cli.app_install import install_files
from nfstuned.cli.app_samples import report, samples, top
from nfstuned.cli.apply import take_back
from nfstuned.cli.config import check as check_config
from nfstuned.cli.config import print_schema
from nfstuned.cli.config import show as show_config
from nfstuned.cli.options import format_option
from nfstuned.cli.status import show as show_status
from nfstuned.host.root import Root

USAGE = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
      nfstuned samples           what the mounts delivered during the last day; `report` draws it
      nfstuned apply --dry-run   what would be changed
      sudo nfstuned apply        change it, without disturbing a mount
      sudo nfstuned undo         put everything back

    The configuration is /etc/nfstuned/nfstuned.toml, see nfstuned.toml(5). It is optional.
    """


@app.command()
@format_option()
@click.pass_obj
def status(root: Root, form: str) -> int:
    """Show what every NFS mount has and should have.

    READ-AHEAD is now/target in KiB. NCONNECT is requested/now/target: the kernel takes it from the first
    mount of a server, later mounts share its connections whatever they ask for. CONN counts the connections
    that exist. The word after a number says how it is: ok, low, high, undone (by `nfstuned undo`) or
    ignored (the mount asked for another number). No mount is touched, so that a dead server cannot hang this.

    \b
    Examples:
      nfstuned status
      nfstuned status --format json | jq '.mounts[] | select(.read_ahead_kb < .read_ahead_target_kb)'

    \b
    Exit status:
      0  shown, even where something is low
      2  the configuration is invalid (the mounts are shown, without targets), or wrong usage
    """
    return show_status(root, form)


@app.command()
@format_option()
@click.pass_obj
def undo(root: Root, form: str) -> int:
    """Put back every value that nfstuned changed.

    The changes of the service are put back, too; it then leaves these mounts alone, and `nfstuned apply`
    takes them up again. A value that somebody else has changed since is left as it is: skipped.

    \b
    Examples:
      sudo nfstuned undo

    \b
    Exit status:
      0  all put back, or nothing to put back
      1  the kernel refused something; the reason is shown
      2  wrong usage
    """
    return take_back(root, form)


@app.command()
@click.pass_context
def daemon(context: click.Context) -> int:
    """Run the service: tune mounts as they appear.

    This is what nfstuned.service runs; it also samples what each mount delivers. It needs no option; see
    nfstuned(8).

    \b
    Examples:
      systemctl enable --now nfstuned.service
      sudo nfstuned daemon

    \b
    Exit status:
      0  stopped by SIGTERM or SIGINT
    """
    return _only_alone(context)


def _only_alone(context: click.Context) -> int:
    """Refuse what the entry point runs before any of this is imported: it must stay small, and start fast."""
    click.echo(f"{context.command_path}: only works as the program's only arguments", err=True)
    return USAGE


@app.group()
def udev() -> None:
    """Mask udev's default read-ahead rules, or unmask them.

    The unit does it: nfstuned.service masks them before it starts, and unmasks them when it has stopped.
    """


@udev.command("mask")
@click.pass_context
def udev_mask(context: click.Context) -> int:
    """Let no default rule of the distribution write a read-ahead.

    nfs-utils' 99-nfs.rules writes 128 KiB to every NFS mount, a moment after nfstuned has written what the
    policy asks for; 53-ec2-read-ahead-kb.rules of Amazon Linux writes 15360 to each. A file of the same name
    in /run/udev/rules.d hides such a rule. One that an administrator has changed, or that [nfsrahead] of
    /etc/nfs.conf gives values to, stays in force. It changes no file below /etc or /usr.

    \b
    Examples:
      sudo nfstuned udev mask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be read or written, or udev could not be told; the reason is shown
    """
    return _only_alone(context)


@udev.command("unmask")
@click.pass_context
def udev_unmask(context: click.Context) -> int:
    """Take back what `nfstuned udev mask` did.

    \b
    Examples:
      sudo nfstuned udev unmask

    \b
    Exit status:
      0  done, or nothing to do
      1  a file could not be removed, or udev could not be told; the reason is shown
    """
    return _only_alone(context)


@app.group()
def config() -> None:
    """Show, check or describe the configuration."""


@config.command("show")
@format_option()
@click.pass_obj
def config_show(root: Root, form: str) -> int:
    """Print the configuration that is in effect.

    Built-in profiles with the source of each number, and what the administrator's files say. The text is
    valid TOML, of the kind that nfstuned.toml takes.

    \b
    Examples:
      nfstuned config show
      nfstuned config show --format json | jq .profile

    \b
    Exit status:
      0  printed
      2  the configuration is invalid; its problems are on stderr
    """
    return show_config(root, form)


@config.command("check")
@click.pass_obj
def config_check(root: Root) -> int:
    """Validate the configuration files.

    They are /etc/nfstuned/nfstuned.toml and /etc/nfstuned/conf.d/*.toml. Run this before
    `systemctl reload nfstuned`. Each problem is one line on stderr: file, key, value, and what is allowed.

    \b
    Examples:
      nfstuned config check && sudo systemctl reload nfstuned

    \b
    Exit status:
      0  valid, or there is no configuration
      2  invalid
    """
    return check_config(root)


@config.command("schema")
def config_schema() -> int:
    """Print the JSON Schema of a configuration file.

    Editors and other checkers of TOML understand it.

    \b
    Examples:
      nfstuned config schema > nfstuned.schema.json

    \b
    Exit status:
      0  printed
    """
    return print_schema()


@app.command("completion")
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")))
def completion_(shell: str) -> int:
    """Print a completion script: bash, zsh or fish.

    The scripts know every command and option by themselves: completing starts no program.

    \b
    Examples:
      nfstuned completion bash | sudo tee /etc/bash_completion.d/nfstuned
      nfstuned completion zsh > ~/.zfunc/_nfstuned
      nfstuned completion fish > ~/.config/fish/completions/nfstuned.fish

    \b
    Exit status:
      0  printed
      2  wrong usage
    """
    from nfstuned.cli import completion  # noqa: PLC0415 - no other command needs it

    click.echo(completion.script(shell, app), nl=False)
    return 0


for command in (apply, bake, check, explain, install_files, rules, samples, top, report):
    app.add_command(command)
