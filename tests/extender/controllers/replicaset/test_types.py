"""The decoded fields of pods and ReplicaSets, and errors in them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from extender.controllers.replicaset.pod_control import pod_from_template
from extender.controllers.replicaset.types import ReplicaSet
from extender.kube.decoders.object_meta import parse_time
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.upstream_tables import decoded_set, owned_pod

NOON = "2026-01-01T12:00:00Z"


def test_the_needed_fields_of_a_pod_are_decoded() -> None:
    document = a_pod("p", "web", node="n", ready_since=NOON, creationTimestamp=NOON)
    document["metadata"]["annotations"] = {
        "controller.kubernetes.io/pod-deletion-cost": "5",
        "other": "x" * 1000,
    }
    found = owned_pod(document)
    assert (found.uid, found.node, found.phase) == ("p", "n", "Running")
    assert (found.ready, found.ready_since_ns, found.created_ns) == (
        True,
        parse_time(NOON),
        parse_time(NOON),
    )
    assert found.deletion_cost == "5"
    assert found.metadata.annotations is None  # they would need memory for every pod


def test_restarts_are_those_of_the_container_that_restarted_most() -> None:
    document = a_pod("p")
    document["spec"]["initContainers"] = [
        {"name": "sidecar", "restartPolicy": "Always"},
        {"name": "once"},
    ]
    document["status"] |= {
        "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 7}],
        "initContainerStatuses": [
            {"name": "sidecar", "restartCount": 3},
            {"name": "once", "restartCount": 9},
        ],
    }
    found = owned_pod(document)
    assert (found.restarts, found.sidecar_restarts) == (7, 3)


ODD_PODS: list[Document] = [
    {},
    {"spec": None, "status": None},
    {"status": {"conditions": None, "containerStatuses": None}},
    {"status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": NOON}]}},
    {"status": {"conditions": "none"}},
    {"spec": {"nodeName": 5}},
]


@pytest.mark.parametrize("odd", ODD_PODS, ids=str)
def test_a_pod_without_valid_fields_is_active_and_not_ready(odd: Document) -> None:
    document = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, **odd}
    found = owned_pod(document)
    assert (found.uid, found.active, found.ready, found.node) == ("u", True, False, "")


@pytest.mark.parametrize("time", [None, "", "0001-01-01T00:00:00Z", "yesterday"])
def test_a_missing_or_invalid_time_is_none(time: str | None) -> None:
    document = a_pod("p", creationTimestamp=time)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": time}
    document["status"]["conditions"] = [ready]
    found = owned_pod(document)
    assert (found.ready, found.ready_since_ns, found.created_ns) == (True, None, None)


def test_absent_fields_of_a_replica_set_have_the_api_defaults() -> None:
    found = decoded_set({"metadata": {"name": "web"}})
    assert (found.replicas, found.min_ready_seconds, found.selector) == (1, 0, None)
    assert (found.problem, dict(found.template_labels)) == ("", {})


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": "three"}, "$.spec.replicas"),
        ({"selector": {"matchLabels": {"app": 5}}}, "$.spec.selector.matchLabels"),
        ({"selector": {"matchLabels": {"": "x"}}}, "spec.selector: '' is not a valid label key"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}, "'Odd' is not"),
    ],
)
def test_an_invalid_replica_set_is_reported(spec: Document, problem: str) -> None:
    found = decoded_set(a_replica_set(**spec))
    assert problem in found.problem
    assert found.metadata.key == "default/web"


def test_the_template_is_copied_into_pods_unchanged() -> None:
    odd = {"containers": [{"name": "c", "unknownField": {"deep": [1, 2.5, None]}}]}
    template = {"metadata": {"labels": {"app": "web"}, "name": "ignored"}, "spec": odd}
    made = made_from(decoded_set(a_replica_set(template=template)))
    assert made == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-",
            "labels": {"app": "web"},
            "ownerReferences": [controlled_by("web", "web")],
        },
        "spec": odd,
    }


def made_from(found: ReplicaSet) -> Any:
    return orjson.loads(pod_from_template(found))


def test_a_name_of_maximum_length_is_followed_by_a_dash_as_well() -> None:
    name = "w" * 253
    made = made_from(decoded_set(a_replica_set(name, {"app": "web"})))
    assert made["metadata"]["generateName"] == f"{name}-"


def test_an_event_refers_to_the_version_that_was_synced() -> None:
    document = a_replica_set()
    document["metadata"]["resourceVersion"] = "17"
    assert decoded_set(document).reference.document()["resourceVersion"] == "17"
