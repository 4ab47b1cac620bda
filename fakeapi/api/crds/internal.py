"""A definition as upstream's validation sees it.

There what all versions have in common stands beside them: a schema that is the same in all of them
(or that of the only one) is ``spec.validation``, and messages speak of it as such.

Source: pkg/apis/apiextensions/v1/conversion.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.api.causes import Shown, as_go

Json = Mapping[str, Any]

_MOVED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def internal_spec(spec: Json) -> dict[str, Any]:
    """Return a definition's spec with what its versions share beside them."""
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


def shown_versions(spec: Json) -> Shown:
    """Return the versions as upstream's internal type prints them."""
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
    return as_go(versions)
