"""The conditions of a terminating namespace, in upstream's words."""

from __future__ import annotations

import pytest

from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi.controlplane.controllers.namespace_conditions import DeletionPass, conditions_after

NO_ERRORS = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentRemoved", "All content successfully removed"),
}

INCOMPLETE = "unable to retrieve the complete list of server APIs"
SOME = "resource instances"
FAILING = [
    (
        DeletionPass(undiscovered={"some.io/v1": "it is down"}),
        "NamespaceDeletionDiscoveryFailure",
        "DiscoveryFailed",
        f"Discovery failed for some groups, 1 failing: {INCOMPLETE}: some.io/v1: it is down",
    ),
    (
        DeletionPass(undeleted=["b", "a"]),
        "NamespaceDeletionContentFailure",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 2 remaining: a, b",
    ),
    (
        DeletionPass(remaining={REPLICA_SETS: 2, PODS: 1}),
        "NamespaceContentRemaining",
        "SomeResourcesRemain",
        f"Some resources are remaining: pods. has 1 {SOME}, replicasets.apps has 2 {SOME}",
    ),
    (
        DeletionPass(finalizers={"x/y": 1, "a/b": 2}),
        "NamespaceFinalizersRemaining",
        "SomeFinalizerRemain",
        f"Some finalizers are remaining: a/b in 2 {SOME}, x/y in 1 {SOME}",
    ),
]


def test_a_first_pass_without_errors_writes_every_condition() -> None:
    after = conditions_after(DeletionPass(), (), "now")
    assert after is not None
    assert {c["type"]: (c["reason"], c["message"]) for c in after} == NO_ERRORS
    assert {(c["status"], c["lastTransitionTime"]) for c in after} == {("False", "now")}


@pytest.mark.parametrize(("found", "type_", "reason", "message"), FAILING)
def test_errors_set_conditions(found: DeletionPass, type_: str, reason: str, message: str) -> None:
    after = conditions_after(found, (), "now")
    assert after is not None
    assert [c for c in after if c["status"] == "True"] == [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": "now",
        }
    ]


def test_an_equal_pass_changes_nothing() -> None:
    for found in (DeletionPass(), *(each for each, *_ in FAILING)):
        after = conditions_after(found, (), "then")
        assert after is not None
        assert conditions_after(found, after, "now") is None


def test_only_a_change_of_status_is_a_transition() -> None:
    first = conditions_after(DeletionPass(remaining={PODS: 2}), (), "1")
    fewer = conditions_after(DeletionPass(remaining={PODS: 1}), first or (), "2")
    none = conditions_after(DeletionPass(), fewer or (), "3")
    times = [
        {c["type"]: c["lastTransitionTime"] for c in each or ()}["NamespaceContentRemaining"]
        for each in (first, fewer, none)
    ]
    assert times == ["1", "1", "3"]


def test_conditions_of_other_types_stay() -> None:
    after = conditions_after(DeletionPass(), [{"type": "Mine", "status": "True"}], "now")
    assert after is not None
    assert after[0] == {"type": "Mine", "status": "True"}
