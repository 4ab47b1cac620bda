"""Requests that wait for webhooks: others are served, and changes meanwhile are respected."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.apiserver.serving.virtual_clock import VirtualClock, wait_idle
from fakeapi.simulation.world import create_api
from tests.builders import manifest
from tests.fakeapi.admission_webhooks import Review, answered, configuration, webhook
from tests.fakeapi.api_requests import MAPS, NAME, NODES, Answer, ask, named


class WaitingWebhook:
    """A webhook that answers once the test releases it."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def answer(self, review: Review) -> Review:
        self.requests.append(review["request"])
        await self._released.wait()
        return answered(review)


class Scene:
    """An API whose webhook waits, and a client of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = create_api(self.clock, Random(7), history=100)
        self.hook = WaitingWebhook()
        self._transport = LocalTransport(self.api, self.clock, Random(1))

    def load(self, *names: str, **data: str) -> None:
        self.api.load([manifest("ConfigMap", name, data=data) for name in names])

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        return await ask(self._transport, method, path, body)

    async def begin(self, method: str, path: str, body: Any = None) -> asyncio.Task[Answer]:
        """Send a request, and return its task once it waits for the webhook."""
        task = asyncio.create_task(self.ask(method, path, body))
        await wait_idle()
        return task


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.api.load([configuration("validating", webhook(NAME, timeoutSeconds=5))])
    scene.api.webhooks.handlers[NAME] = scene.hook.answer
    return scene


async def test_other_requests_are_served_meanwhile(scene: Scene) -> None:
    waiting = await scene.begin("POST", MAPS, named("m"))
    assert (await scene.ask("POST", NODES, named("n"))).status == 201
    assert (await scene.ask("GET", f"{MAPS}/m")).status == 404
    scene.hook.release()
    assert (await waiting).status == 201
    assert len(scene.hook.requests) == 1


async def test_timeouts_are_measured_by_the_virtual_clock(scene: Scene) -> None:
    waiting = asyncio.create_task(scene.ask("POST", MAPS, named("m")))
    await scene.clock.advance(4.9)
    assert not waiting.done()
    await scene.clock.advance(0.2)
    answer = await waiting
    assert answer.status == 500
    assert answer.body["message"].endswith('?timeout=5s": context deadline exceeded')


async def test_an_object_that_changed_meanwhile_is_reviewed_again(scene: Scene) -> None:
    scene.load("m", a="1")
    patch = {"data": {"mine": "1"}}
    waiting = await scene.begin("PATCH", f"{MAPS}/m", patch)
    scene.load("m", a="2")
    scene.hook.release()
    assert (await waiting).body["data"] == {"a": "2", "mine": "1"}
    assert [seen["oldObject"]["data"]["a"] for seen in scene.hook.requests] == ["1", "2"]


async def test_a_replacement_of_an_object_that_changed_meanwhile_conflicts(scene: Scene) -> None:
    scene.load("m", a="1")
    present = (await scene.ask("GET", f"{MAPS}/m")).body
    waiting = await scene.begin("PUT", f"{MAPS}/m", present)
    scene.load("m", a="2")
    scene.hook.release()
    assert (await waiting).status == 409


async def test_a_name_created_meanwhile_conflicts(scene: Scene) -> None:
    waiting = await scene.begin("POST", MAPS, named("m"))
    scene.load("m")
    scene.hook.release()
    assert (await waiting).status == 409


async def test_a_generated_name_stays_the_same(scene: Scene) -> None:
    scene.hook.release()
    body = {"metadata": {"generateName": "m-"}}
    made = (await scene.ask("POST", MAPS, body)).body["metadata"]
    [seen] = scene.hook.requests
    assert (made["name"], made["uid"]) == (seen["name"], seen["object"]["metadata"]["uid"])
    assert made["uid"] != seen["uid"]


async def test_validating_webhooks_are_called_at_once_and_mutating_ones_in_turn() -> None:
    scene = Scene()
    for role, at_once in (("validating", 3), ("mutating", 1)):
        hooks = [WaitingWebhook() for _ in range(3)]
        names = [f"{letter}.{role}.com" for letter in "abc"]
        scene.api.load([configuration(role, *map(webhook, names))])
        scene.api.webhooks.handlers.update({n: h.answer for n, h in zip(names, hooks, strict=True)})
        waiting = await scene.begin("POST", MAPS, named(role))
        assert sum(len(hook.requests) for hook in hooks) == at_once
        for hook in hooks:
            hook.release()
        assert (await waiting).status == 201
        scene.api.reset()


async def test_a_collection_is_deleted_one_by_one_with_one_review_each(scene: Scene) -> None:
    scene.load(*"abc")
    waiting = await scene.begin("DELETE", MAPS)
    assert len(scene.hook.requests) == 1
    scene.hook.release()
    answer = await waiting
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["a", "b", "c"]
    seen = [request["oldObject"]["metadata"]["name"] for request in scene.hook.requests]
    assert seen == ["a", "b", "c"]
    assert (await scene.ask("GET", MAPS)).body["items"] == []


async def test_a_collection_is_deleted_despite_other_deletions(scene: Scene) -> None:
    scene.load(*"ab")
    waiting = await scene.begin("DELETE", MAPS)
    other = asyncio.create_task(scene.ask("DELETE", f"{MAPS}/b"))
    scene.hook.release()
    assert (await other).status == 200
    assert (await waiting).status == 200


async def test_a_cancelled_request_changes_nothing(scene: Scene) -> None:
    before = scene.api.store.version
    waiting = await scene.begin("POST", MAPS, named("m"))
    waiting.cancel()
    scene.hook.release()
    await asyncio.gather(waiting, return_exceptions=True)
    assert scene.api.store.version == before
