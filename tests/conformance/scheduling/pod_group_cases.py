"""The cases of kube-scheduler's own tests of pod groups that preempt or are preempted.

They are those of ``test/integration/scheduler/preemption``, ``test/integration/scheduler/podgroup``
and ``test/integration/scheduler_perf/workload_preemption`` of Kubernetes 1.36 and 1.37, in clusters
of our own, except those that need plugins of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tests.builders import Document
from tests.conformance.scheduling.case_table import (
    BASIC,
    GUARDED,
    NEVER,
    NODE,
    Case,
    Group,
    Outcome,
    Pod,
    arriving,
    running,
)

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_APP: Final = "app"
_IMAGE: Final = "registry.example/pause:3"


def affine(kind: str, label: str = _APP) -> Document:
    """Return the fields of a pod with affinity or anti-affinity to labelled pods, by node."""
    selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {_REQUIRED: [term]}}}


def prefer(node: str) -> Document:
    """Return the fields of a pod that scores a node above all others."""
    terms = [{"key": NODE, "operator": "In", "values": [node]}]
    preference = {"weight": 100, "preference": {"matchExpressions": terms}}
    return {"affinity": {"nodeAffinity": {_PREFERRED: [preference]}}}


def port(number: int, cpu: str) -> Document:
    """Return the fields of a pod with a host port."""
    ports = [{"containerPort": number, "hostPort": number}]
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "c", "image": _IMAGE, "resources": resources, "ports": ports}
    return {"containers": [container]}


def as_a_whole(cpu: str, **fields: Any) -> Document:
    """Return the fields of a pod that requests cores, and whose containers request none."""
    containers = [{"name": "c", "image": _IMAGE}]
    return {"containers": containers, "resources": {"requests": {"cpu": cpu}}, **fields}


def _two_on_a_node() -> Document:
    constraint = {
        "maxSkew": 2,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [{"key": _APP, "operator": "Exists"}]},
        "minDomains": 10,
    }
    return {"topologySpreadConstraints": [constraint]}


GANG: Final = partial(Group, "new")
VICTIM: Final = partial(Group, "old", 10, mode="all")
_APART: Final = affine("podAntiAffinity")

_VICTIMS_OF_GROUPS: Final = [
    Case(
        "a group of policy basic takes a whole node",
        {"a": 3},
        [*running("low", "aaa"), *arriving(3)],
        [GANG()],
        ("low-0", "low-1", "low-2"),
    ),
    Case(
        "one large pod makes room for all members",
        {"a": 4},
        [*running("low", "a", cpu="4"), *arriving(4)],
        [GANG()],
        ("low-0",),
    ),
    Case(
        "every pod of two nodes is evicted for two large members",
        {"a": 4, "b": 4},
        [*running("low", "aaaaabbbbb", cpu="40m"), *arriving(2, cpu="3970m")],
        [GANG(minimum=2)],
        tuple(f"low-{n}" for n in range(10)),
    ),
    Case(
        "only pods on the nodes of the members are evicted",
        {"a": 2, "b": 2},
        [Pod("low-a", "a", "2"), Pod("low-b", "b"), *arriving(3, spec=prefer("a"))],
        [GANG(minimum=3)],
        ("low-a",),
    ),
    Case(
        "members of policy basic are bound first where there is room",
        {"a": 2, "b": 2},
        [Pod("low-a", "a"), Pod("low-b", "b", priority=5), *arriving(3, spec=prefer("a"))],
        [GANG()],
        ("low-a",),
    ),
    *(
        Case(
            f"new members of a running group are bound before one preempts, minimum {minimum}",
            {"a": 4},
            [
                *running("old", "aa", "new", priority=100),
                *running("low", "a"),
                *arriving(2),
            ],
            [GANG(minimum=minimum)],
            ("low-0",),
        )
        for minimum in (BASIC, 2)
    ),
    Case(
        "pods of a used-up budget are spared",
        {"a": 3},
        [
            *running("guarded", "aa", label=GUARDED),
            *running("low", "a"),
            *arriving(2, cpu="500m"),
        ],
        [GANG(minimum=2)],
        ("low-0",),
    ),
    Case(
        "a gang that does not fit evicts nobody",
        {"a": 3},
        [*running("high", "a", priority=1000), *running("low", "aa"), *arriving(3)],
        [GANG(minimum=3)],
        waiting=3,
    ),
    Case(
        "pods of higher priority are spared",
        {"a": 3},
        [*running("mid", "a", priority=50), *running("low", "aa"), *arriving(2)],
        [GANG(minimum=2)],
        ("low-0", "low-1"),
    ),
    Case(
        "pods of higher priority are spared on each node",
        {"a": 2, "b": 2},
        [
            *running("lower", "ab", priority=5),
            *running("low", "ab"),
            *arriving(2, priority=50),
        ],
        [GANG(50, 2)],
        ("lower-0", "lower-1"),
    ),
    Case(
        "a pod of lower priority is evicted where a member is pinned",
        {"a": 2, "b": 2},
        [
            *running("lower", "a", priority=5),
            *running("low", "a"),
            Pod("new-a", priority=100, group="new", node="a"),
            Pod("new-b", priority=100, group="new", node="b"),
        ],
        [GANG(minimum=2)],
        ("lower-0",),
    ),
    *(
        Case(
            f"as many members run as fit, minimum {minimum}",
            {"a": 1, "b": 1, "c": 1, "d": 1},
            [*running("low", "ab"), *running("high", "cd", priority=1000), *arriving(3)],
            [GANG(minimum=minimum)],
            ("low-0", "low-1"),
            1,
        )
        for minimum in (BASIC, 1)
    ),
    Case(
        "no member has the right to preempt",
        {"a": 3},
        [*running("low", "aaa"), *arriving(3, spec=NEVER)],
        [GANG(minimum=3)],
        waiting=3,
    ),
]
_GROUPS_AS_VICTIMS: Final = [
    *(
        Case(
            f"a member evicts a whole group, minimum {minimum}",
            {"a": 3},
            [*running("old", "aaa", "old"), *arriving(1)],
            [VICTIM(minimum=minimum), GANG(minimum=1)],
            ("old-0", "old-1", "old-2"),
        )
        for minimum in (BASIC, 3)
    ),
    *(
        Case(
            f"a group on two nodes and a pod are evicted, minimum {minimum}",
            {"a": 1, "b": 1, "c": 1},
            [*running("old", "ab", "old", priority=50), *running("low", "c"), *arriving(3)],
            [Group("old", 50, 1, mode="all"), GANG(minimum=minimum)],
            ("low-0", "old-0", "old-1"),
        )
        for minimum in (BASIC, 3)
    ),
    *(
        Case(
            f"a group is evicted for a part of the members, minimum {minimum}",
            {"a": 1, "b": 1, "c": 1, "d": 1},
            [
                *running("old", "ab", "old", priority=50),
                *running("high", "cd", "high", priority=1000),
                *arriving(3),
            ],
            [
                Group("old", 50, 2, mode="all"),
                Group("high", 1000, 2, mode="all"),
                GANG(minimum=minimum),
            ],
            ("old-0", "old-1"),
            1,
        )
        for minimum in (BASIC, 1)
    ),
    Case(
        "members with host ports evict two groups",
        {"a": 4, "b": 4},
        [
            *running("one", "ab", "one", spec=port(8000, "600m")),
            *running("two", "ab", "two", spec=port(8001, "600m")),
            *arriving(2, spec=port(9000, "3500m")),
        ],
        [Group("one", 10, 2), Group("two", 10, 2), GANG(minimum=2)],
        ("one-0", "one-1", "two-0", "two-1"),
    ),
    Case(
        "the priority of a group counts, not that of its pods",
        {"a": 3},
        [*running("old", "aaa", "old", priority=100), *arriving(1, priority=50)],
        [VICTIM(minimum=3), GANG(50, 1)],
        ("old-0", "old-1", "old-2"),
    ),
    Case(
        "a group of higher priority than its pods is spared",
        {"a": 3},
        [*running("old", "aaa", "old"), *arriving(1, priority=50)],
        [Group("old", 100, 3, mode="all"), GANG(50, 1)],
        waiting=1,
    ),
]
_CONSTRAINTS: Final = [
    Case(
        "members that request cores as a whole repel each other",
        {"a": 2, "b": 2},
        [
            *running("old", "a", label=_APP, spec=as_a_whole("2")),
            *arriving(2, label=_APP, spec=as_a_whole("2", **_APART)),
        ],
        [GANG(minimum=2)],
        ("old-0",),
    ),
    Case(
        "members repel a pod that leaves them enough room",
        {"a": 2, "b": 2},
        [
            *running("old", "a", cpu="250m", label=_APP),
            *arriving(2, cpu="1500m", label=_APP, spec=_APART),
        ],
        [GANG(minimum=2)],
        ("old-0",),
    ),
    Case(
        "a pod that leaves enough room has the host port of the members",
        {"a": 2, "b": 2},
        [
            *running("old", "a", spec=port(8080, "250m")),
            *arriving(2, spec=port(8080, "1500m")),
        ],
        [GANG(minimum=2)],
        ("old-0",),
    ),
    Case(
        "a pod would skew the members",
        {"a": 16, "b": 16},
        [
            *running("old", "a", label=_APP),
            *arriving(2, node="a", label=_APP, spec=_two_on_a_node()),
        ],
        [GANG(minimum=2)],
        ("old-0",),
    ),
    Case(
        "a pod of lower priority on another node skews nothing",
        {"a": 16, "b": 16},
        [
            *running("old", "a", label=_APP),
            *running("lower", "b", label=_APP, priority=5),
            *arriving(2, node="a", label=_APP, spec=_two_on_a_node()),
        ],
        [GANG(minimum=2)],
        ("old-0",),
    ),
    Case(
        "members follow pods of higher priority",
        {"a": 4, "b": 4},
        [
            *running("anchor", "ab", cpu="10m", priority=1000, label=_APP),
            *running("low", "aaaaabbbbb", cpu="40m"),
            *arriving(2, cpu="3970m", spec=affine("podAffinity")),
        ],
        [GANG(minimum=2)],
        tuple(f"low-{n}" for n in range(10)),
    ),
    Case(
        "members that repel each other run on different nodes",
        {"a": 4, "b": 4},
        arriving(2, label=_APP, spec=_APART),
        [GANG(minimum=2)],
    ),
    Case(
        "members that repel each other wait if there is one node",
        {"a": 4},
        [*running("low", "a"), *arriving(2, label=_APP, spec=_APART)],
        [GANG(minimum=2)],
        waiting=2,
    ),
]
_VICTIMS_OF_PODS: Final = [
    Case(
        "a pod evicts a whole group on its node",
        {"a": 3},
        [*running("old", "aa", "old"), *arriving(1, "", cpu="2")],
        [VICTIM()],
        ("old-0", "old-1"),
    ),
    Case(
        "a group on two nodes is evicted only by kube-scheduler alone",
        {"a": 1, "b": 1},
        [*running("old", "ab", "old"), *arriving(1, "")],
        [VICTIM()],
        waiting=1,
        alone=Outcome(("old-0", "old-1"), 0),
    ),
    Case(
        "the lower of two groups on two nodes is evicted only by kube-scheduler alone",
        {"a": 2, "b": 2},
        [
            *running("old", "ab", "old"),
            *running("mid", "ab", "mid", priority=50),
            *arriving(1, ""),
        ],
        [VICTIM(), Group("mid", 50, mode="all")],
        waiting=1,
        alone=Outcome(("old-0", "old-1"), 0),
    ),
    Case(
        "a group leaves too little room",
        {"a": 3, "b": 1},
        [
            *running("high", "a", cpu="2", priority=100),
            *running("old", "ab", "old"),
            *arriving(1, "", cpu="2"),
        ],
        [VICTIM()],
        waiting=1,
    ),
    Case(
        "one member on two nodes is evicted, mode single",
        {"a": 1, "b": 1},
        [*running("old", "ab", "old"), *arriving(1, "", node="b")],
        [Group("old", 10)],
        ("old-1",),
    ),
]
CASES: Final = [*_VICTIMS_OF_GROUPS, *_GROUPS_AS_VICTIMS, *_CONSTRAINTS, *_VICTIMS_OF_PODS]
