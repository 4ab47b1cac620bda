"""The extender over HTTP, as kube-scheduler and Prometheus see it."""

from __future__ import annotations

import gzip
import json
import platform
import re
from importlib.metadata import version
from typing import Any

import pytest

from extender.config.component_config import Config
from fakeapi.demo.scenarios import captured_request, scenario
from tests.builders import encoded, node, node_json, pod, pod_json
from tests.extender.conftest import (
    Extender,
    HandClock,
    filter_body,
    following,
    live_cluster,
    preempt_body,
    served,
)
from tests.extender.go_decoder import filtered, preempted


def with_requests(**requests: Any) -> dict[str, Any]:
    return pod_json(containers=[{"name": "main", "resources": {"requests": requests}}])


def with_affinity(operator: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod_json(spec={"affinity": {"nodeAffinity": required}})


class TestCapturedRequests:
    """Requests of a real kube-scheduler 1.30.12, at the root and below a path prefix."""

    @pytest.mark.parametrize("prefix", ["", "/scheduler"])
    @pytest.mark.parametrize("name", ["filter-cache-true", "filter-after-preemption-cache-true"])
    async def test_filter_by_names(self, demo_extender: Extender, prefix: str, name: str) -> None:
        body = captured_request(name)
        sent = json.loads(body)["NodeNames"]
        reply = await demo_extender.post(f"{prefix}/filter", body)
        assert reply.status == 200
        assert filtered(reply.body, sent, cached=True).nodes is None

    @pytest.mark.parametrize("prefix", ["", "/scheduler"])
    async def test_filter_by_nodes(self, demo_extender: Extender, prefix: str) -> None:
        body = captured_request("filter-cache-false")
        nodes = {each["metadata"]["name"]: each for each in json.loads(body)["Nodes"]["items"]}
        reply = await demo_extender.post(f"{prefix}/filter", body)
        assert reply.status == 200
        result = filtered(reply.body, nodes, cached=False)
        assert result.names is None
        for item in json.loads(reply.text)["Nodes"]["items"]:
            assert item == nodes[item["metadata"]["name"]]

    @pytest.mark.parametrize("prefix", ["", "/scheduler"])
    async def test_preempt_by_uids(self, demo_extender: Extender, prefix: str) -> None:
        reply = await demo_extender.post(
            f"{prefix}/preempt", captured_request("preempt-cache-true")
        )
        assert reply.status == 200
        snapshot = demo_extender.service.cluster.snapshot()
        [(name, victims)] = preempted(reply.body, snapshot).items()
        # All three candidates tie up to the start of their victims: the one that ran least goes.
        assert (name, victims.uids) == ("node-a", ("e1098cba-6318-459e-ade2-477a1f884070",))

    @pytest.mark.parametrize("prefix", ["", "/scheduler"])
    async def test_preempt_with_full_victims(self, demo_extender: Extender, prefix: str) -> None:
        # This capture's victims are not those of the demo cluster: unknown UIDs, known nodes.
        body = captured_request("preempt-cache-false")
        reply = await demo_extender.post(f"{prefix}/preempt", body)
        assert reply.status == 200
        preempted(reply.body, demo_extender.service.cluster.snapshot())

    async def test_an_unserved_verb_is_not_found(self, demo_extender: Extender) -> None:
        reply = await demo_extender.post("/prioritize", captured_request("prioritize-cache-true"))
        assert reply.status == 404
        assert reply.text == "reprieve: no verb 'prioritize'; expected one of filter, preempt\n"


BAD_BODIES: list[tuple[str, str, bytes, str]] = [
    ("malformed", "filter", b'{"Pod":', "ExtenderArgs: not JSON: Input data was truncated"),
    ("malformed", "preempt", b"{]", "ExtenderPreemptionArgs: not JSON: JSON is malformed"),
    ("empty", "filter", b"", "ExtenderArgs: not JSON: Input data was truncated"),
    ("no object", "preempt", b"[1]", "ExtenderPreemptionArgs: expected a JSON object"),
    ("no pod", "filter", b'{"NodeNames":[]}', "ExtenderArgs: Pod is missing; expected the pod"),
    (
        "no pod",
        "preempt",
        b'{"Pod":null,"NodeNameToMetaVictims":{}}',
        "ExtenderPreemptionArgs: Pod is missing; expected the pod",
    ),
    (
        "no nodes",
        "filter",
        encoded({"Pod": pod_json()}),
        "ExtenderArgs: neither Nodes nor NodeNames is set; expected one of them",
    ),
    (
        "no victims",
        "preempt",
        encoded({"Pod": pod_json()}),
        "ExtenderPreemptionArgs: neither NodeNameToVictims nor NodeNameToMetaVictims is set",
    ),
    ("wrong type", "filter", b'{"Pod":5,"NodeNames":[]}', "Pod: (the object): expected object"),
    (
        "wrong type",
        "filter",
        encoded({"Pod": pod_json(), "NodeNames": {"a": 1}}),
        "NodeNames: Expected array, got object",
    ),
    (
        "wrong type",
        "preempt",
        encoded({"Pod": pod_json(), "NodeNameToMetaVictims": {"n": {"Pods": 3}}}),
        "NodeNameToMetaVictims: Expected array | null, got int",
    ),
    (
        "wrong type in the pod",
        "preempt",
        encoded({"Pod": pod_json(spec={"priority": "high"}), "NodeNameToMetaVictims": {}}),
        "Pod default/pod: spec.priority: expected int | null, got str",
    ),
    (
        "quantity",
        "filter",
        filter_body(with_requests(cpu="four")),
        "Pod default/pod: spec.containers[0].resources.requests.cpu: 'four' is not a quantity",
    ),
    (
        "quantity",
        "preempt",
        preempt_body(with_requests(memory="1Gib")),
        "Pod default/pod: spec.containers[0].resources.requests.memory: '1Gib' is not a quantity",
    ),
    (
        "selector",
        "filter",
        filter_body(with_affinity("Near")),
        "Pod default/pod: spec.affinity.nodeAffinity.required",
    ),
    (
        "line ends in names",
        "filter",
        filter_body(pod_json("a\nb", spec={"priority": []})),
        "Pod default/a b: spec.priority: expected int | null, got array",
    ),
    (
        "nested too deeply",
        "filter",
        b'{"Pod":%s,"NodeNames":[]}' % (b"[" * 10**5 + b"]" * 10**5),
        "ExtenderArgs: nested too deeply",
    ),
    (
        "not UTF-8",
        "filter",
        b'{"Pod":{},"NodeNames":["\xff"]}',
        "NodeNames: not UTF-8: invalid start byte",
    ),
]


class TestBadInput:
    @pytest.mark.parametrize(
        ("verb", "body", "problem"),
        [pytest.param(*each, id=f"{title}-{each[0]}") for title, *each in BAD_BODIES],
    )
    async def test_is_an_error_of_the_caller_in_one_line(
        self, verb: str, body: bytes, problem: str
    ) -> None:
        async with served(live_cluster(node())) as extender:
            reply = await extender.post(f"/{verb}", body)
            assert reply.status == 400
            assert reply.text.startswith(f"reprieve: {problem}")
            assert reply.text.count("\n") == 1
            assert (await extender.post("/filter", filter_body(None, "node-1"))).status == 200

    async def test_a_body_over_the_limit(self) -> None:
        async with served(live_cluster(node()), body_limit=1000) as extender:
            reply = await extender.post("/filter", b" " * 1001)
            assert reply.status == 413
            assert reply.text == "reprieve: the body is larger than the limit of 1000 bytes\n"
            assert (await extender.post("/filter", filter_body(None, "node-1"))).status == 200

    async def test_an_encoded_body_is_refused_unread(self) -> None:
        async with served(live_cluster(node())) as extender:
            body = gzip.compress(filter_body(None, "node-1"))
            reply = await extender.post("/filter", body, {"Content-Encoding": "gzip"})
            assert reply.status == 415
            problem = "Content-Encoding: 'gzip'; expected a body that is not encoded"
            assert reply.text == f"reprieve: {problem}\n"

    async def test_an_unknown_node_is_refused_with_its_reason_and_the_rest_answered(self) -> None:
        async with served(live_cluster(node("node-1"))) as extender:
            reply = await extender.post("/filter", filter_body(None, "node-1", "node-2"))
            result = filtered(reply.body, ["node-1", "node-2"], cached=True)
            assert result.names == ["node-1"]
            assert result.failed == {"node-2": "node is not known to the extender (yet)"}

    async def test_a_deleted_victim_does_not_affect_other_offers(self) -> None:
        cluster = live_cluster(
            node("node-1", cpu="1"), node("node-2", cpu="1"), pod("web", on="node-2", cpu="1")
        )
        async with served(cluster) as extender:
            preemptor = pod_json("vip", cpu="1", priority=10)
            body = preempt_body(preemptor, node_1=["gone"], node_2=["web"], node_3=["web"])
            reply = await extender.post("/preempt", body)
            assert reply.status == 200
            [(name, victims)] = preempted(reply.body, cluster.snapshot()).items()
            assert (name, victims.uids) == ("node-2", ("web",))


class TestInternalErrors:
    async def test_an_internal_error_is_500_and_later_calls_are_served(self) -> None:
        clock = HandClock()
        async with served(live_cluster(node()), clock) as extender:
            clock.breaks = 1
            reply = await extender.post("/filter", filter_body(None, "node-1"))
            assert (reply.status, reply.text) == (500, "reprieve: internal error: RuntimeError\n")
            assert (await extender.post("/filter", filter_body(None, "node-1"))).status == 200


FOLLOWED = (
    "nodes",
    "pods",
    "poddisruptionbudgets",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
    "resourceclaims",
    "deviceclasses",
    "resourceslices",
    "devicetaintrules",
    "podgroups",
    "compositepodgroups",
)


class TestReadiness:
    async def test_nothing_is_answered_before_the_caches_have_synced(self) -> None:
        async with following([node_json()]) as it:
            waiting = f"not ready: waiting for {', '.join(FOLLOWED)}\n"
            reply = await it.extender.post("/filter", filter_body(None, "node-1"))
            assert (reply.status, reply.text) == (503, f"reprieve: {waiting}")
            assert reply.headers["Retry-After"] == "1"
            ready = await it.extender.get("/readyz")
            assert (ready.status, ready.text) == (503, waiting)
            assert ready.headers["Retry-After"] == "1"
            assert (await it.extender.get("/livez")).status == 200

            await it.let_it_sync()
            assert (await it.extender.get("/readyz")).text == "ok\n"
            reply = await it.extender.post("/filter", filter_body(None, "node-1"))
            assert filtered(reply.body, ["node-1"], cached=True).names == ["node-1"]

    async def test_verbose_readiness_names_every_cache(self) -> None:
        async with following([]) as it:
            before = await it.extender.get("/readyz?verbose")
            assert before.text.splitlines()[:-1] == [f"[-] {kind} not synced" for kind in FOLLOWED]
            await it.let_it_sync()
            after = await it.extender.get("/readyz?verbose")
            assert after.status == 200
            lines = after.text.splitlines()
            assert [line for line in lines if not line.startswith("[!]")] == [
                *(f"[+] {kind} synced" for kind in FOLLOWED),
                "ok",
            ]

    @pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz"])
    async def test_probes_of_a_healthy_extender(self, demo_extender: Extender, path: str) -> None:
        reply = await demo_extender.get(path)
        assert (reply.status, reply.text) == (200, "ok\n")


async def test_the_links_of_the_root_page_lead_somewhere(demo_extender: Extender) -> None:
    page = await demo_extender.get("/")
    assert "POST /filter, POST /preempt" in page.text
    links = re.findall('href="([^"]*)"', page.text)
    assert "/readyz?verbose" in links
    for link in links:
        assert (await demo_extender.get(link)).status == 200


class TestMetrics:
    async def test_metrics_follow_the_answers(self) -> None:
        cluster = live_cluster(
            node("node-1", cpu="2"),
            pod("web", on="node-1", cpu="1"),
            pod("api", on="node-1", cpu="1", priority=5),
            pod("vip", cpu="1", priority=10),
        )
        async with served(cluster) as extender:
            await extender.post("/filter", filter_body(None, "node-1"))
            await extender.post("/filter", b"{")
            await extender.post("/nonsense", b"{}")
            body = preempt_body(pod_json("vip", cpu="1", priority=10), node_1=["web"])
            await extender.post("/preempt", body)
            figures = set((await extender.get("/metrics")).text.splitlines())
        assert figures >= {
            'reprieve_requests_total{status="200",verb="filter"} 1.0',
            'reprieve_requests_total{status="400",verb="filter"} 1.0',
            'reprieve_requests_total{status="404",verb="unknown"} 1.0',
            'reprieve_requests_total{status="200",verb="preempt"} 1.0',
            'reprieve_request_seconds_count{verb="preempt"} 1.0',
            "reprieve_victims_total 1.0",
            "reprieve_spared_total 1.0",
            "reprieve_budget_violations_total 0.0",
            "reprieve_promises 1.0",
            'reprieve_objects{kind="pods"} 3.0',
        }

    async def test_the_build_and_the_process_are_described(self, demo_extender: Extender) -> None:
        figures = (await demo_extender.get("/metrics")).text
        about = f'python="{platform.python_version()}",version="{version("reprieve")}"'
        assert f"reprieve_build_info{{{about}}} 1.0" in figures
        assert "process_resident_memory_bytes " in figures

    async def test_a_preempt_call_without_an_answer_is_counted(self) -> None:
        async with served(live_cluster(node("node-1"))) as extender:
            await extender.post("/preempt", preempt_body(pod_json("vip", priority=1), node_2=["x"]))
            figures = (await extender.get("/metrics")).text.splitlines()
        assert "reprieve_preempt_without_answer_total 1.0" in figures


async def test_an_answer_changes_the_next_one_until_the_watch_shows_it() -> None:
    vip = pod("vip", cpu="1", priority=10)
    cluster = live_cluster(node("node-1", cpu="1"), pod("web", on="node-1", cpu="1"), vip)
    async with served(cluster) as extender:
        first = preempt_body(pod_json("vip", cpu="1", priority=10), node_1=["web"])
        reply = await extender.post("/preempt", first)
        assert set(preempted(reply.body, cluster.snapshot())) == {"node-1"}
        # The freed resources are used: another pod of the same priority doesn't fit beside it.
        rival = filter_body(pod_json("rival", cpu="1", priority=10), "node-1")
        result = filtered((await extender.post("/filter", rival)).body, ["node-1"], cached=True)
        assert result.failed == {"node-1": "Insufficient cpu"}
        # The preemptor fits, though its victim has not gone yet.
        own = filter_body(pod_json("vip", cpu="1", priority=10), "node-1")
        result = filtered((await extender.post("/filter", own)).body, ["node-1"], cached=True)
        assert result.names == ["node-1"]


async def test_search_cluster_evaluates_all_nodes() -> None:
    objects = [
        node_json("node-1", cpu="1"),
        node_json("node-2", cpu="1"),
        pod_json("important", on="node-1", cpu="1", priority=5),
        pod_json("unimportant", on="node-2", cpu="1", priority=1),
    ]
    body = preempt_body(pod_json("vip", cpu="1", priority=10), node_1=["important"])
    for search, expected in (("offered", "node-1"), ("cluster", "node-2")):
        config = Config(port=0)
        settings = Config(port=0, search=type(config.search)(search))
        async with following(objects, settings) as it:
            await it.let_it_sync()
            reply = await it.extender.post("/preempt", body)
            assert set(preempted(reply.body, it.extender.service.cluster.snapshot())) == {expected}


async def test_an_unreadable_pod_affects_only_its_own_node() -> None:
    broken = pod_json("broken", on="node-1", spec={"containers": [{"resources": 5}]})
    objects = [node_json("node-1"), node_json("node-2"), broken]
    async with following(objects) as it:
        await it.let_it_sync()
        names = ["node-1", "node-2"]
        reply = await it.extender.post("/filter", filter_body(None, *names))
        result = filtered(reply.body, names, cached=True)
        assert result.names == ["node-2"]
        assert result.unresolvable == {
            "node-1": "node holds a pod that could not be read: default/broken"
        }


async def test_the_demo_cluster_is_all_readable(demo_extender: Extender) -> None:
    kinds = [each["kind"] for each in scenario("demo")]
    sizes = demo_extender.service.cluster.object_counts()
    assert sizes["nodes"] == kinds.count("Node") == 40
    assert sizes["pods"] == kinds.count("Pod")
    states = demo_extender.service.cluster.snapshot().nodes.values()
    assert not any(state.unreadable for state in states)
