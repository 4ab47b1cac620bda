"""The chart, installed by helm into fakeapi, and one of its pods, run as a kubelet does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extender.secure_serving.self_signed import CertificateAuthority
from tests.deploy.charts import CHART
from tests.deploy.cluster import SYSTEM, Cluster, cluster
from tests.deploy.cluster_objects import HOST, full, secret
from tests.deploy.containers import Container, Kubelet
from tests.deploy.image import Image
from tests.deploy.network import Answer, ClientTls, Network


@dataclass(frozen=True, slots=True)
class Installed:
    """A release in a cluster, one of its containers, and its certificate authority."""

    cluster: Cluster
    container: Container
    authority: CertificateAuthority

    def request(self, path: str, body: Any = None, pair: str = "") -> Answer:
        """Send a request to the service; with TLS, only the authority is trusted."""
        secure = self.container.spec["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
        client = ClientTls(self.authority.certificate.decode() if secure else None, pair)
        service = self.cluster.get("service", "reprieve")["spec"]["ports"][0]
        assert self.container.port(service["targetPort"]) == service["port"]
        return self.cluster.network.request(service["port"], path, body, client, name=HOST)


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
        pod = there.get("deployment", "reprieve")["spec"]["template"]["spec"]
        work = home / "volumes"
        work.mkdir()
        kubelet = Kubelet(there, image, work)
        with kubelet.running(pod) as container:
            container.wait_ready()
            yield Installed(there, container, authority)
            assert container.stop() == 0, container.read_log()
