"""Built-in admission: accounts and topology labels for pods, taints for nodes."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.admission.builtin_plugins import COMPONENT_PLUGINS
from fakeapi.apiserver.endpoints import Api
from tests.builders import pod_request
from tests.fakeapi.api_requests import ACCOUNTS, NODES, PODS, Ask

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(autouse=True)
def plugins(api: Api) -> None:
    api.registry.plugins = tuple(COMPONENT_PLUGINS.values())


def test_a_missing_account_is_refused(ask: Ask) -> None:
    status, refusal = ask("POST", PODS, pod_request(serviceAccountName="robot"))
    missing = 'service account default/robot: serviceaccount "robot" not found'
    assert (status, refusal["message"]) == (
        403,
        f'pods "p" is forbidden: error looking up {missing}',
    )


def test_a_missing_default_account_is_created_with_the_pod(ask: Ask) -> None:
    assert ask("POST", PODS, pod_request(), dryRun="All")[0] == 201
    assert ask("GET", ACCOUNTS)[1]["items"] == []
    assert ask("POST", PODS, pod_request())[0] == 201
    assert [each["metadata"]["name"] for each in ask("GET", ACCOUNTS)[1]["items"]] == ["default"]


def test_a_pod_gets_the_default_account_and_its_token(ask: Ask) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "default"}})
    status, pod = ask("POST", PODS, pod_request(initContainers=[{"name": "d", "image": "i"}]))
    spec = pod["spec"]
    assert (status, spec["serviceAccountName"], spec["serviceAccount"]) == (201,) + ("default",) * 2
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    kinds = [set(source) for source in volume["projected"]["sources"]]
    assert kinds == [{"serviceAccountToken"}, {"configMap"}, {"downwardAPI"}]
    for container in (*spec["containers"], *spec["initContainers"]):
        mounts = [(m["name"], m["mountPath"]) for m in container["volumeMounts"]]
        assert mounts == [(volume["name"], MOUNT)]


@pytest.mark.parametrize(
    ("pod", "account"),
    [({"automountServiceAccountToken": False}, {}), ({}, {"automountServiceAccountToken": False})],
)
def test_a_pod_that_opts_out_gets_no_token(
    pod: dict[str, Any], account: dict[str, Any], ask: Ask
) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "default"}, **account})
    assert "volumes" not in ask("POST", PODS, pod_request(**pod))[1]["spec"]


def test_a_pods_own_setting_overrides_that_of_its_account(ask: Ask) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "a"}, "automountServiceAccountToken": False})
    pod = pod_request(automountServiceAccountToken=True, serviceAccountName="a")
    assert len(ask("POST", PODS, pod)[1]["spec"]["volumes"]) == 1


def test_an_own_mount_is_not_replaced(ask: Ask) -> None:
    ask("POST", ACCOUNTS, {"metadata": {"name": "default"}})
    mounts = [{"name": "mine", "mountPath": MOUNT}]
    containers = [{"name": "c", "image": "i", "volumeMounts": mounts}]
    volumes = [{"name": "mine", "emptyDir": {}}]
    _, pod = ask("POST", PODS, pod_request(containers=containers, volumes=volumes))
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["mine"]


def test_pull_secrets_come_with_the_account(ask: Ask) -> None:
    secrets = [{"name": "registry"}]
    ask("POST", ACCOUNTS, {"metadata": {"name": "default"}, "imagePullSecrets": secrets})
    assert ask("POST", PODS, pod_request())[1]["spec"]["imagePullSecrets"] == secrets


def test_a_new_node_is_not_ready_yet(ask: Ask) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    for spec in ({}, {"taints": [taint]}):
        node = {"metadata": {"generateName": "n-"}, "spec": spec}
        assert ask("POST", NODES, node)[1]["spec"]["taints"] == [taint]


ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


LABELS = {"app": "web", ZONE: "elsewhere"}


@pytest.fixture
def _node(ask: Ask) -> None:
    labels = {ZONE: "a", REGION: "r", "disk": "ssd"}
    ask("POST", NODES, {"metadata": {"name": "n", "labels": labels}})


@pytest.mark.usefixtures("_node")
@pytest.mark.parametrize(
    ("node", "labels"),
    [
        pytest.param("n", {"app": "web", ZONE: "a", REGION: "r"}, id="an existing node"),
        pytest.param("gone", LABELS, id="a missing node"),
    ],
)
def test_a_pod_created_on_a_node_gets_its_labels(
    ask: Ask, node: str, labels: dict[str, str]
) -> None:
    _, created = ask("POST", PODS, pod_request(labels=LABELS, nodeName=node))
    assert created["metadata"]["labels"] == labels


@pytest.mark.usefixtures("_node")
def test_a_pod_bound_to_a_node_gets_its_labels(ask: Ask) -> None:
    ask("POST", PODS, pod_request(labels=LABELS))
    binding = {
        "metadata": {"name": "p", "labels": {"by": "scheduler"}},
        "target": {"kind": "Node", "name": "n"},
    }
    assert ask("POST", f"{PODS}/p/binding", binding)[0] == 201
    _, bound = ask("GET", f"{PODS}/p")
    assert bound["metadata"]["labels"] == {"app": "web", "by": "scheduler", ZONE: "a", REGION: "r"}
