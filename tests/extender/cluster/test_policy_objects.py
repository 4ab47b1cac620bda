"""Objects that only policies read: watched if one does, and part of the snapshot."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client
from policies.kubernetes.policy_objects import ResourceQuota
from policies.preemption.costs.catalog import cost_criteria, lost_work
from policies.preemption.policy import Policy, PolicyRule, SchedulerRules
from tests.extender.kube.conftest import ScriptedApi, SteppedClock

USAGE = Policy("usage", candidates=(cost_criteria(lost_work({}))["highest quota usage"],))
READ = {"resourcequotas"}


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        (SchedulerRules(), ()),
        (SchedulerRules(policy=USAGE), {"resourcequotas"}),
        (
            SchedulerRules(policy_rules=(PolicyRule("some", lambda _: False, USAGE),)),
            {"resourcequotas"},
        ),
    ],
    ids=["by default", "a policy", "a policy of some preemptors"],
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
