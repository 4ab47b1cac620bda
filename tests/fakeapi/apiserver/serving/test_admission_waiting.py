"""Webhooks that are waited for: others are served, time is the world's, nothing goes stale."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.apiserver.serving.virtual_clock import VirtualClock, wait_idle
from fakeapi.simulation.world import create_api
from tests.fakeapi.admission_webhooks import Review, answered, configuration, webhook
from tests.fakeapi.api_requests import MAPS, NAME, ask, named


class Gate:
    """A webhook that waits until the test lets it answer."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def answer(self, review: Review) -> Review:
        self.requests.append(review["request"])
        await self._opened.wait()
        return answered(review)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def api(clock: VirtualClock) -> Api:
    return create_api(clock, Random(7), history=100)


@pytest.fixture
def transport(api: Api, clock: VirtualClock) -> LocalTransport:
    return LocalTransport(api, clock, Random(1))


@pytest.fixture
def gate(api: Api) -> Gate:
    gate = Gate()
    api.load([configuration("validating", webhook(NAME, timeoutSeconds=5))])
    api.webhooks.handlers[NAME] = gate.answer
    return gate


class TestWaiting:
    async def test_others_are_served_meanwhile(self, transport: LocalTransport, gate: Gate) -> None:
        waiting = asyncio.create_task(ask(transport, "POST", MAPS, named("m")))
        await wait_idle()
        assert (await ask(transport, "POST", "/api/v1/nodes", named("n"))).status == 201
        assert (await ask(transport, "GET", f"{MAPS}/m")).status == 404
        gate.open()
        assert (await waiting).status == 201
        assert len(gate.requests) == 1

    @pytest.mark.usefixtures("gate")
    async def test_the_time_is_the_worlds(
        self, transport: LocalTransport, clock: VirtualClock
    ) -> None:
        waiting = asyncio.create_task(ask(transport, "POST", MAPS, named("m")))
        await clock.advance(4.9)
        assert not waiting.done()
        await clock.advance(0.2)
        answer = await waiting
        assert answer.status == 500
        assert answer.body["message"].endswith('?timeout=5s": context deadline exceeded')

    async def test_an_object_that_changed_meanwhile_is_reviewed_again(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named("m", a="1")}])
        patch = {"data": {"mine": "1"}}
        waiting = asyncio.create_task(ask(transport, "PATCH", f"{MAPS}/m", patch))
        await wait_idle()
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named("m", a="2")}])
        gate.open()
        assert (await waiting).body["data"] == {"a": "2", "mine": "1"}
        assert [seen["oldObject"]["data"]["a"] for seen in gate.requests] == ["1", "2"]

    async def test_a_replacement_of_an_object_that_changed_meanwhile_conflicts(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named("m", a="1")}])
        present = (await ask(transport, "GET", f"{MAPS}/m")).body
        waiting = asyncio.create_task(ask(transport, "PUT", f"{MAPS}/m", present))
        await wait_idle()
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named("m", a="2")}])
        gate.open()
        assert (await waiting).status == 409

    async def test_a_name_that_was_taken_meanwhile_is_taken(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        waiting = asyncio.create_task(ask(transport, "POST", MAPS, named("m")))
        await wait_idle()
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named("m")}])
        gate.open()
        assert (await waiting).status == 409

    async def test_a_generated_name_stays_the_same(
        self, transport: LocalTransport, gate: Gate
    ) -> None:
        gate.open()
        body = {"metadata": {"generateName": "m-"}}
        made = (await ask(transport, "POST", MAPS, body)).body["metadata"]
        [seen] = gate.requests
        assert (made["name"], made["uid"]) == (seen["name"], seen["object"]["metadata"]["uid"])
        assert made["uid"] != seen["uid"]

    async def test_validating_webhooks_are_called_at_once_and_mutating_ones_in_turn(
        self, transport: LocalTransport, api: Api
    ) -> None:
        for role, at_once in (("validating", 3), ("mutating", 1)):
            gates = [Gate() for _ in range(3)]
            names = [f"{letter}.{role}.com" for letter in "abc"]
            api.load([configuration(role, *map(webhook, names))])
            api.webhooks.handlers.update({n: g.answer for n, g in zip(names, gates, strict=True)})
            waiting = asyncio.create_task(ask(transport, "POST", MAPS, named(role)))
            await wait_idle()
            assert sum(len(gate.requests) for gate in gates) == at_once
            for gate in gates:
                gate.open()
            assert (await waiting).status == 201
            api.reset()

    async def test_a_collection_goes_one_by_one_and_each_is_asked_about_once(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        kind = {"kind": "ConfigMap", "apiVersion": "v1"}
        api.load([{**kind, **named(name)} for name in "abc"])
        waiting = asyncio.create_task(ask(transport, "DELETE", MAPS))
        await wait_idle()
        assert len(gate.requests) == 1
        gate.open()
        answer = await waiting
        assert [each["metadata"]["name"] for each in answer.body["items"]] == ["a", "b", "c"]
        seen = [request["oldObject"]["metadata"]["name"] for request in gate.requests]
        assert seen == ["a", "b", "c"]
        assert (await ask(transport, "GET", MAPS)).body["items"] == []

    async def test_a_collection_survives_that_others_delete_too(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        api.load([{"kind": "ConfigMap", "apiVersion": "v1", **named(name)} for name in "ab"])
        waiting = asyncio.create_task(ask(transport, "DELETE", MAPS))
        await wait_idle()
        other = asyncio.create_task(ask(transport, "DELETE", f"{MAPS}/b"))
        gate.open()
        assert (await other).status == 200
        assert (await waiting).status == 200

    async def test_a_cancelled_request_changes_nothing(
        self, transport: LocalTransport, gate: Gate, api: Api
    ) -> None:
        before = api.store.version
        waiting = asyncio.create_task(ask(transport, "POST", MAPS, named("m")))
        await wait_idle()
        waiting.cancel()
        gate.open()
        await asyncio.gather(waiting, return_exceptions=True)
        assert api.store.version == before
