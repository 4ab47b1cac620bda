"""Requests whose answers were recorded from a kube-apiserver, scene by scene.

A scene runs in the namespace ``scene``, which is new each time. The answers are in
``tests/transcripts/api/SCENE.json``.
``python -m tests.fakeapi.apiserver.transcripts.record URL TOKEN``
asks a real server again (1.37.0 with AlwaysAllow and without controllers, last time).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakeapi.apiserver.transcripts.pod_scenes import bindings, ephemeral_containers, evictions
from tests.fakeapi.apiserver.transcripts.policy_scenes import (
    mutating_policies,
    mutating_policy_errors,
    mutations,
)
from tests.fakeapi.apiserver.transcripts.quota_scenes import (
    limit_ranges,
    quota_rules,
    quotas,
    storage_classes,
)
from tests.fakeapi.apiserver.transcripts.steps import (
    ACCOUNTS,
    CLASSES,
    DEPLOYMENTS,
    IDENTITY,
    JSON_PATCH,
    MAPS,
    NAMESPACE,
    PODS,
    REVIEWS,
    STRATEGIC,
    TEMPLATE,
    Step,
    config_map,
    delete,
    get,
    patch,
    pod,
    post,
    put,
)


def dry_runs() -> Iterator[Step]:
    yield post(PODS, pod(), dryRun="All")
    yield get(f"{PODS}/p")
    for method in (post, put, patch, delete):
        yield method(f"{PODS}/p" if method is not post else PODS, pod(), dryRun="Some")
    yield delete(f"{PODS}/p", {"dryRun": ["Some"]})
    yield post(MAPS, config_map())
    yield post(MAPS, config_map(), dryRun="All")
    yield put(f"{MAPS}/a", config_map(), dryRun="All")
    yield patch(f"{MAPS}/a", {"data": {"x": "3"}}, dryRun="All")
    yield patch(f"{MAPS}/a", {"metadata": {"resourceVersion": "1"}}, dryRun="All")
    yield delete(f"{MAPS}/a", dryRun="All")
    yield delete(f"{MAPS}/a", {"dryRun": ["All"], "propagationPolicy": "Foreground"})
    yield delete(MAPS, dryRun="All", labelSelector="x=y")
    yield delete(MAPS, dryRun="All", fieldSelector="metadata.name=a")
    yield get(f"{MAPS}/a")
    yield post(PODS, pod(spec={"nodeName": "n1"}))
    yield delete(f"{PODS}/p", dryRun="All")
    yield delete(f"{PODS}/p", dryRun="All", gracePeriodSeconds="0")
    yield get(f"{PODS}/p")
    yield delete(NAMESPACE, dryRun="All")
    yield get(NAMESPACE)


def deletions() -> Iterator[Step]:
    yield post(MAPS, config_map())
    yield delete(f"{MAPS}/a", {"orphanDependents": True, "propagationPolicy": "Orphan"})
    yield delete(f"{MAPS}/a", {"propagationPolicy": "Sometimes"})
    yield delete(f"{MAPS}/a", propagationPolicy="Sometimes")
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
    yield delete(f"{MAPS}/a", {unsafe: True})
    yield delete(f"{MAPS}/a", {"preconditions": {"uid": "z"}})
    yield delete(f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    yield delete(NAMESPACE, {"preconditions": {"uid": "z"}})
    yield delete(f"{MAPS}/a", {"gracePeriodSeconds": "x"})
    yield delete(f"{MAPS}/a", gracePeriodSeconds="x")
    yield delete(f"{MAPS}/a", {"propagationPolicy": "Orphan"})
    yield delete(f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    yield delete(f"{MAPS}/a", {"propagationPolicy": "Background"})
    yield post(MAPS, config_map())
    yield delete(f"{MAPS}/a", {"orphanDependents": False})
    yield post(MAPS, config_map(finalizers=["x/y"]))
    yield delete(f"{MAPS}/a", {"orphanDependents": False})
    yield delete(f"{MAPS}/a", {"orphanDependents": True})
    yield post(MAPS, config_map())
    yield patch(f"{MAPS}/a", {"metadata": {"finalizers": ["x/y", "z/w"]}})
    yield patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    yield get(f"{MAPS}/a")
    yield post(DEPLOYMENTS, _deployment() | {"metadata": {"name": "w", "finalizers": ["x/y"]}})
    yield delete(f"{DEPLOYMENTS}/w", {"preconditions": {"uid": "z"}})
    yield delete(f"{DEPLOYMENTS}/w")
    yield delete("/api/v1/namespaces/default")
    yield delete(f"{CLASSES}/system-node-critical")
    for name in ("c0", "c1", "c2"):
        yield post(MAPS, {"metadata": {"name": name}})
    yield delete(MAPS, {unsafe: True})
    yield delete(MAPS, fieldSelector="metadata.name=c1")
    yield delete(MAPS, {"propagationPolicy": "Foreground"})
    yield get(MAPS)


def graceful_deletions() -> Iterator[Step]:
    yield post(PODS, pod())
    yield delete(f"{PODS}/p")
    yield post(PODS, pod(spec={"nodeName": "n1"}))
    yield delete(f"{PODS}/p", {"propagationPolicy": "Foreground"})
    yield delete(f"{PODS}/p", {"propagationPolicy": "Orphan"})
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": 60})
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    yield patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    yield delete(f"{PODS}/p")
    yield post(PODS, pod(spec={"nodeName": "n1"}))
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": -5})
    yield delete(f"{PODS}/p", {"gracePeriodSeconds": 0})


def namespaces() -> Iterator[Step]:
    yield put(f"{NAMESPACE}/finalize", _finalized("kubernetes", "x/y"))
    yield put(f"{NAMESPACE}/finalize", _finalized("zz"))
    yield get(f"{NAMESPACE}/finalize")
    yield patch(f"{NAMESPACE}/finalize", {"spec": {}})
    yield delete(NAMESPACE, {"propagationPolicy": "Foreground"})
    yield post(MAPS, config_map())
    yield post(MAPS, {"metadata": {"generateName": "g-"}})
    yield delete(NAMESPACE, {"propagationPolicy": "Orphan"})
    yield put(f"{NAMESPACE}/finalize", _finalized())
    yield get(NAMESPACE)


def _finalized(*names: str) -> dict[str, Any]:
    return {"metadata": {"name": "scene"}, "spec": {"finalizers": list(names)}}


def _deployment() -> dict[str, Any]:
    expressions = [
        {"key": "z", "operator": "NotIn", "values": ["b", "a"]},
        {"key": "app", "operator": "Exists"},
    ]
    selector = {"matchLabels": {"app": "w"}, "matchExpressions": expressions}
    spec = {"replicas": 2, "selector": selector, "template": TEMPLATE}
    return {"metadata": {"name": "w"}, "spec": spec}


def scales() -> Iterator[Step]:
    scale = f"{DEPLOYMENTS}/w/scale"
    yield post(DEPLOYMENTS, _deployment())
    yield get(scale)
    yield patch(scale, {"spec": {"replicas": 3}})
    yield patch(scale, {"spec": {"replicas": 3}}, STRATEGIC)
    yield patch(scale, [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH)
    yield patch(scale, {"spec": {"replicas": -1}})
    yield patch(scale, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}})
    yield put(scale, {"metadata": {"name": "w"}, "spec": {"replicas": 6}})
    yield put(scale, {"metadata": {"name": "x"}, "spec": {"replicas": 6}})
    yield put(scale, {"spec": {"replicas": 6}})
    yield put(scale, {"metadata": {"name": "w"}}, dryRun="All")
    yield patch(scale, {"spec": {"replicas": 30}}, dryRun="All")
    for step in (get(scale), patch(scale, {"spec": {"replicas": 3}})):
        yield Step(step.method, f"{DEPLOYMENTS}/none/scale", step.body, step.content_type)
    yield delete(scale)
    yield post(scale, {})
    yield get(f"{DEPLOYMENTS}/w")
    controllers = f"{NAMESPACE}/replicationcontrollers"
    template = {**TEMPLATE, "metadata": {"labels": {"app": "w", "b": "c"}}}
    spec = {"replicas": 0, "selector": {"app": "w", "b": "c"}, "template": template}
    yield post(controllers, {"metadata": {"name": "rc"}, "spec": spec})
    yield get(f"{controllers}/rc/scale")


def tokens() -> Iterator[Step]:
    path = f"{ACCOUNTS}/robot/token"
    yield post(ACCOUNTS, {"metadata": {"name": "robot"}})
    yield post(path, {"spec": {"audiences": ["a"]}})
    yield post(path, {"spec": {"expirationSeconds": 600, "audiences": ["a"]}}, dryRun="All")
    yield post(path, {"spec": {"expirationSeconds": 5}})
    yield post(path, {"spec": {"expirationSeconds": 2**33}})
    yield post(PODS, pod())
    for kind, version, name in (
        ("Pod", "v1", "p"),
        ("Pod", "v1", "none"),
        ("Job", "batch/v1", "none"),
    ):
        bound = {"kind": kind, "apiVersion": version, "name": name}
        yield post(path, {"spec": {"boundObjectRef": bound}})
    yield post(f"{ACCOUNTS}/none/token", {"spec": {}})
    yield post(path, {"metadata": {"name": "z"}, "spec": {}})
    yield get(path)


def priorities() -> Iterator[Step]:
    yield get(f"{CLASSES}/system-node-critical")
    yield post(PODS, pod(spec={"priorityClassName": "none"}))
    generated = pod(spec={"priorityClassName": "none"}) | {"metadata": {"generateName": "x-"}}
    yield post(PODS, generated)
    yield post(PODS, pod(spec={"priority": 5}))
    yield post(PODS, pod("zero", {"priority": 0}))
    yield post(PODS, pod(spec={"preemptionPolicy": "Never"}))
    yield post(PODS, pod("critical", {"priorityClassName": "system-node-critical"}))
    yield post(CLASSES, {"metadata": {"name": "scene-high"}, "value": 2_000_000_000})
    yield post(CLASSES, {"metadata": {"name": "system-x"}, "value": 5})
    default = {"value": 7, "globalDefault": True, "preemptionPolicy": "Never"}
    yield post(CLASSES, {"metadata": {"name": "scene-default"}, **default})
    yield post(CLASSES, {"metadata": {"name": "scene-second"}, "value": 8, "globalDefault": True})
    yield patch(f"{CLASSES}/system-node-critical", {"globalDefault": True})
    yield post(PODS, pod("default"))
    yield patch(f"{CLASSES}/scene-default", {"value": 9})
    yield delete(f"{CLASSES}/scene-default")


def names() -> Iterator[Step]:
    yield post(MAPS, {"metadata": {"generateName": "x-"}})
    yield post(MAPS, {"metadata": {"generateName": "y" * 80}})
    yield post(MAPS, {"metadata": {"name": "a", "resourceVersion": "5"}})
    yield post(MAPS, {"metadata": {"name": "a", "resourceVersion": "0"}})
    yield post(MAPS, {"metadata": {"name": "b", "resourceVersion": "v1"}})
    yield put(f"{MAPS}/none", {"metadata": {"name": "none", "uid": "q"}})
    yield put(f"{MAPS}/a", {"metadata": {"name": "a", "uid": "q"}})
    yield patch(f"{MAPS}/a", {"metadata": {"uid": "q"}})
    yield get(f"{MAPS}/a/status")


def reviews() -> Iterator[Step]:
    attributes = {"verb": "get", "resource": "pods"}
    own, others = f"{REVIEWS}/selfsubjectaccessreviews", f"{REVIEWS}/subjectaccessreviews"
    local = f"{REVIEWS}/namespaces/scene/localsubjectaccessreviews"
    yield post(own, {"spec": {"resourceAttributes": attributes}})
    yield post(own, {"spec": {"resourceAttributes": attributes}}, dryRun="All")
    yield post(own, {"spec": {}})
    path = {"verb": "get", "path": "/x"}
    yield post(own, {"spec": {"resourceAttributes": attributes, "nonResourceAttributes": path}})
    yield post(own, {"spec": {"nonResourceAttributes": path}})
    yield post(others, {"spec": {"resourceAttributes": attributes, "user": "x"}})
    yield post(others, {"spec": {"resourceAttributes": attributes}})
    inside = {**attributes, "namespace": "scene"}
    yield post(local, {"spec": {"resourceAttributes": inside, "user": "x"}})
    yield post(local, {"spec": {"resourceAttributes": attributes, "user": "x"}})
    review = {"spec": {"resourceAttributes": inside, "user": "x"}}
    yield post(local, {"metadata": {"namespace": "z"}, **review})
    yield post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    yield post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {}})
    yield post(f"{IDENTITY}/tokenreviews", {"spec": {"token": "nobody's"}})
    yield post(f"{IDENTITY}/tokenreviews", {"spec": {}})
    yield get(f"{IDENTITY}/selfsubjectreviews")
    yield get(f"{IDENTITY}/selfsubjectreviews/x")


def impersonations() -> Iterator[Step]:
    for headers in (
        {"User": "jane", "Group": "devs", "Extra-Scopes": "a"},
        {"User": "system:serviceaccount:t4:bob", "Uid": "u1"},
        {"User": "system:serviceaccount:t4:bob", "Group": "devs"},
        {"User": "system:anonymous"},
        {"User": "jane", "Group": "system:unauthenticated"},
        {"Group": "devs"},
        {"Uid": "u"},
        {"Extra-Scopes": "a"},
    ):
        sent = tuple((f"Impersonate-{name}", value) for name, value in headers.items())
        yield Step("POST", f"{IDENTITY}/selfsubjectreviews", {}, headers=sent)


SCENES = {
    "bindings": bindings,
    "deletions": deletions,
    "dry-runs": dry_runs,
    "ephemeral-containers": ephemeral_containers,
    "evictions": evictions,
    "graceful-deletions": graceful_deletions,
    "impersonations": impersonations,
    "limit-ranges": limit_ranges,
    "mutating-policies": mutating_policies,
    "mutating-policy-errors": mutating_policy_errors,
    "mutations": mutations,
    "names": names,
    "namespaces": namespaces,
    "priorities": priorities,
    "quota-rules": quota_rules,
    "quotas": quotas,
    "reviews": reviews,
    "scales": scales,
    "storage-classes": storage_classes,
    "tokens": tokens,
}
