"""Real kube-schedulers run with our example files, and call the installation.

The files are used unchanged: /etc/hosts has the service's name, and the scheduler's container has
the paths that they name.
"""

from __future__ import annotations

import json
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.builders import Document
from tests.conformance.scheduling.releases import RELEASES, scheduler
from tests.deploy.charts import DEPLOY
from tests.deploy.cluster import SYSTEM, Cluster
from tests.deploy.cluster_objects import HOST, SECRET, full, scheduler_roles
from tests.deploy.container_root import ContainerRoot, Mount, User
from tests.deploy.containers import Kubelet
from tests.deploy.image import Image
from tests.deploy.installation import Installed, installed
from tests.deploy.network import Network

EXAMPLES: Final = DEPLOY / "kube-scheduler"
PATIENCE_SECONDS: Final = 90.0
_BETWEEN_SECONDS: Final = 0.2
_PLAIN: Final = {"tls": {"mode": "none"}}


@contextmanager
def static_scheduler(
    there: Cluster, image: Image, release: str, config: str, home: Path
) -> Iterator[Path]:
    """Run a kube-scheduler with a configuration as control planes do, and yield its log."""
    files = {
        "scheduler.conf": there.kubeconfig.read_bytes(),
        "ca.crt": b64decode(there.get("secret", SECRET)["data"]["ca.crt"]),
        "config.yaml": config.encode(),
    }
    home.mkdir()
    for name, content in files.items():
        (home / name).write_bytes(content)
    root = ContainerRoot(
        image.tree,
        environment=image.environment,
        mounts=[
            Mount(home / "scheduler.conf", "/etc/kubernetes/scheduler.conf"),
            Mount(home / "config.yaml", "/etc/kubernetes/config.yaml"),
            Mount(home / "ca.crt", "/etc/kubernetes/reprieve/ca.crt"),
            Mount(home / "ca.crt", "/etc/reprieve-ca/ca.crt"),
        ],
        hosts=[HOST],
        programs={"kube-scheduler": scheduler(release)},
    )
    command = root.command("kube-scheduler", "--config", "/etc/kubernetes/config.yaml")
    log = home / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(there.network.inside(*command), stdout=output, stderr=output) as process,
    ):
        try:
            yield log
        finally:
            process.terminate()


def until(holds: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, log.read_text()[-6000:]
        time.sleep(_BETWEEN_SECONDS)


def preempts(there: Installed, log: Path) -> None:
    """Check that the pod of the lowest priority is preempted, and the pending pod bound."""
    cluster = there.cluster

    def pod(name: str) -> Document:
        return cluster.get("pod", name, "default")

    until(lambda: "deletionTimestamp" in pod("lower")["metadata"], log)
    assert "deletionTimestamp" not in pod("low")["metadata"]
    cluster.kubectl("delete", "pod", "lower", "-n", "default", "--grace-period=0", "--force")
    until(lambda: pod("high")["spec"].get("nodeName") == "node-2", log)


def called_verbs(there: Installed) -> set[str]:
    """Name the verbs that were called."""
    output = json.loads(there.request("/decisions").text)
    return {decision["verb"] for decision in output["decisions"]}


def settings(release: str, search: str, values: Mapping[str, Any]) -> Document:
    return {**values, "config": {"upstream": release, "search": search}}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("file", "search", "values", "verbs"),
    [
        ("configuration.yaml", "cluster", _PLAIN, {"preempt"}),
        ("two-entries.yaml", "cluster", {}, {"filter", "preempt"}),
    ],
)
def test_example_configurations(
    file: str, search: str, values: Document, verbs: set[str], release: str,
    net: Network, image: Image, tmp_path: Path,
) -> None:  # fmt: skip
    config = (EXAMPLES / file).read_text()
    with installed(net, image, tmp_path, settings(release, search, values)) as there:
        with static_scheduler(there.cluster, image, release, config, tmp_path / "scheduler") as log:
            preempts(there, log)
        assert called_verbs(there) == verbs


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("values", [{}, _PLAIN], ids=["tls", "plain"])
def test_the_entries_that_helm_prints(
    values: Document, release: str, net: Network, image: Image, tmp_path: Path
) -> None:
    with installed(net, image, tmp_path, settings(release, "offered", values)) as there:
        notes = there.cluster.helm("get", "notes", "reprieve", "-n", SYSTEM)
        printed = notes[notes.index("- urlPrefix") : notes.index("Its rules")]
        entries = printed.replace("CLUSTER_IP", HOST)  # as an administrator fills in the address
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
            "extenders": yaml.safe_load(entries),
        }
        text, home = yaml.safe_dump(config), tmp_path / "scheduler"
        with static_scheduler(there.cluster, image, release, text, home) as log:
            preempts(there, log)
        assert called_verbs(there) == {"filter", "preempt"}


@pytest.mark.parametrize("release", RELEASES)
def test_the_second_scheduler(release: str, net: Network, image: Image, tmp_path: Path) -> None:
    world = [*full("reprieve-scheduler"), *scheduler_roles()]
    with installed(net, image, tmp_path, settings(release, "cluster", {}), world) as there:
        cluster = there.cluster
        cluster.kubectl("apply", "--validate=strict", "-f", str(EXAMPLES / "second-scheduler.yaml"))
        pod = cluster.get("deployment", "reprieve-scheduler")["spec"]["template"]["spec"]
        volumes = tmp_path / "scheduler"
        volumes.mkdir()
        programs = {"kube-scheduler": scheduler(release)}
        kubelet = Kubelet(cluster, replace(image, user=User()), volumes, [HOST], programs)
        with kubelet.running(pod) as second:
            second.wait_ready()
            preempts(there, second.log)
            assert second.probe("livenessProbe").status == 200
            lease = cluster.get("lease", "reprieve-scheduler")
            assert lease["spec"]["holderIdentity"]
            assert "forbidden" not in second.read_log()
        assert called_verbs(there) == {"filter", "preempt"}
