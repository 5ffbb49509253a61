"""Kubernetes' manifests and the values of Helm charts: the mounts for which they ask.

The fields are those of the API: PersistentVolumeSpec, Volume, CSIPersistentVolumeSource and StorageClass of
https://kubernetes.io/docs/reference/kubernetes-api/. A volume is found wherever a manifest has it, so that
custom resources with pods in them count, too. Claims and pods that refer to a volume ask for no mount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.parse.deploy.deployment import Found, placed
from nfstuned.parse.deploy.volumes import DriverVolume, backend_versions, read_options, volume_requests
from nfstuned.parse.fields import with_brackets
from nfstuned.parse.yaml import ABSENT, Node, parse_documents

MOST_TEXTS = 100
"""Values as texts, of a file."""
_OPTIONS = "mountOptions"
_OLD_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_CLASS_OPTIONS = ("nfsOptions",)
"""Options among a class' parameters (Longhorn)."""
_OF_POD = "the mountOptions of a PersistentVolume instead of the pod's volume"
"""A volume in a pod has no options (kubernetes.io, Volumes, nfs)."""
_OF_VOLUME = {"name", "nfs"}
"""The keys of a pod's volume, also in a chart's values."""
_WITH_VALUES = ("HelmRelease", "Application")
"""The kinds of Flux and Argo CD that have a chart's values in them."""
_INLINE = ("csi", "flexVolume", "azureFile")
_IN_TREE_AZURE = "kubernetes.io/azure-file"
_BACKEND, _BACKEND_OPTIONS = "storageDriverName", "nfsMountOptions"
"""Keys of a backend of NetApp's Trident."""


def is_manifest(document: Node) -> bool:
    """Whether a document is an object of Kubernetes, or a backend of Trident."""
    return (
        bool(document.text_at("apiVersion") and document.text_at("kind"))
        or "storageDriverName" in document.pairs
    )


def kubernetes_requests(document: Node, file: str) -> Iterator[Found]:
    """Yield the requests of an object, a List, or a chart's values. Raises ParseError beyond a bound."""
    yield from _Walk(file).visit(document, document)


class _Walk:
    def __init__(self, file: str, texts: set[int] | None = None) -> None:
        self._file = file
        self._texts: set[int] = set() if texts is None else texts
        """The identities of the texts that were read: an alias may lead to one many times."""

    def visit(self, node: Node, owner: Node) -> Iterator[Found]:
        """Yield the requests below a node; `owner` is the object that has it."""
        for item in node.items:
            yield from self.visit(item, owner)
        if not node.pairs:
            return
        kind = node.text_at("kind")
        owner = node if kind and node.text_at("apiVersion") else owner
        if (kind == "StorageClass" and "provisioner" in node.pairs) or _is_class_of_chart(node):
            yield from self._of_class(node)
            return
        if kind == "HelmChart":
            yield from self._of_text(node.at("spec", "valuesContent"))
        yield from self._of_volume(node, owner)
        for value in node.pairs.values():
            if value.pairs or value.items:
                yield from self.visit(value, owner)

    def _of_text(self, node: Node) -> Iterator[Found]:
        """Yield the requests of values that are a text in a manifest."""
        if not node.text or id(node) in self._texts or len(self._texts) > MOST_TEXTS:
            return
        self._texts.add(id(node))
        first = node.line + node.is_block
        try:
            for document in parse_documents(node.text, self._file):
                # A text within the text is left.
                found = _Walk(self._file, self._texts)
                rows = found.visit(document, document)
                yield from (placed(row, first, is_block=node.is_block) for row in rows)
        except ParseError as error:
            yield ParseError(self._file, first, f"values that are no YAML: {error.message}")

    def _of_volume(self, node: Node, owner: Node) -> Iterator[Found]:
        """Yield the requests of a mapping that has a volume's source among its keys, or is one."""
        spec, annotation = node.at(_OPTIONS), owner.at("metadata", "annotations", _OLD_OPTIONS)
        fields = ((spec, _OPTIONS), (annotation if node is owner.at("spec") else ABSENT, _OLD_OPTIONS))
        nfs = node if node.text_at("type") == "nfs" else node.at("nfs")
        if nfs.text_at("server") and nfs.text_at("path"):
            own = () if nfs is node else ((nfs.at(_OPTIONS), _OPTIONS),)
            of_pod = node.pairs.keys() == _OF_VOLUME and _OPTIONS not in nfs.pairs
            in_pod = of_pod or _is_in_pod(nfs, owner)
            yield from self._of_export(nfs, (*fields, *own), owner, in_pod=in_pod)
        if _BACKEND_OPTIONS in node.pairs and _BACKEND in node.pairs:
            driver, server = node.at(_BACKEND), node.at("dataLIF")
            source = f"{with_brackets(server.text or f'${{{driver.text}}}')}:/"
            written = node.at(_BACKEND_OPTIONS)
            # Trident takes this beginning away (utils/mount/mount_linux.go).
            written = replace(written, text=(written.text or "").removeprefix("-o "))
            options = read_options(((written, _BACKEND_OPTIONS),))
            yield from options.unread(self._file)
            request = Request(source, "", "", self._file, (server or driver).line)
            yield options.asked_by(request._replace(versions=backend_versions(driver)))
        for key in _INLINE:
            yield from self._of_driver(node.at(key), key, fields, owner)

    def _of_driver(
        self, source: Node, key: str, fields: Sequence[tuple[Node, str]], owner: Node
    ) -> Iterator[Found]:
        """Yield the request of a volume with a driver."""
        driver = source.at("driver")
        if key == "azureFile" and source:
            driver = Node(source.line, _IN_TREE_AZURE, is_scalar=True)
        attributes = _attributes(source, source.at("volumeAttributes"), source.at("options"))
        own = [(attributes[name], field) for name, field in _OWN_OPTIONS.items() if name in attributes]
        version = attributes.get("vers")
        if key == "flexVolume" and version and version.text:
            own.append((replace(version, text=f"vers={version.text}"), "vers"))
        if driver.text:
            read_only, name = source.at("readOnly"), _name(owner)
            volume = DriverVolume(driver, attributes, (*fields, *own), name, read_only, _owner(owner))
            yield from volume_requests(volume, self._file)

    def _of_export(
        self, nfs: Node, fields: Sequence[tuple[Node, str]], owner: Node, *, in_pod: bool
    ) -> Iterator[Found]:
        """Yield the request of an export that Kubernetes mounts itself."""
        server, path = nfs.at("server"), nfs.at("path")
        options = read_options(fields, nfs.at("readOnly"))
        if in_pod:
            options = options._replace(field=_OF_POD)
        yield from options.unread(self._file)
        source = f"{with_brackets(server.text or '')}:{path.text}"
        request = Request(source, "", "", self._file, server.line, source_line=path.line)
        yield options.asked_by(request._replace(owner=_owner(owner)))

    def _of_class(self, node: Node) -> Iterator[Found]:
        """Yield the request of a StorageClass, or of a chart's values for a class."""
        attributes = _attributes(node.at("parameters"))
        own = ((attributes.get(name.lower(), ABSENT), name) for name in _CLASS_OPTIONS)
        driver = node.at("provisioner") or Node(node.line, "nfs", is_scalar=True)
        fields = ((node.at(_OPTIONS), _OPTIONS), *own)
        yield from volume_requests(
            DriverVolume(driver, attributes, fields, _name(node), owner=_owner(node)), self._file
        )


_OWN_OPTIONS = {"mountoptions": _OPTIONS, "options": "options"}
"""Attributes with options, by their keys in lower case."""


def _attributes(*nodes: Node) -> Mapping[str, Node]:
    """Return the texts and references of a volume by their keys in lower case: drivers take any case."""
    return {key.lower(): value for node in nodes for key, value in node.pairs.items()}


def _is_in_pod(nfs: Node, owner: Node) -> bool:
    """Whether an export is not a PersistentVolume's, and not of a chart's values, which may have options."""
    known = owner.text_at("apiVersion") and owner.text_at("kind") not in _WITH_VALUES
    return bool(known) and nfs is not owner.at("spec", "nfs")


def _is_class_of_chart(node: Node) -> bool:
    """Whether a mapping is the class among the values of csi-driver-nfs' chart."""
    return bool(node.at(_OPTIONS).items and node.text_at("parameters", "server"))


def _name(owner: Node) -> str:
    return owner.text_at("metadata", "name") or owner.text_at("name") or "server"


def _owner(owner: Node) -> str:
    names = (owner.text_at("kind"), owner.text_at("metadata", "namespace"), owner.text_at("metadata", "name"))
    return " ".join(filter(None, names)) if owner.text_at("kind") else ""
