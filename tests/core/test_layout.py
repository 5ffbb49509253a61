"""The layout of the pages: in a browser where there is one, and by the style sheet alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from markupsafe import Markup, escape

from nfstuned.model.facts import Diagnosis, Severity
from nfstuned.model.samples import Event
from nfstuned.view.pages import environment
from nfstuned.view.report import Account
from tests.bench.pictures import BROWSERS, FLAGS
from tests.core import test_bench_pages, test_reportpage
from tests.core.bench_values import SEARCHED, VENDORS
from tests.core.test_history import START
from tests.core.test_reportpage import FINDING, REPORT, used

STYLE = files("nfstuned").joinpath("data/pages/style.css").read_text()
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
UID = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6"
IN_POD = f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/pvc-{UID}/mount"
LONG = (
    f"storage-with-a-very-long-name.department.faculty.university.example.org:/export/{'0f' * 12}/pvc-{UID}"
)
POINTS = ((IN_POD,), ("/data", "/bind"), (f"/mnt/{'averylongname' * 8}",), ("/x",))
REMEDY = f"sudo nfstuned apply --remount --all; sudo journalctl --unit=nfstuned --since=-1h | grep {IN_POD}"


def report() -> str:
    samples = [replace(used(step), mount_points=point, source=LONG) for step in (0, 1, 4) for point in POINTS]
    faults = [
        replace(FINDING, severity=severity, subject=subject, message=f"{LONG} is slow", remedy=REMEDY)
        for severity, subject in zip(Severity, (IN_POD, "/data", "/etc/fstab:12", "eth0"), strict=True)
    ]
    judged = replace(REPORT, diagnosis=Diagnosis(tuple(faults), ()))
    events = (test_reportpage.SET, Event(START, "CONFIG_INVALID", f"{IN_POD}: unknown key"))
    page = test_reportpage.page(samples, Account(report=judged, events=events, damaged=3))
    return test_reportpage.text(replace(page, title=f"NFS mounts of {LONG}"))


PAGES = {
    "report": report(),
    "curves": test_bench_pages.text(replace(SEARCHED, mount=replace(SEARCHED.mount, mount_point=IN_POD))),
    "bars": test_bench_pages.text(replace(VENDORS, mount=replace(VENDORS.mount, source=LONG))),
}
PROBE = """
<script>
const broken = [], cut = [];
for (const cell of document.querySelectorAll("th, td")) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    for (const word of node.data.matchAll(/[^\\s\\/:.,;_=#-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = [...range.getClientRects()].map(rect => Math.round(rect.top));
      if (new Set(tops).size > 1) broken.push(word[0]);
    }
  }
}
for (const inner of document.querySelectorAll("body *")) {
  const scrolls = inner.closest(".scroll, .fold td") || inner.matches("svg *");
  if (!scrolls && inner.getBoundingClientRect().right > innerWidth + 1) cut.push(inner.tagName);
}
for (const text of document.querySelectorAll("svg text")) {
  const box = text.getBoundingClientRect();
  if (box.width && (box.left < 0 || box.right > innerWidth)) cut.push(text.textContent);
}
parent.document.title = JSON.stringify({
  wide: document.documentElement.scrollWidth - innerWidth, width: innerWidth, broken, cut,
});
</script>
</body>"""


@pytest.mark.skipif(BROWSER is None, reason="no browser (Debian's package chromium)")
@pytest.mark.slow
@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_breaks_no_word_of_a_table_and_scrolls_no_page(
    name: str, width: int, tmp_path: Path
) -> None:
    # No window of Chromium is narrower than 500.
    page = escape(PAGES[name].replace("</body>", PROBE))
    frame = f'<title></title><iframe style="width: {width}px; height: 2000px; border: 0" srcdoc="{page}">'
    (tmp_path / "page.html").write_text(frame)
    command = [
        str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path}/profile", "--window-size=1400,2000",
        "--dump-dom", (tmp_path / "page.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    title, *_ = re.findall("<title>([^<]*)</title>", done.stdout)
    assert title == f'{{"wide":0,"width":{width},"broken":[],"cut":[]}}'


def test_lines_end_behind_separators_and_not_in_words_numbers_or_options() -> None:
    breakable = environment().filters["breakable"]
    shown = {
        "server.example.org:/a_b": "server.|example.|org:/|a_|b",
        "10.0.0.4:/v1.2": "10.0.0.4:/|v1.2",
        "a --root=/x": 'a <span class="option">--root=/|x</span>',
        "<a>\x1b": "&lt;a&gt;\\x1b",
        "": "",
    }
    assert {text: breakable(text).replace("<wbr/>", Markup("|")) for text in shown} == shown


def test_no_cell_of_a_table_breaks_words_and_nothing_is_wider_than_a_small_screen() -> None:
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", STYLE)
    breaking = [name.strip() for name, body in rules if "anywhere" in body or "break-all" in body]
    assert breaking == ["h1", "h2", "p", ".meta", "code"]
    assert "td, td code { overflow-wrap: normal; }" in STYLE
    small = 420 / 15
    widths = [float(rem) for rem in re.findall(r"(?<!max-)(?<!\()width: ([\d.]+)rem", STYLE)]
    assert widths
    assert max(widths) < small


def themes() -> list[Mapping[str, str]]:
    """Return the colours of the light and the dark theme, by their names."""
    blocks = re.findall(r":root \{([^}]*)\}", STYLE)
    return [dict(re.findall(r"--(\w+): (#\w+);", block)) for block in blocks]


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_every_text_and_line_has_the_contrast_of_a_text(theme: Mapping[str, str]) -> None:
    """Of WCAG 2.2, 1.4.3: 4.5 to 1 for a small text."""
    behind = [luminance(theme[name]) for name in ("back", "card")]
    weak = {
        (name, round(ratio, 2))
        for name in ("text", "faint", "s1", "s2", "s3", "s4", "error", "warning", "advice", "info")
        for back in behind
        if (ratio := (max(back, shown := luminance(theme[name])) + 0.05) / (min(back, shown) + 0.05)) < 4.5
    }
    assert weak == set()
