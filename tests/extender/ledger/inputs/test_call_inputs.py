"""The inputs of a decision are kept, and decide it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.config.component_config import Config
from extender.config.rules_source import RulesSource, build_rules, read_rules_source
from extender.ledger.inputs.call_inputs import (
    CallInputs,
    decode_inputs,
    encode_inputs,
    inputs_of,
)
from extender.ledger.inputs.snapshot_blobs import FORMAT, SnapshotEncoder
from extender.ledger.inputs.snapshot_codec import (
    BlobError,
    compress,
    digest_of,
    encode_value,
    read_blob,
)
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import DeadlineExceededError
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.strategies import (
    deferred_resizes,
    grouped_clusters,
    rich_clusters,
)
from tests.builders import budget, node, pod, snapshot
from tests.properties.storages import clusters_with_devices, clusters_with_volumes
from tests.properties.typed_values import values_of

RECIPES = sorted((Path(__file__).parents[4] / "deploy/policies").glob("*.yaml"))


def source(policy: str = "kube-scheduler", **fields: object) -> RulesSource:
    return read_rules_source(msgspec.structs.replace(Config(policy=policy), **fields))


@st.composite
def sources(draw: st.DrawFn) -> RulesSource:
    """Draw the source of any recipe and any release."""
    policies = ["kube-scheduler", *map(str, RECIPES)]
    return source(draw(st.sampled_from(policies)), upstream=draw(st.sampled_from([*RELEASES])))


CLUSTERS: st.SearchStrategy[tuple[Pod, Snapshot]] = st.one_of(
    st.one_of(rich_clusters(), grouped_clusters(), deferred_resizes()).map(
        lambda drawn: (drawn.preemptor, drawn.snapshot)
    ),
    clusters_with_volumes(),
    clusters_with_devices(),
)


def pods_of(found: Snapshot) -> Iterator[Pod]:
    for state in found.nodes.values():
        yield from (*state.pods, *state.nominated)


@st.composite
def decisions(draw: st.DrawFn) -> CallInputs:
    """Draw a call and its context; offered victims are on their node, pending, or gone."""
    preemptor, found = draw(CLUSTERS)
    pods, now_ns = list(pods_of(found)), draw(st.integers(0, 10**11))
    victims = st.sampled_from(pods) if pods else st.just(pod("past"))
    past = draw(st.lists(st.builds(PastPreemption, st.integers(0, now_ns), victims)))
    nodes = dict(draw(st.permutations(list(found.nodes.items()))))
    found = replace(found, nodes=nodes, now_ns=now_ns, preemptions=tuple(past), generation=7)
    uids = st.lists(st.sampled_from([*(each.uid for each in pods), "gone", ""]), max_size=4)
    offers = st.builds(CandidateVictims, uids.map(tuple), st.integers(0, 2))
    candidates = draw(st.dictionaries(st.sampled_from([*found.nodes, "gone"]), offers))
    pending = {each.uid: each for each in pods if each.node_name is None}
    rules = draw(sources())
    context = CallContext(
        found,
        ReferenceEngine(build_rules(rules)),
        draw(st.sampled_from(Search)),
        pending_pods=pending,
    )
    return inputs_of(PreemptArgs(preemptor, candidates), context, rules)


def loaded(inputs: CallInputs) -> CallInputs:
    digest, blobs = encode_inputs(inputs, SnapshotEncoder())
    return decode_inputs(digest, blobs.__getitem__)


def decided(inputs: CallInputs) -> VerbResult | str:
    """Return the result of a decision, or "late" if there can be none."""
    engine = ReferenceEngine(build_rules(inputs.rules))
    try:
        return inputs.args.decide(inputs.context(engine))
    except DeadlineExceededError:
        return "late"


def facts_of(result: VerbResult | str) -> tuple[object, ...]:
    """Return all of a result that can be compared: functions are not equal."""
    if isinstance(result, str):
        return (result,)
    decision = result.decision
    assert isinstance(decision, PreemptionDecision)
    return (
        result.body,
        result.notes,
        result.named_candidate,
        decision.chosen,
        decision.candidates,
        decision.rejected,
        decision.decided_by,
        decision.reason,
        decision.message,
    )


@given(decisions())
def test_inputs_are_kept_and_decide_the_same(inputs: CallInputs) -> None:
    read = loaded(inputs)
    assert read == inputs
    assert list(read.args.candidates) == list(inputs.args.candidates)
    assert encode_inputs(read, SnapshotEncoder()) == encode_inputs(inputs, SnapshotEncoder())
    assert facts_of(decided(read)) == facts_of(decided(inputs))


@given(values_of(Snapshot), values_of(Pod))
def test_any_inputs_are_kept(drawn: Snapshot, preemptor: Pod) -> None:
    offers = {
        name: CandidateVictims((*(each.uid for each in state.pods), "gone"), 1)
        for name, state in drawn.nodes.items()
    }
    inputs = CallInputs(PreemptArgs(preemptor, offers), drawn, Search.OFFERED, {}, source())
    assert loaded(inputs) == inputs


def moment(**fields: Any) -> CallInputs:
    """Return the inputs of a call whose preemptor has to evict ``web`` from one of two nodes."""
    state = snapshot(
        node("node-1", cpu="1"),
        node("node-2", cpu="1"),
        pod("web", on="node-1", cpu="1", labels={"app": "web"}),
        pod("rival", on="node-2", cpu="1", priority=9),
        budget("web", match={"app": "web"}, allowed=0),
    )
    offers = {"node-1": CandidateVictims(("web",), 1)}
    args = PreemptArgs(pod("vip", cpu="1", priority=5), offers)
    return replace(CallInputs(args, state, Search.CLUSTER, {}, source()), **fields)


def test_both_engines_decide_loaded_inputs_alike() -> None:
    read = loaded(moment())
    rules = build_rules(read.rules)
    answers = [
        read.args.decide(read.context(engine)).body
        for engine in (ReferenceEngine(rules), VectorizedEngine(rules))
    ]
    assert answers == [decided(moment()).body] * 2  # type: ignore[union-attr]


def test_only_offered_pending_pods_are_kept() -> None:
    inputs = moment()
    pending = {each.uid: each for each in (pod("web"), pod("other"))}
    context = replace(inputs.context(ReferenceEngine(build_rules(source()))), pending_pods=pending)
    assert inputs_of(inputs.args, context, source()).pending_pods == {"web": pending["web"]}


def test_a_repeated_call_adds_one_blob_and_a_policy_is_stored_once() -> None:
    encoder = SnapshotEncoder()
    first = moment(rules=source(str(RECIPES[0])))
    encode_inputs(first, encoder)
    assert encode_inputs(first, encoder).blobs == {}
    other = replace(first, args=replace(first.args, pod=pod("other", cpu="1", priority=5)))
    assert len(encode_inputs(other, encoder).blobs) == 1


def test_an_offered_victim_takes_a_few_bytes() -> None:
    """The UIDs of pods on their nodes are in the snapshot, and do not compress."""
    uids = [digest_of(str(number).encode()).hex() for number in range(3000)]
    pods = (pod(f"pod-{n}", on=f"node-{n // 30}", uid=uid) for n, uid in enumerate(uids))
    state = snapshot(*(node(f"node-{n}") for n in range(100)), *pods)
    offers = {
        name: CandidateVictims(tuple(each.uid for each in found.pods), 0)
        for name, found in state.nodes.items()
    }
    inputs = moment(snapshot=state, args=PreemptArgs(pod("vip"), offers))
    digest, blobs = encode_inputs(inputs, SnapshotEncoder())
    assert decode_inputs(digest, blobs.__getitem__) == inputs
    assert len(blobs[digest]) < 2 * len(uids)


def stored(**fields: object) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the blobs of valid inputs with some of their fields replaced."""
    digest, blobs = encode_inputs(moment(), SnapshotEncoder())
    content = msgspec.json.decode(read_blob(digest, blobs.__getitem__)) | fields
    data = encode_value(content)
    return digest_of(data), {**blobs, digest_of(data): compress(data)}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"format": FORMAT + 1}, f"format: {FORMAT + 1}; expected 1 to {FORMAT}, as this release"),
        ({"search": "all"}, "Invalid enum value 'all' - at `$.search`"),
        ({"answer": 1}, "Object contains unknown field `answer`"),
        ({"preemptor": {}}, "Object missing required field `namespace` - at `$.preemptor`"),
        ({"offers": [["node-1", [1], 0]]}, "offers: node node-1: no pod 1; expected less than 1"),
        ({"offers": [["node-1", [-1], 0]]}, "offers: node node-1: no pod -1; expected less"),
        ({"offers": [["gone", [0], 0]]}, "offers: node gone: no pod 0; expected less than 0"),
        ({"offers": [["node-1", [0.5], 0]]}, "at `$.offers[0][1][0]`"),
        ({"snapshot": bytes(16)}, "blob 00000000000000000000000000000000: not found"),
        ({"rules": bytes(16)}, "blob 00000000000000000000000000000000: not found"),
        ({"rules": bytes(15)}, "Expected `bytes` of length >= 16 - at `$.rules`"),
    ],
    ids=str,
)
def test_invalid_inputs_are_an_error(fields: dict[str, object], error: str) -> None:
    digest, blobs = stored(**fields)
    with pytest.raises(BlobError) as caught:
        decode_inputs(digest, blobs.__getitem__)
    assert error in str(caught.value)


def test_inputs_without_some_of_their_blobs_are_an_error() -> None:
    digest, blobs = encode_inputs(moment(), SnapshotEncoder())
    for missing in blobs:
        others = {each: blob for each, blob in blobs.items() if each != missing}
        with pytest.raises(BlobError, match=f"blob {missing.hex()}: not found"):
            decode_inputs(digest, others.__getitem__)
