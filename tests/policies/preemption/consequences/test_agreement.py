"""Both engines count the same consequences on loaded clusters, where most pods preempt others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.kubernetes.snapshot import AffinityTerm, Pod, Snapshot
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.policy import CANDIDATE_CRITERIA, Policy, PolicyCriterion, SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot
from tests.properties.engines import assert_agreement

OWNERS = (None, *(PodOwner("ReplicaSet", name) for name in "abc"))
REPELLED = AffinityTerm(
    LabelSelector(equals_all({"app": "a"})), frozenset(["default"]), None, "zone"
)
CRITERIA = st.lists(
    st.one_of(
        st.builds(
            replace,
            st.sampled_from(list(CONSEQUENCE_CRITERIA.values())),
            shortlist=st.sampled_from([2, 3, 16]),
        ),
        st.sampled_from(list(CANDIDATE_CRITERIA.values())),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.name,
)


@st.composite
def loaded_clusters(draw: st.DrawFn) -> Snapshot:
    """Draw nodes that are full, or almost."""
    pods: list[Pod] = []
    sizes = draw(st.lists(st.sampled_from([2, 4]), min_size=2, max_size=7))
    for place, size in enumerate(sizes):
        left = size
        while left and not (pods and draw(st.integers(0, 9)) == 0):
            cpu = draw(st.integers(1, left))
            left -= cpu
            repelling = draw(st.integers(0, 19)) == 0
            pods.append(
                pod(
                    f"p{len(pods)}",
                    on=f"n{place}",
                    cpu=f"{cpu}",
                    priority=draw(st.integers(0, 8)),
                    owner=draw(st.sampled_from(OWNERS)),
                    labels={"app": draw(st.sampled_from("ab"))},
                    anti_affinity=(REPELLED,) if repelling else (),
                )
            )
    return snapshot(
        *(
            node(f"n{n}", cpu=f"{size}", labels={"zone": f"{n % 2}"})
            for n, size in enumerate(sizes)
        ),
        *pods,
    )


@given(st.lists(loaded_clusters(), min_size=1, max_size=3), CRITERIA, st.integers(1, 4), st.data())
def test_loaded_clusters(
    clusters: list[Snapshot], criteria: list[PolicyCriterion], cpu: int, data: st.DataObject
) -> None:
    rules = SchedulerRules(policy=Policy("drawn", candidates=tuple(criteria)))
    engine = VectorizedEngine(rules)
    preemptor = pod("new", cpu=f"{cpu}", priority=9, owner=data.draw(st.sampled_from(OWNERS)))
    for now in clusters:
        decision = assert_agreement(preemptor, now, rules, engine)
        counts = {key for each in decision.consequences.values() for key in each.values()}
        event(f"{min(len(counts), 3)} different counts")
