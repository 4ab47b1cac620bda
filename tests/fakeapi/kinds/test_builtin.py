"""The table of built-in kinds."""

from __future__ import annotations

import pytest

from fakeapi.kinds import BUILTIN, Kind
from fakeapi.kinds.builtin import NODES, PODS, REPLICA_SETS


@pytest.mark.parametrize("kind", BUILTIN.all, ids=lambda kind: kind.resource)
def test_a_kind_is_found_by_its_path_and_by_what_its_documents_say(kind: Kind) -> None:
    assert BUILTIN.at(kind.group, kind.version, kind.plural) is kind
    assert BUILTIN.of(kind.api_version, kind.kind) is kind
    assert kind in BUILTIN.in_group_version(kind.group, kind.version)


@pytest.mark.parametrize("kind", BUILTIN.all, ids=lambda kind: kind.resource)
def test_a_kind_can_be_selected_by_name_and_namespace(kind: Kind) -> None:
    labels = [field.label for field in kind.fields]
    assert labels[0] == "metadata.name"
    assert ("metadata.namespace" in labels) is kind.namespaced
    assert len(labels) == len(set(labels))


def test_names_are_spelled_as_upstream_spells_them() -> None:
    assert (PODS.resource, PODS.api_version, PODS.root) == ("pods", "v1", "/api/v1")
    assert REPLICA_SETS.resource == "replicasets.apps"
    assert REPLICA_SETS.qualified_kind == "ReplicaSet.apps"
    assert REPLICA_SETS.root == "/apis/apps/v1"
    assert NODES.list_kind == "NodeList"


def test_what_is_not_served_is_not_found() -> None:
    assert BUILTIN.at("apps", "v1", "widgets") is None
    assert BUILTIN.of("v1", "Widget") is None
    assert BUILTIN.in_group_version("apps", "v2") == ()


def test_lists_inside_pods_merge_by_the_keys_of_their_types() -> None:
    keys = PODS.merge_keys
    assert keys["spec", "containers"] == "name"
    assert keys["spec", "initContainers", "ports"] == "containerPort"
    assert keys["status", "conditions"] == "type"
    assert ("spec", "tolerations") not in keys
    assert REPLICA_SETS.merge_keys["spec", "template", "spec", "containers", "env"] == "name"
