"""`nfstuned config show|check|schema`."""

from __future__ import annotations

import sys

import click

from nfstuned.cli.terminal import Commands, format_option, usable_policy
from nfstuned.host.root import Root
from nfstuned.view.policy import policy_document, policy_text
from nfstuned.view.words import to_json

VALID, INVALID = 0, 2


@click.group(cls=Commands)
def config() -> None:
    """Show, check or describe the configuration."""


@config.command("show")
@format_option()
@click.pass_obj
def config_show(root: Root, form: str) -> int:
    """Print the configuration that is in effect.

    It has the built-in profiles with the source of each number, and the administrator's settings. The text
    is valid TOML that nfstuned.toml takes.

    \b
    Examples:
      nfstuned config show
      nfstuned config show --format json | jq .profile

    \b
    Exit status:
      0  printed
      2  the configuration is invalid; its problems are on stderr
    """
    policy = usable_policy(root)
    if policy is None:
        return INVALID
    sys.stdout.write(to_json(policy_document(policy)) + "\n" if form == "json" else policy_text(policy))
    return VALID


@config.command("check")
@click.pass_obj
def config_check(root: Root) -> int:
    """Validate the configuration files.

    They are /etc/nfstuned/nfstuned.toml and /etc/nfstuned/conf.d/*.toml. Run this before
    `systemctl reload nfstuned`. Each problem is one line on stderr: file, key, value and the allowed values.

    \b
    Examples:
      nfstuned config check && sudo systemctl reload nfstuned

    \b
    Exit status:
      0  valid, or there is no configuration
      2  invalid
    """
    policy = usable_policy(root)
    if policy is None:
        return INVALID
    sys.stdout.write(f"valid: {', '.join(policy.files) or 'no configuration file, built-in profiles only'}\n")
    return VALID


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
    from nfstuned.parse.config import schema  # noqa: PLC0415 - pydantic is slow to load

    sys.stdout.write(to_json(schema()) + "\n")
    return VALID
