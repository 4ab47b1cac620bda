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
from tests.builders import encoded

META = {"name": "web", "namespace": "default", "uid": "u"}
GAMES = ScaledKind("game.io", "Game", ".spec.count", ".status.selector")
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}


def decoded(kind: str, api_version: str, **fields: Any) -> TargetWorkload:
    document = {"apiVersion": api_version, "kind": kind, "metadata": META, **fields}
    return decode_workload(kind, encoded(document), [GAMES])


def test_all_of_a_clone_set() -> None:
    owner = {"apiVersion": "v1", "kind": "Game", "name": "g", "uid": "g", "controller": True}
    workload = decode_workload(
        "CloneSet",
        encoded(
            {
                "apiVersion": "apps.kruise.io/v1alpha1",
                "metadata": {
                    **META,
                    "labels": {"l": "x"},
                    "generation": 4,
                    "ownerReferences": [owner],
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


def test_items_of_typed_lists_need_not_say_their_version() -> None:
    assert decoded("ReplicaSet", "").identity.group == "apps"


def test_templates_are_the_same_whatever_their_hash() -> None:
    labels = {"app": "web", "pod-template-hash": "h1"}
    hashed = {**TEMPLATE, "metadata": {"labels": labels, "creationTimestamp": None}}
    assert (
        decoded("ReplicaSet", "apps/v1", spec={"template": hashed}).template
        == decoded("Deployment", "apps/v1", spec={"template": TEMPLATE}).template
    )
    only = {"metadata": {"labels": {"pod-template-hash": "h1"}}}
    assert decoded("ReplicaSet", "apps/v1", spec={"template": only}).template == {}


class TestScales:
    def game(self, **fields: Any) -> Scale | None:
        return decoded("Game", "game.io/v1", **fields).scale

    def test_a_kind_with_a_scale(self) -> None:
        scale = self.game(spec={"count": 4}, status={"selector": "app=web,tier in (a,b)"})
        assert scale == Scale(4, parse_label_selector("app=web,tier in (a,b)"))

    @pytest.mark.parametrize("status", [{}, {"selector": ""}, {"selector": "!!"}, None, "x"])
    def test_one_that_says_no_selector(self, status: Any) -> None:
        assert self.game(spec={"count": 4}, status=status) == Scale(4)

    def test_one_that_says_no_number(self) -> None:
        assert self.game() == Scale(0)

    def test_a_kind_without(self) -> None:
        assert decoded("Other", "game.io/v1").scale is None

    def test_definitions_say_which_kinds_have_one(self) -> None:
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


class TestWhitelists:
    def whitelist(self, text: str | None) -> AllowedKinds:
        data = {} if text is None else {WHITELIST_KEY: text}
        return decode_allowed_kinds(encoded({"metadata": META, "data": data}))

    def test_keys_may_have_any_case(self) -> None:
        text = """{"workloads": [
            {"Group": "game.io", "Kind": "Game", "replicasPath": "spec.count",
             "subResources": [{"Group": "game.io", "Version": "v1", "Kind": "Server"}]},
            {"group": "x.io", "VERSION": "v1", "kind": "X"}
        ]}"""
        assert self.whitelist(text).kinds == (
            AllowedKind("game.io", "", "Game", "spec.count", (("game.io", "Server"),)),
            AllowedKind("x.io", "v1", "X"),
        )

    @pytest.mark.parametrize("text", [None, "{}", '{"workloads": null}', '{"workloads": []}'])
    def test_there_may_be_none(self, text: str | None) -> None:
        assert self.whitelist(text) == AllowedKinds()

    @pytest.mark.parametrize("text", ["", "[]", '{"workloads": [5]}', '{"workloads": 5}'])
    def test_an_invalid_one_is_reported(self, text: str) -> None:
        with pytest.raises(ObjectError, match=f"data.{WHITELIST_KEY}: expected JSON such as"):
            self.whitelist(text)


def test_an_invalid_workload_is_reported() -> None:
    with pytest.raises(ObjectError, match=r"^Deployment default/web: spec\.replicas: "):
        decoded("Deployment", "apps/v1", spec={"replicas": "x"})
    with pytest.raises(ObjectError, match="apiVersion: unexpected GroupVersion string: a/b/c"):
        decoded("Deployment", "a/b/c")
