"""The bill of materials: the libraries that a package carries, as CycloneDX's JSON, which scanners read."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Sequence

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from dev.package.about import Release
from dev.package.base import Package
from dev.package.lock import Pin
from dev.package.wheels import Library

_SPACE = uuid.UUID("5bd0b5c6-6b22-4b4c-9f5c-2c7b1b3b6a55")
"""Of serial numbers: the same release with the same libraries has the same."""
_LICENSES = LicenseFactory()


def bill(release: Release, pins: Iterable[Pin], libraries: Sequence[Library]) -> bytes:
    """Return the bill of materials of a release, for the same pins always the same bytes (CycloneDX 1.6).

    Raises KeyError for a library without a pin.
    """
    hashes = {pin.name: pin.hashes for pin in pins}
    parts = [_component(library, hashes[library.name]) for library in libraries]
    whole = Component(
        type=ComponentType.APPLICATION,
        name="nfstuned",
        version=release.version,
        bom_ref="nfstuned",
        licenses=[_LICENSES.make_from_string("Apache-2.0")],
    )
    bom = Bom(components=parts)
    bom.metadata.component = whole
    bom.metadata.timestamp = dt.datetime.fromtimestamp(release.time, dt.timezone.utc)
    bom.register_dependency(whole, parts)
    bom.serial_number = uuid.uuid5(_SPACE, "\n".join([release.full, *sorted(sum(hashes.values(), ()))]))
    return f"{JsonV1Dot6(bom).output_as_string(indent=2)}\n".encode()


def with_base(own: bytes, packages: Sequence[Package]) -> bytes:
    """Return the bill of an image: the bill of the nfstuned in it, and Debian's packages below."""
    bom = Bom.from_json(json.loads(own))  # type: ignore[attr-defined]  # a decorator of the library adds it
    parts = [
        Component(
            type=ComponentType.LIBRARY,
            name=package.name,
            version=package.version,
            purl=(
                url := PackageURL(
                    "deb", "debian", package.name, package.version, {"arch": package.architecture}
                )
            ),
            bom_ref=str(url),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.sha256)],
        )
        for package in packages
    ]
    bom.components.update(parts)
    bom.register_dependency(bom.metadata.component, parts)
    names = [str(bom.serial_number), *(package.sha256 for package in packages)]
    bom.serial_number = uuid.uuid5(_SPACE, "\n".join(names))
    return f"{JsonV1Dot6(bom).output_as_string(indent=2)}\n".encode()


def _component(library: Library, hashes: Iterable[str]) -> Component:
    """Return a library as part of the bill; each of its wheels is a distribution of its own."""
    url = PackageURL("pypi", name=library.name, version=library.version)
    wheels = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(str(url)),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=value)],
        )
        for value in hashes
    ]
    home = ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(library.source))
    return Component(
        type=ComponentType.LIBRARY,
        name=library.name,
        version=library.version,
        purl=url,
        bom_ref=str(url),
        licenses=[_LICENSES.make_from_string(library.license)],
        external_references=[home, *wheels],
    )
