"""Valid files of every command, as documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.builders import pod_json

NODE: Final = "node-1"

CONFIGURATION: Final[Mapping[str, Any]] = {
    "host": "127.0.0.1",
    "port": 8888,
    "upstream": "1.36",
    "pathPrefixes": ["/scheduler"],
    "search": "cluster",
    "events": True,
    "policy": "kube-scheduler",
    "promiseSeconds": 30,
    "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}],
    "schedulerNames": ["default-scheduler"],
    "limits": {"connections": 50, "headerKiB": 32, "idleSeconds": 60},
    "deadlineMilliseconds": {"filter": 100, "preempt": 200},
    "degraded": {"late": {"filter": "echo"}, "stale": {"preempt": "error"}},
    "staleSeconds": 120,
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "ignoredResources": ["example.com/a"],
                "ignoredResourceGroups": ["example.org"],
            },
        },
        {
            "name": "PodTopologySpread",
            "args": {
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ],
                "defaultingType": "List",
            },
        },
    ],
    "featureGates": {"DynamicResourceAllocation": True},
}
POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "reprieve.dev/v1alpha1",
    "kind": "PreemptionPolicy",
    "metadata": {"name": "mine"},
    "rules": [
        {
            "name": "interactive",
            "preemptors": {"namespaces": ["team-a"], "owners": ["Deployment", "Job"]},
            "guards": {
                "pdb": "strict",
                "protect": [
                    {
                        "name": "db",
                        "priorityClasses": ["high"],
                        "labels": {
                            "matchLabels": {"role": "db"},
                            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                        },
                    }
                ],
                "minRuntime": [{"for": "30m", "owners": ["Job"]}],
                "priorityGap": 100,
                "maxVictims": 5,
                "maxLostWork": {"amount": 1.5, "per": "hours"},
                "preemptionDelay": "30s",
            },
            "lostWork": {
                "weights": {"nvidia.com/gpu": 1, "cpu": 0.1},
                "checkpoint": "example.com/checkpoint-time",
            },
            "victims": ["highest priority", "earliest start"],
            "candidates": ["fewest PDB violations", "least lost work", "lowest deletion cost"],
        },
        {"name": "others", "candidates": ["fewest victims"]},
    ],
}
PLAN: Final[Mapping[str, Any]] = {
    "seed": 7,
    "faults": [
        {
            "fault": 429,
            "retryAfter": 2,
            "match": {"verbs": "create", "resources": "pods", "clients": "kubectl*"},
            "times": 3,
        },
        {"fault": "silence", "afterFrames": 10, "match": {"verbs": "watch"}, "from": 60},
        {"fault": "latency", "least": 0.01, "most": 0.5, "probability": 0.2},
    ],
}
SCRIPT: Final[Mapping[str, Any]] = {
    "register": [{"name": "node-{:03}", "count": 3, "capacity": {"cpu": "8", "memory": "32Gi"}}],
    "pods": [
        {
            "match": {"labels": {"app": "web"}, "namespaces": ["shop"]},
            "start": "2s",
            "stages": [{"memory": "50Mi"}, {"after": "60s", "memory": "300Mi", "over": "30s"}],
        },
        {"match": {"names": ["job-*"]}, "stages": [{"after": "20s", "exit": 0}]},
    ],
    "nodes": [{"match": {"names": ["node-007"]}, "stages": [{"after": "5m", "silent": True}]}],
}
SCHEDULER: Final[Mapping[str, Any]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {}}],
    "extenders": [
        {
            "urlPrefix": "http://127.0.0.1:8888",
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "nodeCacheCapable": True,
            "httpTimeout": "5s",
        }
    ],
}
SUMMARY: Final[Mapping[str, Any]] = {
    "node": {
        "nodeName": NODE,
        "memory": {"time": "2026-01-01T00:00:00Z", "availableBytes": 100, "workingSetBytes": 900},
        "fs": {"time": "2026-01-01T00:00:00Z", "availableBytes": 5, "capacityBytes": 100},
    },
    "pods": [{"podRef": {"name": "a", "namespace": "default", "uid": "a"}, "containers": []}],
}
KUBELET: Final[Mapping[str, Any]] = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "evictionHard": {"memory.available": "500Mi", "nodefs.available": "10%"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
}
SCENARIO: Final[Mapping[str, Any]] = {
    "config": {
        "thresholds": [
            {"signal": "memory.available", "value": {"quantity": "1Gi"}, "gracePeriodSeconds": 0}
        ],
        "pressureTransitionPeriodSeconds": 300,
    },
    "pods": [pod_json("a", on=NODE, cpu="1")],
    "steps": [{"advanceSeconds": 0, "summary": SUMMARY}],
}
