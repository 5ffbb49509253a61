from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from nfstuned.core.policy.decision import decide
from nfstuned.host.policy import builtin_texts
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.policy import (
    ConfigError,
    Policy,
    Prometheus,
    ReadAhead,
    policy_from_json,
    policy_to_json,
)
from nfstuned.parse.config import schema
from nfstuned.parse.policy import parse_config
from nfstuned.view.policy import policy_text
from tests.parse.conftest import DATA

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAIN = "/etc/nfstuned/nfstuned.toml"
BUILTIN = builtin_texts()
PROBLEMS = DATA / "config-problems.txt"
Golden = Callable[[Path, str], None]
FULL = """\
[daemon]
sample_interval = "5m"
restore_on_stop = true
[nconnect]
mode = "persist"
[prometheus]
textfile = "/var/lib/prometheus/node-exporter/nfstuned.prom"
max_mounts = 50
[[policy]]
match = { server = ["10.1.2.0/24", "nas-*"], export = "/vol1*" }
profile = "azure-netapp-files"
[[policy]]
match.mount_point = "/scratch"
profile = "scratch"
[profile.scratch]
inherits = "azure-files"
read_ahead_kb = 4096
lower = true
[profile.efs-like]
read_ahead_kb = "15*rsize"
read_ahead_max_kb = 65536
nconnect = 2
nconnect_max = 16
rsize_max = 1048576
actimeo_min = 0
max_channels = 1
[[profile.efs-like.sources]]
keys = "nconnect"
url = "https://example.com/advice"
read = "2026-07"
"""


CHAIN = """
[profile.x]
inherits = "b"
[profile.b]
inherits = "c"
lower = true
[profile.c]
nconnect = 3
"""
OWN_4096 = ReadAhead(4096, own=True)
SCRATCH = "inherits = 'azure-files'\nread_ahead_kb = 4096\nlower = true\n"
BAD = r"""
daemon.sample_interval | a duration such as "60s", "5m" or "1h", at most "24h"; "0" for no samples
  60 | "60" | "5x" | "25h" | "-1s" | "1.5s" | "86401s" | true | ""
samples.max_size | a size such as "512K", "16M" or "1G", from "64K" to "64G"; "0" for no rotation
  16 | "16" | "63K" | "65G" | "16m" | "16MB" | "1.5M" | "-1M" | "" | true
samples.file | the absolute path of a file such as "/var/log/nfstuned/samples.jsonl"; "" for none
  "s" | "/var/" | "/" | "//x" | "/a/../b" | "/a/./b" | "/a\nb" | 3 | []
samples.keep | a number from 0 to 99
  -1 | 100 | 1.0 | true | "4"
prometheus.textfile | an absolute path without .. that ends with .prom
  "x.prom" | "/a/../x.prom" | "/a/x.txt" | true
prometheus.max_mounts | a number from 1 to 10000
  0 | 10001 | "5"
profile.x.read_ahead_kb | a number of KiB from 64 to 65536, or "15*rsize"
  63 | 65537 | -1 | true | 1024.0 | "x" | [1] | "0*rsize" | "15 * rsize"
profile.x.nconnect | a number from 1 to 16
  0 | 17 | "4" | true
profile.x.nconnect_max | a number from 1 to 16
  0 | 17 | "4" | true
profile.x.max_channels | a number from 1 to 16
  0 | 17 | "4" | true
profile.x.nconnect_not_for | a version of NFS such as "4.0", or a list of them
  "4" | "4.3" | ["3", "41"] | [""] | 4.1
match.export | a glob such as "/vol1*", or a list of them
  [] | "" | 3 | ["/a", 3] | ["/a", ""]
"""
"""A key with its allowed values, and below it values that are not allowed."""


def parse(*texts: str) -> Policy:
    return parse_config(BUILTIN, zip((MAIN, "/etc/a.toml", "/etc/b.toml"), texts, strict=False))


def problems(*texts: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(*texts)
    return caught.value.problems


def problem(text: str) -> str:
    (only,) = problems(text)
    return only


class TestBuiltin:
    @pytest.mark.parametrize(
        ("name", "read_ahead", "limits"),
        [
            ("azure-files", ReadAhead(15360), (16384, 4, 4, None)),
            ("azure-netapp-files", ReadAhead(15360), (16384, 8, 16, 262144)),
            ("aws-efs", ReadAhead(times_rsize=15), (None, None, 1, None)),
            ("aws-s3-files", ReadAhead(times_rsize=15), (None, None, None, None)),
            ("netapp-ontap", None, (None, None, 16, None)),
            ("qumulo", None, (None, 16, 16, None)),
            ("vast", None, (None, None, None, None)),
            ("generic", None, (None, None, None, None)),
            ("azure-files-smb", None, (None, None, None, None)),
            ("azure-netapp-files-smb", None, (None, None, None, None)),
        ],
    )
    def test_a_built_in_profile_has_the_designs_numbers(
        self, name: str, read_ahead: ReadAhead | None, limits: tuple[int | None, ...]
    ) -> None:
        profile = parse().profile(name)
        assert (profile.name, profile.read_ahead, profile.lower) == (name, read_ahead, False)
        seen = (profile.read_ahead_max_kb, profile.nconnect, profile.nconnect_max, profile.rsize_max)
        assert seen == limits

    def test_every_built_in_number_has_a_source_with_url_and_date(self) -> None:
        for file, text in BUILTIN:
            document = tomllib.loads(text)
            document.pop("provider", None)
            ((kind, tables),) = document.items()
            ((name, table),) = tables.items()
            assert (file, kind in {"profile", "workload"}) == (f"built-in {name}.toml", True)
            sourced = {key for source in table.get("sources", ()) for key in source["keys"]}
            # Of every other server a source says why there is no number.
            unnamed = {"read_ahead_kb"} if name == "generic" else set()
            assert sourced == set(table) - {"sources", "about", "inherits"} | unnamed
            assert all(
                source["url"].startswith("https://") and source["read"] for source in table.get("sources", ())
            )

    def test_a_profile_without_its_vendors_number_has_the_generic_number(self) -> None:
        changed = parse("[profile.generic]\nread_ahead_kb = 4096")
        for policy in (parse(), changed):
            generic, nas = policy.profile("generic"), policy.profile("alibaba-nas")
            assert (nas.read_ahead, nas.sources) == (generic.read_ahead, generic.sources)
            assert nas.base == "alibaba-nas"
        assert changed.profile("alibaba-nas").read_ahead == OWN_4096


class TestFormat:
    @pytest.mark.parametrize(
        ("key", "name", "values"),
        [
            ("daemon.sample_interval", "sample_interval_s", "0 0, 1s 1, 90s 90, 5m 300, 24h 86400"),
            ("samples.max_size", "sample_file_bytes", "0 0, 64K 65536, 16M 16777216, 64G 68719476736"),
        ],
    )
    def test_durations_and_sizes_have_units(self, key: str, name: str, values: str) -> None:
        for text, number in (pair.split() for pair in values.split(", ")):
            assert getattr(parse(f'{key} = "{text}"'), name) == int(number)

    @pytest.mark.parametrize("path", ["", "/samples.jsonl", "/var/log/nfs tuned/s\u00e4mples.jsonl"])
    def test_samples_may_go_to_a_file(self, path: str) -> None:
        policy = parse(f'[samples]\nfile = "{path}"\nkeep = 9')
        assert (policy.sample_file, policy.sample_files_kept) == (path, 9)


OF_GENERIC = "policy = [{match = {}, profile = 'generic'}]"


class TestAdapt:
    """How far reads may move the read-ahead of a mount at /data of an Azure file share."""

    @pytest.mark.parametrize(
        ("text", "kb", "most_kb"),
        [
            ("", 15360, 15360),
            ("profile.azure-files.adapt = 'off'", 15360, None),
            ("profile.azure-files.read_ahead_kb = 4096", 4096, None),
            ("profile.azure-files = {read_ahead_kb = '15*rsize', adapt = 'on'}", 3840, None),
            ("policy = [{match.mount_point = '/data', adapt = 'off'}]", 15360, None),
            ("policy = [{match.mount_point = '/other', adapt = 'off'}]", 15360, 15360),
            (OF_GENERIC, None, None),
            ("policy = [{match = {}, profile = 'generic', adapt = 'on'}]", None, 3840),
            ("profile.generic = {adapt = 'on', read_ahead_max_kb = 2048}\n" + OF_GENERIC, None, 2048),
            ("policy = [{match = {}, workload = 'model-loading'}]", 1024, 1024),
            ("policy = [{match = {}, workload = 'tiles', adapt = 'on'}]\nworkload.tiles.read_ahead_kb = 512",
             512, None),
            ("policy = [{match = {}, workload = 'tiles'}]\nworkload.tiles.adapt = 'off'", 15360, None),
            ("policy = [{match = {}, workload = 'tiles', adapt = 'down'}]\nworkload.tiles.adapt = 'off'",
             15360, 15360),
        ],
    )  # fmt: skip
    def test_the_nearest_word_counts_and_a_number_of_ones_own_never_moves(
        self, text: str, kb: int | None, most_kb: int | None
    ) -> None:
        source = "sa1.file.core.windows.net:/sa1/s"
        options = Options((("vers", "4.1"), ("rsize", "262144"), ("addr", "10.0.0.5")))
        mount = Mount(40, 25, "0:43", "/", "/data", "nfs4", source, options)
        superblock = Superblock("0:43", 7, 128, (mount,))
        policy = policy_from_json(policy_to_json(parse(text)))
        decision = decide(policy, superblock, Snapshot(superblocks=(superblock,)))
        assert (decision.kb, decision.most_kb) == (kb, most_kb)


class TestInheritance:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (f"[profile.x]\n{SCRATCH}", {"nconnect": 4, "actimeo_min": 30, "lower": True}),
            (f"[profile.x]\n{SCRATCH}", {"read_ahead": OWN_4096, "read_ahead_max_kb": 16384}),
            (f"[profile.azure-files]\n{SCRATCH}", {"read_ahead": OWN_4096, "nconnect": 4}),
            ("[profile.azure-files]\nnconnect = 2", {"read_ahead": ReadAhead(15360), "nconnect": 2}),
            ("[profile.generic]\ninherits = 'azure-netapp-files'", {"name": "generic", "nconnect": 8}),
            ("[profile.x]\ninherits = 'generic'\n[profile.generic]\nnconnect = 5", {"nconnect": 5}),
            (CHAIN, {"nconnect": 3, "lower": True}),
            ("[profile.google-filestore]\nnconnect = 7", {"nconnect": 7, "nconnect_depends": None}),
            (
                "[profile.x]\ninherits = 'qumulo'\nnconnect_depends = 'y'",
                {"nconnect": None, "nconnect_depends": "y", "nconnect_max": 16},
            ),
            ("[profile.x]\ninherits = 'netapp-ontap'\nnconnect_not_for = []", {"nconnect_not_for": ()}),
        ],
    )  # fmt: skip
    def test_a_profile_has_its_own_keys_and_its_parents(self, text: str, expected: dict[str, object]) -> None:
        profile = parse(text).profile(text.partition("]")[0].strip().removeprefix("[profile."))
        assert {key: getattr(profile, key) for key in expected} == expected


class TestSeveralFiles:
    def test_a_later_file_replaces_scalar_keys_one_by_one(self) -> None:
        first = 'daemon.sample_interval = "10s"\ndaemon.restore_on_stop = true\n'
        first += (
            'profile.x = {nconnect = 2, lower = true}\nprometheus = {textfile = "/x.prom", max_mounts = 5}'
        )
        later = 'daemon.sample_interval = "20s"\nprofile.x.nconnect = 3\nprometheus.max_mounts = 9'
        policy = parse(first, later)
        assert (policy.sample_interval_s, policy.restore_on_stop) == (20.0, True)
        assert policy.nconnect_mode == "advise"
        assert (policy.profile("x").nconnect, policy.profile("x").lower) == (3, True)
        assert policy.prometheus == Prometheus("/x.prom", max_mounts=9)

    def test_a_later_files_entries_are_asked_first(self) -> None:
        def entry(server: str) -> str:
            return f'[[policy]]\nmatch.server = "{server}"\nprofile = "generic"\n'

        policy = parse(entry("m1") + entry("m2"), entry("a1"), entry("b1") + entry("b2"))
        assert [a.match.server[0] for a in policy.assignments] == ["b1", "b2", "a1", "m1", "m2"]
        assert policy.assignments[2].origin == "policy 1 of /etc/a.toml"
        assert policy.files == (MAIN, "/etc/a.toml", "/etc/b.toml")


def test_config_show_prints_the_same_configuration() -> None:
    policy = parse(FULL)
    assert policy.prometheus is not None
    assert parse(policy_text(policy)).prometheus == policy.prometheus
    assert "[prometheus]" not in policy_text(parse())


class TestProblems:
    def test_a_problem_names_file_line_key_value_and_allowed_values(self, golden: Golden) -> None:
        """Each text of the file is followed by its problems."""
        cases = PROBLEMS.read_text().rstrip("\n").split("\n\n")
        texts = [re.sub(r"\n=> .*", "", case) for case in cases]
        golden(PROBLEMS, "\n\n".join("\n=> ".join((text, *problems(text))) for text in texts) + "\n")

    @pytest.mark.parametrize("row", re.findall(r"(\S+) \| (.+)\n  (.+)", BAD), ids=lambda row: row[0])
    def test_a_bad_value_is_refused_with_the_allowed_values(self, row: tuple[str, str, str]) -> None:
        key, allowed, values = row
        table = '[[policy]]\nprofile = "generic"\n' if key.startswith("match.") else ""
        for value in values.split(" | "):
            assert problem(f"{table}{key} = {value}").endswith(f"allowed: {allowed}"), value

    @pytest.mark.parametrize(
        "server",
        [
            *("10.1.2.0/24", "10.1.2.3", "10.1.*", "2001:db8::/32", "[2001:db8::1]", "nas", "nas[12]"),
            *("2001:db8::1", "fe80::1%eth0", "[fe80::1%eth0]", "fd00:*", "fd00::[12]", "::ffff:10.0.0.4"),
        ],
    )
    def test_good_servers_are_taken(self, server: str) -> None:
        assert parse(f'[[policy]]\nmatch.server = "{server}"\nprofile = "generic"').assignments

    def test_every_problem_of_every_file_is_a_line(self) -> None:
        found = problems(
            'x = "a\\nb"\n[daemon]\nsample_interval = 3\nrestore_on_stop = 3',
            "not toml",
            '[[policy]]\nmatch = {}\nprofile = "p"\n"a\\nb" = 1',
        )
        assert len(found) == 6
        assert all(re.match(r"/etc/[^\n]+: [^\n]+$", line) for line in found)

    def test_a_long_value_is_cut(self) -> None:
        assert len(problem(f'x = "{"y" * 1000}"')) < 220

    def test_a_value_cannot_break_the_line_or_the_terminal(self) -> None:
        assert r'"é\u2028\u009b"' not in problem('x = "é"')
        assert r'"\u00e9\u2028\u009b\u001b"' in problem('x = "é\u2028\u009b\\u001b"')


class TestSchema:
    def test_it_takes_a_full_file(self) -> None:
        self.validator().validate(tomllib.loads(FULL))

    @pytest.mark.parametrize(
        "text",
        [
            "x = 1",
            "daemon.sample_interval = 60",
            'daemon.sample_interval = "60"',
            'nconnect.mode = "x"',
            "profile.x.read_ahead_kb = 63",
            'profile.x.read_ahead_kb = "x"',
            "profile.x.nconnect = 17",
            'profile."a b".lower = true',
            "[[policy]]\nmatch = {}",
            '[[policy]]\nmatch.server = []\nprofile = "x"',
        ],
    )
    def test_it_refuses_the_same_texts_as_the_parser(self, text: str) -> None:
        assert list(self.validator().iter_errors(tomllib.loads(text)))
        assert problems(text)

    def test_every_key_has_a_description(self) -> None:
        for table in schema()["$defs"].values():
            assert all(key.get("description") for key in table["properties"].values())

    def validator(self) -> Any:  # noqa: ANN401 - jsonschema's validators are made at run time
        Draft202012Validator.check_schema(schema())
        return Draft202012Validator(schema())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = \nc = 3", '2: b: "": not TOML: '),
        ('a = """\nb = 1\n', '1: a: "\\"\\"\\"": not TOML: '),
        ("a = [1,\n", '1: a: "[1,": not TOML: '),
        ("\x00", r'1: "\u0000": not TOML: '),
        ("x = " + "[" * 100_000, "nested too deep: more than 32 tables and lists in each other"),
        ("x = " + "[" * 100 + "]" * 100, "nested too deep: more than 32 tables and lists in each other"),
        (".".join("a" * 3000) + " = 1", "no key of nfstuned.toml(5) is that long"),
        ("x = " + "1" * 5000, "not TOML: a number has too many digits"),
    ],
)
def test_a_text_that_python_cannot_read_is_reported_with_file_and_reason(text: str, said: str) -> None:
    found = problem(text)
    assert found.startswith(f"{MAIN}:{said}") if said[0].isdigit() else found.endswith(said)
    assert found.startswith(f"{MAIN}:")
    assert "\n" not in found
