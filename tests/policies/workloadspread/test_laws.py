"""Laws of WorkloadSpreads with any subsets, pods and status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from policies.workloadspread.deletion_costs import SubsetRank
from policies.workloadspread.model import (
    FAKE_SUBSET,
    UNLIMITED,
    SpreadPod,
    SubsetInjection,
    SubsetStatus,
    WorkloadSpread,
)
from policies.workloadspread.pod_admission import (
    AdmissionContext,
    PodAdmission,
    admit_creation,
    admit_removal,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.reconcile import ReconcileResult, reconcile
from policies.workloadspread.spread_lookup import OwnerLookup
from policies.workloadspread.targets import Target
from tests.builders import node
from tests.builders.workloadspread import (
    NOW_NS,
    around,
    at,
    condition,
    member,
    rules,
    spread,
    subset,
    workload,
)

NAMES = "abc"
NODES = around(node("node-1"))
MANY = 6

limits = st.one_of(st.integers(0, 3), st.sampled_from(["0%", "30%", "50%", "100%"]))
ages = st.integers(0, 40)
moments = st.dictionaries(
    st.sampled_from([f"web-{number}" for number in range(MANY)]), ages.map(lambda age: at(-age))
)


@st.composite
def entries(draw: st.DrawFn, name: str) -> SubsetStatus:
    schedulable = draw(st.sampled_from(["", "True", "False"]))
    since = -draw(st.sampled_from([5, 299, 400]))
    return SubsetStatus(
        name,
        draw(st.integers(-1, 3)),
        creating=draw(moments),
        deleting=draw(moments),
        conditions=(condition(schedulable, since),) if schedulable else (),
    )


@st.composite
def spreads(draw: st.DrawFn) -> WorkloadSpread:
    count = draw(st.integers(1, 3))
    subsets = [
        subset(name, draw(limits if index < count - 1 else st.none() | limits))
        for index, name in enumerate(NAMES[:count])
    ]
    base = spread(*subsets, adaptive=draw(st.sampled_from([None, 20])))
    known = tuple(draw(entries(name)) for name in draw(st.permutations(NAMES[:count])))
    past = draw(st.sampled_from(["none", "overall", "all"]))
    versions = {"versionIgnored": known} if past == "all" else {}
    return replace(
        base,
        status=replace(base.status, subsets=() if past == "none" else known, versions=versions),
    )


@st.composite
def pods(draw: st.DrawFn) -> list[SpreadPod]:
    return [
        member(
            f"web-{number}",
            phase=draw(st.sampled_from(["Running", "Pending", "Failed"])),
            node=draw(st.sampled_from(["", "node-1"])),
            unschedulable=draw(st.booleans()),
            created_ns=at(-draw(ages)),
            injection=draw(
                st.none()
                | st.sampled_from([SubsetInjection("web", name) for name in (*NAMES, "x")])
            ),
        )
        for number in range(draw(st.integers(0, MANY)))
    ]


def synced(
    mine: WorkloadSpread, members: Iterable[SpreadPod], *, replicas: int = 4
) -> ReconcileResult:
    target = Target(workload(replicas=replicas), pods=tuple(members))
    return reconcile(mine, target, NODES, NOW_NS, rules(FIXED))


def asking() -> AdmissionContext:
    return AdmissionContext(OwnerLookup(), lambda _: workload(replicas=4), NOW_NS, rules(FIXED))


@given(spreads(), pods(), st.randoms(use_true_random=False))
def test_the_order_in_which_pods_are_listed_does_not_matter(
    mine: WorkloadSpread, members: list[SpreadPod], random: Random
) -> None:
    shuffled = random.sample(members, len(members))
    assert synced(mine, shuffled).status == synced(mine, members).status
    assert synced(mine, shuffled).costs == synced(mine, members).costs


@given(spreads(), pods())
def test_a_second_sync_changes_nothing(mine: WorkloadSpread, members: list[SpreadPod]) -> None:
    first = synced(mine, members)
    adopted = [
        replace(pod, injection=SubsetInjection("web", first.groups.adopted[pod.name].name))
        if pod.name in first.groups.adopted
        else pod
        for pod in members
    ]
    again = synced(replace(mine, status=first.status), adopted)
    assert again.status == first.status
    assert not again.writes_status
    assert again.costs == first.costs
    assert not again.groups.adopted


@given(spreads(), pods())
def test_missing_replicas_stay_within_the_limit(
    mine: WorkloadSpread, members: list[SpreadPod]
) -> None:
    outcome = synced(mine, members)
    for entry, each in zip(outcome.status.subsets, mine.subsets, strict=True):
        assert entry.name == each.name
        if each.max_replicas is None:
            assert entry.missing == UNLIMITED
        elif isinstance(each.max_replicas, int):
            assert 0 <= entry.missing <= each.max_replicas


@given(spreads(), pods())
def test_every_pod_is_in_one_group(mine: WorkloadSpread, members: list[SpreadPod]) -> None:
    outcome = synced(mine, members)
    placed = [pod.name for found in outcome.groups.subsets.values() for pod in found]
    assert sorted(placed) == sorted(pod.name for pod in members)
    assert set(outcome.groups.subsets) <= {*(each.name for each in mine.subsets), FAKE_SUBSET}


@given(spreads(), pods())
def test_costs_separate_pods_by_their_rank(mine: WorkloadSpread, members: list[SpreadPod]) -> None:
    outcome = synced(mine, members)
    active = {pod.name for pod in members if pod.active}
    assert set(outcome.costs) == active
    for cost in outcome.costs.values():
        assert (cost.value > 0) == (cost.subset_rank is SubsetRank.WITHIN)
    outside = {pod.name for pod in outcome.groups.subsets.get(FAKE_SUBSET, ())} & active
    least = min((cost.value for cost in outcome.costs.values()), default=0)
    assert all(outcome.costs[name].value == least for name in outside)


@given(spreads(), pods())
def test_only_pending_pods_are_deleted(mine: WorkloadSpread, members: list[SpreadPod]) -> None:
    outcome = synced(mine, members)
    for deletion in outcome.pods_to_delete:
        pod = deletion.pod
        assert mine.strategy.reschedule_critical_seconds > 0
        assert pod.unschedulable
        assert (pod.phase, pod.node) == ("Pending", "")
        assert deletion.subset != mine.subsets[-1].name


@given(spreads(), st.integers(1, 8))
def test_admitting_keeps_each_subset_to_its_limit(mine: WorkloadSpread, count: int) -> None:
    """Admit pod after pod; each limited subset is full before the next gets a pod."""
    current = replace(mine, status=replace(mine.status, versions={}, subsets=()))
    chosen: list[str | None] = []
    for number in range(count):
        answer = admit(current, f"new-{number}")
        chosen.append(answer.subset)
        if answer.status is not None:
            current = replace(current, status=answer.status)
    numbered = [each for each in mine.subsets if isinstance(each.max_replicas, int)]
    for each in numbered:
        assert chosen.count(each.name) <= int(each.max_replicas or 0)
    places = [each.name for each in mine.subsets]
    ranks = [len(places) if name is None else places.index(name) for name in chosen]
    assert ranks == sorted(ranks)


@given(spreads())
def test_an_admitted_and_deleted_pod_leaves_its_replica_missing(mine: WorkloadSpread) -> None:
    answer = admit(mine, "new")
    if answer.subset is None or answer.status is None:
        return
    later = replace(mine, status=answer.status)
    seen = synced(later, [member("new", answer.subset)]).status
    gone = admit_removal(member("new", answer.subset), [replace(mine, status=seen)], asking())
    if gone.status is None:
        return
    (before,) = (e for e in seen.versions["versionIgnored"] if e.name == answer.subset)
    (after,) = (e for e in gone.status.versions["versionIgnored"] if e.name == answer.subset)
    assert after.missing == before.missing + 1


def admit(mine: WorkloadSpread, name: str) -> PodAdmission:
    pod = member(name, node="", phase="Pending")
    return admit_creation(pod, [mine], asking(), lambda: "an-id")


@given(spreads(), pods())
def test_without_quirks_both_modes_agree(mine: WorkloadSpread, members: list[SpreadPod]) -> None:
    """Compare costs and groups; upstream's quirks change only counts and recorded pods here."""
    target = Target(workload(replicas=4), pods=tuple(members))
    ours = reconcile(mine, target, NODES, NOW_NS, rules(FIXED))
    theirs = reconcile(mine, target, NODES, NOW_NS, rules(UPSTREAM))
    assert ours.costs == theirs.costs
    assert ours.groups == theirs.groups
    assert ours.pods_to_delete == theirs.pods_to_delete
    assert ours.requeue_after_ns == theirs.requeue_after_ns
