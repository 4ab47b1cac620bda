"""Requests to subresources and reviews, some of whose members are any JSON at all."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Request
from tests.builders import controller_spec, pod_request
from tests.fakeapi.api_requests import BUDGETS, DEFAULT, MERGE, SETS

PODS = f"{DEFAULT}/pods"
REVIEWS = "/apis/authorization.k8s.io/v1"

LABELS = {"app": "e"}
POD = pod_request(labels=LABELS)
SET = {"metadata": {"name": "s"}, "spec": controller_spec(LABELS, replicas=1)}
BUDGET = {
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
}
ATTRIBUTES = {"verb": "get", "resource": "pods", "namespace": "default"}
ALLOWED = {"observedGeneration": 1, "disruptionsAllowed": 1}

SENSIBLE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", PODS, POD),
    ("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}),
    ("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}),
    ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {}}),
    ("PATCH", f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}),
    ("PATCH", f"{PODS}/p/resize", {"spec": {"containers": []}}),
    ("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5, "propagationPolicy": "Orphan"}),
    ("POST", SETS, SET),
    ("PUT", f"{SETS}/s/scale", {"metadata": {"name": "s"}, "spec": {"replicas": 3}}),
    ("PATCH", f"{SETS}/s/scale", {"spec": {"replicas": 3}}),
    ("POST", BUDGETS, BUDGET),
    ("PATCH", f"{BUDGETS}/b/status", {"status": ALLOWED}),
    ("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "a"}}),
    ("POST", f"{DEFAULT}/serviceaccounts/a/token", {"spec": {"boundObjectRef": {}}}),
    ("PUT", f"{DEFAULT}/finalize", {"metadata": {"name": "default"}, "spec": {}}),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": ATTRIBUTES}}),
    ("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
    (
        "POST",
        f"{REVIEWS}/namespaces/default/localsubjectaccessreviews",
        {"spec": {"user": "x", "groups": [], "extra": {}, "resourceAttributes": ATTRIBUTES}},
    ),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
]

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(("", "c", "1")),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("name", "key", "c")), inner, max_size=2)
    ),
    max_leaves=4,
)


def _spoiled(document: Any, path: list[int], value: Any) -> Any:
    """Return the document with the member at a path (of places among its members) replaced."""
    if not path or not isinstance(document, dict) or not document:
        return value
    key = list(document)[path[0] % len(document)]
    return {**document, key: _spoiled(document[key], path[1:], value)}


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Return a sensible request, or one of which one member is spoiled."""
    method, path, body = draw(st.sampled_from(SENSIBLE))
    if draw(st.booleans()):
        place = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
        body = _spoiled(body, place, draw(junk))
    content_type = MERGE if method == "PATCH" else "application/json"
    return Request(method, path, body=orjson.dumps(body), content_type=content_type)
