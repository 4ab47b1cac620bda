"""What the metadata of a write must agree with: the path, and the object that it replaces.

Source: k8s.io/apiserver/pkg/registry/rest/update.go, apimachinery's ValidateObjectMetaUpdate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.registry.deletion import precondition_failed
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import (
    Cause,
    StatusError,
    bad_request,
    conflict,
    invalid,
    storage_conflict,
)
from fakeapi.apiserver.wire.go_format import quote

_VERSION: Final = re.compile(r"[0-9]{1,20}", re.ASCII)


def check_update(
    kind: ResourceInfo, namespace: str, name: str, document: Document, old: Document
) -> None:
    """Check an update of an object; raise StatusError (400, 409, 422)."""
    metadata = check_document(kind, document)
    check_namespace(kind, namespace, metadata)
    check_url_name(name, metadata)
    uid = metadata.get("uid") or old["metadata"]["uid"]
    if uid != old["metadata"]["uid"]:
        message = f'Invalid value: "{uid}": field is immutable'
        raise invalid(
            kind.qualified_kind, name, [Cause("FieldValueInvalid", message, "metadata.uid")]
        )
    version = metadata.get("resourceVersion", "")
    if version in ("", "0") and not kind.unconditional_update:
        message = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
        raise invalid(kind.resource, name, [cause])
    if version and not _VERSION.fullmatch(version):
        raise StatusError(500, "", f"strconv.ParseUint: parsing {quote(version)}: invalid syntax")
    if version not in ("", "0", old["metadata"]["resourceVersion"]):
        raise conflict(kind, name)


def check_uid(
    kind: ResourceInfo, namespace: str, name: str, metadata: Mapping[str, Any], present: str
) -> None:
    """Raise StatusError (409) if a replacement is meant for an earlier object of this name."""
    uid = metadata.get("uid")
    if uid and uid != present:
        detail = precondition_failed("UID", uid, present)
        raise storage_conflict(kind, namespace, name, detail)


def check_namespace(kind: ResourceInfo, namespace: str, metadata: dict[str, Any]) -> None:
    """Set the namespace of a document to that of the path; raise StatusError (400)."""
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    elif metadata["namespace"] != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
