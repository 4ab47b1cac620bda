"""What objects charge to quotas, and the scopes that they are in."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.quota.evaluators import counted_resources, evaluator_of
from fakeapi.quota.resource_list import printed
from fakeapi.quota.scopes import ScopeRequirement

SECOND = "1970-01-01T00:00:10Z"


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def sidecar(**resources: Any) -> dict[str, Any]:
    return {**container(**resources), "restartPolicy": "Always"}


def pod(*containers: dict[str, Any], status: Any = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": containers and [*containers], **spec}} | (
        {"status": status} if status else {}
    )


CPU = {"cpu": "100m"}
SIZED = pod(container(requests=CPU, limits={"cpu": "1", "memory": "1Gi"}))
ONE_POD = "count/pods=1,pods=1"


@pytest.mark.parametrize(
    ("item", "charge"),
    [
        pytest.param(pod(container()), ONE_POD, id="a pod without requests"),
        pytest.param(
            SIZED,
            "count/pods=1,cpu=100m,limits.cpu=1,limits.memory=1Gi,pods=1,requests.cpu=100m",
            id="requests and limits",
        ),
        pytest.param(
            pod(container(requests=CPU), container(requests=CPU)),
            "count/pods=1,cpu=200m,pods=1,requests.cpu=200m",
            id="containers run together",
        ),
        pytest.param(
            pod(
                container(requests=CPU),
                initContainers=[sidecar(requests=CPU), container(requests={"cpu": "250m"})],
            ),
            "count/pods=1,cpu=350m,pods=1,requests.cpu=350m",
            id="init containers run beside sidecars",
        ),
        pytest.param(
            pod(container(requests=CPU), overhead={"cpu": "50m"}),
            "count/pods=1,cpu=150m,pods=1,requests.cpu=150m",
            id="overhead is added",
        ),
        pytest.param(
            pod(container(requests=CPU), resources={"requests": {"cpu": "3"}}),
            "count/pods=1,cpu=3,pods=1,requests.cpu=3",
            id="the pod as a whole replaces its containers",
        ),
        pytest.param(
            pod(
                container(requests=CPU),
                status={"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]},
            ),
            "count/pods=1,cpu=2,pods=1,requests.cpu=2",
            id="what is still allocated counts",
        ),
        pytest.param(
            pod(container(requests={"example.com/gpu": "2", "hugepages-2Mi": "4Mi"})),
            f"count/pods=1,hugepages-2Mi=4Mi,{ONE_POD[13:]},requests.example.com/gpu=2,"
            "requests.hugepages-2Mi=4Mi",
            id="extended resources and huge pages",
        ),
        pytest.param({**SIZED, "status": {"phase": "Failed"}}, "count/pods=1", id="finished"),
        pytest.param(
            {
                **SIZED,
                "metadata": {"deletionTimestamp": SECOND, "deletionGracePeriodSeconds": 30},
            },
            "count/pods=1",
            id="terminating for longer than the grace period",
        ),
        pytest.param(pod(container(requests={"cpu": "x"})), ONE_POD, id="no quantity"),
    ],
)
def test_pods_charge_what_they_use(item: dict[str, Any], charge: str) -> None:
    evaluator = evaluator_of("pods")
    assert evaluator is not None
    assert printed(evaluator.usage(item, 41)) == charge


def service(**spec: Any) -> dict[str, Any]:
    return {"spec": {"ports": [{"port": 1}, {"port": 2, "nodePort": 30_000}], **spec}}


def claim(mode: str = "", number: int = 0) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "allocationMode": mode, "count": number}


STORAGE = {"resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    ("resource", "item", "charge"),
    [
        ("services", service(), "services.loadbalancers=0,services.nodeports=0"),
        ("services", service(type="NodePort"), "services.loadbalancers=0,services.nodeports=2"),
        ("services", service(type="LoadBalancer"), "services.loadbalancers=1,services.nodeports=2"),
        (
            "services",
            service(type="LoadBalancer", allocateLoadBalancerNodePorts=False),
            "services.loadbalancers=1,services.nodeports=1",
        ),
        (
            "persistentvolumeclaims",
            {"spec": {**STORAGE, "storageClassName": "gold"}},
            (
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
                "gold.storageclass.storage.k8s.io/requests.storage=1Gi,"
                "persistentvolumeclaims=1,requests.storage=1Gi"
            ),
        ),
        (
            "persistentvolumeclaims",
            {"spec": STORAGE, "status": {"allocatedResources": {"storage": "3Gi"}}},
            "persistentvolumeclaims=1,requests.storage=3Gi",
        ),
        (
            "resourceclaims.resource.k8s.io",
            {"spec": {"devices": {"requests": [{"exactly": claim("ExactCount", 2)}]}}},
            "gpu.deviceclass.resource.k8s.io/devices=2",
        ),
        (
            "resourceclaims.resource.k8s.io",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {"firstAvailable": [claim("ExactCount", 2), claim("ExactCount", 3)]},
                            {"exactly": claim("All")},
                        ]
                    }
                }
            },
            "gpu.deviceclass.resource.k8s.io/devices=35",
        ),
        ("secrets", {}, "secrets=1"),
        ("jobs.batch", {}, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_objects_charge_their_number_and_more(
    resource: str, item: dict[str, Any], charge: str
) -> None:
    evaluator = evaluator_of(resource)
    assert evaluator is not None
    used = evaluator.usage(item, 0)
    assert str(used[f"count/{resource}"]) == "1"
    plain = {n: q for n, q in used.items() if not n.startswith("count/") and n != "services"}
    assert printed(plain) == charge


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("pods", ["pods"]),
        ("count/pods", ["pods"]),
        ("limits.memory", ["pods"]),
        ("requests.example.com/gpu", ["pods"]),
        ("requests.storage", ["persistentvolumeclaims"]),
        ("a.storageclass.storage.k8s.io/requests.storage", ["persistentvolumeclaims"]),
        ("a.deviceclass.resource.k8s.io/devices", ["resourceclaims.resource.k8s.io"]),
        ("configmaps", ["configmaps"]),
        ("count/deployments.apps", ["deployments.apps"]),
        ("count/events", []),
        ("example.com/gpu", []),
    ],
)
def test_a_name_is_affected_by_the_objects_of_its_kind(name: str, resources: list[str]) -> None:
    assert list(counted_resources(name)) == resources


def required(name: str, operator: str = "Exists", *values: str) -> ScopeRequirement:
    return ScopeRequirement(name, operator, values)


PRIORITY = "PriorityClass"
CLASSES = "VolumeAttributesClass"
AFFINITY: Any = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"podAffinityTerm": {"namespaceSelector": {}}}
        ]
    }
}
URGENT = pod(container(), priorityClassName="urgent")
GOLD = {"spec": {"volumeAttributesClassName": "gold"}, "status": {}}


@pytest.mark.parametrize(
    ("resource", "item", "scope", "inside"),
    [
        ("pods", pod(container()), required("BestEffort"), True),
        ("pods", SIZED, required("BestEffort"), False),
        ("pods", SIZED, required("NotBestEffort"), True),
        ("pods", pod(activeDeadlineSeconds=0), required("Terminating"), True),
        ("pods", pod(activeDeadlineSeconds=0), required("NotTerminating"), False),
        ("pods", SIZED, required("NotTerminating"), True),
        ("pods", URGENT, required(PRIORITY), True),
        ("pods", SIZED, required(PRIORITY), False),
        ("pods", SIZED, required(PRIORITY, "DoesNotExist"), True),
        ("pods", URGENT, required(PRIORITY, "In", "urgent", "usual"), True),
        ("pods", URGENT, required(PRIORITY, "NotIn", "urgent"), False),
        ("pods", SIZED, required(PRIORITY, "NotIn", "urgent"), True),
        ("pods", pod(affinity=AFFINITY), required("CrossNamespacePodAffinity"), True),
        ("pods", SIZED, required("CrossNamespacePodAffinity"), False),
        ("pods", SIZED, required(CLASSES), False),
        ("persistentvolumeclaims", GOLD, required(CLASSES), True),
        ("persistentvolumeclaims", GOLD, required(CLASSES, "In", "gold"), True),
        ("persistentvolumeclaims", GOLD, required(CLASSES, "NotIn", "gold"), False),
        ("persistentvolumeclaims", {"spec": {}}, required(CLASSES, "NotIn", "gold"), True),
        ("persistentvolumeclaims", GOLD, required("Terminating"), False),
        ("services", service(), required("NotTerminating"), False),
    ],
    ids=lambda value: str(value) if isinstance(value, ScopeRequirement | bool | str) else "",
)
def test_scopes_select_objects(
    resource: str, item: dict[str, Any], scope: ScopeRequirement, *, inside: bool
) -> None:
    evaluator = evaluator_of(resource)
    assert evaluator is not None
    assert evaluator.in_scope(scope, item) is inside
