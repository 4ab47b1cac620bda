"""Writes to subresources: the owners of the replicas of a Scale, and conflicts of applies."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import Document, controller_spec, manifest
from tests.builders.definitions import DEFINITIONS, WIDGETS, definition, widget
from tests.builders.definitions import SCALE as SCALE_PATHS
from tests.fakeapi.api_requests import APPLY, DEPLOYMENTS, JSON, MERGE, PODS, send

LABELS = {"app": "e"}
WEB = f"{DEPLOYMENTS}/web"


def deployment(**spec: Any) -> Document:
    made = manifest("Deployment", "web", version="apps/v1", spec=controller_spec(LABELS) | spec)
    if "replicas" not in spec:
        made["spec"].pop("replicas", None)
    return made


def scale(replicas: Any, name: str = "web") -> Document:
    return manifest("Scale", name, version="autoscaling/v1", spec={"replicas": replicas})


def apply(
    api: Api, path: str, document: Document, manager: str, **query: str
) -> tuple[int, Document]:
    query = {"fieldManager": manager, **query}
    answer = send(api, "PATCH", path, document, APPLY, query=query)
    return answer.status, orjson.loads(answer.body)


def write(api: Api, method: str, document: Document, manager: str) -> int:
    kind = MERGE if method == "PATCH" else JSON
    query = {"fieldManager": manager}
    return send(api, method, f"{WEB}/scale", document, kind, query=query).status


def owners_of_replicas(api: Api, path: str = WEB, field: str = "f:replicas") -> list[str]:
    """Return the owners of the replicas, as manager, operation and subresource."""
    document = orjson.loads(send(api, "GET", path).body)
    return [
        " ".join((entry["manager"], entry["operation"], entry.get("subresource", "-")))
        for entry in document["metadata"].get("managedFields", ())
        if field in entry["fieldsV1"].get("f:spec", {})
    ]


def replicas(api: Api) -> int:
    found: int = orjson.loads(send(api, "GET", WEB).body)["spec"]["replicas"]
    return found


def test_an_applied_scale_conflicts_with_the_owner_of_the_replicas(api: Api) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    status, answer = apply(api, f"{WEB}/scale", scale(3), "b")
    message = 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'
    assert (status, answer["message"]) == (409, message)
    assert (replicas(api), owners_of_replicas(api)) == (2, ["a Apply -"])


def test_a_forced_scale_takes_the_replicas_and_nothing_else(api: Api) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    status, answer = apply(api, f"{WEB}/scale", scale(3), "b", force="true")
    assert (status, answer["kind"], answer["spec"]) == (200, "Scale", {"replicas": 3})
    assert "managedFields" not in answer["metadata"]
    assert (replicas(api), owners_of_replicas(api)) == (3, ["b Apply scale"])
    status, answer = apply(api, WEB, deployment(replicas=2), "a")
    message = 'conflict with "b" with subresource "scale": .spec.replicas'
    assert (status, answer["message"]) == (409, f"Apply failed with 1 conflict: {message}")
    assert apply(api, WEB, deployment(), "a")[0] == 200
    assert replicas(api) == 3


def test_managers_that_apply_the_same_scale_share_the_replicas(api: Api) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    assert apply(api, f"{WEB}/scale", scale(2), "b")[0] == 200
    assert owners_of_replicas(api) == ["b Apply scale", "a Apply -"]


def test_replicas_without_an_owner_belong_to_the_manager_before_first_apply(
    api: Api,
) -> None:
    api.load([deployment(replicas=2)])
    status, answer = apply(api, f"{WEB}/scale", scale(3), "b")
    assert status == 409
    assert answer["message"].endswith(
        '"before-first-apply" with subresource "scale" using autoscaling/v1: .spec.replicas'
    )
    assert apply(api, f"{WEB}/scale", scale(2), "b")[0] == 200
    assert owners_of_replicas(api) == ["b Apply scale", "before-first-apply Update scale"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_written_scale_takes_the_replicas_from_all_others(api: Api, method: str) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    assert write(api, method, scale(5), "p") == 200
    assert (replicas(api), owners_of_replicas(api)) == (5, ["p Update scale"])
    assert write(api, method, scale(5), "q") == 200
    assert owners_of_replicas(api) == ["p Update scale"]


def test_a_written_scale_of_replicas_without_an_owner_is_not_tracked(api: Api) -> None:
    api.load([deployment(replicas=2)])
    assert write(api, "PATCH", scale(5), "p") == 200
    assert (replicas(api), owners_of_replicas(api)) == (5, [])


def test_a_scale_that_is_applied_without_its_replicas_scales_to_zero(api: Api) -> None:
    apply(api, WEB, deployment(), "a")
    apply(api, f"{WEB}/scale", scale(3), "b", force="true")
    empty = manifest("Scale", "web", version="autoscaling/v1")
    assert apply(api, f"{WEB}/scale", empty, "b")[0] == 200
    assert (replicas(api), owners_of_replicas(api)) == (0, [])


def test_a_dry_run_of_an_applied_scale_changes_nothing(api: Api) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    status, answer = apply(api, f"{WEB}/scale", scale(3), "b", force="true", dryRun="All")
    assert (status, answer["spec"]["replicas"]) == (200, 3)
    assert (replicas(api), owners_of_replicas(api)) == (2, ["a Apply -"])


REFUSED: list[tuple[str, Document, int, str]] = [
    ("another kind", deployment(), 400, "invalid object type: apps/v1, Kind=Deployment"),
    ("another name", scale(1, "other"), 400, "the name of the object (other) does not match"),
    ("negative", scale(-1), 422, "must be greater than or equal to 0"),
    ("a fraction", scale(1.5), 500, "cannot unmarshal number 1.5 into Go struct field"),
    ("a text", scale("x"), 500, ".spec.replicas: expected numeric (int or float), got string"),
    ("an unknown field", scale(1) | {"a": 1}, 500, ".a: field not declared in schema"),
]


@pytest.mark.parametrize(
    ("document", "status", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_an_invalid_scale_is_not_applied(
    api: Api, document: Document, status: int, message: str
) -> None:
    apply(api, WEB, deployment(replicas=2), "a")
    answered, answer = apply(api, f"{WEB}/scale", document, "b", force="true")
    assert answered == status
    assert message in answer["message"]
    assert replicas(api) == 2


def test_the_scale_of_a_custom_resource_is_applied_at_its_path(api: Api) -> None:
    send(api, "POST", DEFINITIONS, definition(subresources={"scale": SCALE_PATHS}))
    path = f"{WIDGETS}/one"
    assert apply(api, path, widget(size=1), "a")[0] == 201
    assert apply(api, f"{path}/scale", scale(2, "one"), "b")[0] == 409
    assert apply(api, f"{path}/scale", scale(2, "one"), "b", force="true")[0] == 200
    assert orjson.loads(send(api, "GET", path).body)["spec"]["size"] == 2
    assert owners_of_replicas(api, path, "f:size") == ["b Apply scale"]


BELOW_PODS = {
    "ephemeralcontainers": {
        "ephemeralContainers": [{"name": "e", "image": "i"}],
        "containers": [{"name": "c", "image": "other"}],
    },
    "resize": {
        "containers": [{"name": "c", "image": "other", "resources": {"limits": {"cpu": "1"}}}],
        "priority": 7,
    },
}
OWNED = {
    "ephemeralcontainers": ['f:ephemeralContainers k:{"name":"e"} f:image f:name'],
    "resize": ['f:containers k:{"name":"c"} f:resources'],
}


@pytest.mark.parametrize("subresource", BELOW_PODS)
def test_an_apply_through_a_subresource_of_pods_owns_only_what_it_can_change(
    api: Api, subresource: str
) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    apply(api, f"{PODS}/p", manifest("Pod", "p", version="v1", spec=spec), "a")
    body = manifest("Pod", "p", version="v1", spec=BELOW_PODS[subresource])
    status, answer = apply(api, f"{PODS}/p/{subresource}", body, "b", force="true")
    assert (status, answer["spec"]["containers"][0]["image"]) == (200, "i")
    [entry] = [e for e in answer["metadata"]["managedFields"] if e["manager"] == "b"]
    owned = [
        " ".join((field, item, *(name for name in below if name != ".")))
        for field, items in entry["fieldsV1"]["f:spec"].items()
        for item, below in items.items()
    ]
    assert (entry["subresource"], owned) == (subresource, OWNED[subresource])


def test_an_applied_status_belongs_to_its_subresource(api: Api) -> None:
    container = {"name": "c", "image": "i"}
    pod = manifest("Pod", "p", version="v1", spec={"containers": [container]})
    apply(api, f"{PODS}/p", pod, "a")
    phase = manifest("Pod", "p", version="v1", status={"phase": "Running"})
    assert apply(api, f"{PODS}/p/status", phase, "b")[0] == 200
    failed = manifest("Pod", "p", version="v1", status={"phase": "Failed"})
    status, answer = apply(api, f"{PODS}/p/status", failed, "c")
    assert status == 409
    assert answer["message"].endswith('"b" with subresource "status": .status.phase')
    assert apply(api, f"{PODS}/p/status", failed, "c", force="true")[0] == 200
