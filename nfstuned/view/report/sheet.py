"""What the pages have in common: their head, their style, and how a time zone is named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from nfstuned import __version__
from nfstuned.view.report.chart import esc

STYLE = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --card: #f6f8fa; --text: #1f2328; --faint: #59636e; --rule: #d1d9e0; --grid: #e4e8ec;
  --s1: #0969da; --s2: #bc4c00; --s3: #1a7f37; --s4: #8250df;
  --error: #cf222e; --warning: #9a6700; --advice: #0969da; --info: #59636e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0d1117; --card: #151b23; --text: #e6edf3; --faint: #9198a1; --rule: #3d444d; --grid: #262c36;
    --s1: #58a6ff; --s2: #f0883e; --s3: #3fb950; --s4: #bc8cff;
    --error: #ff7b72; --warning: #d29922; --advice: #58a6ff; --info: #9198a1;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 90rem; padding: 1.5rem 2rem 4rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 {
  margin: 3rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--rule); font-size: 1.2rem;
  overflow-wrap: anywhere;
}
h3 { margin: 0; font-size: .9rem; font-weight: 600; }
p { margin: .25rem 0 .75rem; max-width: 75ch; }
a { color: var(--s1); text-decoration: none; }
a:hover { text-decoration: underline; }
.faint, .meta { color: var(--faint); }
.meta { max-width: none; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top; }
th { color: var(--faint); font-size: .8rem; font-weight: 600; border-bottom: 1px solid var(--rule); }
td { border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
.mounts { font-size: .9em; }
.mounts td:nth-child(-n+2) { min-width: 9rem; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.when, .severity { white-space: nowrap; overflow-wrap: normal; }
.charts {
  display: grid; gap: 1rem; margin-top: .75rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
}
.charts + h3 { margin-top: 1.5rem; }
figure {
  margin: 0; padding: .75rem 1rem; border: 1px solid var(--rule); border-radius: .5rem;
  background: var(--card); break-inside: avoid;
}
figure.wide { grid-column: 1 / -1; overflow-x: auto; }
figure.wide > svg { min-width: 58rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .15rem 1rem; align-items: baseline; margin-bottom: .35rem; }
.key { color: var(--faint); font-size: .8rem; }
.key svg { width: 1.5rem; height: .5rem; margin-right: .35rem; vertical-align: middle; }
svg { display: block; width: 100%; height: auto; }
.key svg { display: inline-block; }
svg.spark { width: 160px; height: 28px; }
svg text { fill: var(--faint); font-size: 12px; font-family: inherit; }
text.y { text-anchor: end; }
text.x { text-anchor: middle; }
.grid { stroke: var(--grid); }
.tick { stroke: var(--rule); }
.reference { stroke: var(--faint); stroke-dasharray: 2 3; }
.mark { stroke: var(--s4); stroke-width: 1.5; stroke-dasharray: 4 2; }
.line { fill: none; stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
.dashed { stroke-dasharray: 5 4; stroke-width: 1.25; }
.s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); } .s4 { stroke: var(--s4); }
.severity { font-weight: 600; }
.error { color: var(--error); } .warning { color: var(--warning); }
.advice { color: var(--advice); } .info { color: var(--info); }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--rule); color: var(--faint); }
@media print {
  body { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; }
}
"""


def head_lines(title: str, style: str = "") -> Iterator[str]:
    """Yield the beginning of a page until its body; `style` is what it has beside STYLE."""
    yield "<!DOCTYPE html>"
    yield '<html lang="en" xmlns="http://www.w3.org/1999/xhtml">'
    yield '<head><meta charset="utf-8"/>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
    yield f'<meta name="generator" content="nfstuned {__version__}"/>'
    yield f"<title>{esc(title)}</title>"
    yield f"<style>{STYLE}{style}</style></head>"


def zone_name(start: float, end: float, zone: tzinfo | None = None) -> str:
    """Return the name of a time zone with its offset, both where it changed in between: "CET (UTC+01:00)"."""
    parts = []
    for moment in (start, end):
        local = datetime.fromtimestamp(moment, zone).astimezone(zone)
        offset = f"{local:%z}"
        parts.append(f"{local.tzname()} (UTC{offset[:3]}:{offset[3:5]})")
    return " to ".join(dict.fromkeys(parts))
