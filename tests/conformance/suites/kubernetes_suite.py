"""The [Conformance] specs of sig-api-machinery, from Kubernetes' end-to-end tests, on fakeapi.

A real kube-controller-manager runs the controllers that fakeapi does not have. Its name keeps this
module out of ``make e2e``: it takes ten minutes, and half an hour to build.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from fakeapi import FakeCluster
from fakeapi.controlplane.components import COMPONENTS
from tests.conformance.build import GINKGO, suite_program
from tests.conformance.scheduling.releases import built
from tests.conformance.suites.results import counts, differences, read_list, specs

SPECS: Final = r"\[sig-api-machinery\].*\[Conformance\]"
RUN: Final = ",".join(name for name in COMPONENTS if name != "workloadspread")
NODES: Final = """
register:
- {name: "node-{}", count: 3, capacity: {cpu: "8", memory: 32Gi}, labels: {kubernetes.io/os: linux}}
"""
OURS: Final = (
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "disruption-controller",
    "replicaset-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
)
"""Controllers of kube-controller-manager that fakeapi has as components."""
PROCESSES: Final = 6
"""How many specs run at a time; most of them wait."""


@contextmanager
def controller_manager(kubeconfig: Path, log: Path) -> Iterator[None]:
    """Run the controllers that fakeapi does not have until the block ends."""
    files = [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
    chosen = ",".join(("*", *(f"-{name}" for name in OURS)))
    flags = ("--secure-port=0", "--leader-elect=false", f"--controllers={chosen}")
    rates = ("--kube-api-qps=1000", "--kube-api-burst=2000")
    program = built("operators/kube-controller-manager")
    with log.open("w") as file:
        process = subprocess.Popen((program, *files, *flags, *rates), stdout=file, stderr=file)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@pytest.mark.timeout(3600)
def test_the_specs_end_as_listed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    listed = read_list("kubernetes.yaml")
    suite = built("suites/e2e") / suite_program("k8s.io/kubernetes/test/e2e")
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(NODES)
    left_out = "|".join(each.pattern for each in listed if each.waits)
    with FakeCluster.as_process(
        run=RUN, tls=True, rbac=True, bootstrap=True, kubelet=nodes
    ) as cluster:
        flags = (
            *("--no-color", f"--procs={PROCESSES}", f"--focus={SPECS}", f"--skip={left_out}"),
            *("--json-report=report.json", f"--output-dir={tmp_path}", "--timeout=40m"),
        )
        asked = (
            *("--provider=skeleton", "--num-nodes=3", f"--kubeconfig={cluster.kubeconfig_path}"),
            f"--kubectl-path={Path(sys.executable).with_name('kubectl')}",
        )
        with controller_manager(cluster.kubeconfig_path, tmp_path / "controllers.log"):
            done = subprocess.run(
                (built(GINKGO), *flags, suite, "--", *asked),
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
    assert (tmp_path / "report.json").exists(), done.stdout[-20_000:]
    found = specs(tmp_path / "report.json")
    states = {
        name: state
        for name, state in found
        if name.startswith("[sig-api-machinery]") and "[Conformance]" in name
    }
    record_property("kubernetes", counts(states, listed))
    gone = [each.pattern for each in listed if not any(map(each.matches, states))]
    assert not gone, f"listed, but not in the suite: {gone}"
    assert not differences(states, listed), done.stdout[-20_000:]
