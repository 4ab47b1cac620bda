"""Which pods and ReplicaSets belong together: upstream's tables, and the indexes' twin."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.controller_cluster import workshop
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    Document,
    cases,
    pod,
)


@cases("pod_replicasets_lookup")
async def test_upstreams_table_of_who_wants_an_orphan(case: Case) -> None:
    sets = [
        a_replica_set(
            each["name"], {}, namespace=each["namespace"] or "default", selector=each["selector"]
        )
        for each in case["rss"]
    ]
    given_pod = case["pod"]
    candidate = a_pod(
        given_pod["name"], labels=given_pod["labels"], namespace=given_pod["namespace"]
    )
    async with workshop(*sets) as shop:
        found = shop.part.caches.replica_sets_of_orphan(pod(candidate))
        assert sorted(each.metadata.name for each in found) == sorted(case["expect"])


@cases("related_lookup")
async def test_upstreams_table_of_relatives(case: Case) -> None:
    sets = [relative(each) for each in case["rss"]]
    pods = [
        a_pod(each["name"], labels=each["labels"], namespace=each["namespace"])
        for each in case["pods"]
    ]
    async with workshop(*sets, *pods) as shop:
        copies = shop.part.caches
        of = copies.get(f"default/{case['rs']}")
        assert of is not None
        assert {each.metadata.name for each in copies.siblings(of)} == set(case["expect_rss"])
        assert {each.metadata.name for each in copies.related(of)} == set(case["expect_pods"])


def relative(given_set: Document) -> Document:
    document = a_replica_set(
        given_set["name"],
        given_set["selector"],
        namespace=given_set["namespace"],
        deployment=given_set["controller_uid"],
    )
    if given_set.get("deleting"):
        document["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    return document


async def test_without_a_controller_not_even_ones_own_pods_are_related() -> None:
    async with workshop(a_replica_set(), a_pod("p", "web")) as shop:
        of = shop.part.caches.get("default/web")
        assert of is not None
        assert shop.part.caches.siblings(of) == []
        assert shop.part.caches.related(of) == []
        assert [each.metadata.name for each in shop.part.caches.candidates(of)] == ["p"]


async def test_a_sibling_whose_selector_cannot_be_read_has_no_pods() -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
    async with workshop(
        a_replica_set(deployment="d"),
        a_replica_set("odd", {"app": "odd"}, deployment="d", selector=odd),
        a_pod("p", "web"),
        a_pod("q", labels={"app": "odd"}),
    ) as shop:
        of = shop.part.caches.get("default/web")
        assert of is not None
        assert [each.metadata.name for each in shop.part.caches.related(of)] == ["p"]


async def test_candidates_are_ones_own_pods_and_the_orphans_of_ones_namespace() -> None:
    pods = [
        a_pod("ours", "web"),
        a_pod("orphan", labels={"app": "other"}),
        a_pod("elsewhere", labels={"app": "web"}, namespace="kube-system"),
        a_pod("of-a-namesake", labels={"app": "web"}),
        a_pod("of-another", "db"),
    ]
    pods[3]["metadata"]["ownerReferences"] = [controlled_by("web", "old")]
    async with workshop(a_replica_set(), *pods) as shop:
        of = shop.part.caches.get("default/web")
        assert of is not None
        found = [each.metadata.name for each in shop.part.caches.candidates(of)]
        assert found == ["ours", "orphan"]


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
async def test_relatives_are_those_that_going_through_all_pods_would_find(
    selector: dict[str, Any], labels: list[dict[str, str]]
) -> None:
    pods = [a_pod(f"p{index}", labels=each) for index, each in enumerate(labels)]
    async with workshop(a_replica_set(deployment="d", selector=selector), *pods) as shop:
        copies = shop.part.caches
        of = copies.get("default/web")
        assert of is not None
        assert of.selector is not None
        everybody = copies.pods.objects.values()
        matching = [each for each in everybody if of.selector.matches(each.labels)]
        assert {each.metadata.name for each in copies.related(of)} == {
            each.metadata.name for each in matching
        }
