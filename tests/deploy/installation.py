"""The chart, installed by helm into fakeapi, and one of its pods, run as a kubelet does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extender.secure_serving.self_signed import CertificateAuthority
from tests.builders import Document
from tests.deploy.charts import CHART
from tests.deploy.cluster import SYSTEM, Cluster, cluster
from tests.deploy.cluster_objects import HOST, PAGE_HOST, full, secret
from tests.deploy.containers import Container, Kubelet
from tests.deploy.image import Image
from tests.deploy.network import Answer, ClientTls, Network


@dataclass(frozen=True, slots=True)
class Installed:
    """A release in a cluster, one of its containers, and its certificate authority.

    ``kubelet`` runs the container again, on the same volumes.
    """

    cluster: Cluster
    container: Container
    authority: CertificateAuthority
    kubelet: Kubelet

    def request(self, path: str, body: Any = None, pair: str = "") -> Answer:
        """Send a request to the service; with TLS, only the authority is trusted."""
        port, client = self._port("reprieve"), self._client(pair)
        return self.cluster.network.request(port, path, body, client, name=HOST)

    def page(self, path: str, token: str = "", name: str = PAGE_HOST) -> Answer:
        """Send a request to the service of the page, as for :meth:`request`."""
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        port, client = self._port("reprieve-page"), self._client()
        return self.cluster.network.request(port, path, None, client, name, headers)

    def _client(self, pair: str = "") -> ClientTls:
        secure = self.container.spec["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
        return ClientTls(self.authority.certificate.decode() if secure else None, pair)

    def _port(self, name: str) -> int:
        """Return the port of a service, which is that of the container."""
        service = self.cluster.get("service", name)["spec"]["ports"][0]
        assert self.container.port(service["targetPort"]) == service["port"]
        return int(service["port"])


@contextmanager
def installed(
    net: Network,
    image: Image,
    home: Path,
    values: Mapping[str, Any],
    objects: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Installed]:
    """Install into a cluster with ``objects`` (:func:`full` by default), and run one of its pods.

    When the block ends, the pod must exit with 0.
    """
    authority = CertificateAuthority()
    file = home / "values.json"
    file.write_text(json.dumps(values))
    with cluster(net, home / "cluster", [*(objects or full()), secret(authority)]) as there:
        there.helm("install", "reprieve", str(CHART), "-n", SYSTEM, "-f", str(file))
        pod = read_pod(there, "reprieve")
        work = home / "volumes"
        work.mkdir()
        kubelet = Kubelet(there, image, work)
        with kubelet.running(pod) as container:
            container.wait_ready()
            yield Installed(there, container, authority, kubelet)
            assert container.stop() == 0, container.read_log()


def read_pod(there: Cluster, name: str) -> Document:
    """Return the spec of a pod of our Deployment or StatefulSet, with the volumes it claims."""
    label = f"app.kubernetes.io/instance={name}"
    found = there.kubectl(
        "get", "deployments,statefulsets", "-n", SYSTEM, "-l", label, "-o", "json"
    )
    [workload] = json.loads(found)["items"]
    spec = workload["spec"]
    names = [each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", ())]
    claims = [
        {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}-0"}}
        for claim in names
    ]
    pod: Document = spec["template"]["spec"]
    return {**pod, "volumes": [*pod["volumes"], *claims]}
