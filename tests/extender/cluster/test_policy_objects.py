"""Objects that only policies read: watched if one does, and part of the snapshot."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client
from policies.kubernetes.policy_objects import AutoscalerEvent, ResourceQuota
from policies.preemption.costs.catalog import cost_criteria, lost_work
from policies.preemption.guards.attempt_guard import wait_for_autoscaler
from policies.preemption.policy import Policy, PolicyRule, SchedulerRules
from tests.builders import SECOND
from tests.extender.kube.conftest import ScriptedApi, SteppedClock

USAGE = Policy("usage", candidates=(cost_criteria(lost_work({}))["highest quota usage"],))
WAITING = Policy("waiting", attempt_guards=(wait_for_autoscaler(60 * SECOND),))
EVENTS = {f"events ({reason})" for reason in ("TriggeredScaleUp", "Nominated", "NotTriggerScaleUp")}
READ = {"resourcequotas", *EVENTS}


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        (SchedulerRules(), ()),
        (SchedulerRules(policy=USAGE), {"resourcequotas"}),
        (SchedulerRules(policy=WAITING), EVENTS),
        (
            SchedulerRules(policy_rules=(PolicyRule("some", lambda _: False, USAGE),)),
            {"resourcequotas"},
        ),
    ],
    ids=["by default", "a policy", "a guard", "a policy of some preemptors"],
)
def test_a_kind_is_watched_if_a_policy_reads_it(
    rules: SchedulerRules, kinds: Collection[str]
) -> None:
    clock = SteppedClock()
    context = ReflectorContext(Client(ScriptedApi(clock)), clock, random.Random(0))
    watched = build_reflectors(context, SchedulerCache(clock.monotonic), rules)
    assert READ.intersection(watched) == set(kinds)


def test_quotas_are_in_the_snapshot_by_namespace() -> None:
    cluster = SchedulerCache(lambda: 0.0)
    one, two = ResourceQuota("a", "one", {"cpu": 1}), ResourceQuota("a", "two", {})
    other = ResourceQuota("b", "one", {"cpu": 2})
    cluster.policy_objects.quotas.replace([one, two, other])
    first = cluster.snapshot()
    assert first.policy_objects.quotas == {"a": (one, two), "b": (other,)}
    cluster.policy_objects.quotas.remove(two)
    second = cluster.snapshot()
    assert second.policy_objects.quotas == {"a": (one,), "b": (other,)}
    cluster.policy_objects.quotas.upsert(one)
    assert cluster.snapshot() is second


@pytest.mark.parametrize(
    ("events", "announced"),
    [
        ([], {}),
        ([("p", "TriggeredScaleUp", 1), ("q", "Nominated", 2)], {"p": 1, "q": 2}),
        ([("p", "TriggeredScaleUp", 3), ("p", "Nominated", 2)], {"p": 3}),
        ([("p", "Nominated", 1), ("p", "NotTriggerScaleUp", 2)], {}),
        ([("p", "Nominated", 2), ("p", "NotTriggerScaleUp", 2)], {"p": 2}),
        ([("p", "NotTriggerScaleUp", 1), ("p", "TriggeredScaleUp", 2)], {"p": 2}),
        ([("p", "Nominated", 1), ("q", "NotTriggerScaleUp", 2)], {"p": 1}),
    ],
    ids=["none", "each", "the newest", "withdrawn", "at once", "announced later", "of another"],
)
def test_announcements_are_in_the_snapshot_by_pod(
    events: list[tuple[str, str, int]], announced: dict[str, int]
) -> None:
    cluster = SchedulerCache(lambda: 0.0)
    for number, (pod, reason, at_ns) in enumerate(events):
        event = AutoscalerEvent(f"default/{number}", pod, reason, at_ns)
        cluster.policy_objects.events[reason].upsert(event)
    assert cluster.snapshot().policy_objects.announced_ns == announced
    for store in cluster.policy_objects.events.values():
        store.unlist()
    assert cluster.snapshot().policy_objects.announced_ns == {}
