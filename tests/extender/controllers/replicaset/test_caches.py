"""Pods and ReplicaSets that belong together: upstream's tables, and a scan as the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.controllers.replicaset.types import OwnedPod, ReplicaSet
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.stages import stepped_stage
from tests.extender.controllers.replicaset.upstream_tables import Case, cases, owned_pod


@cases("pod_replicasets_lookup")
async def test_upstreams_table_of_the_replica_sets_of_an_orphan(case: Case) -> None:
    sets = [
        a_replica_set(
            each["name"], {}, namespace=each["namespace"] or "default", selector=each["selector"]
        )
        for each in case["rss"]
    ]
    orphan = a_pod(**case["pod"])
    async with stepped_stage(*sets) as stage:
        found = stage.caches.replica_sets_of_orphan(owned_pod(orphan))
        assert sorted(each.metadata.name for each in found) == sorted(case["expect"])


@cases("related_lookup")
async def test_upstreams_table_of_related_pods(case: Case) -> None:
    sets = [sibling(each) for each in case["rss"]]
    pods = [
        a_pod(each["name"], labels=each["labels"], namespace=each["namespace"])
        for each in case["pods"]
    ]
    async with stepped_stage(*sets, *pods) as stage:
        web = stage.cached(f"default/{case['rs']}")
        assert set(names(stage.caches.siblings(web))) == set(case["expect_rss"])
        assert set(names(stage.caches.related(web))) == set(case["expect_pods"])


def names(objects: Iterable[OwnedPod | ReplicaSet]) -> list[str]:
    return [each.metadata.name for each in objects]


def sibling(fields: Document) -> Document:
    return a_replica_set(
        fields["name"],
        fields["selector"],
        namespace=fields["namespace"],
        deployment=fields["controller_uid"],
        deleting=fields.get("deleting", False),
    )


async def test_a_replica_set_without_a_controller_has_no_related_pods() -> None:
    async with stepped_stage(a_replica_set(), a_pod("p", "web")) as stage:
        web = stage.cached()
        assert stage.caches.siblings(web) == []
        assert stage.caches.related(web) == []
        assert names(stage.caches.candidates(web)) == ["p"]


async def test_a_sibling_with_an_invalid_selector_has_no_pods() -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
    async with stepped_stage(
        a_replica_set(deployment="d"),
        a_replica_set("odd", {"app": "odd"}, deployment="d", selector=odd),
        a_pod("p", "web"),
        a_pod("q", labels={"app": "odd"}),
    ) as stage:
        assert names(stage.caches.related(stage.cached())) == ["p"]


async def test_candidates_are_own_pods_and_the_orphans_of_the_namespace() -> None:
    pods = [
        a_pod("ours", "web"),
        a_pod("orphan", labels={"app": "other"}),
        a_pod("elsewhere", labels={"app": "web"}, namespace="kube-system"),
        a_pod("of-a-namesake", labels={"app": "web"}),
        a_pod("of-another", "db"),
    ]
    pods[3]["metadata"]["ownerReferences"] = [controlled_by("web", "old")]
    async with stepped_stage(a_replica_set(), *pods) as stage:
        assert names(stage.caches.candidates(stage.cached())) == ["ours", "orphan"]


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))
EXPRESSIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from("ab"),
                "operator": st.sampled_from(["In", "NotIn"]),
                "values": st.lists(st.sampled_from("xyz"), min_size=1, max_size=2),
            }
        ),
        st.fixed_dictionaries(
            {"key": st.sampled_from("ab"), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
        ),
    ),
    max_size=2,
)
SELECTORS = st.fixed_dictionaries({"matchLabels": LABELS, "matchExpressions": EXPRESSIONS})


@given(selector=SELECTORS, labels=st.lists(LABELS, max_size=8))
async def test_related_pods_are_those_that_a_scan_finds(
    selector: dict[str, Any], labels: list[dict[str, str]]
) -> None:
    pods = [a_pod(f"p{index}", labels=each) for index, each in enumerate(labels)]
    async with stepped_stage(a_replica_set(deployment="d", selector=selector), *pods) as stage:
        web = stage.cached()
        assert web.selector is not None
        cached = stage.caches.pods.objects.values()
        matching = [each for each in cached if web.selector.matches(each.labels)]
        assert set(names(stage.caches.related(web))) == set(names(matching))
