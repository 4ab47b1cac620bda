"""Laws: kube-scheduler can act on any answer to any call."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.kube.decoders.typed_decoder import ObjectError
from extender.protocol import filter_verb, preempt_verb
from extender.protocol.extender_v1 import ExtenderDecodeError
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext, Search
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import budget, encoded, node, node_json, pod, pod_json
from tests.extender.conftest import broken, live_cluster
from tests.extender.go_decoder import filtered, preempted

KNOWN = ["node-1", "node-2", "node-3"]
ASKED = [*KNOWN, "unknown", ""]
NAMES = [f"pod-{index}" for index in range(8)]
CPU = st.sampled_from(["1", "2", "500m", "0"])

RARELY = st.sampled_from([False] * 14 + [True])

_placed = st.builds(
    lambda name, on, **fields: pod(name, on=on, labels={"app": name[-1]}, **fields),
    st.sampled_from(NAMES),
    st.sampled_from(KNOWN),
    cpu=CPU,
    priority=st.integers(0, 4),
    started=st.none() | st.integers(0, 3),
    terminating=RARELY,
    preempted=st.booleans(),
    finished=RARELY,
    ports=st.sampled_from([(), (80,)]),
)
_nominated = st.builds(
    lambda name, to, **fields: pod(name, nominated_node=to, **fields),
    st.sampled_from(["vip", "rival"]),
    st.sampled_from(KNOWN),
    cpu=CPU,
    priority=st.integers(0, 4),
)
_unread = st.builds(broken, st.sampled_from(NAMES), st.sampled_from([None, *KNOWN]))
_nodes = st.builds(
    node, st.sampled_from(KNOWN), cpu=CPU, pods=st.integers(1, 4), unschedulable=RARELY
)
_budgets = st.builds(
    lambda number, allowed: budget(f"b{number}", match={"app": str(number)}, allowed=allowed),
    st.integers(0, 7),
    st.integers(0, 1),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Return the state of a live cluster; some of its objects could not be read."""
    kinds: list[st.SearchStrategy[Any]] = [*[_placed] * 8, _nominated, _unread]
    pods = st.lists(st.sampled_from(kinds).flatmap(lambda kind: kind), min_size=4, max_size=10)
    nodes = st.lists(_nodes, min_size=2, max_size=4)
    budgets = st.lists(_budgets, max_size=2)
    return live_cluster(*draw(nodes), *draw(pods), *draw(budgets)).snapshot()


def _policy(guarded: frozenset[str]) -> Policy:
    return Policy(
        "drawn", victim_guards=(protected_pods("drawn", lambda each: each.name in guarded),)
    )


_rules = st.builds(
    lambda release, guarded: SchedulerRules(release=release, policy=_policy(guarded)),
    st.sampled_from(list(RELEASES.values())),
    st.frozensets(st.sampled_from(NAMES), max_size=2),
)
_SPREAD = {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}
_spec: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        *[{}, _SPREAD, {"preemptionPolicy": "PreemptLowerPriority"}] * 3,
        {"preemptionPolicy": "Never"},
        {"nodeName": "node-1"},
        {"priority": None},
    ]
)
_preemptors = st.builds(
    lambda cpu, priority, spec, to: pod_json(
        "vip", cpu=cpu, priority=priority, spec=spec, status={"nominatedNodeName": to}
    ),
    CPU,
    st.integers(2, 5),
    _spec,
    st.sampled_from([*[None] * 9, *ASKED]),
)


def _nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return RARELY.flatmap(lambda is_null: st.none() if is_null else strategy)


@st.composite
def questions(draw: st.DrawFn) -> tuple[PreemptArgs, CallContext]:
    """Return a preempt call, most of whose offers have existing pods, and the moment."""
    situation = CallContext(
        draw(snapshots()), ReferenceEngine(draw(_rules)), draw(st.sampled_from(Search))
    )
    names = st.lists(st.sampled_from([*KNOWN * 3, *ASKED]), min_size=1, max_size=4, unique=True)
    form = draw(st.sampled_from(["NodeNameToMetaVictims", "NodeNameToVictims"]))
    offers = {name: draw(_nullable(_offer(form, name, situation))) for name in draw(names)}
    body = encoded({"Pod": draw(_preemptors), form: offers})
    return at_once(preempt_verb.decode(body, situation.rules)), situation


def _offer(form: str, name: str, situation: CallContext) -> st.SearchStrategy[Any]:
    state = situation.snapshot.nodes.get(name)
    here = [] if state is None else [each.uid for each in state.pods]
    uids = st.sampled_from([*here * 5, *NAMES[:2], "gone", "", None])
    by_uid = form == "NodeNameToMetaVictims"
    victims = uids.map(lambda uid: {"UID": uid} if by_uid else {"metadata": {"uid": uid}})
    counts = st.integers(0, 2) | st.integers(0, 2**63 - 1)
    return st.fixed_dictionaries(
        {
            "Pods": _nullable(st.lists(_nullable(victims), max_size=3)),
            "NumPDBViolations": _nullable(counts),
        }
    )


@given(questions())
def test_a_preempt_answer_can_be_carried_out(question: tuple[PreemptArgs, CallContext]) -> None:
    args, situation = question
    answer = args.decide(situation)
    entries = preempted(answer.body, situation.snapshot, situation.rules.release)
    assert b"null" not in answer.body
    assert len(entries) <= 1
    for name, victims in entries.items():
        state = situation.snapshot.nodes[name]
        assert not state.unreadable
        assert situation.search is Search.CLUSTER or name in args.candidates
        assert len(set(victims.uids)) == len(victims.uids)
        present = {each.uid: each for each in state.pods}
        chosen = [present[uid] for uid in victims.uids]
        assert all(each.priority < args.pod.priority for each in chosen)
        assert not any(situation.rules.policy.protection_of(each, 0) for each in chosen)
        priorities = [each.priority for each in chosen]
        assert priorities == sorted(priorities, reverse=True)


@given(questions())
def test_a_pod_that_may_not_preempt_gets_no_victims(
    question: tuple[PreemptArgs, CallContext],
) -> None:
    args, situation = question
    meek = replace(args, pod=structs.replace(args.pod, preempts=False))
    answer = meek.decide(situation)
    assert preempted(answer.body, situation.snapshot, situation.rules.release) == {}


@given(questions())
def test_the_order_of_the_offers_never_matters(question: tuple[PreemptArgs, CallContext]) -> None:
    args, situation = question
    backwards = replace(args, candidates=dict(reversed(list(args.candidates.items()))))
    answers = [each.decide(situation).body for each in (args, backwards)]
    assert answers[0] == answers[1]


_KEYS = ["Pod", "NodeNames", "Nodes", "items", "NodeNameToVictims", "NodeNameToMetaVictims"]
_KEYS += ["Pods", "pods", "UID", "uid", "NumPDBViolations", "metadata", "name", "spec", "node-1"]
_KEYS += ["containers", "resources", "requests", "priority", "nodeSelector", "tolerations"]
_sent_nodes = st.one_of(
    st.builds(node_json, st.sampled_from(ASKED), cpu=CPU),
    st.builds(node_json, st.sampled_from(ASKED), cpu=st.just("lots")),
)


@given(
    asking=_preemptors, names=st.lists(st.sampled_from(ASKED)), snapshot=snapshots(), rules=_rules
)
def test_a_filter_answer_accounts_for_every_name(
    asking: dict[str, Any], names: list[str], snapshot: Snapshot, rules: SchedulerRules
) -> None:
    args = at_once(filter_verb.decode(encoded({"Pod": asking, "NodeNames": names}), rules))
    answer = args.decide(CallContext(snapshot, ReferenceEngine(rules)))
    result = filtered(answer.body, names, cached=True)
    assert result.names is not None
    assert len(result.names) + len(result.failed) + len(result.unresolvable) == len(set(names))
    assert set(result.names) <= snapshot.nodes.keys()


@given(
    asking=_preemptors,
    names=st.lists(st.sampled_from([*KNOWN, *KNOWN, *ASKED, "nöd", 'quo"ted'])),
    snapshot=snapshots(),
    rules=_rules,
)
def test_a_filter_answer_is_independent_of_name_encoding_and_engine(
    asking: dict[str, Any], names: list[str], snapshot: Snapshot, rules: SchedulerRules
) -> None:
    document = {"Pod": asking, "Nodes": None, "NodeNames": names}
    bodies = [encoded(document), json.dumps(document).encode()]
    answers = [
        at_once(filter_verb.decode(body, rules)).decide(CallContext(snapshot, engine(rules)))
        for body in bodies
        for engine in (ReferenceEngine, VectorizedEngine)
    ]
    results = [json.loads(answer.body) for answer in answers]
    assert all(result == results[0] for result in results)
    assert all(answer.decision == answers[0].decision for answer in answers)


@given(
    asking=_preemptors,
    nodes=st.lists(_sent_nodes, unique_by=lambda each: each["metadata"]["name"]),
    snapshot=snapshots(),
    rules=_rules,
)
def test_a_filter_answer_accounts_for_every_node(
    asking: dict[str, Any], nodes: list[Any], snapshot: Snapshot, rules: SchedulerRules
) -> None:
    body = encoded({"Pod": asking, "Nodes": {"metadata": {}, "items": nodes}})
    args = at_once(filter_verb.decode(body, rules))
    answer = args.decide(CallContext(snapshot, ReferenceEngine(rules)))
    names = [each["metadata"]["name"] for each in nodes]
    result = filtered(answer.body, names, cached=False)
    assert result.nodes is not None
    assert len(result.nodes) + len(result.failed) + len(result.unresolvable) == len(names)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(_KEYS), inner),
    max_leaves=12,
)
_scraps = st.binary() | st.dictionaries(st.sampled_from(_KEYS), _json).map(encoded)


@given(kind=st.sampled_from(["filter", "preempt"]), body=_scraps)
def test_any_bytes_are_decoded_or_refused_with_a_reason(kind: str, body: bytes) -> None:
    decode = {"filter": filter_verb.decode, "preempt": preempt_verb.decode}[kind]
    with suppress(
        ExtenderDecodeError, ObjectError
    ):  # which are answered with 400; nothing else may come
        decode(body, SchedulerRules())
