"""What chapters lack: nothing where all is well, else the very thing that is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakeapi.demo.chapters import Chapter, lacks, unplaced
from fakeapi.demo.sights import SeenNode, Sight
from tests.fakeapi.demo.sighted import (
    FULL,
    SMALL,
    STRAINED,
    TAKEN,
    deliberation,
    pod,
    preempted,
    refused,
    sight,
)

WEB = (pod("web-2", on="n-2"), pod("web-3"))
VIP = pod("vip", on="n-1")
EXPLAINED = deliberation("web-1")
BEFORE = TAKEN.before

CASES: dict[str, tuple[Chapter, Sight, tuple[str, ...]]] = {
    "nobody is there": (
        Chapter.START,
        Sight(),
        ("0 of 2 nodes are ready", "the webhooks of WorkloadSpreads are not registered"),
    ),
    "a node is not ready": (
        Chapter.START,
        sight(nodes=(SeenNode("n-1"), SeenNode("n-2", ready=False))),
        ("1 of 2 nodes are ready",),
    ),
    "all is there": (Chapter.START, sight(), ()),
    "a pod does not run": (
        Chapter.FILLING,
        sight(pod("web-1", on="n-1"), pod("web-2", on="n-1", ready=False)),
        ("d/web: 1 of 2 pods run",),
    ),
    "who goes does not count": (
        Chapter.FILLING,
        sight(*FULL.pods, pod("web-3", on="n-1", going=True)),
        (),
    ),
    "the cluster is full": (Chapter.FILLING, FULL, ()),
    "nobody has come": (
        Chapter.BURST,
        replace(FULL, before=BEFORE),
        ("d/vip has no node", "nobody was preempted", "no replacement waits for a node"),
    ),
    "the burst is placed, and nobody had to go": (
        Chapter.BURST,
        sight(VIP, *FULL.pods, before=BEFORE),
        ("nobody was preempted", "no replacement waits for a node"),
    ),
    "the burst does not run yet": (
        Chapter.BURST,
        replace(TAKEN, pods=(pod("vip", on="n-1", ready=False), *WEB)),
        ("d/vip does not run yet",),
    ),
    "a victim stays": (
        Chapter.BURST,
        replace(TAKEN, pods=(VIP, *WEB, pod("web-1", on="n-1", going=True))),
        ("d/web-1 was preempted, and is still there",),
    ),
    "a victim that the extender has not named": (
        Chapter.BURST,
        replace(TAKEN, deliberations=(deliberation("web-9"),)),
        ("d/web-1 was preempted, and no answer of the extender says so",),
    ),
    "the extender has named another node": (
        Chapter.BURST,
        replace(TAKEN, deliberations=(deliberation("web-1", on="n-2"),)),
        ("d/web-1 was preempted, and no answer of the extender says so",),
    ),
    "nobody comes instead": (
        Chapter.BURST,
        replace(TAKEN, pods=(VIP, WEB[0])),
        ("d/web: 1 of 2 pods are there", "no replacement waits for a node"),
    ),
    "who comes instead is not told anything": (
        Chapter.BURST,
        replace(TAKEN, events=(preempted("web-1"),)),
        ("d/web-3 neither runs nor is said to wait", "no replacement waits for a node"),
    ),
    "who comes instead preempts in turn": (
        Chapter.BURST,
        replace(TAKEN, pods=(VIP, WEB[0], pod("web-3", nominated="n-2"))),
        ("d/web-3 is promised a place on n-2",),
    ),
    "the burst has taken its places": (Chapter.BURST, TAKEN, ()),
    "nothing leaks": (
        Chapter.PRESSURE,
        TAKEN,
        ("no pod of d/web was evicted", "no node reports MemoryPressure"),
    ),
    "another one is evicted": (
        Chapter.PRESSURE,
        replace(STRAINED, pods=tuple(replace(each, workload="d/x") for each in STRAINED.pods)),
        ("no pod of d/web was evicted", "d/web: 0 of 2 pods are there"),
    ),
    "the node is not tainted": (
        Chapter.PRESSURE,
        replace(STRAINED, nodes=(SeenNode("n-2", short_of_memory=True),)),
        ("n-2 is short of memory and not tainted",),
    ),
    "a node was short of memory": (Chapter.PRESSURE, STRAINED, ()),
    "the end": (Chapter.END, Sight(), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_chapter_lacks(name: str) -> None:
    chapter, seen, missing = CASES[name]
    assert lacks(chapter, seen, SMALL) == missing


def test_who_has_no_node_yet() -> None:
    seen = sight(pod("web-1", on="n-1", ready=False), pod("web-2"))
    assert unplaced("d/web", seen, SMALL) == ("d/web: 1 of 2 pods have a node",)
    assert unplaced("d/web", FULL, SMALL) == ()


def test_the_last_words_about_a_pod_count() -> None:
    seen = sight(pod("web-3"), events=(refused("web-3", "late", 2), refused("web-3", "early", 1)))
    assert seen.refusal(seen.pods[0]) == "late"


def test_who_is_told_twice_is_preempted_once() -> None:
    seen = sight(events=(preempted("b", at=2), preempted("a", at=1), preempted("b", at=3)))
    assert [each.pod for each in seen.preempted()] == ["d/a", "d/b"]
