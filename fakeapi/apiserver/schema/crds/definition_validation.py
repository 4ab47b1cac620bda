"""Validation of whole CustomResourceDefinitions, in upstream's internal representation.

Values that all versions share are moved to the spec: a schema that is the same in all versions (or
that of the only version) is ``spec.validation``, and messages use that path. Upstream tolerates
errors in definitions that are older than a rule; here no definition is older, so every rule always
applies.

Sources: pkg/apis/apiextensions (validation/validation.go, v1/conversion.go) of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from fakeapi.apiserver.objects.conditions import find_condition
from fakeapi.apiserver.schema.crds.schema_validation import schema_errors
from fakeapi.apiserver.schema.crds.version_validation import (
    column_errors,
    conversion_errors,
    selectable_field_errors,
    subresource_errors,
    version_errors,
)
from fakeapi.apiserver.schema.structural.schema_tree import Json
from fakeapi.apiserver.wire.errors import (
    Cause,
    GoFormattedValue,
    go_formatted,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import invalid_dns1035_label, invalid_subdomain

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


_SCOPES: Final = ("Cluster", "Namespaced")
_IMMUTABLE: Final = "field is immutable"
_APPROVAL: Final = "api-approved.kubernetes.io"
_UNAPPROVED: Final = (
    f'protected groups must have approval annotation "{_APPROVAL}", see '
    "https://github.com/kubernetes/enhancements/pull/1111"
)
_CASED: Final = "may have mixed case, but should otherwise match: "


def name_errors(definition: Json, _path: str) -> Iterator[Cause]:
    """Return the error of a definition whose name is not ``<plural>.<group>``."""
    spec, name = definition.get("spec") or {}, definition["metadata"].get("name", "")
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name != expected:
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def definition_errors(definition: Json, _path: str) -> Iterator[Cause]:
    """Return the errors of a definition, except that of its name."""
    spec = definition.get("spec") or {}
    is_established = established(definition)
    yield from _spec_errors(spec, is_established=is_established)
    yield from _stored_errors(definition)
    yield from _approval_errors(definition)
    if spec.get("preserveUnknownFields"):
        rule = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", value=True, detail=rule)


def immutable_field_errors(definition: Json, old: Json) -> Iterator[Cause]:
    """Return the errors of immutable fields that an update changes."""
    now, before = definition.get("spec") or {}, old.get("spec") or {}
    paths = [("group",), ("names", "plural")]
    if established(old):
        paths = [("scope",), ("names", "kind"), *paths]
    for path in paths:
        value, was = _at(now, path), _at(before, path)
        if value != was:
            yield invalid_value(f"spec.{'.'.join(path)}", value, _IMMUTABLE)


def established(definition: Json) -> bool:
    """Return whether the condition Established of a definition is true."""
    found = find_condition(definition.get("status") or {}, "Established")
    return found.get("status") == "True"


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _spec_errors(spec: Json, *, is_established: bool) -> Iterator[Cause]:
    inner = internal_spec(spec)
    yield from _group_errors(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield unsupported_value("spec.scope", scope, _SCOPES)
    yield from _missing_schemas(inner)
    has_status = _has_status(inner)
    for index, version in enumerate(inner["versions"]):
        name, path = version.get("name", ""), f"spec.versions[{index}]"
        if wrong := invalid_dns1035_label(name):
            yield invalid_value(f"{path}.name", name, wrong)
        own = _has_status(version) or "status" in (inner.get("subresources") or {})
        yield from version_errors(version, path, has_status=own)
    yield from _version_list_errors(spec)
    yield from _name_list_errors(spec.get("names") or {})
    yield from _shared_errors(inner, has_status=has_status)
    conversion = spec.get("conversion") or {}
    yield from conversion_errors(conversion, "spec.conversion", established=is_established)


def _group_errors(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
    elif wrong := invalid_subdomain(group):
        yield invalid_value("spec.group", group, wrong)
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")


def _missing_schemas(inner: Json) -> Iterator[Cause]:
    if (inner.get("validation") or {}).get("openAPIV3Schema") is not None:
        return
    for index, version in enumerate(inner["versions"]):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")


def _has_status(part: Json) -> bool:
    versions = part.get("versions") or ()
    own = "status" in (part.get("subresources") or {})
    return own or any("status" in (v.get("subresources") or {}) for v in versions)


def _version_list_errors(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or ()
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        rule = "must contain unique version names"
        yield invalid_value("spec.versions", versions_as_go(spec), rule)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        rule = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", versions_as_go(spec), rule)


def _name_list_errors(names: Json) -> Iterator[Cause]:
    path = "spec.names"
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"{path}.{name}")
    for name in ("plural", "singular"):
        value = names.get(name)
        if value and (wrong := invalid_dns1035_label(value)):
            yield invalid_value(f"{path}.{name}", value, wrong)
    for name in ("kind", "listKind"):
        value = names.get(name)
        if value and (wrong := invalid_dns1035_label(value.lower())):
            yield invalid_value(f"{path}.{name}", value, f"{_CASED}{wrong}")
    yield from _label_list_errors(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        rule = "kind and listKind may not be the same"
        yield invalid_value(f"{path}.listKind", names["listKind"], rule)
    yield from _label_list_errors(names, "categories", path)


def _label_list_errors(names: Json, member: str, path: str) -> Iterator[Cause]:
    for index, value in enumerate(names.get(member) or ()):
        if wrong := invalid_dns1035_label(value):
            yield invalid_value(f"{path}.{member}[{index}]", value, wrong)


def _shared_errors(inner: Json, *, has_status: bool) -> Iterator[Cause]:
    """Return the errors of the fields that all versions share."""
    schema = (inner.get("validation") or {}).get("openAPIV3Schema")
    if schema is not None:
        path = "spec.validation.openAPIV3Schema"
        yield from schema_errors(schema, path, has_status=has_status)
    yield from subresource_errors(inner.get("subresources") or {}, "spec.subresources")
    columns = inner.get("additionalPrinterColumns") or ()
    yield from column_errors(columns, "spec.additionalPrinterColumns")
    fields = inner.get("selectableFields") or ()
    yield from selectable_field_errors(fields, schema, "spec.selectableFields")


def _stored_errors(definition: Json) -> Iterator[Cause]:
    """Return the errors of stored versions that are missing from spec.versions."""
    stored = (definition.get("status") or {}).get("storedVersions") or []
    versions = (definition.get("spec") or {}).get("versions") or ()
    names = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in names:
            rule = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, rule)


def _approval_errors(definition: Json) -> Iterator[Cause]:
    group = (definition.get("spec") or {}).get("group") or ""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    annotations = definition["metadata"].get("annotations") or {}
    approval, path = annotations.get(_APPROVAL, ""), f"metadata.annotations[{_APPROVAL}]"
    if not approval:
        yield required(path, _UNAPPROVED)
    elif not approval.startswith("unapproved") and not _is_url(approval):
        rule = (
            f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a '
            'reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield invalid_value(path, approval, rule)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)
