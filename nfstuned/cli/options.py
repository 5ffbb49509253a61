"""Options and arguments of several commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


class RuleName(click.types.StringParamType):
    """The id or name of a rule, or the start of ids. The commands check it."""

    name = "rule"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's own signature
        param: click.Parameter,  # noqa: ARG002 - as above
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the ids that begin with `incomplete`, each with its rule's name."""
        from nfstuned.core.rules.catalogue import CATALOGUE  # noqa: PLC0415 - only completion needs every rule

        return [CompletionItem(r.id, help=r.name) for r in CATALOGUE if r.id.startswith(incomplete.upper())]


def format_option(*more: str) -> Callable[[F], F]:
    """Return the option --format with text, json and `more` formats."""
    programs = "for programs" if more else "one JSON document for programs"
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default="text",
        show_default=True,
        help=f"Print for people, or {programs}.",
    )


since_option = click.option(
    "--since",
    metavar="TIME",
    help="Begin here: 1h ago, today, 14:30, 2026-07-29 14:30 (default: of the journal 24h ago).",
)
mount_option = click.option(
    "--mount", metavar="PATH", help="Only the mount at this mount point, also one that is gone by now."
)
file_option = click.option(
    "--file",
    type=click.Path(),
    metavar="FILE|-",
    help="Read JSON lines instead of the journal, with the older files next to it; - is stdin.",
)


def require_absolute_path(mount: str | None) -> None:
    """Raise click.BadParameter for a path that cannot be a mount point."""
    if mount is not None and not mount.startswith("/"):
        raise click.BadParameter("give the whole path, as in /mnt/data", param_hint="--mount")
