"""Kubelets behind the node proxy: their answers, errors, and concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.eviction.advise.kubelet_client import (
    KubeletAnswer,
    KubeletClient,
    KubeletReadError,
    run_concurrently,
)
from extender.kube.rest.client import Client
from extender.kube.rest.transport import Request, Response, Stream, TransportError
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from tests.builders import encoded

SUMMARY: dict[str, Any] = {
    "node": {"nodeName": "n", "memory": {"availableBytes": 5, "workingSetBytes": 5}}
}
CONFIG = {"kubeletconfig": {"evictionHard": {"memory.available": "1Gi"}}}
Answers = Mapping[str, object]


class Proxy:
    """A transport on which some paths of every node have an answer: JSON, a status, or none."""

    def __init__(self, answers: Answers) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.most = 0
        self._open = 0

    async def request(self, request: Request) -> Response:
        path = request.path.partition("/proxy/")[2]
        self.asked.append(request.path)
        self._open += 1
        self.most = max(self.most, self._open)
        await asyncio.sleep(0)
        self._open -= 1
        answer = self.answers[path]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(200, answer if isinstance(answer, bytes) else encoded(answer))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        if request.path:
            raise NotImplementedError(str(request))
        yield  # type: ignore[misc]  # what there would be is of no concern

    async def close(self) -> None:
        """Nothing is open."""


def kubelets(proxy: Proxy, clock: VirtualClock | None = None, at_once: int = 4) -> KubeletClient:
    return KubeletClient(Client(proxy), clock or VirtualClock(), NEWEST_EVICTION, at_once)


def answering(**answers: object) -> Proxy:
    return Proxy({"stats/summary": SUMMARY, "configz": CONFIG, **answers})


async def test_a_kubelet_returns_stats_and_configuration() -> None:
    answer = await kubelets(answering()).get("n")
    assert answer.summary.node.memory is not None
    assert answer.summary.node.memory.available == 5
    assert [str(each) for each in answer.config.thresholds] == [
        "memory.available<1Gi",
        "allocatableMemory.available<1Gi",
    ]
    assert answer.note == ""


async def test_nodes_with_equal_configurations_share_them() -> None:
    proxy = answering(**{"stats/summary": {"node": {}}})
    asked, plans = kubelets(proxy), []
    for name in ("a", "b"):
        proxy.answers["configz"] = {
            "kubeletconfig": {**CONFIG["kubeletconfig"], "providerID": name}
        }
        plans.append((await asked.get(name)).config)
    assert plans[0] is plans[1]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (
            {"stats/summary": Response(503, b"no route")},
            "stats/summary: 503 Service Unavailable: no route",
        ),
        (
            {"stats/summary": Response(502, b"<html>\n<h1>bad\n")},
            "stats/summary: 502 Bad Gateway: <html> <h1>bad",
        ),
        ({"stats/summary": Response(404, b"")}, "stats/summary: 404 Not Found: empty answer"),
        ({"stats/summary": b"no JSON"}, "stats/summary: not JSON: "),
        ({"stats/summary": {"node": 5}}, "stats/summary: node: expected object, got int"),
        (
            {"stats/summary": {"node": {"nodeName": "m"}}},
            "stats/summary: node.nodeName: expected 'n', got 'm'",
        ),
        ({"stats/summary": TransportError("cut\noff")}, "stats/summary: cut off"),
        ({"configz": {"kubeletconfig": {"evictionHard": 5}}}, "configz: "),
        (
            {"configz": {"kubeletconfig": {"evictionHard": {"memory.available": "-1"}}}},
            "configz: evictionHard: eviction threshold memory.available must be positive: -1",
        ),
    ],
)
async def test_an_unreadable_answer_is_reported_in_one_line(answers: Answers, error: str) -> None:
    with pytest.raises(KubeletReadError) as caught:
        await kubelets(answering(**answers)).get("n")
    assert str(caught.value).startswith(error)
    assert "\n" not in str(caught.value)


async def test_an_unresponsive_kubelet_times_out() -> None:
    clock = VirtualClock()
    proxy = answering(**{"stats/summary": None})
    asking = asyncio.create_task(kubelets(proxy, clock).get("n"))
    await clock.advance(10)
    with pytest.raises(KubeletReadError, match="stats/summary: no response not within 10 s"):
        await asking


async def test_a_kubelet_without_a_configuration_endpoint_has_the_defaults() -> None:
    proxy = answering(configz=Response(403, b"forbidden"))
    answer = await kubelets(proxy).get("n")
    assert str(answer.config.thresholds[0]) == "memory.available<100Mi"
    assert answer.note == "configz: 403 Forbidden: forbidden; assuming the kubelet's defaults"


async def test_configurations_are_fetched_every_five_minutes() -> None:
    clock, proxy = VirtualClock(), answering()
    asked = kubelets(proxy, clock)
    for _ in range(21):
        await asked.get("n")
        await clock.advance(15)
    assert sum("configz" in path for path in proxy.asked) == 2
    asked.retain(["m"])
    await asked.get("n")
    assert sum("configz" in path for path in proxy.asked) == 3


async def test_requests_are_concurrent_up_to_a_limit() -> None:
    proxy = answering(**{"stats/summary": {"node": {}}})
    got: dict[str, KubeletAnswer | KubeletReadError] = {}
    nodes = [f"n{index}" for index in range(50)]
    await kubelets(proxy, at_once=7).get_all(nodes, got.__setitem__)
    assert sorted(got) == sorted(nodes)
    assert proxy.most == 7


async def test_concurrency_is_limited() -> None:
    open_, most, done = 0, 0, []

    async def work(thing: int) -> None:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        await asyncio.sleep(0)
        open_ -= 1
        done.append(thing)

    await run_concurrently(3, range(10), work)
    assert (sorted(done), most) == (list(range(10)), 3)
