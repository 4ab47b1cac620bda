"""Fields of pods that the server derives when they are created."""

from __future__ import annotations

import pytest

from tests.builders import Document, pod_request
from tests.fakeapi.api_requests import PODS, Ask

OWN = {"key": "app", "operator": "In", "values": ["web"]}
OTHERS = {"key": "rev", "operator": "NotIn", "values": ["7"]}
GIVEN = {"key": "tier", "operator": "Exists"}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ({"labelSelector": {}, "matchLabelKeys": ["app"]}, {"matchExpressions": [OWN]}),
        (
            {
                "labelSelector": {"matchExpressions": [GIVEN]},
                "matchLabelKeys": ["absent", "app"],
                "mismatchLabelKeys": ["rev"],
            },
            {"matchExpressions": [GIVEN, OWN, OTHERS]},
        ),
        ({"labelSelector": {}, "matchLabelKeys": ["absent"]}, {}),
        ({"labelSelector": {"matchLabels": {"a": "b"}}}, {"matchLabels": {"a": "b"}}),
        ({}, None),
    ],
)
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_affinity_selects_the_labels_that_a_pod_is_created_with(
    ask: Ask, kind: str, written: Document, stored: Document | None
) -> None:
    term = {"topologyKey": "zone", **written}
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    }
    body = pod_request(labels={"app": "web", "rev": "7"}, affinity={kind: terms})
    _, made = ask("POST", PODS, body)
    required, preferred = made["spec"]["affinity"][kind].values()
    assert required[0].get("labelSelector") == stored
    assert preferred[0]["podAffinityTerm"].get("labelSelector") == stored


def test_a_spread_constraint_selects_the_labels_that_a_pod_is_created_with(ask: Ask) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {},
        "matchLabelKeys": ["app"],
    }
    body = pod_request(labels={"app": "web"}, topologySpreadConstraints=[constraint])
    _, made = ask("POST", PODS, body)
    [found] = made["spec"]["topologySpreadConstraints"]
    assert found["labelSelector"] == {"matchExpressions": [OWN]}


def test_a_pod_that_is_relabelled_keeps_its_selectors(ask: Ask) -> None:
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
        ]
    }
    affinity = {"podAffinity": terms}
    ask("POST", PODS, pod_request("p", labels={"app": "web"}, affinity=affinity))
    relabel = {"metadata": {"labels": {"app": "db"}}}
    status, changed = ask("PATCH", f"{PODS}/p", relabel)
    assert (status, changed["metadata"]["labels"]) == (200, {"app": "db"})
    [found] = changed["spec"]["affinity"]["podAffinity"].popitem()[1]
    assert found["labelSelector"] == {"matchExpressions": [OWN]}
