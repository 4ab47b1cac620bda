"""The table of built-in kinds equals the discovery of a kube-apiserver v1.37."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo
from fakeapi.apiserver.kinds.builtin import NODES, PODS, REPLICA_SETS

_RECORDED = Path(__file__).parents[2] / "recorded"
_DISCOVERY: list[dict[str, Any]] = orjson.loads((_RECORDED / "discovery.json").read_bytes())


@pytest.mark.parametrize("kind", BUILTIN.all, ids=lambda kind: f"{kind.resource}/{kind.version}")
def test_a_kind_is_found_by_path_and_by_kind(kind: ResourceInfo) -> None:
    assert BUILTIN.at(kind.group, kind.version, kind.plural) is kind
    assert BUILTIN.of(kind.api_version, kind.kind) is kind
    assert kind in BUILTIN.in_group_version(kind.group, kind.version)


@pytest.mark.parametrize("kind", BUILTIN.all, ids=lambda kind: f"{kind.resource}/{kind.version}")
def test_a_kind_can_be_selected_by_name_and_namespace(kind: ResourceInfo) -> None:
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


def test_an_unserved_resource_is_not_found() -> None:
    assert BUILTIN.at("apps", "v1", "widgets") is None
    assert BUILTIN.of("v1", "Widget") is None
    assert BUILTIN.in_group_version("apps", "v2") == ()


def test_groups_and_resources_are_those_of_a_real_server_in_its_order() -> None:
    real = [(each["group"], each["version"], each["plural"]) for each in _DISCOVERY]
    assert [(kind.group, kind.version, kind.plural) for kind in BUILTIN.all] == real


@pytest.mark.parametrize("real", _DISCOVERY, ids=lambda real: f"{real['plural']}.{real['group']}")
def test_a_kind_equals_that_of_a_real_servers_discovery(real: dict[str, Any]) -> None:
    kind = BUILTIN.at(real["group"], real["version"], real["plural"])
    assert kind is not None
    assert {
        "group": kind.group,
        "version": kind.version,
        "plural": kind.plural,
        "kind": kind.kind,
        "namespaced": kind.namespaced,
        "singular": kind.singular,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": {
            sub.name: [sub.group, sub.version, sub.kind, list(sub.verbs)]
            for sub in kind.subresources.values()
        },
    } == real
