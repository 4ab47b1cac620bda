"""Pod groups in the scheduler cache, in whatever version the server has them."""

from __future__ import annotations

import random

import pytest

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.typed_decoder import Unreadable
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client
from policies.kubernetes.pod_groups import PodGroups
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from tests.builders import node, pod, pod_group
from tests.extender.kube.conftest import ScriptedApi, SteppedClock


def cache() -> SchedulerCache:
    return SchedulerCache(lambda: 0.0)


def test_the_members_of_a_group_are_its_bound_pods() -> None:
    cluster = cache()
    first, second = (pod(name, on=f"on-{name}", group="g") for name in ("a", "b"))
    for each in (first, second, pod("pending", group="g"), pod("plain", on="on-a")):
        cluster.pods.upsert(each)
    assert cluster.snapshot().group_members == {"default/g": (first, second)}
    cluster.pods.remove(second)
    assert cluster.snapshot().group_members == {"default/g": (first,)}
    cluster.pods.upsert(pod("a", on="on-a", group="g", finished=True))
    assert cluster.snapshot().group_members == {}


def test_unchanged_groups_are_shared_between_snapshots() -> None:
    cluster = cache()
    cluster.pods.upsert(pod("a", on="n", group="g"))
    cluster.pod_groups.groups.upsert(pod_group("g"))
    before = cluster.snapshot()
    cluster.nodes.upsert(node("n"))
    after = cluster.snapshot()
    assert after.pod_groups is before.pod_groups
    assert after.group_members is before.group_members


def test_an_object_that_cannot_be_decoded_is_missing() -> None:
    cluster = cache()
    cluster.pod_groups.groups.upsert(pod_group("g"))
    cluster.pod_groups.composites.upsert(pod_group("top"))
    assert set(cluster.snapshot().pod_groups.groups) == {"default/g"}
    broken = Unreadable("PodGroup", "default", "g", "g", None, "why")
    cluster.pod_groups.groups.upsert(broken)
    assert cluster.snapshot().pod_groups == PodGroups(composites={"default/top": pod_group("top")})


@pytest.mark.parametrize(
    ("version", "gates", "followed"),
    [
        ("1.37", {}, set()),
        ("1.36", {"GenericWorkload": True, "GangScheduling": True}, set()),
        ("1.37", {"GenericWorkload": True}, {"podgroups"}),
        ("1.38", {}, {"podgroups"}),
        ("1.38", {"CompositePodGroup": True}, {"podgroups", "compositepodgroups"}),
    ],
)
def test_pod_groups_are_followed_only_where_preemption_reads_them(
    version: str, gates: dict[str, bool], followed: set[str]
) -> None:
    clock = SteppedClock()
    context = ReflectorContext(Client(ScriptedApi(clock)), clock, random.Random(0))
    kinds = build_reflectors(context, cache(), SchedulerRules(release(version, gates)))
    assert {"podgroups", "compositepodgroups"}.intersection(kinds) == followed
