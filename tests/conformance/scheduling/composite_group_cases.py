"""The cases of kube-scheduler's own tests of CompositePodGroups, and of groups in one zone.

They are those of ``test/integration/scheduler/preemption`` and
``test/integration/scheduler/podgroup`` of Kubernetes 1.37, in clusters of our own, except those
that need plugins of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.conformance.scheduling.case_table import (
    BASIC,
    GUARDED,
    NEVER,
    ZONE,
    Case,
    Group,
    Outcome,
    Pod,
    arriving,
    running,
)
from tests.conformance.scheduling.pod_group_cases import affine, port, prefer

_tree: Final = partial(Group, kind="CompositePodGroup")
_TREE: Final = _tree("tree")
_NEW: Final = Group("new", minimum=2, parent="tree")
_VICTIM: Final = _tree("old-tree", 10, mode="all")
_NEVER: Final = {**NEVER, "preemptionPolicy": "Never"}


def _child(name: str, parent: str = "old-tree", priority: int = 10, mode: str = "single") -> Group:
    return Group(name, priority, 1, mode, parent)


_PREEMPTORS: Final = [
    Case(
        "members of a tree evict pods only on their nodes",
        {"a": 2, "b": 2},
        [Pod("low-a", "a", "2"), Pod("low-b", "b"), *arriving(3, spec=prefer("a"))],
        [_TREE, Group("new", minimum=3, parent="tree")],
        ("low-a",),
    ),
    *(
        Case(
            f"members of a tree evict a tree, minimum {groups}",
            {"a": 2, "b": 2},
            [*running("old", "ab", "old"), *arriving(4)],
            [
                _tree("old-tree", 10, groups),
                _child("old"),
                _tree("tree", minimum=groups),
                Group("new", minimum=4, parent="tree"),
            ],
            ("old-0", "old-1"),
        )
        for groups in (BASIC, 1)
    ),
    Case(
        "members of a tree repel a pod that leaves them enough room",
        {"a": 2, "b": 2},
        [
            *running("old", "a", cpu="250m", label="app"),
            *arriving(2, cpu="1500m", label="app", spec=affine("podAntiAffinity")),
        ],
        [_TREE, _NEW],
        ("old-0",),
    ),
    Case(
        "a pod that leaves enough room has the host port of the members of a tree",
        {"a": 2, "b": 2},
        [
            *running("old", "a", spec=port(8080, "250m")),
            *arriving(2, spec=port(8080, "1500m")),
        ],
        [_TREE, _NEW],
        ("old-0",),
    ),
    Case(
        "the parent of a victim's group is missing",
        {"a": 2},
        [*running("old", "aa", "old"), *arriving(2)],
        [_child("old"), _TREE, _NEW],
        ("old-0", "old-1"),
    ),
    Case(
        "a tree preempts by default",
        {"a": 3},
        [*running("low", "aaa"), *arriving(3)],
        [_TREE, Group("new", minimum=3, parent="tree")],
        ("low-0", "low-1", "low-2"),
    ),
    Case(
        "a tree must not preempt",
        {"a": 3},
        [*running("low", "aaa"), *arriving(3, spec=NEVER)],
        [_tree("tree", spec=_NEVER), Group("new", minimum=2, parent="tree", spec=_NEVER)],
        waiting=3,
    ),
    Case(
        "a group must not preempt",
        {"a": 3},
        [*running("low", "aaa"), *arriving(3, spec=NEVER)],
        [Group("new", minimum=3, spec=_NEVER)],
        waiting=3,
    ),
]
_ZONES: Final = {"a1": 1, "a2": 1, "b1": 1, "b2": 1}
_IN_ZONES: Final = [
    Case(
        "a group takes the zone without pods of higher priority",
        _ZONES,
        [
            *running("low", ("a1", "a2")),
            *running("high", ("b1", "b2"), priority=1000),
            *arriving(2),
        ],
        [Group("new", minimum=2, topology=ZONE)],
        ("low-0", "low-1"),
    ),
    Case(
        "no zone has enough room for a group",
        _ZONES,
        [
            *running("low", ("a1", "b1")),
            *running("high", ("a2", "b2"), priority=1000),
            *arriving(2),
        ],
        [Group("new", minimum=2, topology=ZONE)],
        waiting=2,
    ),
    Case(
        "a group in a zone evicts only pods of lower priority",
        {"a1": 2, "a2": 2},
        [
            *running("lower", ("a1", "a2"), priority=1),
            *running("low", ("a1", "a2"), priority=100),
            *arriving(2, priority=50),
        ],
        [Group("new", 50, 2, topology=ZONE)],
        ("lower-0", "lower-1"),
    ),
]
_ON_TWO_NODES: Final = [*running("one", "ab", "one"), *running("two", "b", "two")]
_TO_NODE_A: Final = arriving(1, "", cpu="2", node="a")
_VICTIMS: Final = [
    Case(
        "a tree on two nodes is evicted only by kube-scheduler alone",
        {"a": 2, "b": 2},
        [*_ON_TWO_NODES, *_TO_NODE_A],
        [_VICTIM, _child("one"), _child("two")],
        waiting=1,
        alone=Outcome(("one-0", "one-1", "two-0"), 0),
    ),
    Case(
        "the mode of the root counts, not that of its descendants",
        {"a": 2, "b": 2},
        [*_ON_TWO_NODES, *_TO_NODE_A],
        [
            _VICTIM,
            _tree("branch", 10, parent="old-tree"),
            _child("one", "branch"),
            _child("two", "branch"),
        ],
        waiting=1,
        alone=Outcome(("one-0", "one-1", "two-0"), 0),
    ),
    Case(
        "a branch is a unit if its root is not",
        {"a": 2, "b": 2},
        [*_ON_TWO_NODES, *_TO_NODE_A],
        [
            _tree("old-tree", 10),
            _tree("branch", 10, mode="all", parent="old-tree"),
            _child("one", "branch"),
            _child("two"),
        ],
        waiting=1,
        alone=Outcome(("one-0", "one-1"), 0),
    ),
    Case(
        "one pod of a tree on two nodes is evicted, mode single",
        {"a": 2, "b": 2},
        [*_ON_TWO_NODES, *_TO_NODE_A],
        [_tree("old-tree", 10), _child("one"), _child("two")],
        ("one-0",),
    ),
    Case(
        "a pod evicts a whole tree on its node",
        {"a": 3},
        [*running("one", "a", "one"), *running("two", "a", "two"), *arriving(1, "", cpu="2")],
        [_VICTIM, _child("one"), _child("two")],
        ("one-0", "two-0"),
    ),
    Case(
        "a pod evicts the tree of the lower priority",
        {"a": 3},
        [
            *running("lower", "a", "lower"),
            *running("low", "a", "low", priority=50),
            *arriving(1, "", cpu="2"),
        ],
        [
            _VICTIM,
            _child("lower"),
            _tree("other", 50, mode="all"),
            _child("low", "other", 50),
        ],
        ("lower-0",),
    ),
    *(
        Case(
            f"a tree is spared before a group, by {preemptor}",
            {"a": 2},
            [*running("tree", "a", "tree"), *running("group", "a", "group"), *pods],
            [_VICTIM, _child("tree"), Group("group", 10, 1), Group("new", minimum=1)],
            ("group-0",),
        )
        for preemptor, pods in (("a group", arriving(1)), ("a pod", arriving(1, "")))
    ),
    Case(
        "a tree with a used-up budget is spared",
        {"a": 3},
        [
            *running("guarded", "aa", "guarded", label=GUARDED),
            *running("free", "a", "free"),
            *arriving(1, ""),
        ],
        [_VICTIM, _child("guarded"), _tree("other", 10, mode="all"), _child("free", "other")],
        ("free-0",),
    ),
    Case(
        "a group with a used-up budget is spared, mode single",
        {"a": 3},
        [
            *running("guarded", "aa", "guarded", label=GUARDED),
            *running("free", "a", "free"),
            *arriving(1, ""),
        ],
        [_tree("old-tree", 10), _child("guarded"), _child("free")],
        ("free-0",),
    ),
    Case(
        "a tree leaves too little room",
        {"a": 2},
        [*running("old", "a", "old"), *arriving(1, "", cpu="3")],
        [_VICTIM, _child("old")],
        waiting=1,
    ),
    Case(
        "a pod evicts a group without its parent",
        {"a": 2},
        [*running("old", "aa", "old"), *arriving(1, "", cpu="2")],
        [_child("old")],
        ("old-0", "old-1"),
    ),
]
CASES: Final = [*_PREEMPTORS, *_IN_ZONES, *_VICTIMS]
