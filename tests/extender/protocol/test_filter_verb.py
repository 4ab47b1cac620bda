"""The filter verb: its answer, and nodes that are newer or older than the watch's."""

from __future__ import annotations

import json
from typing import Any

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.kube.decoders.typed_decoder import Unreadable
from extender.protocol import filter_verb
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext
from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.kubernetes.snapshot import AffinityTerm, DisruptionBudget, Node, Pod
from policies.preemption.policy import DEFAULT_RULES
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import encoded, node, node_json, pod, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster
from tests.extender.go_decoder import FilterResult, filtered

Thing = Node | Pod | DisruptionBudget | Unreadable


def ask(body: bytes, *things: Thing) -> bytes:
    args = at_once(filter_verb.decode(body, DEFAULT_RULES))
    situation = CallContext(live_cluster(*things).snapshot(), ReferenceEngine(DEFAULT_RULES))
    return args.decide(situation).body


def ask_by_name(asking: dict[str, Any] | None, names: list[str], *things: Thing) -> FilterResult:
    return filtered(ask(filter_body(asking, *names), *things), names, cached=True)


def ask_by_node(asking: dict[str, Any], sent: list[Any], *things: Thing) -> FilterResult:
    body = encoded({"Pod": asking, "Nodes": {"metadata": {}, "items": sent}, "NodeNames": None})
    names = [each["metadata"]["name"] for each in sent]
    return filtered(ask(body, *things), names, cached=False)


def test_nodes_that_fit_keep_the_order_they_were_sent_in() -> None:
    names = ["node-3", "node-1", "node-2"]
    assert ask_by_name(None, names, *map(node, sorted(names))).names == names


def test_rejected_nodes_are_in_the_map_of_their_reason() -> None:
    result = ask_by_name(
        pod_json(cpu="2", spec={"nodeSelector": {"zone": "a"}}),
        ["fits", "full", "small", "elsewhere", "cordoned", "unknown"],
        node("fits", labels={"zone": "a"}),
        node("full", cpu="2", labels={"zone": "a"}),
        pod("web", on="full", cpu="1"),
        node("small", cpu="1", labels={"zone": "a"}),
        node("elsewhere", labels={"zone": "b"}),
        node("cordoned", labels={"zone": "a"}, unschedulable=True),
    )
    assert result.names == ["fits"]
    assert result.failed == {
        "full": "Insufficient cpu",
        "unknown": "node is not known to the extender (yet)",
    }
    assert result.unresolvable == {
        "small": "Insufficient cpu",
        "elsewhere": "node(s) didn't match Pod's node affinity/selector",
        "cordoned": "node(s) were unschedulable",
    }


def test_a_node_sent_twice_is_answered_once() -> None:
    assert ask_by_name(None, ["node-1", "node-1"], node("node-1")).names == ["node-1"]


def test_no_nodes_give_empty_lists_without_null() -> None:
    assert json.loads(ask(filter_body(None))) == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_a_terminating_pod_uses_no_resources() -> None:
    things = (node("node-1", cpu="1"), pod("web", on="node-1", cpu="1", terminating=True))
    assert ask_by_name(pod_json(cpu="1"), ["node-1"], *things).names == ["node-1"]


def term(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}


def required(**terms: dict[str, Any]) -> dict[str, Any]:
    """Build a spec with one required term each: podAffinity=term("db"), podAntiAffinity=..."""
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {kind: {rule: [each]} for kind, each in terms.items()}}


IN_ZONE_A = (node("a1", labels={"zone": "a"}), node("a2", labels={"zone": "a"}))
IN_ZONE_B = node("b1", labels={"zone": "b"})
DB = {"app": "db"}
AVERSE_TO_WEB = AffinityTerm(
    LabelSelector(equals_all({"app": "web"})), frozenset({"default"}), None, "zone"
)


class TestPodsOnNodesThatWereNotSent:
    def test_attract(self) -> None:
        near_db = pod_json(spec=required(podAffinity=term("db")))
        things = (*IN_ZONE_A, IN_ZONE_B, pod("db", on="a2", labels=DB))
        assert ask_by_name(near_db, ["a1", "b1"], *things).names == ["a1"]

    def test_repel_a_pod_by_its_anti_affinity(self) -> None:
        off_db = pod_json(spec=required(podAntiAffinity=term("db")))
        things = (*IN_ZONE_A, IN_ZONE_B, pod("db", on="a2", labels=DB))
        assert ask_by_name(off_db, ["a1", "b1"], *things).names == ["b1"]

    def test_repel(self) -> None:
        web = pod_json(labels={"app": "web"})
        things = (*IN_ZONE_A, IN_ZONE_B, pod("db", on="a2", anti_affinity=(AVERSE_TO_WEB,)))
        assert ask_by_name(web, ["a1", "b1"], *things).names == ["b1"]

    def test_are_spread(self) -> None:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": DB},
            "minDomains": 2,
        }
        spread = pod_json(labels=DB, spec={"topologySpreadConstraints": [constraint]})
        things = (*IN_ZONE_A, IN_ZONE_B)
        assert ask_by_name(spread, ["a1"], *things).names == ["a1"]
        crowded = (*things, pod("db", on="a2", labels=DB))
        assert ask_by_name(spread, ["a1"], *crowded).names == []
        evened = (*crowded, pod("other", on="b1", labels=DB))
        assert ask_by_name(spread, ["a1"], *evened).names == ["a1"]


class TestTerminatingPods:
    """Their node a2 is not among the nodes that were sent."""

    def test_do_not_repel_a_pod_by_its_anti_affinity(self) -> None:
        off_db = pod_json(spec=required(podAntiAffinity=term("db")))
        db = pod("db", on="a2", labels=DB, terminating=True)
        assert ask_by_name(off_db, ["a1"], *IN_ZONE_A, db).names == ["a1"]

    def test_do_not_repel(self) -> None:
        web = pod_json(labels={"app": "web"})
        db = pod("db", on="a2", anti_affinity=(AVERSE_TO_WEB,), terminating=True)
        assert ask_by_name(web, ["a1"], *IN_ZONE_A, db).names == ["a1"]

    def test_still_attract(self) -> None:
        near_db = pod_json(spec=required(podAffinity=term("db")))
        things = (*IN_ZONE_A, IN_ZONE_B, pod("db", on="a1", labels=DB, terminating=True))
        assert ask_by_name(near_db, ["b1", "a1"], *things).names == ["a1"]

    def test_are_also_those_that_an_earlier_answer_took_as_victims(self) -> None:
        cluster = live_cluster(
            *IN_ZONE_A, pod("db", on="a2", anti_affinity=(AVERSE_TO_WEB,)), clock=HandClock()
        )
        cluster.assume(AssumedPreemption(pod("vip"), "a2", frozenset({"db"}), deadline=30.0))
        body = filter_body(pod_json(labels={"app": "web"}), "a1")
        args = at_once(filter_verb.decode(body, DEFAULT_RULES))
        answered = args.decide(CallContext(cluster.snapshot(), ReferenceEngine(DEFAULT_RULES))).body
        assert filtered(answered, ["a1"], cached=True).names == ["a1"]


def test_resources_assumed_for_an_equal_pod_are_used() -> None:
    things = (node("node-1", cpu="1"), pod("earlier", cpu="1", priority=5, nominated_node="node-1"))
    equal = ask_by_name(pod_json("equal", cpu="1", priority=5), ["node-1"], *things)
    assert equal.failed == {"node-1": "Insufficient cpu"}
    higher = ask_by_name(pod_json("higher", cpu="1", priority=6), ["node-1"], *things)
    assert higher.names == ["node-1"]
    itself = ask_by_name(pod_json("earlier", cpu="1", priority=5), ["node-1"], *things)
    assert itself.names == ["node-1"]


def test_a_contradictory_pod_fits_nowhere_and_is_unresolvable() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    names = ["a", "b"]
    result = ask_by_name(pod_json(spec={"affinity": affinity}), names, node("a"), node("b"))
    assert result.names == []
    assert sorted(result.unresolvable) == names


class TestNodesSentInFull:
    def test_are_returned_byte_for_byte(self) -> None:
        raw = b'{"unknown" : [1,2], "metadata":{"name":"node-1"}, "status":{"allocatable":null}}'
        body = b'{"Pod":%s,"Nodes":{"items":[%s]}}' % (encoded(pod_json()), raw)
        roomless = ask(body, node("node-1"))
        assert json.loads(roomless)["FailedNodes"] == {"node-1": "Too many pods"}
        roomy = body.replace(b'"allocatable":null', b'"allocatable":{"pods":"9"}')
        assert raw.replace(b"null", b'{"pods":"9"}') in ask(roomy, node("node-1"))

    def test_count_as_sent_where_the_watch_lags_behind(self) -> None:
        sent = [
            node_json("cordoned", unschedulable=True),
            node_json("grown", cpu="8"),
            node_json("shrunk", cpu="2"),
        ]
        seen = (
            node("cordoned"),
            node("grown", cpu="1"),
            node("shrunk", cpu="8"),
            pod("web", on="shrunk", cpu="1"),
        )
        result = ask_by_node(pod_json(cpu="2"), sent, *seen)
        assert result.nodes == ["grown"]
        assert result.failed == {"shrunk": "Insufficient cpu"}
        assert result.unresolvable == {"cordoned": "node(s) were unschedulable"}

    def test_are_refused_where_the_pods_on_them_are_not_known(self) -> None:
        result = ask_by_node(pod_json(), [node_json("new")])
        assert result.failed == {"new": "node is not known to the extender (yet)"}

    def test_are_refused_where_they_cannot_be_read(self) -> None:
        broken = node_json("broken", cpu="lots")
        result = ask_by_node(pod_json(), [broken, node_json("node-1")], node("node-1"))
        assert result.nodes == ["node-1"]
        assert result.unresolvable["broken"].startswith(
            "node could not be read: Node broken: status.allocatable.cpu: 'lots' is not a quantity"
        )

    def test_may_be_null_in_the_list(self) -> None:
        body = b'{"Pod":%s,"Nodes":{"items":[null]}}' % encoded(pod_json())
        result = json.loads(ask(body))
        assert result["Nodes"]["items"] == []
        assert list(result["FailedAndUnresolvableNodes"]) == [""]


def test_a_node_with_an_unreadable_pod_is_unresolvable() -> None:
    broken = Unreadable("Pod", "default", "broken", "broken", "node-1", "why")
    result = ask_by_name(pod_json(), ["node-1"], node("node-1"), broken)
    reason = "node holds a pod that could not be read: default/broken"
    assert result.unresolvable == {"node-1": reason}
