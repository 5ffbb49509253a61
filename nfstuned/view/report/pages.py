"""HTML pages from the templates in nfstuned/data/pages.

A page loads nothing, runs no script, and is well-formed XML. Every text in it is escaped and printable.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nfstuned import __version__
from nfstuned.parse.fields import count
from nfstuned.view.words import printable


def render(template: str, **values: object) -> Iterator[str]:
    """Yield a page line by line; it is ASCII, and UTF-8 in names."""
    text = environment().get_template(template).render(values)
    yield from (line for line in text.split("\n") if line)


def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("nfstuned", "data/pages"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["px"] = _px
    made.globals.update(version=__version__, count=count)
    return made


def _shown(value: object) -> object:
    r"""Return a value as HTML and XML can hold it: control characters and stray bytes as `\x0a`."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _px(length: float) -> Markup:
    """Return a coordinate of a picture."""
    return Markup(f"{length:.1f}")  # noqa: S704 - a number


def zone_name(start: float, end: float, zone: tzinfo | None = None) -> str:
    """Return the name of a time zone with its offset, both where it changed in between: "CET (UTC+01:00)"."""
    parts = []
    for moment in (start, end):
        local = datetime.fromtimestamp(moment, zone).astimezone(zone)
        offset = f"{local:%z}"
        parts.append(f"{local.tzname()} (UTC{offset[:3]}:{offset[3:5]})")
    return " to ".join(dict.fromkeys(parts))
