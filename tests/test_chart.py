"""deploy/helm: the chart renders valid manifests, which start nfstuned as its image and its node need it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfstuned import __version__
from nfstuned.host.policy import load_policy
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy
from tests.test_recipes import parse
from tests.tree import link, put

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy/helm/nfstuned"
TOOLS = ROOT / "build/deploy/bin"
KUBERNETES = ("1.25.0", "1.30.0", "1.37.0")
"""The oldest that the chart allows, and the newest with schemas in dev/deploy.lock."""
CONFIG = """\
[[policy]]
match = { server = "10.1.2.4" }
profile = "azure-netapp-files"
"""
DIGEST = f"sha256:{'5e' * 32}"
EVERYTHING: dict[str, object] = {
    "image": {"repository": "registry.example.com/a/nfstuned", "digest": DIGEST, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "config": CONFIG,
    "persist": {"enabled": True},
    "kubelet": {"rootDir": "/var/lib/k0s/kubelet"},
    "exporter": {
        "enabled": True,
        "port": 9900,
        "service": {"enabled": True, "annotations": {"a.example.com/b": "c"}},
        "podMonitor": {"enabled": True, "interval": "5m", "labels": {"release": "prometheus"}},
    },
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
    "nodeSelector": {"pool": "files"},
    "tolerations": [{"key": "pool", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
            }
        }
    },
    "serviceAccount": {"name": "files", "annotations": {"a.example.com/b": "c"}},
    "podAnnotations": {"a.example.com/b": "c"},
    "podLabels": {"team": "storage"},
}
SETS: tuple[dict[str, object], ...] = (
    {},
    EVERYTHING,
    {"mode": "observe", "config": CONFIG, "serviceAccount": {"create": False}},
)
pytestmark = pytest.mark.skipif(
    not (TOOLS / "helm").exists(), reason="helm is not in build/deploy/bin (sh dev/test fetches it)"
)


def tool(name: str, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [TOOLS / name, *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def helm(verb: str, *words: str | Path, **values: object) -> subprocess.CompletedProcess[str]:
    """Run helm with these values, which it reads from its standard input."""
    return tool("helm", verb, *words, "--values", "-", stdin=yaml.safe_dump(values))


def render(**values: object) -> list[Any]:
    done = helm("template", "nfs", CHART, "--namespace", "storage", **values)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document is not None]


def refusal(**values: object) -> str:
    done = helm("template", "nfs", CHART, **values)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def of_kind(kind: str, documents: list[Any]) -> Any:  # noqa: ANN401 - a manifest, as a parser of YAML gives it
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


def daemon_set(**values: object) -> Any:  # noqa: ANN401 - as above
    return of_kind("DaemonSet", render(**values))["spec"]


def pod(**values: object) -> Any:  # noqa: ANN401 - as above
    return daemon_set(**values)["template"]["spec"]


def test_the_versions_are_the_programs_and_those_of_the_schemas() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert chart["kubeVersion"] == f">={KUBERNETES[0]}-0"
    images = [pod(**values)["containers"][0]["image"] for values in ({}, {"image": {"tag": "a"}}, EVERYTHING)]
    own = "localhost/nfstuned"
    assert images == [f"{own}:{__version__}", f"{own}:a", f"registry.example.com/a/nfstuned@{DIGEST}"]


@pytest.mark.parametrize("values", SETS)
def test_helm_finds_nothing_wrong(values: dict[str, object]) -> None:
    done = helm("lint", CHART, "--strict", **values)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("values", SETS)
def test_kubernetes_takes_the_manifests(values: dict[str, object], tmp_path: Path) -> None:
    known = [document for document in render(**values) if document["kind"] != "PodMonitor"]
    good = put(tmp_path / "good.yaml", yaml.safe_dump_all(known))
    of_kind("DaemonSet", known)["spec"]["template"]["spec"]["hostPid"] = True
    bad = put(tmp_path / "bad.yaml", yaml.safe_dump_all(known))
    for version in KUBERNETES:
        words = ("--strict", "--kubernetes-version", version)
        done = tool("kubernetes-validate", *words, good)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "hostPid" in (refused := tool("kubernetes-validate", *words, bad)).stdout + refused.stderr
        assert refused.returncode != 0


@pytest.mark.parametrize("values", SETS)
def test_the_check_of_manifests_finds_nothing(values: dict[str, object]) -> None:
    text = yaml.safe_dump_all(render(**values))
    done = subprocess.run(
        [sys.executable, "-m", "nfstuned", "check", "-", "--offline"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Nothing to report: ")


def test_every_command_exists() -> None:
    one = pod(**EVERYTHING)
    containers = [*one["initContainers"], *one["containers"]]
    assert [container["args"][0] for container in containers] == ["nconnect", "daemon", "exporter"]
    for container in containers:
        assert "command" not in container
        parse(container["args"])
    (daemon,) = pod()["containers"]
    program, *words = daemon["startupProbe"]["exec"]["command"]
    assert program == "nfstuned"
    parse(words)


@pytest.mark.parametrize("values", SETS)
def test_each_part_of_the_pod_is_there_once_and_used(values: dict[str, object]) -> None:
    spec = daemon_set(**values)
    template = spec["template"]
    assert spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    one = template["spec"]
    containers = [*one.get("initContainers", []), *one["containers"]]
    used = {mount["name"] for container in containers for mount in container["volumeMounts"]}
    assert used == {volume["name"] for volume in one["volumes"]}
    assert len({container["image"] for container in containers}) == 1
    assert (one["hostPID"], one["hostNetwork"], one["automountServiceAccountToken"]) == (True, True, False)


def test_the_pod_sees_the_node_and_keeps_none_of_its_mounts() -> None:
    (daemon,) = pod(**EVERYTHING)["containers"][:1]
    mounts = {mount["mountPath"]: mount for mount in daemon["volumeMounts"]}
    assert mounts["/run/udev"]["readOnly"]
    kubelet = mounts["/var/lib/k0s/kubelet"]
    assert (kubelet["readOnly"], kubelet["mountPropagation"]) == (True, "HostToContainer")
    (volume,) = [each["hostPath"] for each in pod()["volumes"] if each["name"] == "udev"]
    assert volume["type"] == "DirectoryOrCreate"


def writable(one: Any) -> set[str]:  # noqa: ANN401 - a pod's specification
    """Return the folders of the node that a container may write to."""
    paths = {volume["name"]: volume.get("hostPath", {}).get("path", "") for volume in one["volumes"]}
    return {
        paths[mount["name"]]
        for container in [*one.get("initContainers", []), *one["containers"]]
        for mount in container["volumeMounts"]
        if not mount.get("readOnly")
    } - {""}


def test_only_persist_writes_below_etc_of_the_node() -> None:
    assert writable(pod()) == writable(pod(mode="observe")) == {"/run/nfstuned"}
    assert "initContainers" not in pod()
    assert "/etc" not in " ".join(volume.get("hostPath", {}).get("path", "") for volume in pod()["volumes"])
    assert writable(pod(persist={"enabled": True})) == {"/run/nfstuned", "/etc/nfsmount.conf.d"}


def test_the_control_plane_gets_no_pod_unless_asked_for() -> None:
    one = pod()
    assert "tolerations" not in one
    assert one["nodeSelector"] == {"kubernetes.io/os": "linux"}
    asked = [{"operator": "Exists"}]
    assert pod(tolerations=asked)["tolerations"] == asked


def test_another_policy_is_another_pod() -> None:
    sums = [
        daemon_set(**values)["template"]["metadata"]["annotations"]["checksum/config"]
        for values in ({}, {}, {"config": CONFIG}, {"mode": "observe"}, {"podLabels": {"a": "b"}})
    ]
    assert sums[0] == sums[1] == sums[4]
    assert len(set(sums)) == 3


def policy_in_the_pod(folder: Path, **values: object) -> Policy:
    """Return the policy that nfstuned reads in the pod: a kubelet makes a volume of links."""
    documents = render(**values)
    data = of_kind("ConfigMap", documents)["data"]
    (volume,) = [
        one["configMap"]
        for one in of_kind("DaemonSet", documents)["spec"]["template"]["spec"]["volumes"]
        if one["name"] == "config"
    ]
    assert sorted(item["key"] for item in volume["items"]) == sorted(data)
    for item in volume["items"]:
        put(folder / "etc/nfstuned/..2026" / item["path"], data[item["key"]])
    link(folder / "etc/nfstuned/..data", "..2026")
    for name in {item["path"].split("/")[0] for item in volume["items"]}:
        link(folder / "etc/nfstuned" / name, f"..data/{name}")
    return load_policy(Root(str(folder)))


def test_the_service_reads_the_policy(tmp_path: Path) -> None:
    tuning = policy_in_the_pod(tmp_path / "tune", config=CONFIG)
    assert [one.profile for one in tuning.assignments] == ["azure-netapp-files"]
    assert not tuning.observes
    own = f"{CONFIG}[daemon]\nmode = 'tune'\nrestore_on_stop = true\n"
    observing = policy_in_the_pod(tmp_path / "observe", config=own, mode="observe")
    assert [one.profile for one in observing.assignments] == ["azure-netapp-files"]
    assert (observing.observes, observing.restore_on_stop) == (True, True)
    assert policy_in_the_pod(tmp_path / "default").assignments == ()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"mdoe": "tune"}, "at '': additional properties 'mdoe' not allowed"),
        ({"exporter": {"prot": 1}}, "at '/exporter': additional properties 'prot' not allowed"),
        ({"exporter": {"port": "9814"}}, "at '/exporter/port': got string, want integer"),
        ({"mode": "watch"}, "at '/mode': value must be one of 'tune', 'observe'"),
        ({"config": {"daemon": {}}}, "at '/config': got object, want string"),
        ({"image": {"digest": "5e"}}, "at '/image/digest': '5e' does not match pattern"),
        ({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}, "rollingUpdate/maxSurge': value must be 0"),
        ({"config": "[daemon]\nmode = "}, "config is not TOML: toml: line 2"),
        ({"config": '[nconnect]\nmode = "persist"'}, "set persist.enabled=true instead"),
        ({"exporter": {"podMonitor": {"enabled": True}}}, "need exporter.enabled=true"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, object], reason: str) -> None:
    assert reason in refusal(**values)


def objects(schema: Any, values: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - JSON and YAML
    """Yield each part of the schema that lists names, with these values."""
    if "properties" in schema:
        yield schema, values
        for name, part in schema["properties"].items():
            if isinstance(values.get(name), dict):
                yield from objects(part, values[name])


def test_the_schema_has_every_value_and_takes_no_other() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for part, names in objects(schema, values):
        assert part["additionalProperties"] is False
        assert set(names) <= set(part["properties"]) <= set(names) | {"global", "maxSurge"}


def test_prometheus_finds_the_exporter() -> None:
    documents = render(**EVERYTHING)
    exporter = of_kind("DaemonSet", documents)["spec"]["template"]["spec"]["containers"][1]
    assert exporter["args"] == ["exporter", "--listen", "$(POD_IP):9900"]
    assert exporter["ports"] == [{"name": "metrics", "containerPort": 9900}]
    labels = of_kind("DaemonSet", documents)["spec"]["template"]["metadata"]["labels"]
    monitor, service = (of_kind(kind, documents) for kind in ("PodMonitor", "Service"))
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert [each["port"] for each in monitor["spec"]["podMetricsEndpoints"]] == ["metrics"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["ports"] == [{"name": "metrics", "port": 9900, "targetPort": "metrics"}]


def test_the_notes_name_the_release() -> None:
    words = ("install", "nfs", CHART, "--namespace", "storage", "--dry-run=client")
    done = helm(*words, mode="observe", persist={"enabled": True})
    notes = done.stdout.partition("\nNOTES:\n")[2]
    assert notes.count("daemonset/nfs-nfstuned") == 2, done.stderr
    assert "only reports" in notes
    assert "/etc/nfsmount.conf.d/50-nfstuned.conf" in notes
    for words in re.findall(r"-- nfstuned (.*)", notes):
        parse(words.split())


def test_a_package_of_the_chart_can_be_installed(tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "nfstuned")
    done = tool("helm", "package", tmp_path / "nfstuned", "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    packed = helm("template", "nfs", tmp_path / f"nfstuned-{__version__}.tgz")
    assert packed.stdout == helm("template", "nfs", CHART).stdout != ""
