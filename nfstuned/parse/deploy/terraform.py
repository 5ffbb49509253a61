"""Terraform's plans as JSON: the mounts of their resources.

They are the output of `terraform show -json` (developer.hashicorp.com, "JSON Output Format"): planned_values
has each resource with its values. The providers of Kubernetes and Helm write the fields of the API in
snake_case, and an object as a list with one item.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request, Unexpanded
from nfstuned.parse.deploy.deployment import Found, placed
from nfstuned.parse.deploy.docker import driver_requests
from nfstuned.parse.deploy.kubernetes import kubernetes_requests
from nfstuned.parse.yaml import Node, parse_documents

Reader = Callable[[str, str], Iterator[Found]]
"""A reader of any text: its content, and the file's name."""
_SCRIPTS = re.compile(r"(?:user|custom)[_-]?data(?:_base64)?|(?:metadata_)?startup[_-]script")
_GZIP = b"\x1f\x8b"
_SOURCE = "persistentVolumeSource"
_CLASS = "storageProvisioner"
_SETTINGS = ("settings", "protected_settings")
"""Of azurerm_virtual_machine_extension, as JSON."""
_OBJECT = re.compile(r"kubernetes_(?!manifest)\w+")


def is_plan(document: Node) -> bool:
    """Whether a document is a plan, or a state, as JSON."""
    return "format_version" in document.pairs and bool(_root(document))


def _root(document: Node) -> Node:
    return document.at("planned_values", "root_module") or document.at("values", "root_module")


def plan_requests(document: Node, file: str, read: Reader) -> Iterator[Found]:
    """Yield the requests of all resources; `read` reads the texts of scripts and of values.

    A plan is a single line, so that the file of a request has the address of its resource behind a #.
    """
    for resource in _resources(_root(document)):
        place = f"{file}#{resource.text_at('address') or resource.text_at('name')}"
        yield from _of_resource(resource, place, read)


def _of_resource(resource: Node, file: str, read: Reader) -> Iterator[Found]:
    kind, values = resource.text_at("type"), resource.at("values")
    if _OBJECT.fullmatch(kind):
        yield from kubernetes_requests(_as_object(values), file)
    elif kind == "kubernetes_manifest":
        yield from kubernetes_requests(values.at("manifest"), file)
    elif kind == "helm_release":
        for text in values.at("values").items:
            yield from _of_text(text, file, read)
    elif kind == "kubectl_manifest":
        yield from _of_text(values.at("yaml_body"), file, read)
    elif kind == "docker_volume":
        yield from driver_requests(values.at("driver_opts"), file)
    elif kind == "aws_ecs_task_definition":
        for volume in values.at("volume").items:
            for configuration in volume.at("docker_volume_configuration").items:
                yield from driver_requests(configuration.at("driver_opts"), file)
    else:
        yield from _of_scripts(values, file, read)


def _resources(module: Node) -> Iterator[Node]:
    yield from module.at("resources").items
    for child in module.at("child_modules").items:
        yield from _resources(child)


def _of_scripts(values: Node, file: str, read: Reader) -> Iterator[Found]:
    """Yield the requests of the scripts, the user data and the extensions with which a machine starts."""
    for key, node in (*values.pairs.items(), *values.at("metadata").pairs.items()):
        if _SCRIPTS.fullmatch(key) and node.text:
            yield from _of_text(node, file, read)
        elif key in _SETTINGS and node.text:
            yield from _of_settings(node, file, read)


def _of_settings(node: Node, file: str, read: Reader) -> Iterator[Found]:
    """Yield the requests of the command or the script of Azure's extension CustomScript."""
    with suppress(ParseError):
        for settings in parse_documents(node.text or "", file):
            for key in ("commandToExecute", "script"):
                yield from _of_text(replace(settings.at(key), line=node.line), file, read)


def _of_text(node: Node, file: str, read: Reader) -> Iterator[Found]:
    """Yield the requests of a text in a plan, plain or in base64: all on the line of the text."""
    text = node.text or ""
    with suppress(binascii.Error, ValueError):
        data = base64.b64decode(text, validate=True)
        if data.startswith(_GZIP):
            yield Unexpanded("a text in gzip", file, node.line)
            return
        text = data.decode()
    for found in read(text, file):
        if isinstance(found, (ParseError, Request, Unexpanded)):
            yield placed(found, node.line, is_block=False)


def _as_object(node: Node) -> Node:
    """Return a resource's values as an object of the API: keys in camelCase, lists of one object unpacked."""
    if node.items:
        if len(node.items) == 1 and node.items[0].pairs:
            return _as_object(node.items[0])
        return replace(node, items=tuple(map(_as_object, node.items)))
    if not node.pairs:
        return node
    pairs = {_camel_case(key): _as_object(value) for key, value in node.pairs.items()}
    pairs |= pairs.pop(_SOURCE, Node(0)).pairs
    if _CLASS in pairs:
        pairs |= {"provisioner": pairs[_CLASS], "kind": Node(node.line, "StorageClass", is_scalar=True)}
    return replace(node, pairs=pairs)


def _camel_case(key: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), key)
