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
from extender.protocol.extender_results import PreemptionResult
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
    """The latest answers, newest first; ``message`` says why none is selected."""

    decisions: list[DecisionRecord]
    message: str = ""


_TYPES: Final = (
    ExtenderArgs,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    PreemptionResult,
    Decisions,
)

_TEXT: Final[JsonObject] = {"text/plain": {"schema": {"type": "string"}}}
_PAGE: Final[JsonObject] = {"text/html": {"schema": {"type": "string"}}}
_REQUEST_ID: Final[JsonObject] = {
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"}
}
_RETRY_AFTER: Final[JsonObject] = {
    "schema": {"type": "integer", "minimum": 0},
    "description": "seconds",
}
_REFUSALS: Final = {
    "400": "the request is invalid; one line describes what was expected",
    "403": "the client's certificate does not allow it",
}
_FORBIDDEN: Final = _REFUSALS["403"]
_VERB_REFUSALS: Final = {
    **_REFUSALS,
    "413": "the body is larger than bodyLimitMiB",
    "415": "the body has a Content-Encoding",
    "503": "no decision is possible and no fallback is configured; or not ready yet, "
    "or there are too many connections, or too many bytes of unanswered requests",
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
            "Return the nodes that a pod fits.", named[ExtenderArgs], named[ExtenderFilterResult]
        )
        paths[f"{base}/preempt"] = _verb_path(
            "Return the node to nominate for a pod, and its victims.",
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
        "200": _response("a decision, or the configured fallback", _json(result)),
        **{status: _response(why, _TEXT) for status, why in _VERB_REFUSALS.items()},
    }
    for response in responses.values():
        response["headers"] = {"X-Request-Id": _REQUEST_ID}
    responses["503"]["headers"] = {"X-Request-Id": _REQUEST_ID, "Retry-After": _RETRY_AFTER}
    del responses["403"]["headers"]  # 403 is answered before the call is read
    return {
        "post": {
            "summary": summary,
            "description": "Keys are case-insensitive; unknown keys are ignored.",
            "parameters": [{"name": "X-Request-Id", "in": "header", **_REQUEST_ID}],
            "requestBody": {"required": True, "content": _json(request)},
            "responses": responses,
        }
    }


def _other_paths(decisions: JsonObject) -> dict[str, JsonObject]:
    limit: JsonObject = {"type": "integer", "minimum": 0, "maximum": 10**9 - 1}
    parameters: list[JsonObject] = [
        {"name": "limit", "in": "query", "schema": limit},
        {"name": "pod", "in": "query", "schema": {"type": "string"}, "example": "default/web"},
        {"name": "verb", "in": "query", "schema": {"type": "string", "enum": list(VERBS)}},
    ]
    verbose: JsonObject = {"name": "verbose", "in": "query", "schema": {"type": "string"}}
    ready = {"200": "ready", "503": "the reason why it is not ready"}
    alive = {"200": "alive"}
    return {
        "/": _get_path("Return a page with links.", {"403": _FORBIDDEN}, (), _PAGE),
        "/livez": _get_path("Return whether the process is alive.", alive),
        "/healthz": _get_path("Return whether the process is alive.", alive),
        "/readyz": _get_path("Return whether calls are answered.", ready, [verbose]),
        "/metrics": _get_path(
            "Return metrics for Prometheus.", {"200": "metrics", "403": _FORBIDDEN}
        ),
        "/decisions": _get_path(
            "Return the latest decisions with their explanations.",
            _REFUSALS,
            parameters,
            _json(decisions),
        ),
        "/openapi.json": _get_path(
            "Return this document.", {"403": _FORBIDDEN}, (), _json({"type": "object"})
        ),
    }


def _get_path(
    summary: str,
    texts: Mapping[str, str],
    parameters: Iterable[JsonObject] = (),
    content: JsonObject | None = None,
) -> JsonObject:
    responses = {status: _response(why, _TEXT) for status, why in texts.items()}
    if content is not None:
        responses["200"] = _response("the requested document", content)
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": responses}}


def _response(description: str, content: JsonObject) -> JsonObject:
    return {"description": description, "content": content}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}
