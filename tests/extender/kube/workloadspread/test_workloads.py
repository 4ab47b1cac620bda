"""Workloads of any kind, their scale, and the kinds that OpenKruise's configuration allows."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.workloadspread.workloads import (
    WHITELIST_KEY,
    ScaledKind,
    decode_allowed_kinds,
    decode_scaled_kinds,
    decode_workload,
)
from policies.kubernetes.selectors import LabelSelector, equals_all, parse_label_selector
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.workloads import AllowedKind, AllowedKinds, Scale, TargetWorkload
from tests.builders import encoded, owner

META = {"name": "web", "namespace": "default", "uid": "u"}
GAMES = ScaledKind("game.io", "Game", ".spec.count", ".status.selector")
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}


def decoded(kind: str, api_version: str, **fields: Any) -> TargetWorkload:
    document = {"apiVersion": api_version, "kind": kind, "metadata": META, **fields}
    return decode_workload(kind, encoded(document), [GAMES])


def test_a_complete_clone_set_is_decoded() -> None:
    workload = decode_workload(
        "CloneSet",
        encoded(
            {
                "apiVersion": "apps.kruise.io/v1alpha1",
                "metadata": {
                    **META,
                    "labels": {"l": "x"},
                    "generation": 4,
                    "ownerReferences": [owner("g", "Game", controller=True)],
                    "annotations": {"deployment.kubernetes.io/revision": "7"},
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": TEMPLATE,
                },
                "status": {
                    "observedGeneration": 3,
                    "updateRevision": "web-2",
                    "currentRevision": "web-1",
                },
            }
        ),
    )
    assert workload.document["metadata"] != META
    assert workload == TargetWorkload(
        ObjectKey("apps.kruise.io", "CloneSet", "web"),
        "default",
        version="v1alpha1",
        uid="u",
        labels={"l": "x"},
        generation=4,
        observed_generation=3,
        terminating=True,
        controller=WorkloadReference("v1", "Game", "g", "g"),
        selector=LabelSelector(equals_all({"app": "web"})),
        replicas=3,
        template=TEMPLATE,
        update_revision="web-2",
        current_revision="web-1",
        deployment_revision="7",
        document=workload.document,
    )


@pytest.mark.parametrize("spec", [None, {}, {"replicas": None}])
def test_absent_replicas_default_to_one(spec: Any) -> None:
    workload = decoded("Deployment", "apps/v1", spec=spec)
    assert (workload.replicas, workload.parallelism) == (1, 1)


def test_jobs_have_parallelism() -> None:
    assert decoded("Job", "batch/v1", spec={"parallelism": 4}).parallelism == 4


def test_items_of_typed_lists_need_no_version() -> None:
    assert decoded("ReplicaSet", "").identity.group == "apps"


def test_templates_are_compared_without_their_hash() -> None:
    labels = {"app": "web", "pod-template-hash": "h1"}
    hashed = {**TEMPLATE, "metadata": {"labels": labels, "creationTimestamp": None}}
    assert (
        decoded("ReplicaSet", "apps/v1", spec={"template": hashed}).template
        == decoded("Deployment", "apps/v1", spec={"template": TEMPLATE}).template
    )
    only = {"metadata": {"labels": {"pod-template-hash": "h1"}}}
    assert decoded("ReplicaSet", "apps/v1", spec={"template": only}).template == {}


def scale_of_game(**fields: Any) -> Scale | None:
    return decoded("Game", "game.io/v1", **fields).scale


def test_the_scale_is_read_by_its_paths() -> None:
    scale = scale_of_game(spec={"count": 4}, status={"selector": "app=web,tier in (a,b)"})
    assert scale == Scale(4, parse_label_selector("app=web,tier in (a,b)"))


@pytest.mark.parametrize("status", [{}, {"selector": ""}, {"selector": "!!"}, None, "x"])
def test_a_missing_or_invalid_selector_of_a_scale_is_none(status: Any) -> None:
    assert scale_of_game(spec={"count": 4}, status=status) == Scale(4)


def test_missing_replicas_of_a_scale_are_zero() -> None:
    assert scale_of_game() == Scale(0)


def test_a_kind_without_a_scale_has_none() -> None:
    assert decoded("Other", "game.io/v1").scale is None


def test_kinds_with_a_scale_are_read_from_definitions() -> None:
    scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    definition = {
        "metadata": {"name": "games.game.io"},
        "spec": {
            "group": "game.io",
            "names": {"kind": "Game"},
            "versions": [{"name": "v0"}, {"name": "v1", "subresources": {"scale": scale}}],
        },
    }
    assert decode_scaled_kinds(encoded(definition)) == [
        ScaledKind("game.io", "Game", ".spec.count", "")
    ]
    definition["spec"] = {"group": "game.io", "names": {"kind": "Game"}, "versions": []}
    assert decode_scaled_kinds(encoded(definition)) == []


def allowed(text: str | None) -> AllowedKinds:
    data = {} if text is None else {WHITELIST_KEY: text}
    return decode_allowed_kinds(encoded({"metadata": META, "data": data}))


def test_keys_of_the_configuration_may_have_any_case() -> None:
    text = """{"workloads": [
        {"Group": "game.io", "Kind": "Game", "replicasPath": "spec.count",
         "subResources": [{"Group": "game.io", "Version": "v1", "Kind": "Server"}]},
        {"group": "x.io", "VERSION": "v1", "kind": "X"}
    ]}"""
    assert allowed(text).kinds == (
        AllowedKind("game.io", "", "Game", "spec.count", (("game.io", "Server"),)),
        AllowedKind("x.io", "v1", "X"),
    )


@pytest.mark.parametrize("text", [None, "{}", '{"workloads": null}', '{"workloads": []}'])
def test_the_configuration_may_be_empty(text: str | None) -> None:
    assert allowed(text) == AllowedKinds()


@pytest.mark.parametrize("text", ["", "[]", '{"workloads": [5]}', '{"workloads": 5}'])
def test_an_invalid_configuration_is_reported(text: str) -> None:
    with pytest.raises(ObjectError, match=f"data.{WHITELIST_KEY}: expected JSON such as"):
        allowed(text)


def test_an_invalid_workload_is_reported() -> None:
    with pytest.raises(ObjectError, match=r"^Deployment default/web: spec\.replicas: "):
        decoded("Deployment", "apps/v1", spec={"replicas": "x"})
    with pytest.raises(ObjectError, match="apiVersion: unexpected GroupVersion string: a/b/c"):
        decoded("Deployment", "a/b/c")
