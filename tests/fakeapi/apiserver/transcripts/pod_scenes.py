"""Scenes of the subresources of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakeapi.apiserver.transcripts.steps import (
    BUDGETS,
    JSON_PATCH,
    NAMESPACE,
    PODS,
    STRATEGIC,
    Step,
    delete,
    get,
    patch,
    pod,
    post,
)


def evictions() -> Iterator[Step]:
    app = {"app": "e"}
    yield from _running("free", {"app": "none"})
    yield _evict("free")
    yield get(f"{PODS}/free")
    yield _evict("free")
    for name in ("e1", "e2"):
        yield from _running(name, app)
    yield from _running("e3", app, ready="False")
    yield post(PODS, pod("e4", labels=app))
    selector = {"matchLabels": app}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    yield post(BUDGETS, budget)
    yield _evict("e1")
    for status in (
        {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1},
        {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 1},
        {"conditions": [_disallowed("SyncFailed")]},
        {"conditions": [_disallowed("InsufficientPods")]},
    ):
        yield patch(f"{BUDGETS}/b/status", {"status": {"observedGeneration": 1, **status}})
        yield _evict("e1")
    yield _evict("e3")
    yield get(f"{PODS}/e3")
    yield _evict("e4")
    yield patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 2, "conditions": None}})
    yield _evict("e1", dryRun="All")
    yield _evict("e1", {"deleteOptions": {"dryRun": ["All"]}})
    yield get(f"{BUDGETS}/b")
    yield _evict("e1", {"deleteOptions": {"preconditions": {"uid": "z"}}})
    yield get(f"{BUDGETS}/b")
    yield _evict("e1", {"deleteOptions": {"gracePeriodSeconds": 7}})
    yield get(f"{BUDGETS}/b")
    yield get(f"{PODS}/e1")
    yield _evict("e2")
    yield post(BUDGETS, budget | {"metadata": {"name": "b2"}})
    yield _evict("e2")
    yield _evict("e2", {"metadata": {"name": "e9"}})
    yield _evict("e2", {"metadata": {"name": "e2", "namespace": "q"}})
    yield _evict("e2", {"apiVersion": "policy/v1beta1"})
    yield _evict("e2", {"apiVersion": "", "kind": ""})
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
    yield _evict("e2", {"deleteOptions": {unsafe: True}})
    yield _evict("none")
    yield get(f"{PODS}/e2/eviction")


def _disallowed(reason: str) -> dict[str, Any]:
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": reason}
    return {**condition, "message": "oops", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _running(name: str, labels: dict[str, str], ready: str = "True") -> Iterator[Step]:
    yield post(PODS, pod(name, {"nodeName": "n1"}, labels=labels))
    condition = {"type": "Ready", "status": ready, "lastProbeTime": None}
    status = {"phase": "Running", "conditions": [{**condition, "lastTransitionTime": None}]}
    yield patch(f"{PODS}/{name}/status", {"status": status}, STRATEGIC)


def _evict(name: str, more: dict[str, Any] | None = None, **query: str) -> Step:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return post(f"{PODS}/{name}/eviction", body | (more or {}), **query)


def bindings() -> Iterator[Step]:
    yield post(PODS, pod("b1", labels={"a": "1"}))
    yield _bind("b1", target={})
    yield _bind("b1", target={"kind": "Minion", "name": "n"})
    yield _bind("b1", target={"name": "N_"})
    yield _bind("b1", metadata={"name": "z"})
    yield _bind("b1", metadata={"name": "b1", "uid": "z"})
    yield _bind("b1", metadata={"name": "b1", "resourceVersion": "1"})
    yield _bind("b1", dryRun="All")
    yield _bind("b1", dryRun="x")
    more = {"annotations": {"k": "v"}, "labels": {"a": "2", "l": "m"}}
    yield _bind("b1", metadata={"name": "b1", **more})
    yield get(f"{PODS}/b1")
    yield _bind("b1")
    yield _bind("none")
    yield get(f"{PODS}/b1/binding")
    yield post(f"{NAMESPACE}/bindings", {"metadata": {"name": "b1"}, "target": {"name": "n1"}})
    yield get(f"{NAMESPACE}/bindings")
    yield post(PODS, pod("b2", {"schedulingGates": [{"name": "x/y"}]}))
    yield _bind("b2")
    yield post(PODS, pod("b3", finalizers=["x/y"]))
    yield delete(f"{PODS}/b3")
    yield _bind("b3")
    yield post(PODS, pod("b4"))
    yield post(f"{NAMESPACE}/bindings", {"metadata": {"name": "b4"}, "target": {"name": "n1"}})
    yield get(f"{PODS}/b4")


def _bind(
    name: str,
    target: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    **query: str,
) -> Step:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata or {"name": name},
        "target": {"kind": "Node", "name": "n1"} if target is None else target,
    }
    return post(f"{PODS}/{name}/binding", body, **query)


def ephemeral_containers() -> Iterator[Step]:
    path = f"{PODS}/p/ephemeralcontainers"
    debugger = {"name": "d", "image": "busybox"}
    yield post(PODS, pod(spec={"nodeName": "n1"}))
    yield post(path, {})
    spec = {"ephemeralContainers": [debugger]}
    yield patch(path, {"spec": spec, "metadata": {"labels": {"x": "y"}}}, STRATEGIC)
    for name in ("d2", "c"):
        container = {**debugger, "name": name}
        added = {"op": "add", "path": "/spec/ephemeralContainers/-", "value": container}
        yield patch(path, [added], JSON_PATCH)
    yield patch(path, {"spec": {"ephemeralContainers": []}})
    yield patch(path, {"spec": {"nodeName": "n2"}})
    yield get(path)
    yield post(PODS, pod("r", {"containers": [_sized("1")]}))
    resized = {"spec": {"containers": [_sized("2")]}, "metadata": {"labels": {"q": "r"}}}
    yield patch(f"{PODS}/r/resize", resized, STRATEGIC)


def _sized(cpu: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
