"""``simulate`` and ``explain`` decide on a cluster with another policy, pod or object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extender.explain.cluster_objects import ClusterObjects
from extender.kube.decoders.manifests import parse_manifests
from extender.mcp.arguments import (
    ExplainArguments,
    ListArguments,
    SimulateArguments,
    decode_arguments,
    input_schema,
)
from extender.mcp.cluster_tools import DecisionContext, explain_result, simulate_result
from extender.mcp.results import ToolResult
from fakeapi.cli.root_command import unknown_fields
from policies.kubernetes.input_error import InputError
from policies.preemption.policy import SchedulerRules
from tests.builders import encoded, node_json, pod_json

PROTECTED = """
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: own}
rules:
- name: default
  guards: {protect: [{name: web, labels: {matchLabels: {app: web}}}]}
"""
VIP = pod_json("vip", cpu="2", priority=10)
WEB = pod_json("web", on="node-1", cpu="1", priority=1, labels={"app": "web"})


def context(*objects: Any) -> DecisionContext:
    text = b"\n".join(map(encoded, objects or (node_json(cpu="2"), WEB, VIP)))
    manifests = parse_manifests(text, "cluster")
    return DecisionContext(
        ClusterObjects(manifests, "cluster"), SchedulerRules(), 0, unknown_fields
    )


def simulate(pod: Any = VIP, **arguments: str) -> ToolResult:
    manifest = pod if isinstance(pod, str) else json.dumps(pod)
    return simulate_result(SimulateArguments(manifest, **arguments), context())


def names(result: ToolResult) -> list[str]:
    victims = result.document["victims"]
    assert isinstance(victims, list)
    return [str(victim["name"]) for victim in victims if isinstance(victim, dict)]


def test_explain_and_simulate_agree() -> None:
    explained = explain_result(ExplainArguments("default/vip"), context())
    assert explained == simulate()
    assert explained.text == (
        'Pod "default/vip" preempts 1 pod on node "node-1": "default/web" (priority 1). '
        "Candidates: 1."
    )


@pytest.mark.parametrize(
    ("arguments", "victims"),
    [
        ({}, ["web"]),
        ({"policy": "kube-scheduler"}, ["web"]),
        ({"policy": PROTECTED}, []),
        ({"changes": json.dumps(node_json("node-2", cpu="4"))}, []),
        ({"changes": json.dumps(pod_json("web", on="node-1", cpu="1", priority=20))}, []),
        (
            {"changes": json.dumps(pod_json("own", on="node-1", cpu="1", priority=0))},
            ["web", "own"],
        ),
    ],
)
def test_a_decision_assumes_the_policy_and_the_changes(
    arguments: dict[str, str], victims: list[str]
) -> None:
    assert names(simulate(**arguments)) == victims


@pytest.mark.parametrize(
    ("pod", "arguments", "error"),
    [
        ("{", {}, "pod_manifest: neither JSON nor YAML: "),
        ("a: 1", {}, "pod_manifest[0]: has no kind; expected a Kubernetes object"),
        (
            node_json(),
            {},
            "pod_manifest: holds 0 pods and 0 workloads; expected exactly one",
        ),
        (
            pod_json("x", spec={"priorityClassName": "gold"}),
            {},
            "pod_manifest[0]: spec.priorityClassName: no PriorityClass 'gold' in the cluster",
        ),
        (VIP, {"policy": "/etc/passwd"}, "policy:1: (the document): "),
        (VIP, {"policy": "kind: PreemptionPolicy"}, "policy:1: "),
        (VIP, {"changes": "[1"}, "changes: neither JSON nor YAML: "),
    ],
)
def test_bad_input_is_one_clear_line(pod: Any, arguments: dict[str, str], error: str) -> None:
    with pytest.raises(InputError) as raised:
        simulate(pod, **arguments)
    assert raised.value.errors[0].startswith(error), raised.value


def test_a_pod_that_is_not_in_the_cluster_is_an_error() -> None:
    with pytest.raises(InputError, match=r'^no pod "default/none" in cluster$'):
        explain_result(ExplainArguments("default/none"), context())


def test_fields_and_kinds_without_effect_are_warnings() -> None:
    config_map = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    result = simulate({**VIP, "sepc": {}}, changes=json.dumps(config_map))
    assert result.document["warnings"] == [
        "pod_manifest[0]: sepc: unknown field; did you mean spec?",
        "changes[0]: a ConfigMap has no effect on the decision",
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"limit": 0}, "limit: expected int >= 1"),
        ({"limit": True}, "limit: expected int, got bool"),
        ({"limt": 1}, "(the object): object contains unknown field limt"),
        ({"before": "x"}, "before: expected str matching regex"),
    ],
)
def test_arguments_are_decoded_strictly(arguments: dict[str, object], error: str) -> None:
    with pytest.raises(InputError) as raised:
        decode_arguments(ListArguments, arguments)
    [line] = raised.value.errors
    assert line.startswith(f"arguments: {error}"), line
    assert line.endswith("; expected of since, until, namespace, class, kind, limit, before")


@pytest.mark.parametrize("kind", [ExplainArguments, ListArguments, SimulateArguments])
def test_every_argument_is_described(kind: type[Any]) -> None:
    schema = input_schema(kind)
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert all("description" in each for each in properties.values() if isinstance(each, dict))
