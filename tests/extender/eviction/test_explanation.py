"""``explain evict``: its document and its tables, from the arguments to the output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extender.config.strict_decoding import ConfigError
from extender.eviction.command import EvictQuery, explain_query
from extender.eviction.kubelet_flags import KubeletFlags
from extender.explain.cluster_source import ClusterSource
from extender.terminal.output import TableRows
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION
from tests.builders import Document, container_json, node_json, pod_json
from tests.commands import rendered, written
from tests.extender.eviction.documents import MI, measured, summary

CLUSTER = (
    node_json("node-1"),
    pod_json("hog", on="node-1", memory="100Mi"),
    pod_json("calm", on="node-1", memory="1Gi"),
    pod_json("vip", on="node-1", priority=2_000_000_000),
)
PODS = (measured("hog", 700), measured("calm", 500), measured("vip", 900))
LOW = (
    "The node was low on resource: memory. Threshold quantity: 500Mi, available: 400Mi. "
    "Container main was using 700Mi, request is 100Mi, has larger consumption of memory. "
)
HARD = KubeletFlags(eviction_hard=("memory.available<500Mi",))
SOFT = KubeletFlags(
    eviction_hard=("",),
    eviction_soft=("memory.available<500Mi",),
    grace_period=("memory.available=30s",),
)


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    """Return a function that explains node-1 of the cluster above or of other objects."""

    def asking(
        *samples: Document,
        objects: tuple[Document, ...] = CLUSTER,
        flags: KubeletFlags = HARD,
        **fields: Any,
    ) -> Any:
        question = EvictQuery(
            ClusterSource([written(tmp_path, "cluster.json", *objects)]),
            "node-1",
            [written(tmp_path, "summary.json", *samples)],
            None,
            NEWEST_EVICTION,
            flags,
        )
        return explain_query(replace(question, **fields))

    return asking


def test_the_whole_document(ask: Any) -> None:
    eviction = {
        "pod": "default/hog",
        "gracePeriodSeconds": 1,
        "message": LOW,
        "disruptionTarget": True,
    }
    assert ask(summary(400, *PODS, at="00:10")).answer.document() == {
        "thresholdsMet": ["memory.available<500Mi"],
        "conditions": ["MemoryPressure"],
        "order": ["default/hog", "default/vip", "default/calm"],
        "evict": "default/hog",
        "gracePeriodSeconds": 1,
        "message": LOW,
        "because": [
            {"pod": "default/hog", "ahead_of": "default/vip", "criterion": "lower priority"},
            {
                "pod": "default/vip",
                "ahead_of": "default/calm",
                "criterion": "usage above its request",
            },
        ],
        "evictions": [eviction],
        "layout": "one",
        "notes": ["no observation found for eviction signal allocatableMemory.available"],
        "samples": [
            {"at": "2026-01-01T00:00:10Z", "conditions": ["MemoryPressure"], "evict": "default/hog"}
        ],
    }


def test_a_node_without_pressure(ask: Any) -> None:
    document = ask(summary(600, *PODS)).answer.document()
    assert (document["thresholdsMet"], document["conditions"], document["order"]) == ([], [], [])
    assert (document["evict"], document["gracePeriodSeconds"]) == (None, 0)
    assert document["message"].startswith("no threshold is met; no observation found for")


def test_missing_stats_evict_no_pod_and_are_reported(ask: Any) -> None:
    document = ask({"node": {}}).answer.document()
    assert (document["evict"], document["conditions"]) == (None, [])
    assert document["message"] == (
        "no threshold is met; no observation found for eviction signal "
        "memory.available, allocatableMemory.available"
    )


def test_stale_stats_evict_no_pod_and_are_reported(ask: Any) -> None:
    sample = summary(400, *PODS, at="00:10")
    document = ask(sample, sample).answer.document()
    assert (document["evict"], document["conditions"]) == (None, ["MemoryPressure"])
    assert document["thresholdsMet"] == ["memory.available<500Mi"]
    assert document["message"].startswith(
        "the stats of memory.available are stale, so it does not trigger an eviction"
    )
    assert [each["evict"] for each in document["samples"]] == ["default/hog", None]


def test_soft_thresholds_are_followed_across_samples(ask: Any) -> None:
    first, later = summary(400, *PODS, at="00:00"), summary(400, *PODS, at="00:29")
    document = ask(first, later, flags=SOFT).answer.document()
    assert (document["evict"], document["conditions"]) == (None, ["MemoryPressure"])
    assert document["message"] == (
        "memory.available<500Mi is met for 29s of its grace period of 30s"
    )
    at_last = ask(first, later, summary(400, *PODS, at="00:30"), flags=SOFT).answer.document()
    assert (at_last["evict"], at_last["gracePeriodSeconds"]) == ("default/hog", 0)


def test_the_last_round_may_be_at_another_time(ask: Any) -> None:
    samples = summary(400, *PODS, at="00:00"), summary(400, *PODS, at="00:01")
    later = 1_767_225_600 * 10**9 + 30 * 10**9
    document = ask(*samples, flags=SOFT, now_ns=later).answer.document()
    assert [each["at"] for each in document["samples"]] == [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:30Z",
    ]
    assert document["evict"] == "default/hog"


def test_samples_without_times_are_an_interval_apart(ask: Any) -> None:
    document = ask(*[summary(400, *PODS)] * 4, flags=SOFT).answer.document()
    assert [each["at"][-4:] for each in document["samples"]] == [":00Z", ":10Z", ":20Z", ":30Z"]
    assert document["evict"] == "default/hog"


def test_a_sample_from_the_past_is_stale_and_time_does_not_go_back(ask: Any) -> None:
    document = ask(
        summary(400, *PODS, at="00:30"), summary(400, *PODS, at="00:10")
    ).answer.document()
    assert [each["at"][-4:] for each in document["samples"]] == [":30Z", ":30Z"]
    assert "stale" in document["message"]


def disk(used: int, capacity: int = 1000) -> Document:
    return {
        "availableBytes": (capacity - used) * MI,
        "capacityBytes": capacity * MI,
        "inodesFree": 50,
        "inodes": 100,
    }


FULL = KubeletFlags(eviction_hard=("nodefs.available<10%",))
WRITERS = (pod_json("layer", on="node-1"), pod_json("logs", on="node-1"))
WRITTEN = (
    measured("layer", containers=[{"name": "main", "rootfs": {"usedBytes": 900 * MI}}]),
    measured("logs", containers=[{"name": "main", "logs": {"usedBytes": 10 * MI}}]),
)


@pytest.mark.parametrize(
    ("capacity", "layout", "used", "victim"),
    [
        (1000, None, "one", "default/layer"),
        (2000, None, "dedicated-imagefs", "default/logs"),
        (1000, "dedicated-imagefs", "dedicated-imagefs", "default/logs"),
        (2000, "one", "one", "default/layer"),
        (1000, "split", "split", "default/layer"),
    ],
)
def test_the_layout_is_inferred_or_given(
    ask: Any, capacity: int, layout: str | None, used: str, victim: str
) -> None:
    images = {"imageFs": disk(100, capacity)}
    sample = summary(600, *WRITTEN, fs=disk(950), runtime=images)
    document = ask(sample, objects=WRITERS, flags=FULL, layout=layout).answer.document()
    assert (document["layout"], document["evict"]) == (used, victim)


def test_node_level_reclaim_is_reported_and_assumed_to_free_nothing(ask: Any) -> None:
    document = ask(
        summary(600, *WRITTEN, fs=disk(950)), objects=WRITERS, flags=FULL
    ).answer.document()
    assert document["notes"] == [
        (
            "the node would delete unused containers and delete unused images first; "
            "this explanation assumes that it frees nothing"
        )
    ]


def test_all_pods_over_their_limits_are_evicted(ask: Any) -> None:
    limited = {"containers": [container_json(resources={"limits": {"ephemeral-storage": "1Mi"}})]}
    objects = (
        pod_json("a", on="node-1", spec=limited),
        pod_json("b", on="node-1"),
        pod_json("c", on="node-1", spec=limited),
    )
    usage: dict[str, Any] = {"ephemeral-storage": {"usedBytes": 2 * MI}}
    sample = summary(600, *(measured(name, **usage) for name in "abc"))
    document = ask(sample, objects=objects, flags=KubeletFlags()).answer.document()
    assert [each["pod"] for each in document["evictions"]] == ["default/a", "default/c"]
    assert (document["evict"], document["order"]) == ("default/a", [])
    assert document["message"] == (
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
    )
    assert not document["evictions"][0]["disruptionTarget"]


def test_older_kubelets_grant_other_periods(ask: Any) -> None:
    old = EVICTION_RELEASES["1.30"]
    assert ask(summary(400, *PODS), release=old).answer.document()["gracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (CLUSTER[:1], "eviction thresholds have been met, but no pods are active to evict"),
        (
            (*CLUSTER[:1], CLUSTER[3]),
            "unable to evict any pods from the node: all of them are critical",
        ),
    ],
)
def test_no_pod_to_evict(ask: Any, objects: tuple[Document, ...], message: str) -> None:
    document = ask(summary(400, *PODS), objects=objects).answer.document()
    assert (document["evict"], document["conditions"]) == (None, ["MemoryPressure"])
    assert document["message"].startswith(message)


def test_the_table_shows_thresholds_order_and_reasons(ask: Any) -> None:
    lines = rendered(ask(summary(400, *PODS)).answer.table(TableRows.LIMITED)).splitlines()
    assert lines[0].rstrip() == "node-1 under MemoryPressure evicts default/hog (1 s)"
    assert lines[2].split() == ["→", "memory.available<500Mi", "400Mi", "4Gi"]
    assert lines[3].split() == ["?", "allocatableMemory.available<500Mi"]
    assert lines[5].split() == ["→", "default/hog", "0", "700Mi", "100Mi", "lower", "priority"]
    assert lines[6].split()[:3] == ["never", "default/vip", "2000000000"]
    assert lines[7].split() == ["default/calm", "0", "500Mi", "1Gi"]
    assert LOW.strip() in " ".join(" ".join(lines).split())


def test_the_table_of_a_node_without_pressure_has_the_reason(ask: Any) -> None:
    text = rendered(
        ask(summary(400, *PODS, at="00:00"), flags=SOFT).answer.table(TableRows.LIMITED)
    )
    assert text.startswith("node-1 under MemoryPressure evicts no pod: memory.available<500Mi is")
    assert [line.split() for line in text.splitlines() if line.startswith("met")] == [
        ["met", "memory.available<500Mi", "400Mi", "4Gi", "30s"]
    ]


def test_a_long_ranking_is_cut_in_the_table(ask: Any) -> None:
    objects = tuple(pod_json(f"pod-{index:02}", on="node-1") for index in range(45))
    assert "and 5 more" in rendered(
        ask(summary(400), objects=objects).answer.table(TableRows.LIMITED)
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"node": None}, "explain evict needs --node and --summary, or --scenario"),
        ({"summaries": ()}, "explain evict needs --node and --summary, or --scenario"),
        ({"layout": "two"}, "--layout: expected one, dedicated-imagefs, split, got 'two'"),
        (
            {"scenario": "s.json", "flags": KubeletFlags(), "summaries": ()},
            "--scenario excludes --cluster, --node",
        ),
        (
            {
                "scenario": "s.json",
                "cluster": ClusterSource(),
                "node": None,
                "summaries": (),
                "layout": "one",
            },
            "--scenario excludes --layout, the kubelet's flags",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    ask: Any, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        ask(summary(400), **fields)
    assert str(raised.value) == problem


def test_a_wrong_flag_is_reported_before_the_files_are_read(tmp_path: Path) -> None:
    flags = KubeletFlags(eviction_hard=("x<1",))
    missing = [str(tmp_path / "missing")]
    with pytest.raises(ConfigError, match="unsupported eviction signal x"):
        explain_query(
            EvictQuery(ClusterSource(missing), "node-1", missing, None, NEWEST_EVICTION, flags)
        )
