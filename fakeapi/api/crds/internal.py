"""A definition in upstream's internal representation, which validation uses.

Values that all versions share are moved to the spec: a schema that is the same in all versions (or
that of the only version) is ``spec.validation``, and messages use that path.

Source: pkg/apis/apiextensions/v1/conversion.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.api.causes import GoFormattedValue, go_formatted
from fakeapi.api.structural.nodes import Json

_MOVED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def internal_spec(spec: Json) -> dict[str, Any]:
    """Return a definition's spec with the values that its versions share moved to the spec."""
    inner = dict(spec)
    versions = [dict(version) for version in spec.get("versions") or ()]
    inner["versions"] = versions
    for name, moved in _MOVED.items():
        if versions and all(v.get(name) == versions[0].get(name) for v in versions):
            shared = versions[0].get(name)
            if shared is not None:
                inner[moved] = shared
            for version in versions:
                version.pop(name, None)
    return inner


def versions_as_go(spec: Json) -> GoFormattedValue:
    """Return the versions as Go prints upstream's internal type."""
    versions = [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": version.get("schema"),
            "Subresources": version.get("subresources"),
            "AdditionalPrinterColumns": version.get("additionalPrinterColumns"),
            "SelectableFields": version.get("selectableFields"),
        }
        for version in internal_spec(spec)["versions"]
    ]
    return go_formatted(versions)
