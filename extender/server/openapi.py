"""The OpenAPI document of the extender: each endpoint with its request and its responses.

It is served as ``GET /openapi.json``. The schemas are generated from types: the decoded fields of
pods and nodes, the results of the verbs, and the records of decisions. The verbs decode request
bodies as Go does, which a schema cannot express: keys may have any casing, and unknown keys are
ignored.

Source of the bodies: k8s.io/kube-scheduler/extender/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from extender.kube.decoders.core_v1_types import NodeV1, PodV1
from extender.observability.decision_history import DecisionRecord
from extender.protocol.extender_v1 import PreemptionResult
from extender.protocol.verbs import VERBS

JsonObject = dict[str, object]


class NodeList(Struct):
    """v1.NodeList; nodes are returned byte for byte as received."""

    items: list[NodeV1] | None
    metadata: dict[str, object] = {}


class ExtenderArgs(Struct):
    """The request of filter: Nodes or, if the extender is nodeCacheCapable, NodeNames."""

    Pod: PodV1
    Nodes: NodeList | None = None
    NodeNames: list[str] | None = None


class ExtenderFilterResult(Struct):
    """The feasible nodes, in the form of the request, and the reason for each other one."""

    Nodes: NodeList | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str]
    FailedAndUnresolvableNodes: dict[str, str]
    Error: str


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class OfferedPod(Struct):
    """A victim by its UID."""

    UID: str | None = None


class OfferedMetaVictims(Struct):
    """The victims of kube-scheduler on one node, by UID, and their number of PDB violations."""

    Pods: list[OfferedPod | None] | None = None
    NumPDBViolations: _Count | None = None


class OfferedVictims(Struct):
    """The same with whole pods, of which only the UIDs are read."""

    Pods: list[dict[str, object] | None] | None = None
    NumPDBViolations: _Count | None = None


class ExtenderPreemptionArgs(Struct):
    """The request of preempt: kube-scheduler's own candidates, in either form."""

    Pod: PodV1
    NodeNameToVictims: dict[str, OfferedVictims | None] | None = None
    NodeNameToMetaVictims: dict[str, OfferedMetaVictims | None] | None = None


class Decisions(Struct):
    """The latest answers, newest first."""

    decisions: list[DecisionRecord]


_TYPES: Final = (
    ExtenderArgs,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    PreemptionResult,
    Decisions,
)

_TEXT: Final[JsonObject] = {"text/plain": {"schema": {"type": "string"}}}
_REQUEST_ID: Final[JsonObject] = {
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"}
}
_RETRY_AFTER: Final[JsonObject] = {
    "schema": {"type": "integer", "minimum": 0},
    "description": "seconds",
}
_REFUSALS: Final = {
    "400": "the request, or what it says, cannot be understood; one line says what was expected",
    "403": "the client's certificate does not allow it",
}
_VERB_REFUSALS: Final = {
    **_REFUSALS,
    "413": "the body is larger than bodyLimitMiB",
    "503": "no decision can be made now, and nothing is configured to stand in; or not ready yet, "
    "or there are too many connections",
}


def openapi_document(path_prefixes: Iterable[str] = ()) -> bytes:
    """Return the document as JSON; the verbs are also served below each prefix."""
    refs, schemas = msgspec.json.schema_components(
        _TYPES, schema_hook=_any_value, ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(_TYPES, refs, strict=True))
    paths: dict[str, JsonObject] = {}
    for prefix in ("", *(each.strip("/") for each in path_prefixes)):
        base = f"/{prefix}" if prefix else ""
        paths[f"{base}/filter"] = _verb_path(
            "Say which nodes a pod fits.", named[ExtenderArgs], named[ExtenderFilterResult]
        )
        paths[f"{base}/preempt"] = _verb_path(
            "Say which node a pod gets, and who goes.",
            named[ExtenderPreemptionArgs],
            named[PreemptionResult],
        )
    paths |= _other_paths(named[Decisions])
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Reprieve, a scheduler extender", "version": "1"},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )


def _any_value(_: type) -> JsonObject:
    return {"description": "any value"}


def _verb_path(summary: str, request: JsonObject, result: JsonObject) -> JsonObject:
    responses = {
        "200": _response("a decision, or what is configured to stand in for one", _json(result)),
        **{status: _response(why, _TEXT) for status, why in _VERB_REFUSALS.items()},
    }
    for response in responses.values():
        response["headers"] = {"X-Request-Id": _REQUEST_ID}
    responses["503"]["headers"] = {"X-Request-Id": _REQUEST_ID, "Retry-After": _RETRY_AFTER}
    del responses["403"]["headers"]  # 403 is answered before the call is read
    return {
        "post": {
            "summary": summary,
            "description": "Keys may have any casing; unknown ones are passed over.",
            "parameters": [{"name": "X-Request-Id", "in": "header", **_REQUEST_ID}],
            "requestBody": {"required": True, "content": _json(request)},
            "responses": responses,
        }
    }


def _other_paths(decisions: JsonObject) -> dict[str, JsonObject]:
    limit: JsonObject = {"type": "integer", "minimum": 0, "maximum": 10**9 - 1}
    asked: list[JsonObject] = [
        {"name": "limit", "in": "query", "schema": limit},
        {"name": "pod", "in": "query", "schema": {"type": "string"}, "example": "default/web"},
        {"name": "verb", "in": "query", "schema": {"type": "string", "enum": list(VERBS)}},
    ]
    verbose: JsonObject = {"name": "verbose", "in": "query", "schema": {"type": "string"}}
    ready = {"200": "calls are answered", "503": "why they are not"}
    alive = {"200": "the process answers"}
    return {
        "/livez": _get_path("Tell whether the process answers.", alive),
        "/healthz": _get_path("The same.", alive),
        "/readyz": _get_path("Tell whether calls are answered.", ready, [verbose]),
        "/metrics": _get_path(
            "Give figures for Prometheus.", {"200": "figures", "403": _FORBIDDEN}
        ),
        "/decisions": _get_path(
            "Give the last answers with their explanations.", _REFUSALS, asked, decisions
        ),
        "/openapi.json": _get_path(
            "Give this document.", {"403": _FORBIDDEN}, (), {"type": "object"}
        ),
    }


_FORBIDDEN: Final = _REFUSALS["403"]


def _get_path(
    summary: str,
    texts: Mapping[str, str],
    parameters: Iterable[JsonObject] = (),
    result: JsonObject | None = None,
) -> JsonObject:
    responses = {status: _response(why, _TEXT) for status, why in texts.items()}
    if result is not None:
        responses["200"] = _response("what was asked for", _json(result))
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": responses}}


def _response(description: str, content: JsonObject) -> JsonObject:
    return {"description": description, "content": content}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}
