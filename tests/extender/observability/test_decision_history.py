"""The records of decisions: history, metrics, log lines and Events."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest
import structlog
from hypothesis import given, settings
from msgspec.structs import replace
from structlog.testing import capture_logs

from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Config
from extender.kube.controller_runtime.event_correlator import ObjectReference
from extender.observability.decision_history import DecisionHistory, DecisionRecord, PodReference
from extender.observability.decision_log import count_reasons
from extender.observability.preemption_events import PreemptionEventRecorder
from extender.protocol.request_size import at_once
from extender.server.service import Service, VerbCall
from policies.kubernetes.releases import NEWEST
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.strategies import Cluster, clusters
from tests.builders import budget, node, node_json, pod, pod_json
from tests.extender.conftest import (
    Extender,
    HandClock,
    filter_body,
    following,
    live_cluster,
    preempt_body,
    served,
)
from tests.properties.sampling import examples

VIP = pod_json("vip", cpu="1", priority=10)


def cluster() -> SchedulerCache:
    """Return two full nodes; on the second, a pod is reprieved."""
    return live_cluster(
        node("node-1", cpu="1"),
        node("node-2", cpu="2"),
        replace(pod("expensive", on="node-1", cpu="1", priority=5), priority_class="gold"),
        replace(pod("cheap", on="node-2", cpu="1", priority=1), priority_class="bronze"),
        pod("spared", on="node-2", cpu="1", priority=2),
    )


BODY = preempt_body(VIP, node_1=["expensive"], node_2=["cheap"])


async def ask(extender: Extender, path: str, body: bytes, **headers: str) -> None:
    reply = await extender.post(path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    assert reply.status == 200


UNKNOWN_PARAMETERS: Final = {
    "pods=default/b": (
        "unknown parameter 'pods'; expected some of limit, pod, verb; did you mean pod?"
    ),
    "limit=2&namespace=default": (
        "unknown parameter 'namespace'; expected some of limit, pod, verb"
    ),
    "%0a": "unknown parameter '\\n'; expected some of limit, pod, verb",
}
"""The query → the line of its error."""


async def decisions(extender: Extender, query: str = "") -> list[dict[str, Any]]:
    reply = await extender.get(f"/decisions{query}")
    assert reply.status == 200
    found: list[dict[str, Any]] = json.loads(reply.text)["decisions"]
    return found


class TestDecisions:
    async def test_a_decision_has_its_victims_and_reprieved_pods_with_reasons(self) -> None:
        async with served(cluster()) as extender:
            await ask(extender, "/preempt", BODY, X_Request_Id="abc-1")
            [record] = await decisions(extender)
        assert record == {
            "at": "1970-01-01T00:00:00Z",
            "requestID": "abc-1",
            "verb": "preempt",
            "pod": {"namespace": "default", "name": "vip", "uid": "vip", "priority": 10},
            "tookMilliseconds": 0.0,
            "generation": 1,
            "node": "node-2",
            "victims": [{"namespace": "default", "name": "cheap", "uid": "cheap", "priority": 1}],
            "spared": [{"namespace": "default", "name": "spared", "uid": "spared", "priority": 2}],
            "decidedBy": "lowest priority of the first victim",
            "candidates": 2,
            "message": record["message"],
        }
        assert "Insufficient cpu" in record["message"]

    async def test_a_filter_decision_has_the_count_that_fit_and_the_reasons(self) -> None:
        async with served(cluster()) as extender:
            await ask(extender, "/filter", filter_body(VIP, "node-1", "node-2", "node-3"))
            [record] = await decisions(extender)
        assert record["fits"] == 0
        assert record["rejected"] == {
            "Insufficient cpu": 2,
            "node is not known to the extender (yet)": 1,
        }

    async def test_decisions_can_be_selected_by_verb(self) -> None:
        async with served(cluster()) as extender:
            await ask(extender, "/filter", filter_body(VIP, "node-1"))
            await ask(extender, "/preempt", BODY)
            for verb in ("filter", "preempt"):
                [only] = await decisions(extender, f"?verb={verb}&pod=default/vip")
                assert only["verb"] == verb
            assert await decisions(extender, "?verb=filter&pod=default/other") == []
            reply = await extender.get("/decisions?verb=bind")
        assert (reply.status, reply.text) == (
            400,
            "reprieve: verb: 'bind'; expected one of filter, preempt\n",
        )

    async def test_the_newest_come_first_with_a_limit_and_by_pod(self) -> None:
        async with served(cluster()) as extender:
            for name in "abc":
                await ask(extender, "/filter", filter_body(pod_json(name), "node-1"))
            names = [each["pod"]["name"] for each in await decisions(extender)]
            assert names == ["c", "b", "a"]
            assert len(await decisions(extender, "?limit=2")) == 2
            assert await decisions(extender, "?limit=0") == []
            [only] = await decisions(extender, "?pod=default/b")
            assert only["pod"]["name"] == "b"
            for query, line in UNKNOWN_PARAMETERS.items():
                reply = await extender.get(f"/decisions?{query}")
                assert (reply.status, reply.text) == (400, f"reprieve: {line}\n")
            reply = await extender.get("/decisions?limit=-1")
            assert (reply.status, reply.text) == (
                400,
                "reprieve: limit: '-1' is not a valid number of decisions\n",
            )

    async def test_a_message_says_why_none_is_selected(self) -> None:
        async with served(cluster()) as extender:
            await ask(extender, "/filter", filter_body(VIP, "node-1"))
            messages = [
                json.loads((await extender.get(f"/decisions?pod={pod}")).text)["message"]
                for pod in ("default/other", "vip")
            ]
        assert messages == [
            "none of the last 1 decisions is selected",
            "none of the last 1 decisions is selected; expected pod=NAMESPACE/NAME",
        ]

    def test_only_the_last_are_kept(self) -> None:
        recent = DecisionHistory(2)
        for at in "abc":
            recent.add(DecisionRecord(at, "", "filter", PodReference("default", "x", "x", 0)))
        kept = json.loads(recent.document())["decisions"]
        assert [each["at"] for each in kept] == ["c", "b"]


class TestRequestIds:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("their-1.2:3_4", "their-1.2:3_4"),
            *((invalid, "call-1") for invalid in ("", "x" * 65, "a b", 'a"b', "é")),
        ],
    )
    @pytest.mark.parametrize(("body", "status"), [(filter_body(VIP, "node-1"), 200), (b"{", 400)])
    async def test_valid_ids_of_the_caller_are_kept_and_other_calls_are_numbered(
        self, given: str, expected: str, body: bytes, status: int
    ) -> None:
        async with served(cluster()) as extender:
            reply = await extender.post("/filter", body, {"X-Request-Id": given})
        assert (reply.status, reply.headers["X-Request-Id"]) == (status, expected)

    async def test_log_lines_have_the_request_id(self) -> None:
        merged = structlog.contextvars.merge_contextvars
        with capture_logs(processors=[merged]) as lines:
            async with served(cluster()) as extender:
                await ask(extender, "/preempt", BODY, X_Request_Id="abc-1")
                await extender.post("/filter", b"{", {"X-Request-Id": "abc-2"})
        assert [(line["event"], line["request_id"]) for line in lines] == [
            ("preempt", "abc-1"),
            ("refused", "abc-2"),
        ]

    async def test_nothing_of_a_pods_specification_is_logged(self) -> None:
        secret = {"name": "main", "env": [{"name": "TOKEN", "value": "hunter2"}]}
        asking = pod_json("vip", containers=[secret], priority=10)
        with capture_logs() as lines:
            async with served(cluster()) as extender:
                await ask(extender, "/preempt", preempt_body(asking, node_1=["expensive"]))
                await extender.post("/filter", filter_body(asking, "node-1")[:-1])
                text = (await extender.get("/decisions")).text
        assert lines
        assert "hunter2" not in repr(lines) + text


async def test_victims_are_counted_by_class_and_rejected_nodes_by_reason() -> None:
    async with served(cluster()) as extender:
        await ask(extender, "/filter", filter_body(VIP, "node-1", "node-2", "node-3"))
        await ask(extender, "/preempt", BODY)
        figures = set((await extender.get("/metrics")).text.splitlines())
    assert figures >= {
        'reprieve_victims_by_class_total{namespace="default",priority_class="bronze"} 1.0',
        'reprieve_rejected_nodes_total{reason="insufficient",verb="filter"} 2.0',
        'reprieve_rejected_nodes_total{reason="unknown_node",verb="filter"} 1.0',
        'reprieve_candidates_bucket{le="2.0"} 1.0',
        'reprieve_candidates_bucket{le="1.0"} 0.0',
        'reprieve_queue_seconds_count{verb="preempt"} 1.0',
        "reprieve_queue_length 0.0",
        "reprieve_ready 1.0",
    }


@given(clusters())
@settings(max_examples=examples(30))
def test_both_engines_reasons_are_counted_alike(cluster: Cluster) -> None:
    rules = SchedulerRules(NEWEST)
    slow, fast = (
        engine.preempt(cluster.preemptor, cluster.snapshot)
        for engine in (ReferenceEngine(rules), VectorizedEngine(rules))
    )
    assert count_reasons(slow.rejected) == count_reasons(fast.rejected)
    assert sum(count_reasons(slow.rejected).values()) >= len(slow.rejected)


class EventSink:
    """A recorder that keeps its Events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def normal(self, involved_object: ObjectReference, reason: str, message: str) -> None:
        assert (involved_object.api_version, involved_object.kind) == ("v1", "Pod")
        assert involved_object.uid == involved_object.name
        self.events.append((involved_object.name, reason, message))


def announced(live: SchedulerCache, body: bytes) -> list[tuple[str, str, str]]:
    sink = EventSink()
    service = Service(
        live, ReferenceEngine(), HandClock(), preemption_events=PreemptionEventRecorder(sink)
    )
    at_once(service.answer(VerbCall("preempt", body, 0.0))).record()
    return sink.events


class TestEvents:
    def test_the_preemptor_gets_an_event_with_its_victims_and_each_victim_one_with_the_preemptor(
        self,
    ) -> None:
        why = "2 candidates, decided by lowest priority of the first victim"
        assert announced(cluster(), BODY) == [
            (
                "vip",
                "VictimsNamed",
                f"On node node-2 default/cheap (priority 1) named as victims, 1 reprieved; {why}",
            ),
            (
                "cheap",
                "NamedAsVictim",
                f"Named as a victim for pod default/vip (priority 10) on node node-2; {why}",
            ),
        ]

    def test_many_victims_all_get_events_and_are_named_in_part(self) -> None:
        names = [f"web-{number}" for number in range(7)]
        crowd = live_cluster(
            node("node-1", cpu="7"), *(pod(name, on="node-1", cpu="1") for name in names)
        )
        body = preempt_body(pod_json("vip", cpu="7", priority=10), node_1=names)
        events = announced(crowd, body)
        assert Counter(reason for _, reason, _ in events) == {"VictimsNamed": 1, "NamedAsVictim": 7}
        assert ", 2 more named as victims; the only candidate" in events[0][2]

    def test_an_answer_without_victims_sends_no_events(self) -> None:
        keep = live_cluster(
            node("node-1", cpu="1"), pod("expensive", on="node-1", cpu="1", priority=50)
        )
        assert announced(keep, preempt_body(VIP, node_1=["expensive"])) == []

    @pytest.mark.parametrize("events", [True, False])
    async def test_events_are_written_if_configured(self, *, events: bool) -> None:
        web = pod_json("web", on="node-1", cpu="1", priority=1)
        objects = [node_json("node-1", cpu="1"), web, VIP]
        async with following(objects, Config(port=0, events=events)) as it:
            await it.let_it_sync()
            await ask(it.extender, "/preempt", preempt_body(VIP, node_1=["web"]))
        written = [each for each in it.cluster.export() if each["kind"] == "Event"]
        expected = [("NamedAsVictim", "reprieve", "web"), ("VictimsNamed", "reprieve", "vip")]
        assert sorted(
            (each["reason"], each["source"]["component"], each["involvedObject"]["name"])
            for each in written
        ) == (expected if events else [])


def test_a_violated_budget_is_reported() -> None:
    live = cluster()
    live.budgets.upsert(budget("pdb", match={}))
    service = Service(live, ReferenceEngine(), HandClock())
    at_once(service.answer(VerbCall("preempt", BODY, 0.0))).record()
    [record] = json.loads(service.decision_history.document())["decisions"]
    assert record["node"] in {"node-1", "node-2"}
    assert record["numPDBViolations"] == 1


async def test_an_answer_names_the_version_up_to_which_pods_were_known() -> None:
    async with following([node_json()]) as it:
        await it.let_it_sync()
        await ask(it.extender, "/filter", filter_body(None, "node-1"))
        [record] = await decisions(it.extender)
        assert record["podsVersion"] == it.extender.service.informers["pods"].resource_version != ""
