"""`nfstuned config show|check|schema`."""

from __future__ import annotations

import sys

import click

from nfstuned.cli.terminal import Commands, dated, format_option, note, print_document, usable_policy
from nfstuned.host.root import STDIN, Root, read_proposal
from nfstuned.model.policy import ConfigError, Policy
from nfstuned.view.policy import policy_document, policy_text

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
    if form == "json":
        print_document(dated(policy_document(policy)))
    else:
        sys.stdout.write(policy_text(policy))
    return VALID


@config.command("check")
@click.argument("file", required=False, type=click.Path(), metavar="[FILE|-]")
@click.pass_obj
def config_check(root: Root, file: str | None) -> int:
    """Validate the configuration files.

    They are /etc/nfstuned/nfstuned.toml and /etc/nfstuned/conf.d/*.toml. Run this before
    `systemctl reload nfstuned`. With FILE, which need not be installed, only FILE is judged, without the
    profiles and workloads of other files; - is stdin. Each problem is one line on stderr: file, line, key,
    value and the allowed values.

    \b
    Examples:
      nfstuned config check && sudo systemctl reload nfstuned
      nfstuned config check nfstuned.toml.new
      nfstuned config check - < 50-site.toml

    \b
    Exit status:
      0  valid, or there is no configuration
      2  invalid, or FILE could not be read
    """
    policy = usable_policy(root) if file is None else _policy_of_file(file)
    if policy is None:
        return INVALID
    sys.stdout.write(f"valid: {', '.join(policy.files) or 'no configuration file, built-in profiles only'}\n")
    return VALID


def _policy_of_file(file: str) -> Policy | None:
    """Return the policy of a file alone; None where it is invalid, with its problems on stderr."""
    from nfstuned.host.policy import policy_of_files  # noqa: PLC0415 - pydantic is slow to load

    name = "standard input" if file == STDIN else file
    try:
        return policy_of_files([(name, read_proposal(file))])
    except OSError as error:
        note(f"{name}: cannot be read: {error.strerror}")
    except ConfigError as error:
        for problem in error.problems:
            note(problem)
    return None


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

    print_document(schema())
    return VALID
