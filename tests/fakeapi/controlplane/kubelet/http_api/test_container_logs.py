"""Logs of containers: the selection of lines, the kubelet's answers, and the API server's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from extender.kube.decoders.object_meta import parse_time
from extender.kube.rest.resources import NODES, PODS
from extender.kube.rest.transport import Request, Response
from fakeapi import FakeCluster
from fakeapi.controlplane.kubelet.container_logs import (
    ContainerLogError,
    ContainerRun,
    PodLogOptions,
    container_logs,
    parse_log_options,
)
from fakeapi.controlplane.kubelet.scripts import LogWrite
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from tests.fakeapi.clients.kubectl import kubectl_for
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node, pod

BEGAN = parse_time("2026-01-01T00:00:00Z")
LOG = (
    LogWrite(0, "starting"),
    LogWrite(2 * SECOND, "two\nlines\n"),
    LogWrite(5 * SECOND + 1, "h\u00e9"),
)


def at(seconds: float) -> int:
    return BEGAN + round(seconds * SECOND)


@pytest.mark.parametrize(
    ("until", "options", "expected"),
    [
        (at(0), PodLogOptions(), "starting\n"),
        (at(1.9), PodLogOptions(), "starting\n"),
        (at(2), PodLogOptions(), "starting\ntwo\nlines\n"),
        (at(5), PodLogOptions(), "starting\ntwo\nlines\n"),
        (at(6), PodLogOptions(), "starting\ntwo\nlines\nh\u00e9\n"),
        (at(-1), PodLogOptions(), ""),
        (at(6), PodLogOptions(tail_lines=0), ""),
        (at(6), PodLogOptions(tail_lines=2), "lines\nh\u00e9\n"),
        (at(6), PodLogOptions(tail_lines=9), "starting\ntwo\nlines\nh\u00e9\n"),
        (at(6), PodLogOptions(since=at(2)), "two\nlines\nh\u00e9\n"),
        (at(6), PodLogOptions(since=at(3), tail_lines=3), "h\u00e9\n"),
        (at(6), PodLogOptions(since=at(9)), ""),
        (at(6), PodLogOptions(limit_bytes=12), "starting\ntwo"),
        (at(6), PodLogOptions(limit_bytes=99, tail_lines=1), "h\u00e9\n"),
        (
            at(6),
            PodLogOptions(timestamps=True, tail_lines=2),
            "2026-01-01T00:00:02.000000000Z lines\n2026-01-01T00:00:05.000000001Z h\u00e9\n",
        ),
        (at(0), PodLogOptions(timestamps=True, limit_bytes=4), "2026"),
    ],
)
def test_lines_of_a_run_are_selected(until: int, options: PodLogOptions, expected: str) -> None:
    assert container_logs(ContainerRun(LOG, BEGAN, until), options).decode() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n", b"\n"),
        ("a\n\n", b"a\n\n"),
        ("a\r\u2028b", "a\r\u2028b\n".encode()),
        ("\ud800", b"?\n"),
    ],
)
def test_only_newlines_end_lines(text: str, expected: bytes) -> None:
    run = ContainerRun((LogWrite(0, text),), BEGAN, BEGAN)
    assert container_logs(run, PodLogOptions()) == expected


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({}, PodLogOptions()),
        ({"previous": "true", "timestamps": "1"}, PodLogOptions(previous=True, timestamps=True)),
        ({"previous": "false", "timestamps": "0", "follow": "true"}, PodLogOptions()),
        ({"tailLines": "0", "limitBytes": "1"}, PodLogOptions(tail_lines=0, limit_bytes=1)),
        ({"sinceSeconds": "10"}, PodLogOptions(since=at(90))),
        ({"sinceTime": "2026-01-01T01:01:00+01:00"}, PodLogOptions(since=at(60))),
    ],
)
def test_options_are_parsed(query: dict[str, str], options: PodLogOptions) -> None:
    assert parse_log_options(query, at(100)) == options


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"tailLines": "x"}, 400),
        ({"limitBytes": ""}, 400),
        ({"sinceTime": "yesterday"}, 400),
        ({"tailLines": "-1"}, 422),
        ({"limitBytes": "0"}, 422),
        ({"sinceSeconds": "0"}, 422),
        ({"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"}, 422),
    ],
)
def test_invalid_options_are_errors(query: dict[str, str], status: int) -> None:
    with pytest.raises(ContainerLogError) as refused:
        parse_log_options(query, at(100))
    assert refused.value.status == status


async def get(stage: KubeletStage, path: str, **query: str) -> Response:
    return await stage.cluster.local_transport().request(Request("GET", path, tuple(query.items())))


async def kubelet(stage: KubeletStage, path: str, **query: str) -> tuple[int, str]:
    """Ask the kubelet of the node n through the server's proxy."""
    answer = await get(stage, f"/api/v1/nodes/n/proxy/containerLogs/{path}", **query)
    return answer.status, answer.body.decode()


async def logs(stage: KubeletStage, name: str, **query: str) -> tuple[int, str]:
    """Return the log of a pod, or the message of the Status."""
    answer = await get(stage, f"/api/v1/namespaces/default/pods/{name}/log", **query)
    if answer.status >= 400:
        return answer.status, message(answer.body)
    return answer.status, answer.body.decode()


def message(body: bytes) -> str:
    text: str = orjson.loads(body)["message"]
    return text


TWO = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
FLAKY = """
runs:
- [{log: first}, {after: 3s, log: failed, exit: 1}]
- [{log: second}, {after: 3s, exit: 2}]
- [{log: third}]
"""


async def test_the_kubelet_returns_what_a_container_has_written(stage: KubeletStage) -> None:
    script = "{stages: [{log: starting}, {after: 5s, ready: true, log: ready}]}"
    await stage.run(pod("web", script=script), seconds=4)
    assert await kubelet(stage, "default/web/c") == (200, "starting\n")
    await stage.passes(4)
    assert await kubelet(stage, "default/web/c") == (200, "starting\nready\n")
    assert await kubelet(stage, "default/web/c", sinceSeconds="4") == (200, "ready\n")


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("default/nope/c", {}, (404, 'pod "nope" does not exist')),
        ("other/web/c", {}, (404, 'pod "web" does not exist')),
        ("default/web/x", {}, (404, 'container "x" not found in pod "web"')),
        ("default/web", {}, (404, "404 page not found\n")),
        ("default/web/c", {"tailLines": "-1"}, (422, '{"message": "Invalid request."}')),
        ("default/web/c", {"tailLines": "x"}, (400, '{"message": "Unable to decode query."}')),
        (
            *("default/web/c", {"previous": "true"}),
            (400, 'previous terminated container "c" in pod "web" not found'),
        ),
    ],
)
async def test_the_kubelet_returns_errors(
    stage: KubeletStage, path: str, query: dict[str, str], expected: tuple[int, str]
) -> None:
    await stage.run(pod("web"), seconds=4)
    assert await kubelet(stage, path, **query) == expected


@pytest.mark.parametrize(
    ("script", "spec", "reason"),
    [
        ("{start: 1m}", {}, "ContainerCreating"),
        ("{start: 1m}", {"initContainers": [TWO[0]]}, "PodInitializing"),
        ("{failedPulls: always}", {}, "trying and failing to pull image"),
    ],
)
async def test_a_container_that_has_not_started_has_no_log(
    stage: KubeletStage, script: str, spec: Any, reason: str
) -> None:
    await stage.run(pod("web", script=script, **spec), seconds=4)
    expected = (400, f'container "c" in pod "web" is waiting to start: {reason}')
    assert await kubelet(stage, "default/web/c") == expected
    assert await logs(stage, "web", container="c") == expected


async def test_each_run_has_its_own_log(stage: KubeletStage) -> None:
    await stage.run(pod("web", script=FLAKY), seconds=2)
    assert await logs(stage, "web") == (200, "first\n")
    await stage.passes(3)  # restarted at once
    assert await logs(stage, "web") == (200, "second\n")
    assert await logs(stage, "web", previous="true") == (200, "first\nfailed\n")
    await stage.passes(3)  # CrashLoopBackOff
    assert await logs(stage, "web") == (200, "second\n")
    assert await logs(stage, "web", previous="true") == (200, "second\n")
    await stage.passes(10)
    assert await logs(stage, "web") == (200, "third\n")
    assert await logs(stage, "web", previous="true") == (200, "second\n")


async def test_a_stopped_container_writes_no_more(stage: KubeletStage) -> None:
    script = "{stages: [{log: work}, {after: 9s, log: more}], stop: 2s}"
    await stage.run(pod("web", script=script, finalizers=["a/b"]), seconds=3)
    await stage.delete_pod("web")
    await stage.passes(30)
    assert await logs(stage, "web") == (200, "work\n")


async def test_the_log_of_a_completed_pod_remains(stage: KubeletStage) -> None:
    script = "{stages: [{log: a}, {after: 3s, log: done, exit: 0}]}"
    await stage.run(pod("job", script=script, restartPolicy="Never"), seconds=60)
    assert await logs(stage, "job") == (200, "a\ndone\n")
    assert (await logs(stage, "job", previous="true"))[0] == 400


async def test_the_server_returns_plain_text(stage: KubeletStage) -> None:
    script = "{stages: [{log: a}, {after: 1s, log: b}]}"
    await stage.run(pod("web", script=script), seconds=3)
    path = "/api/v1/namespaces/default/pods/web/log"
    answer = await get(stage, path, tailLines="1", timestamps="true", follow="true")
    assert answer.headers["content-type"] == "text/plain"
    assert answer.body.endswith(b".000000000Z b\n")
    assert answer.body.count(b"\n") == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"container": "b"}, (200, "b\n")),
        ({"container": "i"}, (200, "")),
        (
            {},
            (400, "a container name must be specified for pod web, choose one of: [i a b]"),
        ),
        ({"container": "x"}, (400, "container x is not valid for pod web")),
    ],
)
async def test_a_container_must_be_chosen(
    stage: KubeletStage, query: dict[str, str], expected: tuple[int, str]
) -> None:
    containers: dict[str, Any] = {
        "containers": TWO,
        "initContainers": [{"name": "i", "image": "i"}],
    }
    script = "{containers: {b: {stages: [{log: b}]}}}"
    await stage.run(pod("web", script=script, **containers), seconds=9)
    assert await logs(stage, "web", **query) == expected


async def test_an_unknown_pod_is_not_found(stage: KubeletStage) -> None:
    assert await logs(stage, "nope") == (404, 'pods "nope" not found')


async def test_a_pod_without_a_node_has_no_content(stage: KubeletStage) -> None:
    await stage.run(pod("web", node=""))
    assert await logs(stage, "web") == (204, "")


async def test_the_node_of_a_pod_must_exist(stage: KubeletStage) -> None:
    await stage.run(pod("web", node="gone"))
    assert await logs(stage, "web") == (404, 'nodes "gone" not found')


REFUSED = "dial tcp n:10250: connect: connection refused"


async def test_a_silent_node_refuses_the_connection(stage: KubeletStage) -> None:
    await stage.run(pod("web"), seconds=3)
    await stage.say(NODES, "n", "{stages: [{silent: true}]}")
    await stage.passes(1)
    url = "https://n:10250/containerLogs/default/web/c?previous=true&tailLines=1"
    expected = (500, f'Get "{url}": {REFUSED}')
    assert await logs(stage, "web", tailLines="1", previous="true") == expected


async def test_without_kubelets_the_connection_is_refused(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), pod("web"), run="gc")
    url = "https://n:10250/containerLogs/default/web/c"
    assert await logs(stage, "web") == (500, f'Get "{url}": {REFUSED}')


async def test_a_pod_that_the_kubelet_does_not_know_is_not_found(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n", pods="0"), seconds=1)
    await stage.run(pod("web"), seconds=1)
    assert (await stage.get(PODS, "web"))["status"]["reason"] == "OutOfpods"
    expected = "the server could not find the requested resource ( pods/log web)"
    assert await logs(stage, "web") == (404, expected)


NEGATIVE, ZERO = "must be greater than or equal to 0", "must be greater than 0"
BOTH = "at most one of `sinceTime` or `sinceSeconds` may be specified"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tailLines": "-1"}, (422, f"tailLines: Invalid value: -1: {NEGATIVE}")),
        ({"limitBytes": "0"}, (422, f"limitBytes: Invalid value: 0: {ZERO}")),
        ({"sinceSeconds": "0"}, (422, f"sinceSeconds: Invalid value: 0: {ZERO}")),
        ({"stream": "Stdout"}, (422, "stream: Forbidden: may not be specified")),
        (
            {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
            (422, f": Forbidden: {BOTH}"),
        ),
        ({"tailLines": "x"}, (400, 'strconv.ParseInt: parsing "x": invalid syntax')),
        (
            {"sinceTime": "x"},
            (400, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ),
    ],
)
async def test_the_server_rejects_invalid_options(
    stage: KubeletStage, query: dict[str, str], expected: tuple[int, str]
) -> None:
    await stage.run(pod("web"), seconds=3)
    status, text = expected
    head = 'PodLogOptions "web" is invalid: ' if status == 422 else ""
    assert await logs(stage, "web", **query) == (status, head + text)


@pytest.mark.slow
async def test_kubectl_logs(tmp_path: Path) -> None:
    script = "{runs: [[{log: first, exit: 1}], [{log: second}, {log: line}]]}"
    async with FakeCluster(run="kubelet", kubelet="{}") as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        cluster.load([node("n"), pod("web", script=script), pod("two", containers=TWO)])
        waited = await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
        assert waited[0] == 0, waited
        assert await kubectl("logs", "web") == (0, "second\nline\n")
        assert await kubectl("logs", "web", "--tail=1") == (0, "line\n")
        assert await kubectl("logs", "web", "-f", "-c", "c") == (0, "second\nline\n")
        assert await kubectl("logs", "web", "--previous") == (0, "first\n")
        status, text = await kubectl("logs", "two", "-c", "b", "--previous")
        assert status == 1
        refused = 'previous terminated container "b" in pod "two" not found'
        assert text == f"Error from server (BadRequest): {refused}\n"
