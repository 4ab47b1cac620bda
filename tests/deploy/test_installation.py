"""The chart's installation runs as specified, in the image of the Dockerfile.

helm installs into fakeapi, which enforces RBAC; the Deployment is read back, and a kubelet's part
is played for one of its pods: its arguments, environment, user, mounts, token, probes and end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from extender.secure_serving.self_signed import CertificateAuthority
from tests.deploy.charts import only, rendered
from tests.deploy.cluster import cluster
from tests.deploy.cluster_objects import definitions, filtered, full, preempted, secret, written
from tests.deploy.containers import Kubelet
from tests.deploy.image import Image
from tests.deploy.installation import installed
from tests.deploy.network import Answer, Network
from tests.deploy.test_chart import EVERYTHING

PLAIN: Final = {"tls": {"mode": "none"}}
MUTUAL: Final = {
    "tls": {"clients": {"verify": True, "allowedNames": ["system:kube-scheduler"]}},
    "config": {"events": True, "search": "cluster", "shutdownDelaySeconds": 1},
    "policy": {
        "name": "spare-low",
        "protect": [{"name": "databases", "selector": {"matchLabels": {"role": "db"}}}],
    },
}


@pytest.mark.parametrize("values", [{}, PLAIN], ids=["defaults", "plain"])
def test_it_gets_ready_and_answers_as_it_is_installed(
    values: Mapping[str, Any], net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, values) as there:
        assert there.container.probe("livenessProbe") == Answer(200, "ok\n")
        told = there.ask("/readyz?verbose").text
        assert "refused" not in told  # what the ClusterRole allows is all that it asks for
        assert told.endswith("\nok\n")
        fits = json.loads(there.ask("/filter", filtered()).text)
        assert (fits["NodeNames"], sorted(fits["FailedNodes"])) == ([], ["node-1", "node-2"])
        named = json.loads(there.ask("/preempt", preempted()).text)["NodeNameToMetaVictims"]
        assert named == {"node-2": {"Pods": [{"UID": "lower"}], "NumPDBViolations": 0}}


@pytest.mark.parametrize(
    "values",
    [{}, PLAIN, MUTUAL, EVERYTHING],
    ids=["defaults", "plain", "mutual", "everything"],
)
def test_the_configuration_is_one_that_can_be_served(
    values: Mapping[str, Any], net: Network, image: Image, tmp_path: Path
) -> None:
    documents = rendered(values)
    with cluster(
        net, tmp_path / "cluster", [*definitions(), secret(CertificateAuthority())]
    ) as there:
        there.apply(documents)
        name = only("Deployment", documents)["metadata"]["name"]
        pod = there.get("deployment", name)["spec"]["template"]["spec"]
        volumes = tmp_path / "volumes"
        volumes.mkdir()
        [container] = pod["containers"]
        [_, _, file] = container["args"]
        room = Kubelet(there, image, volumes).room(pod)
        done = net.run(*room.command(*image.entrypoint, "check-config", file))
        assert done == f"{file}: valid\n"


def test_clients_are_checked_by_the_ca_of_another_object(
    net: Network, image: Image, tmp_path: Path
) -> None:
    signs = CertificateAuthority()
    bundle = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "clients", "namespace": "kube-system"},
        "data": {"bundle.pem": signs.certificate.decode()},
    }
    ca = {"configMapName": "clients", "key": "bundle.pem"}
    values = {"tls": {"clients": {"verify": True, "ca": ca}}}
    with installed(net, image, tmp_path, values, [*full(), bundle]) as there:
        user = "system:kube-scheduler"
        theirs = written(signs.issue_client(user), tmp_path / "theirs.pem")
        assert there.ask("/preempt", preempted()).status == 403
        assert there.ask("/preempt", preempted(), theirs).status == 200
        ours = written(there.authority.issue_client(user), tmp_path / "ours.pem")
        assert there.ask("/preempt", preempted(), ours).status == 0


def test_only_clients_that_are_allowed_are_served_and_events_may_be_written(
    net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, MUTUAL) as there:
        issue = there.authority.issue_client
        scheduler = written(issue("system:kube-scheduler"), tmp_path / "scheduler.pem")
        stranger = written(issue("system:node:node-1"), tmp_path / "stranger.pem")
        assert there.ask("/preempt", preempted()).status == 403
        assert there.ask("/preempt", preempted(), stranger).status == 403
        named = json.loads(there.ask("/preempt", preempted(), scheduler).text)
        assert list(named["NodeNameToMetaVictims"]) == ["node-2"]
        assert there.container.stop() == 0  # what waits is written before the end
        events = json.loads(there.cluster.kubectl("get", "events", "-n", "default", "-o", "json"))
        reasons = sorted(event["reason"] for event in events["items"])
        assert reasons == ["NamedAsVictim", "VictimsNamed"], there.container.said()
