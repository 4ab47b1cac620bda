"""The WorkloadSpread of a pod is among those that target one of its owners."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.controllers.workloadspread.controller_finder import OwnerChain
from extender.controllers.workloadspread.spread_cache import WorkloadSpreadIndex
from extender.controllers.workloadspread.types import CachedObject, decode_spread
from extender.kube.informers.indexer import Indexer
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.quirks import FIXED
from policies.workloadspread.spread_lookup import (
    OwnerLookup,
    OwnerNotFoundError,
    workloadspread_of_new_pod,
)
from policies.workloadspread.workloads import TargetWorkload
from tests.builders import encoded
from tests.builders.workloadspread import Document, member, spread_json, target_json

KINDS = {"ReplicaSet": "apps/v1", "Deployment": "apps/v1", "Unknown": "example.com/v1"}
REFERENCES = st.builds(
    lambda kind, name: WorkloadReference(KINDS[kind], kind, name),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from("ab"),
)


def written(
    number: int, target: WorkloadReference, *, terminating: bool, filtered: bool
) -> Document:
    document = spread_json({"name": "s"}, name=f"w{number}")
    document["spec"]["targetRef"] = target_json(target.kind, target.api_version, target.name)
    if filtered:
        document["spec"]["targetFilter"] = {"selector": {"matchLabels": {"app": "other"}}}
    if terminating:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    return document


@st.composite
def indexes(draw: st.DrawFn) -> WorkloadSpreadIndex:
    objects: Indexer[CachedObject[StoredWorkloadSpread]] = Indexer()
    index = WorkloadSpreadIndex(objects)
    for number, target in enumerate(draw(st.lists(REFERENCES, max_size=5))):
        flags = {"terminating": draw(st.booleans()), "filtered": draw(st.booleans())}
        objects.upsert(decode_spread(encoded(written(number, target, **flags))))
    return index


@st.composite
def chains(draw: st.DrawFn) -> tuple[WorkloadReference, OwnerChain]:
    """Return a controller, and its chain as the finder returns it."""
    found: dict[ObjectKey, TargetWorkload] = {}
    unread: frozenset[ObjectKey] = frozenset()
    links: list[ObjectKey] = []
    references = draw(st.lists(REFERENCES, min_size=1, max_size=4, unique=True))
    end = draw(st.sampled_from(["whole", "missing", "unread"]))
    whole = True
    for place, reference in enumerate(references):
        identity = reference.identity
        links.append(identity)
        if identity.kind == "Unknown":
            break
        last = place == len(references) - 1
        if last and end == "missing":
            whole = False
            break
        if last and end == "unread":
            unread = frozenset([identity])
            break
        above = None if last else references[place + 1]
        found[identity] = TargetWorkload(identity, "default", controller=above)
    return references[0], OwnerChain(OwnerLookup(found, unread), tuple(links), complete=whole)


@given(indexes(), chains())
def test_workload_spreads_that_target_no_owner_can_be_left_out(
    index: WorkloadSpreadIndex, gathered: tuple[WorkloadReference, OwnerChain]
) -> None:
    controller, chain = gathered
    pod = member("web-1", controller=controller, labels={"app": "web"})

    def found(candidates: list[str] | None) -> str | None:
        several = index.of_namespace("default")
        chosen = [
            each.spread for each in several if candidates is None or each.spread.name in candidates
        ]
        try:
            spread = workloadspread_of_new_pod(pod, chosen, chain.owners, FIXED)
        except OwnerNotFoundError as error:
            return f"refused: {error}"
        return None if spread is None else spread.name

    names = [each.spread.name for each in index.targeting("default", chain)]
    assert names == sorted(names)
    assert found(names) == found(None)


def test_an_invalid_workload_spread_matches_no_pod() -> None:
    document = spread_json({"name": "s", "maxReplicas": 1.5})
    objects: Indexer[CachedObject[StoredWorkloadSpread]] = Indexer()
    index = WorkloadSpreadIndex(objects)
    cached = decode_spread(encoded(document))
    objects.upsert(cached)
    assert cached.value is None
    assert "WorkloadSpread default/web: spec.subsets[0].maxReplicas: expected" in cached.problem
    assert index.get("default", "web") is None
    assert index.of_namespace("default") == []
    assert index.has_any("default")


def test_an_invalid_spec_is_reported_with_its_object() -> None:
    cached = decode_spread(b'{"metadata": {"name": "x", "namespace": "n"}, "spec": 1}')
    assert (cached.metadata.key, cached.value) == ("n/x", None)
    assert cached.problem == "WorkloadSpread n/x: spec: expected object | null, got int"
