"""nfstuned.api: each example of its page prints the page's output, and its names are the promised ones."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import os
import re
import socket
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

import pytest

from nfstuned import api
from nfstuned.api import Answer, Network, Reach, Result, Scope, apply, diagnose, look, observe, plan
from tests.check import hosts
from tests.tree import put
from tests.users import NOBODY, rights_of

PROJECT = Path(__file__).parents[1]
PAGE = (PROJECT / "docs/api.md").read_text()
VERBS = ("observe", "plan", "apply", "diagnose", "rates", "configuration", "look")
ANSWER = Answer("sa1.file.core.windows.net", ("10.10.10.10",), ("sa1.privatelink.file.core.windows.net",))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SET_UP = next(text for language, text in BLOCKS if language == "sh")
EXAMPLES = [
    (text, printed) for (language, text), (_, printed) in itertools.pairwise(BLOCKS) if language == "python"
]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return hosts.load("read-ahead-128").build(tmp_path / "host")


@pytest.mark.parametrize(("text", "printed"), EXAMPLES)
def test_an_example_prints_the_output_on_the_page(text: str, printed: str, tmp_path: Path) -> None:
    path = {**os.environ, "PYTHONPATH": str(PROJECT)}
    set_up = SET_UP.replace("python3 ", f"{sys.executable} ")
    subprocess.run(["sh", "-euc", set_up], cwd=tmp_path, env=path, check=True)
    command = [sys.executable, "-W", "error", "-c", text]
    done = subprocess.run(command, cwd=tmp_path, env=path, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (printed, "")


def test_no_verb_is_left_out_and_every_example_is_followed_by_its_output() -> None:
    assert [language for language, _ in BLOCKS] == ["sh", *["python", "text"] * len(EXAMPLES)]
    assert api.__all__ == sorted(api.__all__)
    functions = {name for name in api.__all__ if inspect.isfunction(getattr(api, name))}
    assert functions == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_an_example_and_takes_and_returns_public_values(verb: str) -> None:
    assert any(re.search(rf"\b{verb}\(", text) for text, _ in EXAMPLES)
    function = getattr(api, verb)
    public = {getattr(api, name) for name in api.__all__}
    own = {one for hint in typing.get_type_hints(function).values() for one in _classes(hint)}
    assert {one for one in own if one.__module__.startswith("nfstuned")} <= public
    assert function.__doc__


def test_every_value_is_frozen() -> None:
    values = [getattr(api, name) for name in api.__all__ if dataclasses.is_dataclass(getattr(api, name))]
    assert values
    for value in values:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(object.__new__(value), dataclasses.fields(value)[0].name, None)


def _classes(hint: object) -> set[type]:
    inner = {one for part in typing.get_args(hint) for one in _classes(part)}
    return inner | ({hint} if isinstance(hint, type) and not typing.get_args(hint) else set())


def test_a_snapshot_knows_its_root_so_that_its_own_configuration_counts(host: Path) -> None:
    put(host / "etc/nfstuned/nfstuned.toml", "[profile.azure-files]\nread_ahead_kb = 2048\n")
    assert [outcome.action.new_kb for outcome in plan(observe(host))] == [2048]


def test_a_plan_for_another_root_changes_nothing_there(host: Path, tmp_path: Path) -> None:
    other = hosts.load("read-ahead-128").build(tmp_path / "other")
    done = apply(plan(observe(host)), other)
    assert [outcome.result for outcome in done] == [Result.SKIPPED]
    assert (other / "sys/class/bdi/0:46/read_ahead_kb").read_text() == "128\n"


def test_what_was_undone_is_planned_again(host: Path) -> None:
    apply(plan(observe(host)), host)
    record = host / "run/nfstuned/read-ahead/0:46"
    record.write_text(record.read_text().replace("false", "true"))
    (host / "sys/class/bdi/0:46/read_ahead_kb").write_text("128\n")
    assert [outcome.result for outcome in plan(observe(host))] == [Result.PLANNED]


def test_a_folder_asks_nobody_and_names_skipped_rules(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    offline = diagnose(host)
    assert [finding.rule for finding in offline.findings] == ["NFS101"]
    assert "NFS405" in offline.skipped
    assert diagnose(host, network=Network(), scope=Scope(offline=True)) == offline


def test_a_question_without_an_answer_is_a_doubt(host: Path) -> None:
    known = Network(answers=(ANSWER,))
    assert diagnose(host, network=known).doubts == ("10.10.10.10 port 2049: not tried",)
    unknown = diagnose(host, network=Network())
    assert unknown.doubts[0] == "sa1.file.core.windows.net: no answer"
    silent = Network(answers=(Answer(ANSWER.host, error="no answer within 3 s", final=False),))
    assert diagnose(host, network=silent).doubts[0] == "sa1.file.core.windows.net: no answer within 3 s"


def test_only_the_rules_that_are_named_judge(host: Path) -> None:
    open_port = Network(answers=(ANSWER,), reaches=(Reach("10.10.10.10", 2049, api.Reachable.OPEN),))
    (finding,) = diagnose(host, network=open_port, rules="NFS1").findings
    assert finding.rule == "NFS101"
    assert diagnose(host, network=open_port, rules="NFS2,NFS405").findings == ()
    with pytest.raises(ValueError, match="there is no rule 'NFS999'"):
        diagnose(host, rules="NFS999")


def test_a_proposed_fstab_is_judged_alone_for_the_kernel_that_is_given(host: Path, tmp_path: Path) -> None:
    proposal = put(tmp_path / "fstab", "nas:/x /mnt/x nfs vers=4.1,nconnect=8,nofail,_netdev 0 0\n")
    scope = Scope(proposal=str(proposal))
    assert diagnose(host, scope=scope).findings == ()
    old = dataclasses.replace(scope, kernel=api.KernelRelease((4, 18, 0), "4.18.0-193.el8.x86_64"))
    (finding,) = diagnose(host, scope=old).findings
    assert (finding.rule, finding.subject) == ("NFS203", f"{proposal}:1")
    with pytest.raises(FileNotFoundError):
        diagnose(host, scope=Scope(proposal=str(tmp_path / "nothing")))


def test_an_image_has_requests_and_nothing_to_plan(tmp_path: Path) -> None:
    case = hosts.load("image-debian-12")
    image = case.build(tmp_path / "image")
    snapshot = observe(image, image=True)
    assert [request.point for request in snapshot.requests]
    assert plan(snapshot) == ()
    found = diagnose(image, scope=Scope(image=True)).findings
    assert list(map(hosts.label, found)) == case.findings


def test_two_looks_at_the_same_moment_have_no_rates(host: Path) -> None:
    now = look(host)
    assert now.superblocks
    assert api.rates(now, now) == ()


@pytest.mark.parametrize("verb", [observe, api.configuration, diagnose, look, lambda root: apply((), root)])
def test_a_folder_that_is_not_there_is_an_error(verb: typing.Callable[[str], object], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verb(str(tmp_path / "nothing"))


def test_a_folder_that_is_no_host_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(api.ParseError, match="not a kernel release"):
        observe(tmp_path)


def test_an_invalid_configuration_is_an_error_with_all_problems(host: Path) -> None:
    put(host / "etc/nfstuned/nfstuned.toml", "[daemon]\nsleep = 1\nsample_interval = 'often'\n")
    snapshot = observe(host)
    for use in (lambda: api.configuration(host), lambda: plan(snapshot), lambda: diagnose(host)):
        with pytest.raises(api.ConfigError) as caught:
            use()
        assert len(caught.value.problems) == 2


def test_a_file_that_this_user_may_not_read_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tree = hosts.load("read-ahead-128").build(Path(folder) / "host")
        put(tree / "etc/nfsmount.conf", mode=0)
        with rights_of(NOBODY):
            problems, doubts = observe(tree).problems, diagnose(tree).doubts
            refused = apply(plan(observe(tree)), tree)
    line = "/etc/nfsmount.conf: permission denied; root can read it"
    assert ([str(problem) for problem in problems], doubts) == ([line], (line,))
    assert [outcome.result for outcome in refused] == [Result.FAILED]
    assert refused[0].reason.endswith("Permission denied; run it as root")


def test_a_pipe_instead_of_a_file_is_named_once(host: Path) -> None:
    os.mkfifo(host / "etc/nfsmount.conf")
    line = "/etc/nfsmount.conf: a fifo instead of a file: not read"
    assert [str(problem) for problem in observe(host).problems] == [line]
    assert diagnose(host).doubts == (line,)
