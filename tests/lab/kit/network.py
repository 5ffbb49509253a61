"""Addresses that say nothing any more, while others go on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def silent(address: str) -> Iterator[None]:
    """Drop every packet to and from one address of the guest's server while the block runs."""
    rules = [("INPUT", "-d", address), ("INPUT", "-s", address), ("OUTPUT", "-d", address)]
    for rule in rules:
        run("iptables", "-I", *rule, "-j", "DROP")
    try:
        yield
    finally:
        for rule in rules:
            run("iptables", "-D", *rule, "-j", "DROP")
