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


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "hash"}}


def mirror_pod(**spec: Any) -> dict[str, Any]:
    pod = pod_request(**spec)
    return {**pod, "metadata": {**pod["metadata"], **MIRROR}}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"serviceAccountName": "default"}, "reference service accounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "reference secrets"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "reference secrets"),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    }
                ]
            },
            "use ServiceAccountToken volume projections",
        ),
    ],
    ids=["account", "pull secret", "secret volume", "token"],
)
def test_a_mirror_pod_uses_neither_accounts_nor_secrets(
    ask: Ask, spec: dict[str, Any], error: str
) -> None:
    status, refusal = ask("POST", PODS, mirror_pod(**spec))
    assert (status, refusal["message"]) == (
        403,
        f'pods "p" is forbidden: a mirror pod may not {error}',
    )


def test_a_mirror_pod_is_not_changed(ask: Ask) -> None:
    status, pod = ask("POST", PODS, mirror_pod())
    assert (status, "serviceAccountName" in pod["spec"], "volumes" in pod["spec"]) == (201,) + (
        False,
    ) * 2


def env(secret: str) -> dict[str, Any]:
    key = {"secretKeyRef": {"name": secret, "key": "k"}}
    return {"name": "c", "image": "i", "env": [{"name": "E", "valueFrom": key}]}


def from_secret(secret: str) -> dict[str, Any]:
    return {"name": "d", "image": "i", "envFrom": [{"secretRef": {"name": secret}}]}


NOT_LISTED = 'referencing secret.secretName="other" is not allowed because service account a does'
ENFORCED: list[tuple[dict[str, Any], str]] = [
    ({"containers": [env("mine")], "imagePullSecrets": [{"name": "pull"}]}, ""),
    (
        {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
        (
            'volume with secret.secretName="other" is not allowed because service account a does '
            "not reference that secret"
        ),
    ),
    ({"containers": [env("other")]}, f"container c with envVar E {NOT_LISTED} not reference"),
    (
        {"initContainers": [from_secret("other")]},
        f"init container d with envFrom {NOT_LISTED} not reference that secret",
    ),
    (
        {"imagePullSecrets": [{"name": "other"}]},
        (
            'imagePullSecrets[0].name="other" is not allowed because service account a does not '
            "reference that imagePullSecret"
        ),
    ),
]


def create_enforcing_account(ask: Ask, value: str = "true") -> None:
    metadata = {
        "name": "a",
        "annotations": {"kubernetes.io/enforce-mountable-secrets": value},
    }
    lists = {"secrets": [{"name": "mine"}], "imagePullSecrets": [{"name": "pull"}]}
    assert ask("POST", ACCOUNTS, {"metadata": metadata, **lists})[0] == 201


@pytest.mark.parametrize(
    ("spec", "error"), ENFORCED, ids=["listed", "volume", "env", "envFrom", "pull secret"]
)
def test_an_account_can_restrict_the_secrets_of_its_pods(
    ask: Ask, spec: dict[str, Any], error: str
) -> None:
    create_enforcing_account(ask)
    status, answer = ask("POST", PODS, pod_request(serviceAccountName="a", **spec))
    assert (status, error in answer.get("message", "")) == (403 if error else 201, True)


def test_an_account_that_does_not_enforce_restricts_nothing(ask: Ask) -> None:
    create_enforcing_account(ask, "yes")
    pod = pod_request(serviceAccountName="a", containers=[env("other")])
    assert ask("POST", PODS, pod)[0] == 201


@pytest.mark.parametrize(("secret", "expected"), [("mine", 200), ("other", 500)])
def test_ephemeral_containers_are_restricted_too(ask: Ask, secret: str, expected: int) -> None:
    create_enforcing_account(ask)
    ask("POST", PODS, pod_request(serviceAccountName="a"))
    added = {"spec": {"ephemeralContainers": [{**env(secret), "name": "debug"}]}}
    status, answer = ask("PATCH", f"{PODS}/p/ephemeralcontainers", added)
    assert status == expected
    if expected == 500:
        assert answer["message"].startswith("ephemeral container debug with envVar E referencing")


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
