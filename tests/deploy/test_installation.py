"""The chart's installation runs as specified, in the image of the Dockerfile.

helm installs into fakeapi, which enforces RBAC; the Deployment is read back, and one of its pods
runs as with a kubelet: its arguments, environment, user, mounts, token, probes and termination.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from extender.secure_serving.self_signed import CertificateAuthority
from tests.builders import manifest
from tests.deploy.charts import only, rendered
from tests.deploy.cluster import SYSTEM, cluster
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
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionPolicy",
        "metadata": {"name": "spare-databases"},
        "rules": [
            {
                "name": "all",
                "guards": {
                    "protect": [
                        {"name": "databases", "labels": {"matchLabels": {"role": "db"}}},
                        {"name": "restarted", "expression": "pod.restarts > 9"},
                    ]
                },
            }
        ],
    },
}


@pytest.mark.parametrize("values", [{}, PLAIN], ids=["defaults", "plain"])
def test_an_installation_becomes_ready_and_answers(
    values: Mapping[str, Any], net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, values) as there:
        assert there.container.probe("livenessProbe") == Answer(200, "ok\n")
        output = there.request("/readyz?verbose").text
        assert "refused" not in output  # it requests only what the ClusterRole allows
        assert output.endswith("\nok\n")
        fits = json.loads(there.request("/filter", filtered()).text)
        assert (fits["NodeNames"], sorted(fits["FailedNodes"])) == ([], ["node-1", "node-2"])
        named = json.loads(there.request("/preempt", preempted()).text)["NodeNameToMetaVictims"]
        assert named == {"node-2": {"Pods": [{"UID": "lower"}], "NumPDBViolations": 0}}


@pytest.mark.parametrize(
    "values", [{}, PLAIN, MUTUAL, EVERYTHING], ids=["defaults", "plain", "mutual", "everything"]
)
def test_the_configuration_is_valid(
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
        [_, _, file, *_] = container["args"]
        root = Kubelet(there, image, volumes).root(pod)
        done = net.run(*root.command(*image.entrypoint, "check-config", file))
        assert done == f"{file}: valid\n"


def test_clients_are_verified_by_the_ca_of_another_object(
    net: Network, image: Image, tmp_path: Path
) -> None:
    signs = CertificateAuthority()
    data = {"bundle.pem": signs.certificate.decode()}
    bundle = manifest("ConfigMap", "clients", namespace=SYSTEM, data=data)
    ca = {"configMapName": "clients", "key": "bundle.pem"}
    values = {"tls": {"clients": {"verify": True, "ca": ca}}}
    with installed(net, image, tmp_path, values, [*full(), bundle]) as there:
        user = "system:kube-scheduler"
        theirs = written(signs.issue_client(user), tmp_path / "theirs.pem")
        assert there.request("/preempt", preempted()).status == 403
        assert there.request("/preempt", preempted(), theirs).status == 200
        ours = written(there.authority.issue_client(user), tmp_path / "ours.pem")
        assert there.request("/preempt", preempted(), ours).status == 0


def test_only_clients_that_are_allowed_are_served_and_events_may_be_written(
    net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, MUTUAL) as there:
        issue = there.authority.issue_client
        scheduler = written(issue("system:kube-scheduler"), tmp_path / "scheduler.pem")
        stranger = written(issue("system:node:node-1"), tmp_path / "stranger.pem")
        assert there.request("/preempt", preempted()).status == 403
        assert there.request("/preempt", preempted(), stranger).status == 403
        named = json.loads(there.request("/preempt", preempted(), scheduler).text)
        assert list(named["NodeNameToMetaVictims"]) == ["node-2"]
        assert there.container.stop() == 0  # queued events are written before it exits
        events = json.loads(there.cluster.kubectl("get", "events", "-n", "default", "-o", "json"))
        reasons = sorted(event["reason"] for event in events["items"])
        assert reasons == ["NamedAsVictim", "VictimsNamed"], there.container.read_log()
