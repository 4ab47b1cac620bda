"""The variables of admission expressions, and the fields of mutations that have expressions.

``request``, ``namespaceObject`` and ``authorizer`` have types. The objects and the parameters of a
request have none when an expression is written.

Source: BuildRequestType and BuildNamespaceType in k8s.io/apiserver/pkg/admission/plugin/cel/
compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extender.cel.cel_types import (
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
)
from extender.cel.function_declarations import AUTHORIZER, RESOURCE_CHECK

_STRINGS: Final = list_of(STRING)
_STRING_MAP: Final = map_of(STRING, STRING)


def message_type(name: str, fields: Mapping[str, CelType]) -> CelType:
    """Return the type of a message of kube-apiserver."""
    return CelType("message", f"kubernetes.{name}", (), fields)


def _texts(*names: str) -> dict[str, CelType]:
    return dict.fromkeys(names, STRING)


_KIND: Final = message_type("GroupVersionKind", _texts("group", "version", "kind"))
_RESOURCE: Final = message_type("GroupVersionResource", _texts("group", "version", "resource"))
_USER: Final = message_type(
    "UserInfo",
    {**_texts("username", "uid"), "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
)
_REQUEST: Final = message_type(
    "AdmissionRequest",
    {
        **_texts("subResource", "requestSubResource", "name", "namespace", "operation"),
        **dict.fromkeys(("kind", "requestKind"), _KIND),
        **dict.fromkeys(("resource", "requestResource"), _RESOURCE),
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_METADATA: Final = message_type(
    "NamespaceMetadata",
    {
        **_texts("name", "generateName", "namespace", "UID", "resourceVersion"),
        **dict.fromkeys(("labels", "annotations"), _STRING_MAP),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": _STRINGS,
    },
)
_CONDITION: Final = message_type(
    "NamespaceCondition",
    {**_texts("status", "type", "message", "reason"), "lastTransitionTime": TIMESTAMP},
)
_STATUS: Final = message_type(
    "NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}
)
_NAMESPACE: Final = message_type(
    "Namespace",
    {
        "metadata": _METADATA,
        "spec": message_type("NamespaceSpec", {"finalizers": _STRINGS}),
        "status": _STATUS,
    },
)

VARIABLES: Final[Mapping[str, CelType]] = {
    "object": DYN,
    "oldObject": DYN,
    "request": _REQUEST,
    "namespaceObject": _NAMESPACE,
}
"""The variables of all admission expressions."""

AUTHORIZER_VARIABLES: Final[Mapping[str, CelType]] = {
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}

EXPRESSION_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
"""The field of a mutation that has its expression, by the type of its patch."""
