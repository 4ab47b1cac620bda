"""The chart with a ledger and its page: what it renders and refuses, and how it runs."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.builders import Document, manifest
from tests.deploy.charts import CHART, RefusedError, only, rendered
from tests.deploy.cluster import cluster
from tests.deploy.cluster_objects import HOST, PAGE_HOST, SYSTEM, full, preempted
from tests.deploy.image import Image
from tests.deploy.installation import installed
from tests.deploy.network import Network

TOKEN: Final = "0123456789abcdef"
PASSWORD: Final = "not-in-any-file"
URL: Final = "postgresql://reprieve@localhost:5433/ledger"
FILE: Final[Document] = {"ledger": {"mode": "file", "teamLabel": "team"}}
POSTGRESQL: Final[Document] = {
    "ledger": {"mode": "postgresql", "postgresql": {"url": URL, "secretName": "database"}}
}
PAGE: Final[Document] = {"page": {"enabled": True, "tokenSecret": {"name": "readers"}}}


def postgresql(**fields: str) -> Document:
    """Return the values of a ledger in PostgreSQL; ``fields`` replace those of the database."""
    given = POSTGRESQL["ledger"]["postgresql"]
    return {"ledger": {"mode": "postgresql", "postgresql": {**given, **fields}}}


def page(admitted: Document | None = None, **fields: Any) -> Document:
    """Return the values of a page on a file; ``admitted`` are its clients."""
    policy = {"networkPolicy": {"page": admitted or {}}}
    return {**FILE, **policy, "page": {**PAGE["page"], **fields}}


def ingress(**fields: str) -> Document:
    """Return the values of a page with an Ingress."""
    given = {"create": True, "host": "ledger.example", **fields}
    return page({"namespaces": ["ingress-nginx"]}, ingress=given)


def configuration(documents: list[Document]) -> Document:
    """Return the configuration file."""
    read: Document = yaml.safe_load(only("ConfigMap", documents)["data"]["reprieve.yaml"])
    return read


def services(documents: list[Document]) -> dict[str, Document]:
    """Return the specs of the Services by name."""
    found = [each for each in documents if each["kind"] == "Service"]
    return {each["metadata"]["name"]: each["spec"] for each in found}


def secrets() -> list[Document]:
    """Return the Secrets with the token of readers and with the password of the database."""
    return [
        manifest(
            "Secret",
            name,
            namespace=SYSTEM,
            type="Opaque",
            data={key: b64encode(value.encode()).decode()},
        )
        for name, key, value in (("readers", "token", TOKEN), ("database", "password", PASSWORD))
    ]


def test_without_a_ledger_there_is_no_trace_of_one() -> None:
    documents = rendered()
    assert not {"ledger", "page"} & set(configuration(documents))
    assert list(services(documents)) == ["reprieve"]
    [container] = only("Deployment", documents)["spec"]["template"]["spec"]["containers"]
    assert "env" not in container


def test_a_file_is_on_a_volume_of_each_replica() -> None:
    documents = rendered(FILE)
    workload = only("StatefulSet", documents)["spec"]
    assert (workload["replicas"], workload["podManagementPolicy"]) == (2, "Parallel")
    assert services(documents)[workload["serviceName"]]["clusterIP"] == "None"
    [claim] = workload["volumeClaimTemplates"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
    }
    pod = workload["template"]["spec"]
    [container] = pod["containers"]
    assert {"name": claim["metadata"]["name"], "mountPath": "/ledger"} in container["volumeMounts"]
    assert container["env"] == [{"name": "SQLITE_TMPDIR", "value": "/ledger"}]
    assert not any("matchLabelKeys" in each for each in pod["topologySpreadConstraints"])
    assert configuration(documents)["ledger"] == {
        "location": "/ledger/ledger.db",
        "snapshots": False,
        "verbs": ["preempt"],
        "teamLabel": "team",
        "keepDays": 30,
        "maxMiB": 1536,
    }


def test_a_storage_class_can_be_chosen() -> None:
    chosen = {"size": "10Gi", "storageClassName": "fast", "accessModes": ["ReadWriteOncePod"]}
    documents = rendered({"ledger": {"mode": "file", "file": chosen}})
    [claim] = only("StatefulSet", documents)["spec"]["volumeClaimTemplates"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOncePod"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "10Gi"}},
    }


def test_pods_of_both_workloads_differ_only_in_the_ledger() -> None:
    plain = only("Deployment", rendered())["spec"]["template"]["spec"]
    pod = only("StatefulSet", rendered(FILE))["spec"]["template"]["spec"]
    differing = {"containers", "topologySpreadConstraints"}
    assert {key for key in {*plain, *pod} if plain.get(key) != pod.get(key)} == differing
    [[before], [after]] = plain["containers"], pod["containers"]
    assert {key for key in {*before, *after} if before.get(key) != after.get(key)} == {
        "env",
        "volumeMounts",
    }


def test_the_password_of_postgresql_is_only_in_its_secret() -> None:
    documents = rendered(postgresql(caKey="root.pem"))
    assert configuration(documents)["ledger"]["location"] == URL
    pod = only("Deployment", documents)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    reference = {"secretKeyRef": {"name": "database", "key": "password"}}
    assert container["env"] == [
        {"name": "PGPASSWORD", "valueFrom": reference},
        {"name": "PGSSLMODE", "value": "verify-full"},
        {"name": "PGSSLROOTCERT", "value": "/ledger-ca/ca.crt"},
    ]
    [volume] = [each["secret"] for each in pod["volumes"] if each["name"] == "ledger-ca"]
    assert volume["items"] == [{"key": "root.pem", "path": "ca.crt"}]


@pytest.mark.parametrize(
    ("url", "port"),
    [
        (URL, 5433),
        ("postgresql://reprieve@db/ledger", 5432),
        ("postgresql://reprieve@[fd00::1]:6000/ledger?sslmode=require", 6000),
        ("postgresql://reprieve@db/ledger?application_name=a:1/", 5432),
    ],
)
def test_the_network_policy_permits_the_port_of_postgresql(url: str, port: int) -> None:
    egress = only("NetworkPolicy", rendered(postgresql(url=url)))["spec"]["egress"]
    assert egress[2:] == [{"ports": [{"port": port}]}]


def test_the_page_has_its_own_service_and_no_clients() -> None:
    plain, documents = rendered(FILE), rendered(page(port=9000, hosts=["ledger.example"]))
    assert configuration(documents)["page"] == {
        "host": "0.0.0.0",  # noqa: S104 - of a pod
        "port": 9000,
        "tokenFile": "/page-token/token",
        "hosts": [PAGE_HOST, "ledger.example"],
    }
    added = services(documents)
    served = added.pop("reprieve-page")
    assert served["ports"] == [{"name": "page", "port": 9000, "targetPort": "page"}]
    assert added == services(plain)
    assert only("NetworkPolicy", documents) == only("NetworkPolicy", plain)


def test_named_clients_are_admitted_to_the_page_only() -> None:
    admitted = {"cidrs": ["10.1.0.0/16"], "namespaces": ["ingress-nginx"]}
    ingress_rules = only("NetworkPolicy", rendered(page(admitted)))["spec"]["ingress"]
    [_, rule] = ingress_rules
    assert rule["ports"] == [{"port": "page"}]
    assert [list(each) for each in rule["from"]] == [["ipBlock"], ["namespaceSelector"]]


def test_an_ingress_serves_the_page_by_its_host() -> None:
    documents = rendered(ingress(className="nginx", tlsSecretName="ledger-tls"))
    spec = only("Ingress", documents)["spec"]
    assert spec["ingressClassName"] == "nginx"
    assert spec["tls"] == [{"hosts": ["ledger.example"], "secretName": "ledger-tls"}]
    [rule] = spec["rules"]
    assert rule["host"] in configuration(documents)["page"]["hosts"]
    [path] = rule["http"]["paths"]
    assert path["path"] == "/ui/"
    assert path["backend"]["service"] == {"name": "reprieve-page", "port": {"name": "page"}}


def test_the_certificate_has_the_name_of_the_page() -> None:
    issuer = {"mode": "cert-manager", "certManager": {"issuerRef": {"name": "ca"}}}
    names = only("Certificate", rendered({**page(), "tls": issuer}))["spec"]["dnsNames"]
    assert names == [HOST, f"{HOST}.cluster.local", PAGE_HOST]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"config": {"ledger": {"location": "a.db"}}}, "ledger is not allowed"),
        ({"ledger": {"mode": "sqlite"}}, "ledger.mode"),
        ({"ledger": {"mode": "postgresql"}}, "ledger.postgresql.url"),
        (postgresql(secretName=""), "ledger.postgresql.secretName"),
        (postgresql(url="postgresql://a:secret@db/ledger"), "ledger.postgresql.url"),
        (postgresql(url="postgresql://a@db/ledger?password=secret"), "ledger.postgresql.url"),
        (postgresql(url="postgresql://db/ledger"), "ledger.postgresql.url"),
        ({"ledger": {"mode": "file", "file": {"size": "2G"}}}, "ledger.file.size"),
        ({"ledger": {"keepDays": 0}}, "ledger.keepDays"),
        ({"ledger": {"verbs": ["bind"]}}, "ledger.verbs.0"),
        (
            {"ledger": {"mode": "file", "file": {"size": "1Gi"}}},
            "ledger.maxMiB: 1536 does not fit into ledger.file.size 1Gi; expected at most 921\n",
        ),
        (PAGE, "page.enabled"),
        (page(tokenSecret={"name": ""}), "page.tokenSecret.name"),
        (page(port=8888), "page.port: 8888 is config.port, too; expected another port\n"),
        (page(ingress={"create": True}), "page.ingress.host"),
        ({**ingress(), "networkPolicy": {}}, "expected the namespace of the Ingress controller"),
        ({"page": {"ingress": {"create": True, "host": "a.example"}}}, "page.enabled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_implausible_values_are_refused(values: Document, message: str) -> None:
    with pytest.raises(RefusedError, match=message) as refused:
        rendered(values)
    assert "secret@" not in str(refused.value)


@pytest.mark.parametrize("mode", ["secret", "none"])
def test_a_file_outlives_its_pod_and_the_page_needs_the_token(
    mode: str, net: Network, image: Image, tmp_path: Path
) -> None:
    ledger = {**FILE["ledger"], "snapshots": True}
    values = {**page(), "ledger": ledger, "tls": {"mode": mode}}
    with installed(net, image, tmp_path, values, [*full(), *secrets()]) as there:
        assert there.request("/preempt", preempted()).status == 200
        assert there.container.stop() == 0, there.container.read_log()
        with there.kubelet.running(there.container.pod) as container:
            container.wait_ready()
            again = replace(there, container=container)
            assert "[!] ledger" not in again.request("/readyz?verbose").text
            assert again.page("/ui/").status == 401
            assert again.page("/ui/", "f" * 16).status == 401
            found = again.page("/ui/", TOKEN)
            assert found.status == 200, found
            assert "default/high" in found.text
            link = json.loads(again.page("/ui/pods/default/lower", TOKEN).text)["spare"]
            spare = json.loads(again.page(link.partition("#")[0], TOKEN).text)["spare"]
            assert spare["pod"] == "default/lower"
            assert spare["lines"], "the decision was not made again"
            assert container.stop() == 0, container.read_log()


def test_an_installation_answers_while_postgresql_is_away(
    net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, POSTGRESQL, [*full(), *secrets()]) as there:
        environment = there.kubelet.root(there.container.pod).environment
        assert environment["PGPASSWORD"] == PASSWORD
        assert there.request("/preempt", preempted()).status == 200
        assert there.container.stop() == 0
        log = there.container.read_log()
        [line] = [json.loads(each) for each in log.splitlines() if "ledger_not_written" in each]
        assert line["problem"].startswith("postgresql://localhost:5433/ledger: cannot connect")
        assert PASSWORD not in log


def test_another_mode_replaces_the_workload(net: Network, tmp_path: Path) -> None:
    place = ("reprieve", str(CHART), "-n", SYSTEM)
    file = tmp_path / "values.json"
    file.write_text(json.dumps(ingress()))
    with cluster(net, tmp_path / "cluster", []) as there:

        def names() -> list[str]:
            kinds = "deployments,statefulsets,services,ingresses"
            return there.kubectl("get", kinds, "-n", SYSTEM, "-o", "name").split()

        there.helm("install", *place)
        before = names()
        there.helm("upgrade", *place, "-f", str(file))
        assert names() == [
            "statefulset.apps/reprieve",
            "service/reprieve",
            "service/reprieve-page",
            "service/reprieve-pods",
            "ingress.networking.k8s.io/reprieve-page",
        ]
        notes = there.helm("get", "notes", "reprieve", "-n", SYSTEM)
        assert "kubectl exec -n kube-system reprieve-0 " in notes
        assert "https://localhost:8889/ui/" in notes
        assert "The Ingress of the page may send the token in plain HTTP." in notes
        there.helm("rollback", "reprieve", "1", "-n", SYSTEM)
        assert names() == before
