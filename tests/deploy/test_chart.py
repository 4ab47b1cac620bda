"""The chart: its output, the values that it refuses, and the files generated from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from extender.config.component_config import Config
from tests.builders import Document
from tests.deploy.charts import (
    DEPLOY,
    ISSUER,
    MONITORED,
    RefusedError,
    files,
    kustomized,
    only,
    rendered,
    schema,
    without_helm,
)

ANY: Final = {"a": "b"}
EVERYTHING: Final[Document] = {
    **ISSUER,
    **MONITORED,
    "fullnameOverride": "extender",
    "image": {"repository": "registry.example/r", "tag": "1", "pullSecrets": [{"name": "pull"}]},
    "config": {
        "events": True,
        "search": "cluster",
        "upstream": "1.34",
        "shutdownDelaySeconds": 7.5,
    },
    "policy": {
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionPolicy",
        "metadata": {"name": "mine"},
        "rules": [
            {
                "name": "all",
                "guards": {"protect": [{"name": "system", "namespaces": ["kube-system"]}]},
            }
        ],
    },
    "service": {"clusterIP": "10.96.0.77", "sessionAffinity": "ClientIP", "annotations": ANY},
    "serviceAccount": {"annotations": ANY},
    "priorityQuota": {"create": True},
    "extraArgs": ["--search", "offered"],
    "env": [{"name": "TZ", "value": "UTC"}],
    "podAnnotations": ANY,
    "podLabels": ANY,
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "affinity": {"nodeAffinity": {}},
    "networkPolicy": {
        "schedulerCIDRs": ["10.0.0.0/28", "fd00::/64"],
        "apiServer": {"cidrs": ["10.96.0.1/32"], "ports": [443]},
        "egress": [{"ports": [{"port": 4318}]}],
    },
}


def spec(documents: list[Document]) -> Document:
    pod: Document = only("Deployment", documents)["spec"]["template"]["spec"]
    return pod


def test_files_generated_from_the_chart_are_up_to_date() -> None:
    stale = [str(path) for path, text in files() if path.read_text() != text]
    assert not stale, "python -m tests.deploy.charts writes them anew"


def test_kustomize_directories_have_no_other_files() -> None:
    written = {path for path, _ in files()}
    there = {path for path in (DEPLOY / "kustomize").rglob("*") if path.is_file()}
    assert {path.name for path in there - written} == {"kustomization.yaml"}


def test_the_labels_of_the_second_scheduler_differ_from_ours() -> None:
    example = DEPLOY / "kube-scheduler" / "second-scheduler.yaml"
    documents: list[Document] = list(yaml.safe_load_all(example.read_text()))
    template = only("Deployment", documents)["spec"]["template"]
    ours = only("Service", rendered())["spec"]["selector"]
    for each in (*documents, template):
        labels = each["metadata"]["labels"]
        found = {name: labels[f"app.kubernetes.io/{name}"] for name in ("component", "part-of")}
        assert found == {"component": "scheduler", "part-of": "reprieve"}
        assert labels["app.kubernetes.io/instance"] == "reprieve-scheduler"
        assert not ours.items() <= labels.items()
    selector = only("Deployment", documents)["spec"]["selector"]["matchLabels"]
    assert selector.items() <= template["metadata"]["labels"].items()
    open_to = only("NetworkPolicy", rendered(EVERYTHING))["spec"]["ingress"][0]["from"]
    named = [each["podSelector"]["matchLabels"] for each in open_to if "podSelector" in each]
    assert any(labels.items() <= template["metadata"]["labels"].items() for labels in named)


def test_the_mount_that_is_documented_for_kubeadm_has_the_files_of_the_example() -> None:
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    [block] = [
        each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "kubeadm" in each
    ]
    scheduler = yaml.safe_load(block)["scheduler"]
    flags = {each["name"]: each["value"] for each in scheduler["extraArgs"]}
    [volume] = scheduler["extraVolumes"]
    example = yaml.safe_load((DEPLOY / "kube-scheduler" / "two-entries.yaml").read_text())
    files = {flags["config"], *(each["tlsConfig"]["caFile"] for each in example["extenders"])}
    assert {str(Path(file).parent) for file in files} == {volume["mountPath"]}
    assert all(f" {file}\n" in page for file in files)  # a command writes each of them
    assert volume["hostPath"] == volume["mountPath"]


@pytest.mark.parametrize(
    ("directory", "values"),
    [
        ("base", {}),
        ("overlays/cert-manager", ISSUER),
        ("overlays/monitoring", MONITORED),
        ("overlays/all", {**ISSUER, **MONITORED}),
    ],
)
def test_kustomize_makes_what_the_chart_makes(directory: str, values: Document) -> None:
    assert by_name(kustomized(directory)) == by_name(rendered(values))


def by_name(documents: list[Document]) -> dict[tuple[str, str], Document]:
    plain = [without_helm(document) for document in documents]
    return {(each["kind"], each["metadata"]["name"]): each for each in plain}


def test_the_checksum_follows_the_configuration_and_the_policy() -> None:
    search: Document = {"config": {"search": "offered"}}
    shadow: Document = {"shadow": [policy_with()["policy"]]}
    other: Document = {"shadow": [policy_with(candidates=["fewest victims"])["policy"]]}
    values: list[Document] = [{}, search, policy_with(), shadow, other, ISSUER]
    templates = [only("Deployment", rendered(each))["spec"]["template"] for each in values]
    checksums = {each["metadata"]["annotations"]["checksum/config"] for each in templates}
    assert len(checksums) == 5  # pods do not depend on the issuer of certificates


def test_shadow_policies_are_files_beside_the_policy() -> None:
    policy: Document = EVERYTHING["policy"]
    other = {**policy, "metadata": {"name": "other"}}
    values = {"policy": policy, "shadow": ["kube-scheduler", other], "config": {"mode": "observe"}}
    documents = rendered(values)
    config = config_file(documents)
    assert config["mode"] == "observe"
    assert config["shadow"] == ["kube-scheduler", "/etc/reprieve/shadow-1.yaml"]
    files = only("ConfigMap", documents)["data"]
    assert files.keys() == {"reprieve.yaml", "policy.yaml", "shadow-1.yaml"}
    assert yaml.safe_load(files["shadow-1.yaml"]) == other


def test_its_permissions_equal_the_documented_ones() -> None:
    documented = yaml.safe_load((DEPLOY / "rbac.yaml").read_text())["rules"]
    assert only("ClusterRole", rendered())["rules"] == documented


def test_only_the_events_option_permits_writes() -> None:
    rules = only("ClusterRole", rendered({"config": {"events": True}}))["rules"]
    assert [rule for rule in rules if set(rule["verbs"]) - {"get", "list", "watch"}] == [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
    ]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_pods_comply_with_the_restricted_standard(values: Document) -> None:
    pod = spec(rendered(values))
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all({"configMap", "secret"} & set(volume) for volume in pod["volumes"])
    assert all("hostPort" not in port for port in container["ports"])


@pytest.mark.parametrize(("delay", "grace"), [(0, 25), (5, 30), (7.5, 33), (60, 85)])
def test_the_grace_period_includes_the_shutdown_delay(delay: float, grace: int) -> None:
    pod = spec(rendered({"config": {"shutdownDelaySeconds": delay}}))
    assert pod["terminationGracePeriodSeconds"] == grace


def test_replicas_are_spread_and_disrupted_one_at_a_time() -> None:
    documents = rendered()
    deployment = only("Deployment", documents)
    labels = deployment["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["replicas"] == 2
    assert labels.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    spread = spec(documents)["topologySpreadConstraints"]
    assert [each["labelSelector"]["matchLabels"] for each in spread] == [labels, labels]
    budget = only("PodDisruptionBudget", documents)["spec"]
    assert (budget["selector"]["matchLabels"], budget["maxUnavailable"]) == (labels, 1)
    assert only("NetworkPolicy", documents)["spec"]["podSelector"]["matchLabels"] == labels
    assert only("Service", documents)["spec"]["selector"] == labels
    assert spec(documents)["priorityClassName"] == "system-cluster-critical"


def test_the_network_policy_admits_only_named_clients_if_any_are_named() -> None:
    [open_to_all] = only("NetworkPolicy", rendered())["spec"]["ingress"]
    assert "from" not in open_to_all
    [named] = only("NetworkPolicy", rendered(EVERYTHING))["spec"]["ingress"]
    blocks = [each.get("ipBlock", {}).get("cidr") for each in named["from"]]
    assert blocks == ["10.0.0.0/28", "fd00::/64", None, None]


DIGEST: Final = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({}, "reprieve:0.1.0"),
        ({"tag": "1"}, "reprieve:1"),
        ({"digest": DIGEST}, f"reprieve@{DIGEST}"),
        (
            {"repository": "registry.example/r", "tag": "1", "digest": DIGEST},
            f"registry.example/r@{DIGEST}",
        ),
    ],
)
def test_a_digest_takes_precedence_over_a_tag(image: Document, name: str) -> None:
    [container] = spec(rendered({"image": image}))["containers"]
    assert container["image"] == name


def test_arguments_and_environment_variables_are_added() -> None:
    [container] = spec(rendered(EVERYTHING))["containers"]
    assert container["args"][0] == "serve"
    assert container["args"][-2:] == EVERYTHING["extraArgs"]
    assert container["env"] == EVERYTHING["env"]


def verified(ca: Document) -> Document:
    """Return values that check clients by a CA."""
    return {"tls": {"clients": {"verify": True, "ca": ca}}}


def config_file(documents: list[Document]) -> Document:
    """Return the configuration file."""
    config: Document = yaml.safe_load(only("ConfigMap", documents)["data"]["reprieve.yaml"])
    return config


@pytest.mark.parametrize(
    ("ca", "file"), [({}, "/tls/ca.crt"), ({"key": "clients.crt"}, "/tls/clients.crt")]
)
def test_clients_are_verified_by_the_servers_own_secret(ca: Document, file: str) -> None:
    documents = rendered(verified(ca))
    assert config_file(documents)["tls"]["clientCA"] == file
    assert [volume["name"] for volume in spec(documents)["volumes"]] == ["config", "tls"]


@pytest.mark.parametrize(
    ("ca", "source"),
    [
        ({"secretName": "clients"}, {"secret": {"secretName": "clients", "defaultMode": 0o440}}),
        (
            {"configMapName": "kube-root-ca.crt", "key": "front.pem"},
            {"configMap": {"name": "kube-root-ca.crt"}},
        ),
    ],
)
def test_clients_are_verified_by_another_secret_or_config_map(
    ca: Document, source: Document
) -> None:
    documents, key = rendered(verified(ca)), ca.get("key", "ca.crt")
    assert config_file(documents)["tls"]["clientCA"] == f"/client-ca/{key}"
    [volume] = [each for each in spec(documents)["volumes"] if each["name"] == "client-ca"]
    [[kind, content]] = source.items()
    assert volume[kind] == {**content, "items": [{"key": key, "path": key}]}
    [mounts] = [each["volumeMounts"] for each in spec(documents)["containers"]]
    assert {"name": "client-ca", "mountPath": "/client-ca", "readOnly": True} in mounts


def test_the_client_ca_is_ignored_unless_clients_are_verified() -> None:
    assert rendered({"tls": {"clients": {"ca": {"key": "other"}}}}) == rendered()


def policy_with(**fields: Any) -> Document:
    """Return values with a policy of one rule."""
    return {"policy": {**EVERYTHING["policy"], "rules": [{"name": "all", **fields}]}}


def guarded(**guard: Any) -> Document:
    """Return values with a policy that protects some pods."""
    return policy_with(guards={"protect": [{"name": "some", **guard}]})


def chosen(**expression: str) -> Document:
    """Return a selector with one expression."""
    return {"matchExpressions": [{"key": "a", "operator": "Exists", **expression}]}


def test_a_policy_may_name_plugins_that_are_not_installed_here() -> None:
    rule = {"candidates": ["least-revenue"], "guards": {"plugins": ["licensed"]}}
    assert rendered(policy_with(**rule))


def test_our_part_of_the_schema_allows_no_unknown_keys() -> None:
    parts = schema()["$defs"]
    things = [part for part in parts.values() if part.get("type") == "object"]
    assert {"Config", "PolicyFile"} <= {part["title"] for part in things}
    assert all(part["additionalProperties"] is False for part in things)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": "3"}, "replicas"),
        ({"config": {"serach": "cluster"}}, "serach"),
        ({"config": {"search": "all"}}, "config.search"),
        ({"config": {"deadlineMilliseconds": {"filter": 0}}}, "config.deadlineMilliseconds.filter"),
        ({"config": {"degraded": {"late": {"filter": "guess"}}}}, "config.degraded.late.filter"),
        ({"config": {"tls": {"certificate": "a", "key": "b"}}}, "tls"),
        ({"config": {"allowPlainHTTP": True}}, "allowPlainHTTP"),
        ({"tls": {"mode": "self-signed"}}, "tls.mode"),
        ({"tls": {"mode": "cert-manager"}}, "tls.certManager.issuerRef.name"),
        ({"tls": {"mode": "none", "clients": {"verify": True}}}, "tls.clients.verify"),
        ({"tls": {"clients": {"allowedNames": ["a"]}}}, "tls.clients.allowedNames"),
        ({"config": {"host": None}}, "host is required"),
        ({"service": {"port": 0}}, "service.port"),
        ({"config": {"upstream": "1.29"}}, "config.upstream"),
        ({"config": {"upstream": {"release": "1.37"}}}, "config.upstream"),
        ({"config": {"policy": "kube-schedular"}}, "config.policy"),
        ({"policy": {"name": "mine", "protect": []}}, "rules is required"),
        ({"config": {"mode": "watch"}}, "config.mode"),
        ({"config": {"shadow": ["a"]}}, "shadow"),
        ({"config": {"shadowCPUShare": 2}}, "config.shadowCPUShare"),
        ({"shadow": ["other"]}, "shadow.0"),
        ({"shadow": ["kube-scheduler"] * 5}, "shadow"),
        (policy_with(guard={}), "guard is not allowed"),
        (policy_with(victims=["lowest priority"]), "policy.rules.0.victims.0"),
        (policy_with(candidates=["fewest victim"]), "policy.rules.0.candidates.0"),
        (policy_with(guards={"maxVictims": 0}), "policy.rules.0.guards.maxVictims"),
        (policy_with(guards={"preemptionDelay": "soon"}), "policy.rules.0.guards.preemptionDelay"),
        (guarded(namespace=["kube-system"]), "namespace is not allowed"),
        (guarded(labels={"matchLabel": {"a": "b"}}), "matchLabel"),
        (guarded(labels=chosen(operator="Is")), "matchExpressions.0.operator"),
        (guarded(labels=chosen(value="b")), "value is not allowed"),
        ({"image": {"digest": "latest"}}, "image.digest"),
        ({"image": {"digest": f"sha256:{'0' * 63}"}}, "image.digest"),
        ({"tls": {"clients": {"ca": {"secretName": "a"}}}}, "tls.clients.ca.secretName"),
        ({"tls": {"clients": {"ca": {"configMapName": "a"}}}}, "tls.clients.ca.configMapName"),
        (verified({"secretName": "a", "configMapName": "a"}), "tls.clients.ca.configMapName"),
        (verified({"key": "../ca.crt"}), "tls.clients.ca.key"),
        (verified({"secret": "a"}), "secret is not allowed"),
        ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "podLabels"),
        ({"env": [{"value": "UTC"}]}, "env"),
        ({"topologySpreadConstraints": [{"labelSelector": {}}]}, "topologySpreadConstraints.0"),
        ({"networkPolicy": {"schedulerCIDRs": ["10.0.0.1"]}}, "networkPolicy.schedulerCIDRs"),
        ({"podDisruptionBudget": {"maxUnavailable": "most"}}, "podDisruptionBudget.maxUnavailable"),
        ({"tls": {"clients": {"verify": True}}, **MONITORED}, "serviceMonitor.tlsConfig"),
        ({"monitoring": {"prometheusRule": {"slowSeconds": 0}}}, "prometheusRule.slowSeconds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_implausible_values_are_refused(values: dict[str, Any], place: str) -> None:
    with pytest.raises(RefusedError, match=place):
        rendered(values)


def test_all_values_can_be_set_together(tmp_path: Path) -> None:
    documents = rendered(EVERYTHING)
    config = only(
        "ConfigMap", [each for each in documents if "dashboard" not in each["metadata"]["name"]]
    )
    (tmp_path / "reprieve.yaml").write_text(config["data"]["reprieve.yaml"])
    read = yaml.safe_load(config["data"]["reprieve.yaml"])
    assert read["policy"] == "/etc/reprieve/policy.yaml"
    assert yaml.safe_load(config["data"]["policy.yaml"]) == EVERYTHING["policy"]
    assert read["tls"] == {"certificate": "/tls/tls.crt", "key": "/tls/tls.key"}
    assert (read["upstream"], read["events"]) == ("1.34", True)
    certificate = only("Certificate", documents)["spec"]
    assert certificate["dnsNames"][0] == "extender.kube-system.svc"
    assert certificate["ipAddresses"] == ["10.96.0.77"]
    assert only("ResourceQuota", documents)["spec"]["hard"] == {"pods": "10"}
    assert Config().port == read["port"]
