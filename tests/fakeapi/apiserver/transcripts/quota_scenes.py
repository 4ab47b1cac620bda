"""Scenes of ResourceQuotas, LimitRanges and the default storage class.

No controller runs, so the scenes write the status of quotas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakeapi.apiserver.transcripts.steps import (
    CLAIMS,
    MAPS,
    PODS,
    QUOTAS,
    RANGES,
    SERVICES,
    STORAGE_CLASSES,
    STRATEGIC,
    Step,
    config_map,
    delete,
    get,
    patch,
    pod,
    post,
    put,
)

Amounts = dict[str, str]


def quotas() -> Iterator[Step]:
    yield from _counted("pods", {"pods": "3", "requests.cpu": "1", "limits.memory": "2Gi"})
    yield post(PODS, pod("a"))
    yield post(PODS, _pod("a", {"cpu": "600m"}, {"memory": "1Gi"}), dryRun="All")
    yield post(PODS, _pod("a", {"cpu": "600m"}, {"memory": "1Gi"}))
    yield get(f"{QUOTAS}/pods")
    yield post(PODS, _pod("b", {"cpu": "500m"}, {"memory": "1.5Gi"}))
    yield post(PODS, _pod("b", {"cpu": "0.3"}, {"memory": "1024Mi"}))
    yield get(f"{QUOTAS}/pods")
    yield delete(f"{QUOTAS}/pods")
    scopes = {"scopes": ["Terminating"]}
    yield from _counted("scoped", {"pods": "1"}, **scopes)
    yield patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 60}})
    yield get(f"{QUOTAS}/scoped")
    yield patch(f"{PODS}/b", {"spec": {"activeDeadlineSeconds": 60}})
    yield from _counted("objects", {"count/configmaps": "1", "configmaps": "5", "services": "1"})
    yield post(MAPS, config_map("a"))
    yield post(MAPS, config_map("a"))
    yield post(MAPS, config_map("b"))
    yield from _counted("ports", {"services.nodeports": "1", "services.loadbalancers": "0"})
    ports = [{"port": 1, "name": "a"}]
    spec = {"clusterIP": "10.96.0.77", "ports": ports}
    yield post(SERVICES, {"metadata": {"name": "s"}, "spec": spec})
    yield patch(f"{SERVICES}/s", {"spec": {"type": "LoadBalancer"}})
    two = {"type": "NodePort", "ports": [*ports, {"port": 2, "name": "b"}]}
    yield patch(f"{SERVICES}/s", {"spec": two})
    of_class = "gold.storageclass.storage.k8s.io/requests.storage"
    yield from _counted("storage", {of_class: "3Gi", "persistentvolumeclaims": "5"})
    yield post(CLAIMS, _claim("a", "2Gi", storageClassName="gold"))
    yield post(CLAIMS, _claim("b", "1500Mi", storageClassName="gold"))
    yield get(f"{QUOTAS}/storage")
    yield put(f"{QUOTAS}/storage/status", _quota("storage", {"pods": "1"}, used={}))
    yield post(PODS, pod("c"))


def quota_rules() -> Iterator[Step]:
    exclusive = ["BestEffort", "NotBestEffort"]
    for hard, spec in (
        ({"pets": "1"}, {}),
        ({"cpu": "-1"}, {}),
        ({"pods": "1500m"}, {}),
        ({"requests.example.com/gpu": "500m"}, {}),
        ({"pods": "1"}, {"scopes": exclusive}),
        ({"cpu": "1"}, {"scopes": ["BestEffort"]}),
        ({"pods": "1"}, {"scopes": ["Tall"]}),
        ({"pods": "1"}, _selector("PriorityClass", "In")),
        ({"services": "1"}, _selector("PriorityClass", "Exists")),
        ({"pods": "1"}, _selector("PriorityClass", "Exists", "a")),
        ({"pods": "1"}, _selector("PriorityClass", "Like", "a")),
        ({"pods": "1"}, _selector("Terminating", "In", "a")),
    ):
        yield post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    scoped = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": ["Terminating"]}}
    yield post(QUOTAS, scoped)
    yield patch(f"{QUOTAS}/q", {"spec": {"scopes": ["NotTerminating"]}})
    yield patch(f"{QUOTAS}/q", {"spec": {"scopes": None}})
    yield patch(f"{QUOTAS}/q/status", {"status": {"used": {"pods": "-1"}}})
    for limit in (
        {"type": "Node", "min": {"cpu": "1"}},
        {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
        {"type": "Container", "max": {"storage": "1Gi"}},
        {"type": "Container", "max": {"a.b/c/d": "1"}},
        {"type": "Container", "defaultRequest": {"cpu": "3"}, "max": {"cpu": "2"}},
        {"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "2"}},
        {"type": "Container", "min": {"cpu": "3"}, "default": {"cpu": "2"}},
        {"type": "Pod", "default": {"cpu": "1"}},
        {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
        {
            "type": "Pod",
            "min": {"cpu": "1"},
            "max": {"cpu": "2"},
            "maxLimitRequestRatio": {"cpu": "3"},
        },
        {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
    ):
        yield post(RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    twice = [{"type": "Pod", "min": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "2"}}]
    yield post(RANGES, {"metadata": {"name": "l"}, "spec": {"limits": twice}})


def limit_ranges() -> Iterator[Step]:
    default = {"default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}
    yield _range("defaults", "Container", **default)
    yield post(PODS, pod("a", {"initContainers": [{"name": "i", "image": "i"}]}))
    yield post(PODS, _pod("b", {"cpu": "500m"}, {}))
    yield delete(f"{RANGES}/defaults")
    yield _range("container", "Container", min={"cpu": "500m"}, max={"cpu": "2"})
    yield post(PODS, _pod("c", {"cpu": "300m"}, {"cpu": "1"}))
    yield post(PODS, _pod("c", {"cpu": "1"}, {"cpu": "2500m"}))
    yield patch(f"{PODS}/b", {"metadata": {"labels": {"a": "b"}}})
    resized = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}
    yield patch(f"{PODS}/b/resize", {"spec": {"containers": [resized]}}, STRATEGIC)
    yield delete(f"{RANGES}/container")
    yield _range("ratio", "Container", maxLimitRequestRatio={"cpu": "1500m"})
    yield post(PODS, _pod("c", {"cpu": "300m"}, {"cpu": "1"}))
    yield post(PODS, _pod("c", {"cpu": "0"}, {"cpu": "1"}))
    yield post(PODS, _pod("c", {"cpu": "300m"}, {}))
    yield delete(f"{RANGES}/ratio")
    yield _range("pod", "Pod", max={"memory": "1Gi"})
    yield post(PODS, _pod("c", {"memory": "512Mi"}, {}))
    yield post(PODS, _pod("c", {}, {"memory": "1.5Gi"}))
    yield delete(f"{RANGES}/pod")
    of_claims = {"min": {"storage": "2Gi"}, "max": {"storage": "4Gi"}}
    yield _range("claims", "PersistentVolumeClaim", **of_claims)
    for size in ("1Gi", "5Gi", "3Gi"):
        yield post(CLAIMS, _claim("a", size))


def storage_classes() -> Iterator[Step]:
    yield post(CLAIMS, _claim("before", "1Gi"))
    annotation = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name, marks in (("scene-b", annotation), ("scene-a", annotation), ("scene-c", {})):
        metadata = {"name": name, "annotations": marks}
        yield post(STORAGE_CLASSES, {"metadata": metadata, "provisioner": "example.com/disk"})
    yield post(CLAIMS, _claim("none", "1Gi", storageClassName=""))
    yield post(CLAIMS, _claim("own", "1Gi", storageClassName="scene-c"))
    yield delete(f"{STORAGE_CLASSES}/scene-a")
    yield post(CLAIMS, _claim("default", "1Gi"))
    for name in ("scene-b", "scene-c"):
        yield delete(f"{STORAGE_CLASSES}/{name}")


def _counted(name: str, hard: Amounts, **spec: Any) -> Iterator[Step]:
    """Create a quota, and write its status as its controller would."""
    quota = _quota(name, hard, used=dict.fromkeys(hard, "0"), **spec)
    yield post(QUOTAS, quota)
    yield put(f"{QUOTAS}/{name}/status", quota)


def _quota(name: str, hard: Amounts, used: Amounts, **spec: Any) -> dict[str, Any]:
    status = {"hard": hard, "used": used}
    return {"metadata": {"name": name}, "spec": {"hard": hard, **spec}, "status": status}


def _selector(scope: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"scopeName": scope, "operator": operator, "values": [*values] or None}
    return {"scopeSelector": {"matchExpressions": [expression]}}


def _pod(name: str, requests: Amounts, limits: Amounts) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return pod(name, {"containers": [{"name": "c", "image": "i", "resources": resources}]})


def _claim(name: str, size: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"storage": size}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def _range(name: str, kind: str, **rules: Amounts) -> Step:
    limits = [{"type": kind, **rules}]
    return post(RANGES, {"metadata": {"name": name}, "spec": {"limits": limits}})
