"""The command `nfstuned`: its commands, each loaded when it is used, its streams and exit codes."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from nfstuned import __version__
from nfstuned.cli.terminal import Commands, note, unreadable_lines
from nfstuned.errors import ParseError
from nfstuned.host.root import Root

NAME = "nfstuned"
COMPLETE = "_NFSTUNED_COMPLETE"
"""The variable in which a completion script asks for words."""
INTERRUPTED = 130
BROKEN = 2
PLACES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "status": ("status", "status_command"),
        "wait": ("status", "wait_command"),
        "why": ("why", "why_command"),
        "undo": ("apply", "undo_command"),
        "daemon": ("service", "daemon"),
        "udev": ("service", "udev"),
        "config": ("config", "config"),
        "completion": ("app", "completion"),
        "apply": ("apply", "apply_command"),
        "nconnect": ("nconnect", "nconnect"),
        "bake": ("bake", "bake_command"),
        "check": ("check", "check_command"),
        "explain": ("explain", "explain_command"),
        "exporter": ("service", "exporter_command"),
        "install-files": ("install_files", "install_files_command"),
        "rules": ("explain", "rules"),
        "samples": ("samples", "samples_command"),
        "top": ("top", "top_command"),
        "report": ("report", "report_command"),
        "merge": ("merge", "merge_command"),
        "bench": ("bench", "bench_command"),
    }
)
"""By name: the module of nfstuned.cli, and the command's name there."""


def load_command(name: str) -> click.Command:
    """Return a command by its name. Raises KeyError."""
    module, attribute = PLACES[name]
    command: click.Command = getattr(import_module(f"nfstuned.cli.{module}"), attribute)
    command.epilog = f"Manual: {NAME}-{name}(1)"
    if not gc.isenabled():  # so `nfstuned.__main__` left it: all that there is now stays to the end
        gc.freeze()
        gc.enable()
    return command


class _LazyCommands(Commands):
    """The commands, each loaded by itself: most import libraries that are slow to load."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Return the names as `--help` shows them."""
        return sorted(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return a command by its name; None for an unknown name."""
        return load_command(cmd_name) if cmd_name in PLACES else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names and options that begin so, without loading any command."""
        names = [CompletionItem(name) for name in sorted(PLACES) if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Keep NFS mounts at the speed that their server can give.

    Kernels since 5.4 give every NFS mount a read-ahead of 128 KiB, far less than Azure Files, Azure NetApp
    Files and other servers need for sequential reads. The service nfstuned.service tunes each mount as it
    appears; these commands show the settings of mounts, and do the same once by hand.

    \b
    Start here:
      nfstuned status            show the settings of every NFS mount, and its targets
      nfstuned why MOUNT         show where the settings of a mount come from
      nfstuned wait MOUNT        wait until a mount has its read-ahead, before a program starts
      nfstuned check             find faults of this host, each with its reason and remedy
      nfstuned top               show the rates of the mounts now
      nfstuned bench MOUNT       measure a mount with fio, also with other read-aheads
      nfstuned samples           show the rates of the last day; `report` draws them
      nfstuned apply --dry-run   show the changes
      sudo nfstuned apply        make them, without disturbing a mount
      sudo nfstuned undo         put everything back
      nfstuned nconnect          change the number of connections

    The configuration is /etc/nfstuned/nfstuned.toml, see nfstuned.toml(5). It is optional.
    """


def children(command: click.Command) -> dict[str, click.Command]:
    """Return the commands below a command."""
    if command is app:
        return {name: load_command(name) for name in PLACES}
    return dict(command.commands) if isinstance(command, click.Group) else {}


@click.command()
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")))
def completion(shell: str) -> int:
    """Print a completion script: bash, zsh or fish.

    The script asks nfstuned itself for the words that may follow.

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
    kind = get_completion_class(shell)
    if kind is not None:
        words = kind(app, {}, NAME, COMPLETE)
        click.echo(words.source_template % words.source_vars())
    return 0


def main(args: Sequence[str] | None = None, root: Root | None = None) -> int:
    """Run one command and return its exit status; `root` is this host unless a test gives a tree.

    It raises nothing: a failure is one line on stderr and status 2, never a traceback and 1.
    """
    try:
        _prepare_streams()
        if instruction := os.environ.get(COMPLETE):
            return shell_complete(app, {}, NAME, COMPLETE, instruction)
        status = _run(list(sys.argv[1:] if args is None else args), root or Root())
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        if sys.stdout is not None:
            with contextlib.suppress(OSError):  # else the rest would fail again when the process ends
                sys.stdout.close()
        place = f"{error.filename}: " if error.filename else ""
        # A reader may close the pipe early.
        return BROKEN if error.errno == errno.EPIPE else _give_up(f"{place}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - one of three places: 1 would say that the host is at fault
        from traceback import extract_tb  # noqa: PLC0415 - slow to load, and hardly ever used

        last = extract_tb(error.__traceback__)[-1]
        return _give_up(f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})")
    return status


def _run(arguments: list[str], root: Root) -> int:
    try:
        with app.make_context(NAME, arguments, obj=root) as context:
            status = app.invoke(context)
    except click.exceptions.Exit as done:  # of --help and --version
        return done.exit_code
    except click.ClickException as error:
        error.show()
        _name_format(error)
        return error.exit_code
    except ParseError as error:
        # Commands skip a bad line; this is a file that everything depends on.
        note(str(error))
        return BROKEN
    # Each fault is reported by now, or here; an incomplete result is no success.
    unreadable_lines(root.faults.unreported())
    ended = status if isinstance(status, int) else 0
    return max(ended, BROKEN) if root.faults else ended


def _name_format(error: click.ClickException) -> None:
    """Print how a command takes a format after the message about `--json` and the like."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        name = error.option_name.removeprefix("--")
        kinds = [param.type for param in error.ctx.command.params if param.name == "form"]
        if any(isinstance(kind, click.Choice) and name in kind.choices for kind in kinds):
            note(f"Write --format {name}.")


def _prepare_streams() -> None:
    """Make the streams fit for all that will be written; raises OSError where there is no stdout."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        # Mount points may have characters that the locale lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # typeshed says TextIO


def _give_up(why: str) -> int:
    """Print why there is no result."""
    with contextlib.suppress(OSError):
        note(f"{NAME}: {why}")
    return BROKEN
