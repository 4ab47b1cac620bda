"""The software bill of materials of a release: a CycloneDX document of its dependencies.

It has the packages that the wheel and the image need, in their pinned versions, each with its
licence as an SPDX expression. This environment has the same versions (``constraints.txt``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from itertools import chain
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from packaging.licenses import canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.builders import Document

EXTRAS: Final = ("", "vectorized", "otel", "tls", "cel", "postgresql")

# What packages without an SPDX expression write.
_EXPRESSIONS: Final[Mapping[str, str]] = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
}


def bill_of_materials(epoch: int) -> Document:
    """Return the document; ``epoch``, in seconds, is the time of the release."""
    project = distribution("reprieve")
    packages = dependencies()
    serial = uuid5(NAMESPACE_URL, f"{_url(project)}#{epoch}")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": {**_component(project), "type": "application"},
        },
        "components": [_component(package) for package in packages.values()],
        "dependencies": [
            {"ref": _url(package), "dependsOn": [_url(packages[name]) for name in needed]}
            for package, needed in (
                (each, sorted({name for name, _ in _required(each, _extras_of(each, project))}))
                for each in (project, *packages.values())
            )
        ],
    }


def dependencies() -> dict[str, Distribution]:
    """Return the packages that the project needs with its extras, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(_required(distribution("reprieve"), EXTRAS))
    while waiting:
        name, extras = waiting.pop()
        if name not in found:
            found[name] = distribution(name)
            waiting += _required(found[name], extras)
    return dict(sorted(found.items()))


def license_of(package: Distribution) -> str:
    """Return the licence of a package as an SPDX expression. Raises InvalidLicenseExpression."""
    metadata = package.metadata
    classifiers = [each for each in metadata.get_all("Classifier", ()) if "License ::" in each]
    named = (metadata.get_all(field, ()) for field in ("License-Expression", "License"))
    written = next(filter(None, chain.from_iterable(named)), "; ".join(classifiers))
    return str(canonicalize_license_expression(_EXPRESSIONS.get(written, written)))


def _extras_of(package: Distribution, project: Distribution) -> Sequence[str]:
    return EXTRAS if package is project else ("",)


def _required(package: Distribution, extras: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for text in package.requires or ():
        needed = Requirement(text)
        if any(needed.marker is None or needed.marker.evaluate({"extra": each}) for each in extras):
            yield canonicalize_name(needed.name), ("", *sorted(needed.extras))


def _component(package: Distribution) -> Document:
    return {
        "type": "library",
        "bom-ref": _url(package),
        "name": canonicalize_name(package.name),
        "version": package.version,
        "purl": _url(package),
        "licenses": [{"expression": license_of(package)}],
    }


def _url(package: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(package.name)}@{package.version}"
