"""A running extender whose policy lets pods wait for an autoscaler."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from extender.config.component_config import Config
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import EVENTS
from tests.builders import SECOND, Document, encoded, node_json, pod_json
from tests.commands import ROOT
from tests.extender.conftest import Following, following, preempt_body
from tests.extender.go_decoder import preempted
from tests.extender.secure_serving.raw_clients import wait_until

POLICY: Final = str(ROOT / "deploy" / "policies" / "autoscaler-first.yaml")
VIP: Final = pod_json("vip", cpu="1", priority=10)


class WallClock(SystemClock):
    """The system's clock, whose wall time the test sets, in seconds."""

    now = 0

    def now_ns(self) -> int:
        return self.now * SECOND


def scale_up(name: str, reason: str, second: int, pod: str = "vip") -> Document:
    """Return an event as cluster-autoscaler writes it."""
    time = f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z"
    reference = {"kind": "Pod", "namespace": "default", "name": pod, "uid": pod}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", **reference},
        "reason": reason,
        "message": "pod triggered scale-up: [{pool-a 1->2 (max: 5)}]",
        "source": {"component": "cluster-autoscaler"},
        "type": "Normal",
        **dict.fromkeys(("firstTimestamp", "lastTimestamp"), time),
    }


@asynccontextmanager
async def serving(
    *events: Document, refused: dict[str, int] | None = None
) -> AsyncIterator[tuple[Following, WallClock]]:
    """Serve a full node, with these events."""
    objects = [node_json("node-1", cpu="1"), pod_json("one", on="node-1", cpu="1"), VIP, *events]
    clock, config = WallClock(), Config(port=0, policy=POLICY, promise_seconds=0)
    async with following(objects, config, refused, clock) as it:
        await it.let_it_sync()
        yield it, clock


async def answer(it: Following) -> list[str]:
    """Return the victims of a preempt call."""
    reply = await it.extender.post("/preempt", preempt_body(VIP, node_1=["one"]))
    assert reply.status == 200
    found = preempted(reply.body, it.extender.service.cluster.snapshot())
    return [uid for victims in found.values() for uid in victims.uids]


async def test_a_pod_waits_for_an_announced_node_and_then_preempts() -> None:
    async with serving(scale_up("e", "TriggeredScaleUp", 60)) as (it, clock):
        for now in (60, 179):
            clock.now = now
            assert await answer(it) == []
        decisions = json.loads((await it.extender.get("/decisions?limit=1")).text)["decisions"]
        assert decisions[0]["refusedAttempt"] == "waitForAutoscaler"
        assert "it waits for an announced node, for another 1s" in json.dumps(decisions)
        metrics = (await it.extender.get("/metrics")).text
        label = 'action="attempt",guard="waitForAutoscaler"'
        assert f"reprieve_policy_guard_total{{{label}}} 2" in metrics
        clock.now = 180
        assert await answer(it) == ["one"]


async def test_a_later_event_withdraws_the_announcement() -> None:
    async with serving(scale_up("e", "Nominated", 60)) as (it, clock):
        clock.now = 70
        assert await answer(it) == []
        denied = scale_up("f", "NotTriggerScaleUp", 65)
        await it.cluster.client.create(EVENTS.collection("default"), encoded(denied), bytes)
        cluster = it.extender.service.cluster
        await wait_until(lambda: not cluster.snapshot().policy_objects.announced_ns)
        assert await answer(it) == ["one"]


async def test_other_events_are_not_read() -> None:
    events = scale_up("e", "TriggeredScaleUp", 60, pod="other"), scale_up("f", "Pulled", 60)
    async with serving(*events) as (it, clock):
        clock.now = 60
        assert await answer(it) == ["one"]
        stores = it.extender.service.cluster.policy_objects.events
        assert [each.reason for store in stores.values() for each in store.view()] == [
            "TriggeredScaleUp"
        ]


async def test_without_permission_to_read_events_no_pod_waits() -> None:
    event = scale_up("e", "TriggeredScaleUp", 60)
    async with serving(event, refused={"events": 403}) as (it, clock):
        clock.now = 60
        assert await answer(it) == ["one"]
        ready = await it.extender.get("/readyz?verbose")
        assert ready.status == 200
        assert "events (Nominated) excluded" in ready.text
