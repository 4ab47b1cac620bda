"""The chart, installed by helm into fakeapi, and one of its pods, run as a kubelet would."""

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
from tests.deploy.network import Answer, Caller, Network


@dataclass(frozen=True, slots=True)
class Installed:
    """A release in a cluster, one container of it, and who signs for it."""

    cluster: Cluster
    container: Container
    authority: CertificateAuthority

    def ask(self, path: str, body: Any = None, pair: str = "") -> Answer:
        """Ask by the service's name, trusting only the authority, if there is TLS."""
        secure = self.container.spec["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
        caller = Caller(self.authority.certificate.decode() if secure else None, pair)
        service = self.cluster.get("service", "reprieve")["spec"]["ports"][0]
        assert self.container.port(service["targetPort"]) == service["port"]
        return self.cluster.network.ask(service["port"], path, body, caller, name=HOST)


@contextmanager
def installed(
    net: Network,
    image: Image,
    home: Path,
    values: Mapping[str, Any],
    world: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Installed]:
    """Install into a world (by default :func:`full`), and run a pod until the block ends.

    It has to end well.
    """
    authority = CertificateAuthority()
    file = home / "values.json"
    file.write_text(json.dumps(values))
    with cluster(net, home / "cluster", [*(world or full()), secret(authority)]) as there:
        there.helm("install", "reprieve", str(CHART), "-n", SYSTEM, "-f", str(file))
        pod = there.get("deployment", "reprieve")["spec"]["template"]["spec"]
        work = home / "volumes"
        work.mkdir()
        kubelet = Kubelet(there, image, work)
        with kubelet.running(pod) as container:
            container.wait_ready()
            yield Installed(there, container, authority)
            assert container.stop() == 0, container.said()
