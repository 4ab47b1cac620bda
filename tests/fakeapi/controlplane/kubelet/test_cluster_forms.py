"""Kubelets wherever a cluster is: a process of its own, the command line, a fork."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from extender.kube.rest.resources import NODES
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.testing.process_cluster import ProcessError
from tests.commands import reprieve
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import node, pod

BOOK: Final = """
register: [{name: "node-{}", count: 2}]
pods:
- {match: {names: [job]}, stages: [{after: 2s, exit: 0}]}
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    return path


def phases(cluster: Any) -> dict[str, str]:
    *_, last = cluster.history("pods").states()
    return {each["metadata"]["name"]: each["status"]["phase"] for each in last}


PODS: Final = (pod("job", "node-0", restartPolicy="Never"), pod("web", "node-1"))


def test_in_a_process_of_its_own(book: Path) -> None:
    with FakeCluster.as_process(run="kubelet", kubelet=book) as cluster:
        cluster.load(PODS)
        cluster.advance(10)
        assert phases(cluster) == {"job": "Succeeded", "web": "Running"}


def test_a_book_that_is_wrong_starts_no_process(tmp_path: Path) -> None:
    wrong = tmp_path / "book.yaml"
    wrong.write_text("pods: [{stages: [{exit: soon}]}]")
    with (
        pytest.raises(ProcessError),
        FakeCluster.as_process(run="kubelet", kubelet=wrong),
    ):
        pass


async def test_a_fork_has_the_same_book() -> None:
    async with VirtualCluster(run="kubelet", kubelet=BOOK) as cluster:
        await cluster.clock.advance(1)
        async with cluster.fork() as fork:
            fork.load(PODS)
            await fork.clock.advance(10)
            assert phases(fork) == {"job": "Succeeded", "web": "Running"}


async def test_a_restored_cluster_continues(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"), *(pod(f"p{index}") for index in range(2)))
    saved = stage.cluster.snapshot()
    await stage.passes(0.5)
    starting = stage.cluster.snapshot()
    await stage.passes(10)
    await stage.tell_to_go("p0")
    for moment in (starting, saved):
        stage.cluster.restore(moment)
        await stage.passes(10)
        assert await stage.phases() == {"p0": "Running*", "p1": "Running*"}
        assert (await stage.conditions("n"))["Ready"] == "True"
        found = await stage.get(NODES, "n")
        assert found["status"]["capacity"]["pods"] == "110"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "--kubelet: book.yaml: No such file or directory"),
        ("pods: [{stages: [{exit: soon}]}]", "--kubelet: book.yaml: pods[0].stages[0].exit: "),
        ("pods: [", "--kubelet: book.yaml: "),
        ("nodes: [{stages: [{silent: 5}]}]", "--kubelet: book.yaml: nodes[0].stages[0].silent: "),
        ("podz: []", "--kubelet: book.yaml: "),
    ],
    ids=["missing", "a wrong value", "no YAML", "a wrong type", "an unknown field"],
)
async def test_a_script_error_is_reported_in_one_line(
    tmp_path: Path, text: str | None, error: str
) -> None:
    path = tmp_path / "book.yaml"
    if text is not None:
        path.write_text(text)
    done = await reprieve("fakeapi", "--port", "0", "--run", "kubelet", "--kubelet", str(path))
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert error in line.replace(f"{tmp_path}/", "")


@pytest.mark.slow
async def test_a_script_without_kubelets_is_refused(book: Path) -> None:
    done = await reprieve("fakeapi", "--port", "0", "--kubelet", str(book))
    assert done.code == 2
    expected = "no kubelets in --run gc,namespaces; expected 'kubelet' in it, or 'all'"
    assert done.err == f"reprieve: --kubelet: {expected}\n"
