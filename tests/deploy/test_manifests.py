"""An API server accepts all manifests: from kubectl of two releases, kustomize and helm.

Validation is strict on both sides: an unknown key is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.builders import Document
from tests.deploy.charts import CHART, DEPLOY, ISSUER, KUSTOMIZE, MONITORED, only, rendered
from tests.deploy.cluster import SYSTEM, Cluster, cluster
from tests.deploy.cluster_objects import definitions
from tests.deploy.network import Network
from tests.deploy.test_chart import EVERYTHING
from tests.deploy.test_ledger import POSTGRESQL, ingress
from tests.e2e.clients import RELEASES

OURS: Final = "app.kubernetes.io/instance=reprieve"
KINDS: Final = (
    "certificates.cert-manager.io,clusterrolebindings,clusterroles,configmaps,deployments,networkpolicies,"
    "poddisruptionbudgets,prometheusrules,resourcequotas,serviceaccounts,servicemonitors,services"
)


@pytest.fixture(params=RELEASES)
def there(request: pytest.FixtureRequest, net: Network, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with definitions for monitoring and certificates, for each release of kubectl."""
    with cluster(net, tmp_path / "cluster", definitions(), request.param) as cluster_there:
        yield cluster_there


SIDES: Final = {"client": (), "server": ("--server-side", "--force-conflicts")}


@pytest.mark.parametrize("side", SIDES)
def test_kustomize_directories_and_examples_are_applied(there: Cluster, side: str) -> None:
    flags = ("apply", "--validate=strict", *SIDES[side])
    for file in ("rbac.yaml", "kube-scheduler/second-scheduler.yaml"):
        there.kubectl(*flags, "-f", str(DEPLOY / file))
    for directory in ("base", "overlays/cert-manager", "overlays/monitoring", "overlays/all"):
        there.kubectl(*flags, "-k", str(KUSTOMIZE / directory))
    found = [re.sub(r"-[0-9a-z]{10}$", "", name) for name in names(there)]
    assert sorted(found) == [
        "Certificate/reprieve",
        "ClusterRole/reprieve",
        "ClusterRoleBinding/reprieve",
        "ConfigMap/reprieve",
        "ConfigMap/reprieve-dashboard",
        "Deployment/reprieve",
        "NetworkPolicy/reprieve",
        "PodDisruptionBudget/reprieve",
        "PrometheusRule/reprieve",
        "Service/reprieve",
        "ServiceAccount/reprieve",
        "ServiceMonitor/reprieve",
    ]


@pytest.mark.parametrize(
    "values",
    [{}, {**ISSUER, **MONITORED}, EVERYTHING, ingress(), POSTGRESQL],
    ids=["defaults", "more", "everything", "file", "postgresql"],
)
def test_the_charts_objects_are_applied(there: Cluster, values: Document) -> None:
    for flags in SIDES.values():
        there.apply(rendered(values), *flags)


def test_an_unknown_key_is_refused(there: Cluster) -> None:
    documents = rendered(MONITORED)
    for kind in ("Deployment", "ServiceMonitor", "PrometheusRule"):
        wrong = deepcopy(only(kind, documents))
        wrong["spec"]["replicsa"] = 3
        for flags in SIDES.values():
            with pytest.raises(AssertionError, match="replicsa"):
                there.apply([wrong], *flags)


def test_helm_installs_upgrades_and_leaves_nothing(net: Network, tmp_path: Path) -> None:
    everything = tmp_path / "everything.json"
    service = {**EVERYTHING["service"], "clusterIP": ""}
    everything.write_text(json.dumps({**EVERYTHING, "fullnameOverride": "", "service": service}))
    with cluster(net, tmp_path / "cluster", definitions()) as there:
        place = ("reprieve", str(CHART), "-n", SYSTEM)
        there.helm("install", *place)
        before = checksum(there)
        there.helm("upgrade", *place, "-f", str(everything))
        assert checksum(there) != before
        assert "Certificate/reprieve" in names(there)
        with pytest.raises(AssertionError, match="serach"):
            there.helm("upgrade", *place, "--set", "config.serach=cluster")
        there.helm("rollback", "reprieve", "1", "-n", SYSTEM)
        assert checksum(there) == before
        assert "Certificate/reprieve" not in names(there)
        there.helm("uninstall", "reprieve", "-n", SYSTEM)
        assert names(there) == []


OPEN: Final = {
    "The port is open to the whole cluster.": {
        "networkPolicy": {"schedulerCIDRs": ["10.0.0.0/28"]}
    },
    "Every client that reaches the port is served.": {"tls": {"clients": {"verify": True}}},
    "The image is named by a tag, which can be moved.": {
        "image": {"digest": f"sha256:{'0' * 64}"},
    },
}


def test_the_notes_name_every_default_that_stays_open(net: Network, tmp_path: Path) -> None:
    with cluster(net, tmp_path / "cluster", definitions()) as there:
        place = ("reprieve", str(CHART), "-n", SYSTEM)
        there.helm("install", *place)
        assert open_defaults(there) == list(OPEN)
        for line, values in OPEN.items():
            file = tmp_path / "values.json"
            file.write_text(json.dumps(values))
            there.helm("upgrade", *place, "-f", str(file))
            assert open_defaults(there) == [each for each in OPEN if each != line]


def test_the_notes_derive_timeouts_from_deadlines(net: Network, tmp_path: Path) -> None:
    deadlines = ("--set", "config.deadlineMilliseconds.preempt=900")
    with cluster(net, tmp_path / "cluster", definitions()) as there:
        there.helm("install", "reprieve", str(CHART), "-n", SYSTEM, *deadlines)
        notes = there.helm("get", "notes", "reprieve", "-n", SYSTEM)
    entries = re.findall(r"(\w+)Verb: \w+\n.*\n  httpTimeout: (\w+)\n", notes)
    assert dict(entries) == {"filter": "2s", "preempt": "4s"}


def open_defaults(there: Cluster) -> list[str]:
    notes = there.helm("get", "notes", "reprieve", "-n", SYSTEM)
    return [line for line in OPEN if line in notes]


def test_an_existing_service_keeps_its_address(net: Network, tmp_path: Path) -> None:
    with cluster(net, tmp_path / "cluster", definitions()) as there:
        place = ("reprieve", str(CHART), "-n", SYSTEM)
        there.helm("install", *place)
        given = there.get("service", "reprieve")["spec"]["clusterIP"]
        with pytest.raises(AssertionError, match="may not change once set"):
            there.helm("upgrade", *place, "--set", "service.clusterIP=10.96.0.77")
        there.helm("upgrade", *place, "--set", f"service.clusterIP={given}")
        there.helm("upgrade", *place)
        assert there.get("service", "reprieve")["spec"]["clusterIP"] == given


def test_two_releases_can_be_installed(net: Network, tmp_path: Path) -> None:
    with cluster(net, tmp_path / "cluster", definitions()) as there:
        for name in ("reprieve", "other"):
            there.helm("install", name, str(CHART), "-n", SYSTEM)
        found = there.kubectl("get", "clusterroles,deployments", "-n", SYSTEM, "-o", "name")
        assert {"deployment.apps/reprieve", "deployment.apps/other-reprieve"} <= set(found.split())
        assert {"clusterrole.rbac.authorization.k8s.io/other-reprieve"} <= set(found.split())


def checksum(there: Cluster) -> str:
    template = there.get("deployment", "reprieve")["spec"]["template"]
    return str(template["metadata"]["annotations"]["checksum/config"])


def names(there: Cluster) -> list[str]:
    """Return the kinds and names of our objects."""
    output = there.kubectl("get", KINDS, "-n", SYSTEM, "-l", OURS, "-o", "yaml")
    found = yaml.safe_load(output)["items"]
    return [f"{each['kind']}/{each['metadata']['name']}" for each in found]
