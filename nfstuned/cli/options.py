"""What several commands take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class RuleName(click.types.StringParamType):
    """The id or the name of a rule, or words that mean rules; anything goes, for the commands to judge."""

    name = "rule"


def format_option(*more: str) -> Callable[[F], F]:
    """Add --format text|json, and `more` of them."""
    programs = "for programs" if more else "one JSON document for programs"
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default="text",
        show_default=True,
        help=f"Print for people, or {programs}.",
    )
