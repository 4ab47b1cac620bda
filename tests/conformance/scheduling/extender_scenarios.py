"""An extender that is down, slow, or answers 500; and one that knows more nodes than offered."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.kube_scheduler import ONE_NODE, Extender
from tests.conformance.scheduling.pods import bound_pod, pending_pod, small_node
from tests.conformance.scheduling.relay import Manner

_LICENSE: Final = "example.com/license"
_ROW: Final = 30
_IMPATIENT: Final = partial(Extender, timeout_seconds=0.5, ignorable=True)


async def _load_two_full_nodes(env: Environment) -> None:
    """Load two full nodes; on the first are the cheaper pod and a tiny one, to be deleted."""
    await env.load(
        small_node("node-1"), small_node("node-2"), bound_pod("tiny", "node-1", "100m", 1000)
    )
    await env.load(
        bound_pod("cheap", "node-1", "1900m", 1), bound_pod("dear", "node-2", priority=5)
    )


async def _trigger_a_retry(env: Environment) -> None:
    await env.cluster.delete("Pod", "tiny", gracePeriodSeconds=0)


async def _check_that_the_cheap_pod_is_preempted(env: Environment) -> None:
    await env.wait_preempted("new", "node-1")
    assert env.deleted() == ["cheap"]


async def an_extender_is_restarted(env: Environment) -> None:
    """No pod is preempted while it is down; once it runs and its caches have synced, one is."""
    await _load_two_full_nodes(env)
    await env.extender.stop()
    await env.cluster.create(pending_pod("new", cpu="1900m"))
    await env.wait_unschedulable("new")
    await env.extender.start()
    await _trigger_a_retry(env)
    await _check_that_the_cheap_pod_is_preempted(env)
    assert {call.status for call in env.relay.preempt_calls()} == {200, 502}


async def a_required_extender_fails(env: Environment) -> None:
    """A required extender answers 500: no pod is preempted until it recovers."""
    await _load_two_full_nodes(env)
    env.relay.behave(Manner.REFUSED)
    await env.cluster.create(pending_pod("new", cpu="1900m"))
    await env.wait_unschedulable("new")
    assert env.deleted() == []
    env.relay.behave(Manner.PASSED_ON)
    await _trigger_a_retry(env)
    await _check_that_the_cheap_pod_is_preempted(env)


async def an_ignorable_extender_fails(env: Environment) -> None:
    """An ignorable extender answers 500: kube-scheduler decides without it."""
    await _load_two_full_nodes(env)
    env.relay.behave(Manner.REFUSED)
    await env.cluster.create(pending_pod("new", cpu="1900m"))
    await _check_that_the_cheap_pod_is_preempted(env)
    assert 200 not in {call.status for call in env.relay.preempt_calls()}


async def an_extender_times_out(env: Environment) -> None:
    """It answers after the timeout: kube-scheduler has decided without it."""
    await _load_two_full_nodes(env)
    env.relay.behave(Manner.HELD)
    await env.cluster.create(pending_pod("new", cpu="1900m"))
    assert await env.wait_nominated("new") == {"new": "node-1"}
    env.relay.behave(Manner.PASSED_ON)
    await _check_that_the_cheap_pod_is_preempted(env)


async def a_node_that_was_not_offered_is_better(env: Environment) -> None:
    """kube-scheduler offers one node; the extender evaluates all, and names the best."""
    await env.load(*(small_node(f"node-{n}") for n in range(_ROW)))
    await env.load(*(bound_pod(f"pod-{n}", f"node-{n}", priority=_ROW - n) for n in range(_ROW)))
    for number in range(1, 6):
        best = f"node-{_ROW - number}"
        await env.cluster.create(pending_pod(f"new-{number}"))
        await env.wait_preempted(f"new-{number}", best)
    calls = env.relay.preempt_calls()
    assert [len(call.offered) for call in calls] == [1] * 5
    assert any(call.named != call.offered for call in calls)
    assert env.deleted() == sorted(f"pod-{_ROW - number}" for number in range(1, 6))


async def a_managed_resource(env: Environment) -> None:
    """The extender is called only for pods that request the resource that it manages."""
    await env.load(small_node("node-1", others={_LICENSE: "1"}), small_node("node-2"))
    licensed = bound_pod("licensed", "node-1", "1", 10, containers=[_licensed_container()])
    await env.load(
        licensed, bound_pod("cheap", "node-1", "1", 5), bound_pod("other", "node-2", "2", 1)
    )
    await env.cluster.create(pending_pod("plain"))
    await env.wait_preempted("plain", "node-2")
    assert env.relay.calls == []
    await env.cluster.create(pending_pod("wants", cpu="1", others={_LICENSE: "1"}))
    await env.wait_preempted("wants", "node-1")
    assert env.deleted() == ["licensed", "other"]
    assert [call.named for call in env.relay.preempt_calls()] == [["node-1"]]


async def a_resource_that_the_scheduler_ignores(env: Environment) -> None:
    """A resource that kube-scheduler ignores need not be on any node."""
    await env.load(small_node("node-1"), small_node("node-2"))
    await env.load(
        bound_pod("cheap", "node-1", priority=1), bound_pod("dear", "node-2", priority=5)
    )
    await env.cluster.create(pending_pod("wants", others={_LICENSE: "1"}))
    await env.wait_preempted("wants", "node-1")
    assert env.deleted() == ["cheap"]
    assert [call.named for call in env.relay.preempt_calls()] == [["node-1"]]


def _licensed_container() -> dict[str, object]:
    resources = {"requests": {"cpu": "1", _LICENSE: "1"}, "limits": {_LICENSE: "1"}}
    return {"name": "main", "image": "pause", "resources": resources}


def _managed(*, ignored: bool) -> Setting:
    managed = [{"name": _LICENSE, "ignoredByScheduler": ignored}]
    return Setting(
        extender=partial(Extender, managed_resources=managed), serving={"managedResources": managed}
    )


SCENARIOS: Final = [
    SchedulingScenario(an_extender_is_restarted),
    SchedulingScenario(a_required_extender_fails),
    SchedulingScenario(an_ignorable_extender_fails, Setting(extender=_IMPATIENT)),
    SchedulingScenario(an_extender_times_out, Setting(extender=_IMPATIENT)),
    SchedulingScenario(
        a_node_that_was_not_offered_is_better, Setting(ONE_NODE, serving={"search": "cluster"})
    ),
    SchedulingScenario(a_managed_resource, _managed(ignored=False)),
    SchedulingScenario(a_resource_that_the_scheduler_ignores, _managed(ignored=True)),
]
