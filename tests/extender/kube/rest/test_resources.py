"""Resources of the Kubernetes API and their paths."""

from __future__ import annotations

import pytest

from extender.kube.rest.resources import (
    LEASES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    CollectionPath,
    ObjectPath,
    Resource,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (NODES.collection(), "/api/v1/nodes"),
        (NODES.object("n1"), "/api/v1/nodes/n1"),
        (NAMESPACES.object("default"), "/api/v1/namespaces/default"),
        (PODS.collection(), "/api/v1/pods"),
        (PODS.collection("shop"), "/api/v1/namespaces/shop/pods"),
        (PODS.object("web-0", "shop"), "/api/v1/namespaces/shop/pods/web-0"),
        (
            PODS.object("web-0", "shop").subresource("eviction"),
            "/api/v1/namespaces/shop/pods/web-0/eviction",
        ),
        (POD_DISRUPTION_BUDGETS.collection(), "/apis/policy/v1/poddisruptionbudgets"),
        (PRIORITY_CLASSES.collection(), "/apis/scheduling.k8s.io/v1/priorityclasses"),
        (REPLICA_SETS.collection("a"), "/apis/apps/v1/namespaces/a/replicasets"),
        (LEASES.object("l", "a"), "/apis/coordination.k8s.io/v1/namespaces/a/leases/l"),
        (
            Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False).object(
                "system:node/x"
            ),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2Fx",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_resources_have_paths(path: CollectionPath | ObjectPath, expected: str) -> None:
    assert path.path == expected


def test_a_pod_without_its_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match="pods: expected a name and"):
        PODS.object("web-0")


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes: expected a name"):
        NODES.object("")


def test_a_namespace_for_a_cluster_scoped_resource_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes have no namespace"):
        NODES.collection("shop")


def test_the_text_of_a_resource_is_that_of_kubectl() -> None:
    assert str(PODS) == "pods"
    assert str(LEASES) == "leases.coordination.k8s.io"
