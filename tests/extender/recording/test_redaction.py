"""Sensitive values are removed, and the rest is a valid object."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from extender.recording.redaction import redact

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

CASES: dict[str, tuple[Any, Any]] = {
    "values of the environment, not what they refer to": (
        {"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {}}}]},
        {"env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"secretKeyRef": {}}}]},
    ),
    "arguments": ({"image": "i", "args": ["--token=x"]}, {"image": "i"}),
    "all of a command but the program": (
        {"exec": {"command": ["sh", "-c", "login x"]}},
        {"exec": {"command": ["sh"]}},
    ),
    "values of headers": (
        {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "x"}]}},
        {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": ""}]}},
    ),
    "what was last applied, and annotations if that was all": (
        {"metadata": {"name": "a", "annotations": {APPLIED: "{}"}}},
        {"metadata": {"name": "a"}},
    ),
    "no other annotation": (
        {"metadata": {"annotations": {APPLIED: "{}", "b": "c"}}},
        {"metadata": {"annotations": {"b": "c"}}},
    ),
    "a Secret's data": (
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": "eA=="}, "stringData": {"l": "x"}},
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": ""}},
    ),
    "what is deep in a patch": (
        {"spec": {"subsets": [{"patch": {"spec": {"containers": [{"args": ["x"]}]}}}]}},
        {"spec": {"subsets": [{"patch": {"spec": {"containers": [{}]}}}]}},
    ),
    "nothing of a schema whose fields bear these names": (
        {"schema": {"openAPIV3Schema": {"properties": {"env": {"type": "array"}, "args": {}}}}},
        {"schema": {"openAPIV3Schema": {"properties": {"env": {"type": "array"}, "args": {}}}}},
    ),
    "an environment that is a map": (
        {"env": {"A": "x", "PIN": 1234, "ON": True, "B": {"valueFrom": {"secretKeyRef": {}}}}},
        {"env": {"A": "", "PIN": 0, "ON": True, "B": {"valueFrom": {"secretKeyRef": {}}}}},
    ),
    "an environment as processes have it": (
        {"env": ["A=x=y", "B=", "C"]},
        {"env": ["A=", "B=", "C"]},
    ),
    "arguments and commands that are texts": (
        {"args": "--token=x", "command": "login --token=x"},
        {"args": "", "command": "login"},
    ),
    "arguments that have names": (
        {"args": {"token": "x", "more": {"token": "y", "list": ["z"]}, "n": 2}},
        {"args": {"token": "", "more": {"token": "", "list": []}, "n": 0}},
    ),
    "what annotations hold as JSON": (
        {
            "metadata": {
                "annotations": {
                    "a": '{"kind":"Secret","apiVersion":"v1","data":{"k":"eA=="}}',
                    "b": '[{"spec":{"containers":[{"args":["x"],"env":[{"value":"x"}]}]}}]',
                    "c": '{ "name": "w" }',
                    "d": "{no JSON",
                }
            }
        },
        {
            "metadata": {
                "annotations": {
                    "a": '{"kind":"Secret","apiVersion":"v1","data":{"k":""}}',
                    "b": '[{"spec":{"containers":[{"env":[{"value":""}]}]}}]',
                    "c": '{ "name": "w" }',
                    "d": "{no JSON",
                }
            }
        },
    ),
    "init and ephemeral containers, hooks and probes": (
        {
            "initContainers": [{"env": [{"name": "A", "value": "x"}]}],
            "ephemeralContainers": [
                {
                    "env": [{"name": "A", "value": "x"}],
                    "lifecycle": {"preStop": {"exec": {"command": ["a", "x"]}}},
                    "startupProbe": {"exec": {"command": ["a", "x"]}},
                }
            ],
        },
        {
            "initContainers": [{"env": [{"name": "A", "value": ""}]}],
            "ephemeralContainers": [
                {
                    "env": [{"name": "A", "value": ""}],
                    "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
                    "startupProbe": {"exec": {"command": ["a"]}},
                }
            ],
        },
    ),
    "nothing of who has written which field: only names are there": (
        {"managedFields": [{"fieldsV1": {"f:env": {'k:{"name":"A"}': {"f:value": {}}}}}]},
        {"managedFields": [{"fieldsV1": {"f:env": {'k:{"name":"A"}': {"f:value": {}}}}}]},
    ),
    "nothing of a ConfigMap": (
        {"kind": "ConfigMap", "data": {"env": "A=x", "args": "y"}},
        {"kind": "ConfigMap", "data": {"env": "A=x", "args": "y"}},
    ),
    "nothing where there is nothing": (
        {"metadata": {"annotations": None}, "env": None, "args": None},
        {"metadata": {"annotations": None}, "env": None, "args": None},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_redaction_removes(name: str) -> None:
    given, left = deepcopy(CASES[name])
    assert redact(given) == left
    assert redact(given) == left  # what is left out once is left out for good


SECRET = '{"env": [{"name": "A", "value": "hidden"}]}'


@pytest.mark.parametrize("depth", [300, 1000])
def test_annotations_that_are_nested_too_deeply_are_removed(depth: int) -> None:
    """Use a depth that cannot be encoded, and one that cannot be traversed."""
    text = '{"a":' * depth + SECRET + "}" * depth
    given = {"metadata": {"annotations": {"deep": text, "b": "c"}}}
    assert redact(given) == {"metadata": {"annotations": {"deep": "", "b": "c"}}}


TEMPLATES = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "ControllerRevision": ("data", "spec", "template", "spec"),
    "CloneSet": ("spec", "template", "spec"),
}


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("containers", ["containers", "initContainers", "ephemeralContainers"])
def test_no_workload_reveals_a_secret(kind: str, containers: str) -> None:
    pod: dict[str, Any] = {
        containers: [{"env": [{"name": "A", "value": "hidden"}], "args": ["hidden"]}]
    }
    document = pod
    for step in reversed(TEMPLATES[kind]):
        document = {step: document}
    document["kind"] = kind
    document["metadata"] = {"annotations": {APPLIED: "hidden"}}
    assert "hidden" not in str(redact(document))
