"""Random clusters with what policies read: owners, annotations, restarts, past preemptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.policy_objects import PolicyObjects, ResourceQuota
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.costs.catalog import DELETION_COST
from policies.preemption.policy import SchedulerRules
from policies.testing.laws import Case
from policies.testing.strategies import Cluster
from policies.testing.values import SECOND

_OWNERS: Final = (None, PodOwner("Job", "a"), PodOwner("ReplicaSet", "web-1"))


@st.composite
def cases(
    draw: st.DrawFn,
    clusters: st.SearchStrategy[Cluster],
    rules: st.SearchStrategy[SchedulerRules],
    examples: Sequence[Pod] = (),
) -> Case:
    """Draw a decision, and its cluster in another order; its pods are like the ``examples``."""
    cluster = draw(clusters)
    snapshot = draw(worked_snapshots(cluster, examples))
    names = draw(st.permutations(list(snapshot.nodes)))
    shuffled = replace(
        snapshot,
        nodes={name: snapshot.nodes[name] for name in names},
        preemptions=tuple(draw(st.permutations(snapshot.preemptions))),
    )
    return Case(cluster.preemptor, snapshot, draw(rules), shuffled)


@st.composite
def worked_snapshots(draw: st.DrawFn, cluster: Cluster, examples: Sequence[Pod] = ()) -> Snapshot:
    """Draw a moment of a cluster, and what policies read of its pods and budgets."""
    pods = [draw(worked_pods(each)) for each in cluster.pods]
    if examples:
        pods = [like(draw(st.sampled_from(examples)), each) for each in pods]
    worked = replace(
        cluster,
        pods=tuple(pods),
        budgets=tuple(
            replace(each, desired_healthy=draw(st.integers(0, 3))) for each in cluster.budgets
        ),
    )
    of_cluster = [*worked.pods, worked.preemptor]
    past = st.builds(
        PastPreemption,
        st.integers(0, 9).map(lambda seconds: seconds * SECOND),
        st.sampled_from(of_cluster),
        st.sampled_from([None, *of_cluster]),
    )
    quotas = st.builds(
        ResourceQuota,
        st.sampled_from(sorted({each.namespace for each in of_cluster})),
        st.just("quota"),
        st.dictionaries(
            st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 5000), max_size=2
        ),
    )
    return replace(
        worked.snapshot,
        policy_objects=PolicyObjects(
            {each.namespace: (each,) for each in draw(st.lists(quotas, max_size=2))},
            draw(st.sampled_from([{}, {worked.preemptor.uid: 7 * SECOND}])),
        ),
        now_ns=draw(st.integers(0, 9)) * SECOND + 1,
        preemptions=tuple(draw(st.lists(past, max_size=4))),
    )


@st.composite
def worked_pods(draw: st.DrawFn, pod: Pod) -> Pod:
    """Draw what policies read of a pod."""
    written = draw(st.sampled_from([None, None, "5", "-3", "much"]))
    return structs.replace(
        pod,
        owner=draw(st.sampled_from(_OWNERS)),
        annotations={} if written is None else {DELETION_COST: written},
        ready=draw(st.booleans()),
        restarts=draw(st.integers(0, 3)),
        waiting_since_ns=draw(st.integers(0, 5)) * SECOND,
    )


def like(example: Pod, pod: Pod) -> Pod:
    """Return ``pod`` with what policies read of an example.

    Its CPU, memory, priority and start stay, so that victims are found in small clusters.
    """
    scalars = {**example.requests.scalars, **pod.requests.scalars}
    return structs.replace(
        pod,
        namespace=example.namespace,
        labels=example.labels,
        annotations=example.annotations,
        priority_class=example.priority_class,
        owner=example.owner,
        ready=example.ready,
        restarts=example.restarts,
        requests=structs.replace(pod.requests, scalars=scalars),
    )
