"""The type of a document: its kind and apiVersion, and whether it is that of the resource.

A server decodes a body into the type that it names, and converts that to the type of the resource.
The first fails for a type that is not registered, the second for a type of another kind. Custom
resources have no types to decode into; their kind is validated.

Sources: k8s.io/apimachinery/pkg/runtime (errors.go, scheme.go), pkg/conversion; create.go and
patch.go in k8s.io/apiserver/pkg/endpoints/handlers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, bad_request, invalid, invalid_value
from fakeapi.apiserver.wire.go_format import json_type
from fakeapi.apiserver.wire.protobuf import PREFIX
from fakeapi.apiserver.wire.request_bodies import summary

_OTHER_VERSION: Final = (
    "the API version in the data ({}) does not match the expected API version ({})"
)
_META_KINDS: Final = frozenset(
    (
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "List",
        "ListOptions",
        "PatchOptions",
        "Status",
        "UpdateOptions",
        "WatchEvent",
    )
)
_BETA: Final = re.compile(r"v[1-9][0-9]*(alpha|beta)[1-9][0-9]*", re.ASCII)
_EXTENSIONS: Final = ("DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale")
"""Kinds of extensions/v1beta1, which is registered and no longer served."""


def check_type(kind: ResourceInfo, document: Mapping[str, Any]) -> None:
    """Check that a document has the given kind and version; raise StatusError (400, 422)."""
    wrong = _type_meta_error(document)
    if wrong:
        raise bad_request(wrong)
    api_version = document.get("apiVersion") or kind.api_version
    name = document.get("kind") or kind.kind
    if kind.custom is None:
        detail = _conversion_error(kind, api_version, name)
        if detail:
            version = api_version.rpartition("/")[2]
            subject = f'{name} in version "{version}" cannot be handled as a {kind.kind}'
            raise bad_request(f"{subject}: {detail}")
    if api_version != kind.api_version:
        raise bad_request(_OTHER_VERSION.format(api_version, kind.api_version))
    if name != kind.kind:
        raise _custom_type_error(kind, api_version, name, document)


def patched_type_error(kind: ResourceInfo, document: Document, *, strategic: bool) -> str:
    """Return what is wrong with the type of a patched document; "" if nothing is.

    A strategic merge patch changes a Go object, whose type is that of the request. Raise
    StatusError (422) for a custom resource.
    """
    if strategic and not _type_meta_error(document):
        document |= {"kind": kind.kind, "apiVersion": kind.api_version}
    wrong = "" if strategic else _type_meta_error(document)
    if wrong or strategic:
        return wrong
    api_version, name = document.get("apiVersion", ""), document.get("kind", "")
    if kind.custom is None:
        return _conversion_error(kind, api_version or kind.api_version, name or kind.kind)
    if (api_version, name) != (kind.api_version, kind.kind):
        raise _custom_type_error(kind, api_version, name, document)
    return ""


def _type_meta_error(document: Mapping[str, Any]) -> str:
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field) or "", str):
            return (
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{json_type(document[field])} into Go struct field .{field} of type string"
            )
    return ""


def check_named_type(kind: ResourceInfo, document: Mapping[str, Any], body: bytes) -> None:
    """Check that the body of a custom resource has kind and apiVersion; raise StatusError (400).

    Source: Decode in pkg/runtime/serializer/json/json.go of k8s.io/apimachinery, and
    transformDecodeError in pkg/endpoints/handlers/rest.go of k8s.io/apiserver.
    """
    if kind.custom is None or body.startswith(PREFIX):
        return
    if not document.get("kind"):
        text = body.decode(errors="replace")
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): "
            f"Object 'Kind' is missing in '{text}' ({summary(body)})"
        )
    if not document.get("apiVersion"):
        raise bad_request(_OTHER_VERSION.format("", kind.api_version))


def _custom_type_error(
    kind: ResourceInfo, api_version: str, name: str, document: Mapping[str, Any]
) -> StatusError:
    """Return the error of a custom resource of another type.

    Source: ValidateTypeMeta in pkg/registry/customresource/validator.go of
    k8s.io/apiextensions-apiserver.
    """
    causes = []
    if name != kind.kind:
        causes.append(invalid_value("kind", name, f"must be {kind.kind}"))
    if api_version != kind.api_version:
        causes.append(invalid_value("apiVersion", api_version, f"must be {kind.api_version}"))
    metadata = document.get("metadata")
    own = metadata.get("name") if isinstance(metadata, dict) else ""
    group = api_version.rpartition("/")[0]
    return invalid(
        f"{name}.{group}" if group else name, own if isinstance(own, str) else "", causes
    )


def _conversion_error(kind: ResourceInfo, api_version: str, name: str) -> str:
    """Return why an object of a type is none of a built-in kind; "" if only the version differs."""
    if (api_version, name) == (kind.api_version, kind.kind):
        return ""
    group, _, version = api_version.rpartition("/")
    if not _is_registered(group, version, name):
        return f'no kind "{name}" is registered for version "{api_version}"'
    if name == kind.kind and group in (kind.group, "extensions"):
        return ""
    package = kind.group.partition(".")[0] or "core"
    return f"converting ({version}.{name}) to ({package}.{kind.kind}): unknown conversion"


def _is_registered(group: str, version: str, name: str) -> bool:
    versions = _kinds_of(group)
    if group == "extensions":
        return version == "v1beta1" and name in _EXTENSIONS
    if version in versions:
        return name in versions[version] or name in _META_KINDS
    return bool(group and _BETA.fullmatch(version)) and name in versions.get("", ())


@cache
def _kinds_of(group: str) -> dict[str, frozenset[str]]:
    """Return the kinds of a group by version; "" has those of all versions."""
    kinds = [kind for kind in BUILTIN.all if kind.group == group]
    names: dict[str, set[str]] = {"": set()} if kinds else {}
    for kind in kinds:
        for version in ("", kind.version):
            names.setdefault(version, set()).update((kind.kind, kind.list_kind))
    return {version: frozenset(found) for version, found in names.items()}
