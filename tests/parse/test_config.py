from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from nfstuned.errors import ConfigError
from nfstuned.host.policy import builtin_tables
from nfstuned.model.policy import Match, Policy, Prometheus, ReadAhead
from nfstuned.parse.config import schema
from nfstuned.parse.policy import parse_config
from nfstuned.view.policy import policy_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAIN = "/etc/nfstuned/nfstuned.toml"
BUILTIN = builtin_tables()
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
SERVED = (
    "the service itself listens nowhere any more: take the line out, and let nfstuned-exporter.service serve "
    "the metrics (systemctl enable --now nfstuned-exporter, see METRICS in nfstuned(8))"
)
UNSAMPLED = (
    'metrics are counted when a sample is taken, and daemon.sample_interval is "0"; allowed: "1s" to "24h"'
)


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
            ("netapp-ontap", ReadAhead(1024), (None, None, 16, None)),
            ("qumulo", ReadAhead(1024), (None, 16, 16, None)),
            ("vast", None, (None, None, None, None)),
            ("generic", ReadAhead(1024), (None, None, None, None)),
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
            assert sourced == set(table) - {"sources", "about", "inherits"}
            assert all(
                source["url"].startswith("https://") and source["read"] for source in table.get("sources", ())
            )

    def test_a_profile_without_its_vendors_number_has_the_generic_number(self) -> None:
        changed = parse("[profile.generic]\nread_ahead_kb = 4096")
        for policy in (parse(), changed):
            generic, nas = policy.profile("generic"), policy.profile("alibaba-nas")
            assert (nas.read_ahead, nas.sources) == (generic.read_ahead, generic.sources)
            assert nas.base == "alibaba-nas"
        assert changed.profile("alibaba-nas").read_ahead == ReadAhead(4096)

    def test_without_files_the_defaults_hold(self) -> None:
        policy = parse()
        assert (policy.sample_interval_s, policy.restore_on_stop, policy.nconnect_mode) == (
            60.0,
            False,
            "advise",
        )
        assert (policy.assignments, policy.files) == ((), ())


class TestFormat:
    def test_each_table_of_a_full_file_counts(self) -> None:
        policy = parse(FULL)
        assert (policy.sample_interval_s, policy.restore_on_stop, policy.nconnect_mode) == (
            300.0,
            True,
            "persist",
        )
        first, second = policy.assignments
        assert first.match == Match(("10.1.2.0/24", "nas-*"), ("/vol1*",), ())
        assert (first.profile, first.origin) == ("azure-netapp-files", f"policy 1 of {MAIN}")
        assert second.match == Match(mount_point=("/scratch",))
        assert policy.files == (MAIN,)
        efs = policy.profile("efs-like")
        assert (efs.read_ahead, efs.sources[0].keys) == (ReadAhead(times_rsize=15), ("nconnect",))

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

    def test_an_empty_match_means_every_mount(self) -> None:
        assert parse('[[policy]]\nmatch = {}\nprofile = "generic"').assignments[0].match == Match()


class TestInheritance:
    def test_unset_keys_are_inherited(self) -> None:
        scratch = parse(FULL).profile("scratch")
        assert (scratch.read_ahead, scratch.lower) == (ReadAhead(4096), True)
        assert (scratch.read_ahead_max_kb, scratch.nconnect, scratch.actimeo_min) == (16384, 4, 30)

    def test_a_changed_number_is_not_the_vendors_any_more(self) -> None:
        sourced = {key for source in parse(FULL).profile("scratch").sources for key in source.keys}
        assert sourced == {"read_ahead_max_kb", "nconnect", "nconnect_max", "actimeo_min"}

    def test_a_built_in_profile_of_the_same_name_is_changed(self) -> None:
        for text in ("", 'inherits = "azure-files"\n'):
            profile = parse(f"[profile.azure-files]\n{text}read_ahead_kb = 16000").profile("azure-files")
            assert (profile.read_ahead, profile.nconnect) == (ReadAhead(16000), 4)

    def test_a_built_in_profile_can_be_put_on_another_base(self) -> None:
        profile = parse('[profile.generic]\ninherits = "azure-netapp-files"').profile("generic")
        assert (profile.name, profile.read_ahead, profile.nconnect) == ("generic", ReadAhead(15360), 8)

    def test_who_inherits_from_a_changed_built_in_profile_gets_the_change(self) -> None:
        policy = parse('[profile.x]\ninherits = "generic"\n[profile.generic]\nread_ahead_kb = 2048')
        assert policy.profile("x").read_ahead == ReadAhead(2048)

    def test_a_chain_is_followed(self) -> None:
        text = '[profile.a]\ninherits = "b"\n[profile.b]\ninherits = "c"\nlower = true\n'
        text += "[profile.c]\nnconnect = 3"
        profile = parse(text).profile("a")
        assert (profile.nconnect, profile.lower) == (3, True)

    @pytest.mark.parametrize(
        ("text", "base"),
        [
            ('inherits = "azure-files"', "azure-files"),
            ('inherits = "b"\n[profile.b]\ninherits = "azure-netapp-files"', "azure-netapp-files"),
            ('inherits = "generic"\n[profile.generic]\ninherits = "azure-files"', "generic"),
            ('inherits = "b"\n[profile.b]\nnconnect = 3', "a"),
            ("nconnect = 3", "a"),
        ],
    )
    def test_a_profile_knows_its_first_built_in_parent(self, text: str, base: str) -> None:
        policy = parse(f"[profile.a]\n{text}")
        assert policy.profile("a").base == base
        assert all(policy.profile(name).base == name for name in ("azure-files", "generic"))

    def test_a_number_replaces_its_condition(self) -> None:
        profile = parse("[profile.google-filestore]\nnconnect = 7").profile("google-filestore")
        assert (profile.nconnect, profile.nconnect_depends) == (7, None)
        assert not any("nconnect_depends" in source.keys for source in profile.sources)

    def test_a_condition_replaces_an_inherited_number(self) -> None:
        text = '[profile.a]\ninherits = "qumulo"\nnconnect_depends = "the release"'
        profile = parse(text).profile("a")
        assert (profile.nconnect, profile.nconnect_depends, profile.nconnect_max) == (None, "the release", 16)

    def test_an_empty_list_takes_back_an_inherited_list(self) -> None:
        profile = parse('[profile.x]\ninherits = "netapp-ontap"\nnconnect_not_for = []').profile("x")
        assert profile.nconnect_not_for == ()

    @pytest.mark.parametrize(
        ("text", "way"),
        [
            ('[profile.a]\ninherits = "a"', "a -> a"),
            ('[profile.a]\ninherits = "b"\n[profile.b]\ninherits = "a"', "a -> b -> a"),
            (
                '[profile.x]\ninherits = "a"\n[profile.a]\ninherits = "b"\n[profile.b]\ninherits = "a"',
                "a -> b -> a",
            ),
            (
                '[profile.generic]\ninherits = "aws-efs"\n[profile.aws-efs]\ninherits = "generic"',
                "generic -> aws-efs -> generic",
            ),
        ],
    )
    def test_a_cycle_is_reported_once(self, text: str, way: str) -> None:
        assert f"a cycle ({way})" in problem(text)


class TestSeveralFiles:
    def test_a_later_file_replaces_scalar_keys_one_by_one(self) -> None:
        policy = parse(
            '[daemon]\nsample_interval = "10s"\nrestore_on_stop = true\n'
            "[profile.x]\nnconnect = 2\nlower = true",
            '[daemon]\nsample_interval = "20s"\n[profile.x]\nnconnect = 3',
        )
        assert (policy.sample_interval_s, policy.restore_on_stop) == (20.0, True)
        assert (policy.profile("x").nconnect, policy.profile("x").lower) == (3, True)

    def test_a_later_files_entries_are_asked_first(self) -> None:
        def entry(server: str) -> str:
            return f'[[policy]]\nmatch.server = "{server}"\nprofile = "generic"\n'

        policy = parse(entry("m1") + entry("m2"), entry("a1"), entry("b1") + entry("b2"))
        assert [a.match.server[0] for a in policy.assignments] == ["b1", "b2", "a1", "m1", "m2"]
        assert policy.assignments[2].origin == "policy 1 of /etc/a.toml"
        assert policy.files == (MAIN, "/etc/a.toml", "/etc/b.toml")

    def test_a_profile_may_stand_in_another_file(self) -> None:
        parse('[[policy]]\nmatch = {}\nprofile = "x"', "[profile.x]\nnconnect = 2")


class TestPrometheus:
    @pytest.mark.parametrize(("key", "value"), [("listen", '"127.0.0.1:9814"'), ("allow_remote", "true")])
    def test_a_key_of_the_former_server_names_the_unit_that_serves_now(self, key: str, value: str) -> None:
        assert problem(f"[prometheus]\n{key} = {value}") == f"{MAIN}:2: prometheus.{key}: {value}: {SERVED}"

    def test_a_later_file_replaces_single_keys(self) -> None:
        first = '[prometheus]\ntextfile = "/a/x.prom"\nmax_mounts = 5'
        assert parse(first, "prometheus.max_mounts = 9").prometheus == Prometheus("/a/x.prom", max_mounts=9)

    def test_without_samples_there_is_nothing_to_count(self) -> None:
        text = 'daemon.sample_interval = "0"\nprometheus.textfile = "/a/x.prom"'
        assert problem(text) == f'{MAIN}:2: prometheus.textfile: "/a/x.prom": {UNSAMPLED}'

    def test_config_show_prints_the_same_configuration(self) -> None:
        policy = parse('[prometheus]\ntextfile = "/a/b.prom"\nmax_mounts = 7')
        shown = policy_text(policy)
        assert 'textfile = "/a/b.prom"\nmax_mounts = 7\n' in shown
        assert parse(shown).prometheus == policy.prometheus
        assert "[prometheus]" not in policy_text(parse())


class TestProblems:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            (
                "\nsmaple = 1",
                (f'{MAIN}:2: smaple: 1: unknown key; did you mean "samples"? '
                "allowed: daemon, nconnect, policy, profile, prometheus, samples, workload"),
            ),
            (
                '[daemon]\nsample_intervall = "60s"',
                (f'{MAIN}:2: daemon.sample_intervall: "60s": unknown key; did you mean "sample_interval"? '
                "allowed: restore_on_stop, sample_interval"),
            ),
            ("daemon.restore_on_stop = 1", f"{MAIN}:1: daemon.restore_on_stop: 1: allowed: true or false"),
            ("daemon = 3", f"{MAIN}:1: daemon: 3: allowed: a table"),
            ('[nconnect]\nmode = "yes"', f'{MAIN}:2: nconnect.mode: "yes": allowed: "advise" or "persist"'),
            ("policy = 3", f"{MAIN}:1: policy: 3: allowed: [[policy]] entries"),
            (
                '[[policy]]\nmatch.server = "a"\nworkload = "sequental"',
                (f'{MAIN}:3: policy[1].workload: "sequental": unknown workload; did you mean "sequential"? '
                f"allowed: {', '.join(workload.name for workload in parse().workloads)}"),
            ),
            (
                '[profile.generic]\nnconnect = 4\nnconnect_depends = "x"',
                (f'{MAIN}:3: profile.generic.nconnect_depends: "x": there is nconnect = 4, too; '
                "allowed: one of the two"),
            ),
            ("workload = 3", f"{MAIN}:1: workload: 3: allowed: [workload.NAME] tables"),
            ("policy = [3]", f"{MAIN}:1: policy[1]: 3: allowed: a table"),
            ("profile = 3", f"{MAIN}:1: profile: 3: allowed: [profile.NAME] tables"),
            ("profile.x = 3", f"{MAIN}:1: profile.x: 3: allowed: a table"),
            (
                '[[policy]]\nmatch.server = "a"\nprofile = "generic"\n[[policy]]\nmatch.server = "b"',
                f'{MAIN}:4: policy[2].profile: "": missing; allowed: the name of a profile',
            ),
            (
                '[[policy]]\nprofile = "generic"',
                (f'{MAIN}:1: policy[1].match: "": missing; '
                "allowed: a table with server, export or mount_point"),
            ),
            (
                '[[policy]]\nmatch.exprot = "/x"\nprofile = "generic"',
                (f'{MAIN}:2: policy[1].match.exprot: "/x": unknown key; did you mean "export"? '
                "allowed: export, mount_point, server"),
            ),
            (
                '[profile."a b"]\nlower = true',
                f"""{MAIN}:1: profile."a b": "a b": allowed in a profile's name: letters, digits, _ and -""",
            ),
            (
                '[[profile.x.sources]]\nkeys = "lower"\nurl = "ftp://x"\nread = "2026-01"',
                f'{MAIN}:3: profile.x.sources[1].url: "ftp://x": allowed: an http or https address',
            ),
            (
                "[profile.x]\nsources = [3]",
                f"{MAIN}:2: profile.x.sources[1]: 3: allowed: [[profile.NAME.sources]] tables",
            ),
        ],
    )  # fmt: skip
    def test_a_problem_names_file_line_key_value_and_allowed_values(self, text: str, line: str) -> None:
        assert problem(text) == line

    @pytest.mark.parametrize("row", re.findall(r"(\S+) \| (.+)\n  (.+)", BAD), ids=lambda row: row[0])
    def test_a_bad_value_is_refused_with_the_allowed_values(self, row: tuple[str, str, str]) -> None:
        key, allowed, values = row
        table = '[[policy]]\nprofile = "generic"\n' if key.startswith("match.") else ""
        for value in values.split(" | "):
            assert problem(f"{table}{key} = {value}").endswith(f"allowed: {allowed}"), value

    @pytest.mark.parametrize(
        ("server", "hint"),
        [
            ("10.1.2.3/24", "allowed: 10.1.2.0/24 for the network"),
            ("10.1.2.0/33", "allowed: an address, a network such as"),
            ("10.1.2.300", "allowed: an address, a network such as"),
            ("2001:db8::g", "allowed: an address, a network such as"),
            ("[fd00::10", "allowed: an address, a network such as"),
            ("nas:2049", "allowed: an address, a network such as"),
            ("2001:db8::1/32", "allowed: 2001:db8::/32 for the network"),
        ],
    )
    def test_a_bad_network_is_refused_with_the_right_one(self, server: str, hint: str) -> None:
        assert hint in problem(f'[[policy]]\nmatch.server = "{server}"\nprofile = "generic"')

    @pytest.mark.parametrize(
        "server",
        [
            *("10.1.2.0/24", "10.1.2.3", "10.1.*", "2001:db8::/32", "[2001:db8::1]", "nas", "nas[12]"),
            *("2001:db8::1", "fe80::1%eth0", "[fe80::1%eth0]", "fd00:*", "fd00::[12]", "::ffff:10.0.0.4"),
        ],
    )
    def test_good_servers_are_taken(self, server: str) -> None:
        assert parse(f'[[policy]]\nmatch.server = "{server}"\nprofile = "generic"').assignments

    def test_an_unknown_profile_is_reported_with_the_nearest_name(self) -> None:
        found = problems('[[policy]]\nmatch = {}\nprofile = "azure-file"\n[profile.x]\ninherits = "generc"')
        assert found[0].startswith(
            f'{MAIN}:5: profile.x.inherits: "generc": unknown profile; did you mean "generic"?'
        )
        assert found[1].startswith(
            f'{MAIN}:3: policy[1].profile: "azure-file": unknown profile; did you mean "azure-files"?'
        )

    def test_a_profile_that_is_wrong_is_not_unknown_as_well(self) -> None:
        found = problem('[[policy]]\nmatch = {}\nprofile = "x"\n[profile.x]\nnconnect = 99')
        assert found.startswith(f"{MAIN}:5: profile.x.nconnect: 99")

    def test_a_profile_that_is_wrong_still_has_its_parent_checked(self) -> None:
        found = problems('[profile.x]\ninherits = "nobody"\nnconnect = 99')
        assert len(found) == 2
        assert "unknown profile" in found[1]

    def test_a_number_above_an_inherited_limit_is_refused(self) -> None:
        found = problems('[profile.x]\ninherits = "azure-files"\nnconnect = 8\nread_ahead_kb = 20000')
        assert found == (
            (
                f"{MAIN}:4: profile.x.read_ahead_kb: 20000: "
                "read_ahead_kb = 20000 is above read_ahead_max_kb = 16384; "
                "allowed: at most that, or a larger read_ahead_max_kb"
            ),
            (
                f"{MAIN}:3: profile.x.nconnect: 8: nconnect = 8 is above nconnect_max = 4; "
                "allowed: at most that, or a larger nconnect_max"
            ),
        )

    def test_a_limit_below_an_inherited_number_is_refused_where_it_is_set_only(self) -> None:
        text = '[profile.x]\ninherits = "azure-files"\nnconnect_max = 2\n'
        text += '[profile.y]\ninherits = "x"\nlower = true'
        assert problem(text).startswith(f"{MAIN}:3: profile.x.nconnect_max: 2: ")

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("a = 1\nb = \nc = 3", '2: "b =": not TOML: '),
            ("a = 1\na = 2", '2: "a = 2": not TOML: '),
            ('a = """', '1: "a = \\"\\"\\"": not TOML: '),
            ("a = [1,\n", '2: "": not TOML: '),
            ("[a]\n[a]", '2: "[a]": not TOML: '),
            ("\x00", r'1: "\u0000": not TOML: '),
        ],
    )
    def test_a_text_that_is_not_toml_is_reported_with_its_line(self, text: str, where: str) -> None:
        assert problem(text).startswith(f"{MAIN}:{where}")

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

    def test_a_date_is_shown_as_it_is_written(self) -> None:
        assert '"2026-07-29"' in problem("daemon.restore_on_stop = 2026-07-29")

    def test_a_table_below_an_entry_has_its_own_line(self) -> None:
        text = '[[policy]]\nprofile = "generic"\n[policy.match]\nserver = 3'
        assert problem(text).startswith(f"{MAIN}:4: policy[1].match.server: 3: ")

    def test_a_key_that_the_scan_does_not_find_has_no_line(self) -> None:
        assert problem('"a\\"b" = 1').startswith(f'{MAIN}: "a\\"b": 1: unknown key')

    def test_a_key_in_a_multi_line_string_has_no_line_of_its_own(self) -> None:
        assert problem('profile.x.nconnect = """\nlower = 1\n"""').startswith(f"{MAIN}:1: profile.x.nconnect")


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
        ("x = " + "[" * 100_000, "nested too deep: more than 32 tables and lists in each other"),
        ("x = " + "[" * 100 + "]" * 100, "nested too deep: more than 32 tables and lists in each other"),
        (".".join("a" * 3000) + " = 1", "no key of nfstuned.toml(5) is so long"),
        ("x = " + "1" * 5000, "not TOML: a number has too many digits"),
    ],
)
def test_a_text_that_python_cannot_read_is_reported_with_file_and_reason(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(BUILTIN, [(MAIN, text)])
    (problem,) = raised.value.problems
    assert problem.startswith(f"{MAIN}:")
    assert problem.endswith(said)
    assert "\n" not in problem
