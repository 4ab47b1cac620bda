"""Requests to fakeapi, as values without sockets: several of them to a new, almost empty world.

An input is a list of requests in JSON. A body is written with one character for each byte.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from fakeapi.apiserver import endpoints
from fakeapi.apiserver.endpoints import Api, Watch, parse_query
from fakeapi.simulation.world import create_world
from tests.builders import (
    container_json,
    controller_spec,
    event_json,
    manifest,
    node_json,
    pdb_json,
    pod_json,
    thing,
)
from tests.builders.definitions import DEFINITIONS, NAME, WIDGETS, widget
from tests.fakeapi.api_requests import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    PARTIAL,
    STRATEGIC,
    TABLE,
    YAML,
)
from tests.fakeapi.apiserver.manual_clock import ManualClock
from tests.fuzz.admission_policies import RESOURCES, random_policies
from tests.fuzz.kind import FailedError, Kind
from tests.fuzz.mutation import TEXTS, encode_document, mutate_bytes, mutate_document, pick
from tests.fuzz.schemas import random_custom_value, random_definition

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_CORE: Final = "/api/v1/namespaces/default"
_APPS: Final = "/apis/apps/v1/namespaces/default"
_LABELS: Final = {"app": "web"}
_ROLE: Final[Any] = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}

OBJECTS: Final[Sequence[tuple[str, Any]]] = (
    (f"{_CORE}/pods", pod_json("a", on="node-1", cpu="1", labels=_LABELS)),
    ("/api/v1/nodes", node_json("node-1", taints=["a=b:NoSchedule"])),
    (f"{_CORE}/configmaps", thing("a", data={"a": "b"})),
    (f"{_CORE}/secrets", thing("a", kind="Secret", stringData={"a": "b"}, type="Opaque")),
    (
        f"{_CORE}/services",
        thing("a", kind="Service", spec={"selector": _LABELS, "ports": [{"port": 80}]}),
    ),
    ("/api/v1/namespaces", manifest("Namespace", "a", namespace="")),
    (f"{_CORE}/events", thing("a", kind="Event", involvedObject={"namespace": "default"})),
    ("/apis/events.k8s.io/v1/namespaces/default/events", event_json("a")),
    (
        f"{_APPS}/replicasets",
        manifest("ReplicaSet", "a", version="apps/v1", spec=controller_spec(_LABELS, replicas=2)),
    ),
    (
        f"{_APPS}/deployments",
        manifest("Deployment", "a", version="apps/v1", spec=controller_spec(_LABELS)),
    ),
    (
        f"{_APPS}/statefulsets",
        manifest(
            "StatefulSet",
            "a",
            version="apps/v1",
            spec=controller_spec(_LABELS, serviceName="a", volumeClaimTemplates=[]),
        ),
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        pdb_json("a", match=_LABELS, allowed=1),
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        manifest("PriorityClass", "a", version="scheduling.k8s.io/v1", value=7),
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        thing(
            "a",
            kind="Lease",
            version="coordination.k8s.io/v1",
            spec={"holderIdentity": "x", "renewTime": "2026-01-01T00:00:00.000000Z"},
        ),
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        thing("a", kind="Role", version="rbac.authorization.k8s.io/v1", **_ROLE),
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        manifest(
            "ValidatingWebhookConfiguration",
            "a",
            version="admissionregistration.k8s.io/v1",
            namespace="",
            webhooks=[
                {
                    "name": "a.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "rules": [
                        {
                            "apiGroups": ["x"],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["ys"],
                        }
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "matchConditions": [{"name": "c", "expression": "true"}],
                }
            ],
        ),
    ),
    (
        f"{_CORE}/pods/a/eviction",
        manifest("Eviction", "a", version="policy/v1", deleteOptions={"gracePeriodSeconds": 0}),
    ),
    (f"{_CORE}/pods/a/binding", manifest("Binding", "a", target={"kind": "Node", "name": "n"})),
    (
        f"{_CORE}/serviceaccounts/default/token",
        manifest(
            "TokenRequest",
            "",
            version="authentication.k8s.io/v1",
            spec={"audiences": ["a"], "expirationSeconds": 600},
        ),
    ),
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        manifest(
            "SelfSubjectAccessReview",
            "",
            version="authorization.k8s.io/v1",
            namespace="",
            spec={"resourceAttributes": {"verb": "get", "resource": "pods"}},
        ),
    ),
    (f"{_CORE}/pods/a/resize", pod_json("a", containers=[container_json(requests={"cpu": "2"})])),
)
"""Paths and what may be posted there."""

_QUERIES: Final = (
    "labelSelector=app%3Dweb",
    "labelSelector=a+in+(b,c),!d,e!%3Df",
    "labelSelector=a+gt+5",
    "fieldSelector=metadata.name%3Da,spec.nodeName!%3Db",
    "fieldSelector=status.phase%3DRunning",
    "fieldSelector=spec.a%3D1",
    "limit=1",
    "limit=1&continue=abc",
    "resourceVersion=0",
    "resourceVersion=5&resourceVersionMatch=Exact",
    "watch=true&timeoutSeconds=1",
    "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "watch=true&resourceVersion=1",
    "fieldManager=me&force=true",
    "fieldManager=me",
    "dryRun=All",
    "fieldValidation=Strict",
    "gracePeriodSeconds=0&propagationPolicy=Orphan",
    "pretty=true",
    "includeObject=None",
)
UPSTREAM_500: Final = (
    "failed to create typed patch object",
    "resourceVersion should not be set on objects to be created",
    "target.kind: ",
    "target.name: ",
    "Internal error occurred: json: cannot unmarshal",
    "Internal error occurred: no kind ",
    "Internal error occurred: strict decoding error",
    "Internal error occurred: the spec replicas field ",
    ": connect: connection refused",
)
"""Where kube-apiserver answers 500, too."""
_ACCEPTS: Final = ("", JSON, YAML, PROTOBUF, TABLE, PARTIAL, f"{TABLE},{JSON}", "*/*", "text/html")
_TYPES: Final = (JSON, YAML, PROTOBUF, MERGE, STRATEGIC, JSON_PATCH, APPLY, "", "x/y")
_METHODS: Final = ("GET", "GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS")
_PLACES: Final = (
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/example.com/v1",
    "/version",
    "/readyz",
    "/metrics",
    "/api/v1/pods",
    "/_fakeapi/history/pods",
    "/_fakeapi/export",
    f"{WIDGETS}/one",
    f"{WIDGETS}/one/status",
    f"{WIDGETS}/one/scale",
    WIDGETS,
    f"{_APPS}/replicasets/a/scale",
    f"{_CORE}/pods/a/status",
    f"{_CORE}/pods/a/log",
    f"{_CORE}/services/a/proxy",
)


def generate(rng: Random) -> bytes:
    """Return requests: a definition or policies with objects, or requests for built-in kinds."""
    makers = (_custom_requests, _policy_requests, _builtin_requests, _builtin_requests)
    return json.dumps(pick(rng, makers)(rng)).encode()


def _policy_requests(rng: Random) -> list[Any]:
    requests = [_request("POST", *each) for each in random_policies(rng)]
    objects = [each for each in OBJECTS if each[0].endswith(RESOURCES)]
    for path, document in (pick(rng, objects) for _ in range(3)):
        changed = mutate_document(rng, document) if rng.random() < 0.3 else document
        requests.append(_request("POST", path, changed))
        requests.append(_request("PATCH", f"{path}/a", {"data": {"b": "c"}}, "", MERGE))
    return requests


def _custom_requests(rng: Random) -> list[Any]:
    defined = random_definition(rng)
    schema = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    if rng.random() < 0.1:
        defined = mutate_document(rng, defined)
    requests = [_request("POST", DEFINITIONS, defined)]
    for name in ("one", "two"):
        spec = random_custom_value(rng, schema["properties"]["spec"])
        made = {**widget(name), "spec": spec}
        if rng.random() < 0.2:
            made = mutate_document(rng, made)
        requests.append(_request("POST", WIDGETS, made, pick(rng, ("", "fieldValidation=Strict"))))
        spec = random_custom_value(rng, schema["properties"]["spec"])
        apply = pick(rng, (APPLY, MERGE))
        patch = {**widget("one"), "spec": spec}
        query = "fieldManager=m&force=true" if apply == APPLY else ""
        requests.append(_request("PATCH", f"{WIDGETS}/one", patch, query, apply))
    requests += [
        _request("GET", WIDGETS, b"", pick(rng, _QUERIES), "", pick(rng, _ACCEPTS))
        for _ in range(3)
    ]
    requests.append(_request("PUT", f"{DEFINITIONS}/{NAME}", mutate_document(rng, defined)))
    return requests


def _builtin_requests(rng: Random) -> list[Any]:
    return [_builtin_request(rng) for _ in range(rng.randrange(1, 6))]


def _builtin_request(rng: Random) -> Any:
    path, document = pick(rng, OBJECTS)
    method, kind = pick(rng, _METHODS), pick(rng, _TYPES)
    if rng.random() < 0.5:  # what clients do most, so that objects exist
        method, kind = "POST", JSON
    if method not in ("POST", "OPTIONS") and path.count("/") < 7 and rng.random() < 0.8:
        path = f"{path}/a"
    if rng.random() < 0.15:
        path = pick(rng, _PLACES)
    if rng.random() < 0.05:
        path = f"{path}/{pick(rng, TEXTS)}"
    query = pick(rng, _QUERIES) if rng.random() < 0.5 else ""
    if rng.random() < 0.2:
        query = mutate_bytes(rng, query.encode()).decode("latin-1")
    body = _body(rng, method, kind, document)
    return _request(method, path, body, query, kind, pick(rng, _ACCEPTS))


def _body(rng: Random, method: str, kind: str, document: Any) -> Any:
    if kind == PROTOBUF:
        return mutate_bytes(rng, _protobuf(rng)) if rng.random() < 0.9 else _protobuf(rng)
    if kind == JSON_PATCH:
        operations = ("add", "remove", "replace", "move", "copy", "test", "x")
        paths = (
            "/metadata/labels",
            "/spec",
            "",
            "/",
            "/a/-",
            "/spec/containers/0/name",
            "a",
            "/~2",
        )
        return [
            {
                "op": pick(rng, operations),
                "path": pick(rng, paths),
                "from": pick(rng, paths),
                "value": pick(rng, TEXTS),
            }
            for _ in range(rng.randrange(1, 4))
        ]
    changed = mutate_document(rng, document) if rng.random() < 0.8 else document
    if method == "PATCH" and kind == STRATEGIC and rng.random() < 0.4:
        changed = {"spec": {"containers": [{"$patch": pick(rng, ("delete", "replace", "x"))}]}}
    return encode_document(rng, changed)


def _protobuf(rng: Random) -> bytes:
    path, document = pick(rng, OBJECTS)
    api = _new_api()
    body = json.dumps(document).encode()
    made = api.handle(
        endpoints.Request("POST", path, body=body, content_type=JSON, accept=PROTOBUF)
    )
    return b"" if isinstance(made, Watch) else made.body


def _request(
    method: str, path: str, body: Any = b"", query: str = "", kind: str = JSON, accept: str = ""
) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {
        "method": method,
        "path": path,
        "query": query,
        "type": kind,
        "accept": accept,
        "body": raw.decode("latin-1"),
    }


def _new_api() -> Api:
    return create_world(ManualClock()).api


async def check(data: bytes) -> None:
    """Send the requests one after the other; raise for a status of 500."""
    await asyncio.to_thread(_handle_all, json.loads(data))


def _handle_all(requests: Sequence[Any]) -> None:
    world = create_world(ManualClock())
    for each in requests:
        request = endpoints.Request(
            each["method"],
            each["path"].encode(errors="replace").decode(),  # as of HTTP, without surrogates
            parse_query(each["query"]),
            each["body"].encode("latin-1"),
            each["type"],
            each["accept"],
        )
        handle: Callable[[endpoints.Request], Any] = world.api.handle
        if request.path.startswith("/_fakeapi/"):
            handle = world.management.handle
        answer = handle(request)
        if isinstance(answer, Watch):
            answer.read(100)
            continue
        text = answer.body.decode(errors="replace")
        if answer.status == 500 and not any(each in text for each in UPSTREAM_500):
            raise FailedError(f"{request.method} {request.path}: {answer.status} {text[:500]}")


KIND: Final = Kind("requests", generate, check)
