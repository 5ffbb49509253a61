"""What several commands take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class RuleName(click.types.StringParamType):
    """The id or the name of a rule, or words that mean rules; anything goes, for the commands to judge."""

    name = "rule"


def format_option(command: F) -> F:
    """Add --format text|json."""
    option = click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Print for people, or one JSON document for programs.",
    )
    return option(command)
