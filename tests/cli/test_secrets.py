"""No output of any command shows a secret, wherever on the host it stands."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from itertools import count

import pytest

from nfstuned.core.samples.sample import sample_to_json
from nfstuned.host.telemetry.journal import Journal, Message
from nfstuned.model.metrics import MetricFamily, Point
from nfstuned.parse.fields import MASK
from nfstuned.view.metrics import exposition
from tests.cli.conftest import CONFIG, REPOSITORY, Host, MakeHost
from tests.parse.test_samples import SAMPLE
from tests.tree import put

CONFIGS = {
    "none": "",
    "right": '[[policy]]\nmatch = { server = "10.1.2.0/24", export = "/x?sig={}" }\nprofile = "generic"\n',
    "a key that is unknown": '[x]\npassword = "{}"\n',
    "no TOML": 'a = "password={}\n',
    "a wrong value": '[daemon]\nsample_interval = "//u:{}@h"\n',
}
_WHOLE = {"check", "status", "apply", "samples", "report"}
SHOWING = {
    **{key: {"config", "check", "status", "apply"} for key in CONFIGS},
    "none": _WHOLE,
    "right": {*_WHOLE, "config"},
}
"""The commands that have a secret to mask."""


class Secrets:
    """Makes secrets, each of its own, and knows in which text they are."""

    def __init__(self) -> None:
        self._number = count(10)
        self.made: list[str] = []

    def fill(self, text: str) -> str:
        """Put a new secret into the place of each {}."""
        for _ in range(text.count("{}")):
            self.made.append(f"hunter{next(self._number)}z")
            text = text.replace("{}", self.made[-1], 1)
        return text

    def fill_named(self, text: str) -> str:
        """Do the same with what is JSON."""
        return re.sub(r"(?<=[:=])\{\}(?=[@\"])", lambda _: self.fill("{}"), text)

    def shown(self, text: str) -> list[str]:
        return [secret for secret in self.made if secret in text]


_, *_SECTIONS = re.split(r"(?m)^-- (\S+) --\n", (REPOSITORY / "tests/cli/secrets.txt").read_text())
PLACES = dict(zip(_SECTIONS[::2], _SECTIONS[1::2], strict=True))
"""By file, a text with a {} for each secret."""
SAMPLES_SINCE = "samples --file SAMPLES --since 2020-01-01 --format "
COMMANDS = [
    *(f"check --offline {more}--format {form}"
      for more in ("", "--fstab PROPOSED ", "--root TREE ")
      for form in ("text", "json", "junit", "sarif", "prometheus")),
    *(f"{command} --dry-run --format {form}"
      for command in ("apply", "nconnect fstab", "nconnect persist", "nconnect remount --all")
      for form in ("text", "json")),
    *(f"{command} --format {form}"
      for command in ("status", "why /mnt/share", "config show", "bake --root TREE --dry-run")
      for form in ("text", "json")),
    *(SAMPLES_SINCE + form for form in ("text", "json", "csv")),
    "config check",
    "report --file SAMPLES --since 2020-01-01 --offline --output REPORT",
    "top --count 1 --interval 0.1",
    "install-files --root TREE --dry-run",
    "undo",
]  # fmt: skip


@pytest.fixture
def planted(host: MakeHost) -> tuple[Host, Secrets]:
    """Return a host with a secret in every place that is read, and these secrets."""
    made, secrets = host("clean"), Secrets()
    for name, text in (*PLACES.items(), ("proposed", PLACES["etc/fstab"])):
        real = (made.tree / name).read_text() if name.startswith(("proc", "run")) else ""
        put(made.tree / name, real + secrets.fill(text))
    recent = replace(SAMPLE, time=time.time() - 60, source="SOURCE", mount_points=("/mnt/POINT",))
    line = json.dumps(sample_to_json(recent)).replace("SOURCE", "//u:{}@h/s")
    line = secrets.fill_named(line.replace("/mnt/POINT", "/mnt?sig={}"))
    put(made.tree / "samples", line + "\n")
    return made, secrets


def run_all(planted: tuple[Host, Secrets]) -> dict[str, str]:
    """Return what each command shows, and which secrets of it there are."""
    made, _ = planted
    places = {"TREE": "", "PROPOSED": "proposed", "SAMPLES": "samples", "REPORT": "report.html"}
    names = {name: str(made.tree / place) for name, place in places.items()}
    report, outputs = made.tree / "report.html", {}
    for command in COMMANDS:
        run = made.run(*(names.get(word, word) for word in command.split()))
        outputs[command] = run.out + run.err + (report.read_text() if report.exists() else "")
        report.unlink(missing_ok=True)
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=CONFIGS)
def test_no_output_shows_a_secret(planted: tuple[Host, Secrets], config: str) -> None:
    made, secrets = planted
    if config:
        made.configure(secrets.fill(CONFIGS[config]))
    outputs = run_all(planted)
    assert {command: shown for command, text in outputs.items() if (shown := secrets.shown(text))} == {}
    assert {command.split()[0] for command, text in outputs.items() if MASK in text} >= SHOWING[config]


@pytest.mark.slow
def test_only_what_is_shown_is_masked(planted: tuple[Host, Secrets]) -> None:
    made, secrets = planted
    made.configure(CONFIG)
    file = made.tree / "etc/fstab"
    file.write_text("".join(PLACES["etc/fstab"].splitlines(keepends=True)[:6]).format(*secrets.made))
    mine = file.read_text().splitlines()
    run = made.run("nconnect", "fstab", "--yes")
    assert "+10.1.2.4:/vol1" in run.out
    assert MASK in run.out
    assert secrets.shown(run.out + run.err) == []
    assert file.read_text().splitlines() == [
        line.replace(" 0 0", ",nconnect=8 0 0") if line.startswith("10.1.2.4:") else line for line in mine
    ]


def test_neither_journal_nor_metrics_show_a_secret() -> None:
    secrets, written = Secrets(), list[bytes]()
    journal = Journal(lambda *entry: written.extend(entry))
    journal.send(
        Message.METRICS_FAILED, secrets.fill("//u:{}@h"), 3, key="x", reason=secrets.fill("password={}")
    )
    point = Point((secrets.fill("//u:{}@h/s"), secrets.fill("nas:/v?sig={}")), 1.0)
    family = MetricFamily("nfstuned_x", "x", ("source", "mount_point"), (point,))
    text = exposition([family])
    shown = b"".join(written).decode() + text
    assert secrets.shown(shown) == []
    assert shown.count(MASK) == len(secrets.made)
