"""``reprieve advise eviction`` as a command over HTTP, with its errors."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from extender.kube.rest.connection import connect
from extender.kube.rest.resources import PODS
from fakeapi import FakeCluster
from fakeapi.cli.root_command import main
from tests.commands import start
from tests.extender.eviction.advise.clusters import SEEN, advising, doing, leaking, using, watching
from tests.fakeapi.controlplane.kubelet.stages import node
from tests.stage import decode

QUICK = ("--interval", "1ms")
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def reprieve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a command line in this very process."""

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["reprieve", "advise", "eviction", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return Done(code, *capsys.readouterr())

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer puts its own there
    monkeypatch.setenv("COLUMNS", "120")
    threshold = gc.get_threshold()
    yield run
    structlog.reset_defaults()
    gc.set_threshold(*threshold)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Serve a cluster with a node of 2Gi and a pod on it."""
    with FakeCluster.in_thread(run="kubelet", kubelet={"events": False}) as running:
        running.load([node("n", cpu="4", memory="2Gi"), using("calm")])
        yield running


def test_one_sample_is_a_document(cluster: Any, reprieve: Run) -> None:
    done = reprieve("--server", cluster.url, "--samples", "1", "-o", "json")
    document = json.loads(done.out)
    assert (done.code, done.err, document["unread"]) == (0, "", [])
    assert [each["node"] for each in document["nodes"]] == ["n"]
    assert "deeds" not in document


def test_the_default_output_is_a_table(cluster: Any, reprieve: Run) -> None:
    done = reprieve("--kubeconfig", str(cluster.kubeconfig_path), *QUICK)
    assert done.code == 0
    head, _, *rest = done.out.splitlines()
    assert head.startswith("n: ")
    assert any("memory.available<100Mi" in line and "█" in line for line in rest)


def test_the_document_contains_dry_run_actions(cluster: Any, reprieve: Run) -> None:
    done = reprieve(
        *("--server", cluster.url, *QUICK, "-o", "json", "--cordon-and-evict", "--within", "5m")
    )
    assert (done.code, json.loads(done.out)["deeds"]) == (0, [])


def test_the_local_node_needs_no_cluster(reprieve: Run) -> None:
    done = reprieve("--local", "--samples", "1", "-o", "json", "--node", "me")
    [document] = json.loads(done.out)["nodes"]
    assert (done.code, document["node"], document["leading"]) == (0, "me", "memory.available<100Mi")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--kubeconfig", "f", "--server", "u"), "--kubeconfig and --server exclude each other"),
        (("--server", "nowhere"), "--server: server 'nowhere': expected http(s)://HOST[:PORT]"),
        (("--watch", "--samples", "3"), "--watch and --samples exclude each other"),
        (
            ("--interval", "soon"),
            '--interval: time: invalid duration "soon"; expected a duration such as 90s or 5m',
        ),
        (("--interval", "0s"), "--interval: expected a duration above 0, got 0s"),
        (("--within", "5m", "--yes"), "--within, --yes: only with --cordon-and-evict"),
        (("--rate", "5", "--max-nodes", "1"), "--rate, --max-nodes: only with --cordon-and-evict"),
        (
            ("--cordon-and-evict",),
            "--cordon-and-evict needs --within DURATION, such as --within 5m",
        ),
        (
            ("--cordon-and-evict", "--within", "-5m"),
            "--within: expected a duration above 0, got -5m",
        ),
        (
            ("--cordon-and-evict", "--within", "5m", "--rate", "0"),
            "--rate: expected a number of evictions above 0, got 0",
        ),
        (
            ("--cordon-and-evict", "--within", "5m", "--rate", "nan"),
            "--rate: expected a number of evictions above 0, got nan",
        ),
        (
            ("--local", "--cordon-and-evict", "--within", "5m"),
            "--local and --cordon-and-evict exclude each other",
        ),
        (("--cgroup", "/x"), "--cgroup and the kubelet's flags need --local"),
        (("--eviction-hard", "x"), "--cgroup and the kubelet's flags need --local"),
        (
            ("--local", "--eviction-hard", "x"),
            "--eviction-hard: malformed pair, expect string<string: x",
        ),
        (("--upstream", "0.9"), ""),
    ],
)
def test_an_invalid_argument_is_one_line_and_code_2(
    arguments: tuple[str, ...], error: str, reprieve: Run
) -> None:
    done = reprieve(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"reprieve: {error}")
    assert done.err.count("\n") == 1


def test_a_missing_node_is_named(cluster: Any, reprieve: Run) -> None:
    done = reprieve("--server", cluster.url, "--node", "m")
    assert (done.code, done.err) == (2, "reprieve: --node: no node 'm' in the cluster\n")


def test_an_unreachable_server_is_a_failure(reprieve: Run) -> None:
    done = reprieve("--server", "http://127.0.0.1:9")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reprieve: ")
    assert done.err.count("\n") == 1


def test_a_missing_cgroup_is_a_failure(reprieve: Run) -> None:
    done = reprieve("--local", "--cgroup", "/there/is/none")
    assert done.code == 1
    assert done.err.startswith("reprieve: --cgroup: /there/is/none: ")


@pytest.mark.slow
async def test_watch_mode_exits_cleanly_when_stopped() -> None:
    forever = ("--local", "--watch", "--interval", "1h", "-o", "json", "--node", "me")
    process = await start("advise", "eviction", *forever)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        document = json.loads(await process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, errors = await process.communicate()
    assert document["nodes"][0]["node"] == "me"
    assert (process.returncode, out, errors) == (0, b"", b"")


async def test_the_leaking_pod_is_evicted_over_http() -> None:
    """Advance the world's clock between the rounds."""
    async with FakeCluster(run="kubelet", kubelet={"events": False}) as cluster:
        clock = cluster.clock
        clock.run(0)
        cluster.load([node(name, cpu="4", memory="2Gi") for name in ("a", "n", "z")])
        cluster.load([leaking("greedy", over="1800s"), using("calm"), using("other", "a")])
        await clock.advance(5)
        transport = await connect(kubeconfig=Path(cluster.kubeconfig_path))
        task, recorder = advising(transport, clock, watching(samples=None), doing(20))
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(5):
                await recorder.over.wait()
                recorder.over.clear()
                await clock.advance(SEEN)
        task.cancel()
        await asyncio.wait((task,))
        await transport.close()
        leading = [seen.forecasts[0] for seen in recorder.rounds[1:5]]
        left = [each.forecasts[0].acts_in_ns or 0 for each in leading]
        assert [each.node for each in leading] == ["n"] * 4
        assert left == sorted(left, reverse=True)
        assert [each.split(" (")[0] for each in recorder.actions] == [
            "did cordon n",
            "did evict default/greedy from n",
        ]
        await clock.advance(60)
        there = (await cluster.client.list(PODS, decode)).items
        assert {each["metadata"]["name"] for each in there} == {"calm", "other"}
