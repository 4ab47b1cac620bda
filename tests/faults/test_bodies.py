"""Any body is answered rightly or refused in one line: spoiled real ones, and arbitrary ones.

A right answer is the reference engine's for the decoded request, and kube-scheduler's decoder
(:mod:`tests.extender.go_decoder`) accepts it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext
from extender.protocol.verbs import VERBS
from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node, node_json, pod, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster, preempt_body
from tests.extender.go_decoder import decode_filter_result, preempted
from tests.faults.table import ANY_BODY, Row

VIP: Final = pod_json("vip", cpu="1", priority=10, labels={"app": "web"})
WHOLE: Final[list[tuple[str, Any]]] = [
    ("filter", json.loads(filter_body(VIP, "node-1", "node-2", "nowhere"))),
    (
        "filter",
        {"Pod": VIP, "Nodes": {"metadata": {}, "items": [node_json("node-1")]}, "NodeNames": None},
    ),
    ("preempt", json.loads(preempt_body(VIP, node_1=["web-1"], node_2=["web-2"]))),
    (
        "preempt",
        {
            "Pod": VIP,
            "NodeNameToVictims": {
                "node-1": {"Pods": [pod_json("web-1", on="node-1")], "NumPDBViolations": 0}
            },
            "NodeNameToMetaVictims": None,
        },
    ),
]

STRANGE: Final[st.SearchStrategy[Any]] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**31, 2**63, 2**64, -(10**40), 1e308, 0.1]),
    st.sampled_from(["", "\0", "\ud7ff", "1e999", "9" * 400, "a\nb", "🙂", "nöde-1"]),
    st.sampled_from([[], {}, [None], [[]], {"": None}, {"metadata": None}]),
)
SCRAPS: Final = st.sampled_from(
    [
        *(b"NaN", b"Infinity", b"-0", b"1e400", b'"\\ud800"', b"\xff\xfe", b"\xef\xbb\xbf", b"\0"),
        *(b"[" * 3000, b'{"a":' * 3000, b"//", b","),
        *(b'"Pod":null,', b'"Pod":{},', b'"NODENAMES":[],'),
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to each value in a document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, each in value.items():
            found += places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            found += places(each, (*path, index))
    return found


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a document with another value at a place."""
    if not path:
        return other
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = put(value[path[0]], path[1:], other)
    return copy


def recased(value: Any, draw: st.DrawFn) -> Any:
    """Return a document with keys in another case, which Go's decoder accepts."""
    if not isinstance(value, dict):
        return value
    written = draw(st.sampled_from(["as it is", "lower", "upper"]))
    if written == "as it is":
        return value
    return {key.lower() if written == "lower" else key.upper(): value[key] for key in value}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return a verb and a body: a real one spoiled in a few ways, or arbitrary bytes."""
    verb, document = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(0, 3))):
        document = put(document, draw(st.sampled_from(places(document))), draw(STRANGE))
    body = json.dumps(recased(document, draw)).encode()
    match draw(st.sampled_from(["whole", "cut", "scrap", "flipped", "twice", "anything"])):
        case "cut":
            body = body[: draw(st.integers(0, len(body)))]
        case "scrap":
            place = draw(st.integers(0, len(body)))
            body = body[:place] + draw(SCRAPS) + body[place:]
        case "flipped":
            place = draw(st.integers(0, len(body) - 1))
            body = body[:place] + draw(st.binary(min_size=1, max_size=3)) + body[place + 1 :]
        case "twice":
            body += body
        case "anything":
            body = draw(st.binary(max_size=300))
    return verb, body


def service_of_full_nodes() -> Service:
    """Return a service for two full nodes, with the vectorized engine."""
    pods = [pod(f"web-{n}", on=f"node-{n}", cpu="1", labels={"app": "web"}) for n in (1, 2)]
    cluster = live_cluster(node("node-1", cpu="1"), node("node-2", cpu="1"), *pods)
    return Service(cluster, VectorizedEngine(SchedulerRules()), HandClock())


async def answered(serving: Service, verb: str, body: bytes) -> tuple[int, bytes]:
    """Call the service; its assumed preemptions end before the next call."""
    response = await handle_verb(serving, VerbCall(verb, body, serving.clock.monotonic()))
    await asyncio.sleep(0)
    assert isinstance(response.body, bytes)
    return response.status, response.body


def right(verb: str, body: bytes, snapshot: Snapshot) -> bytes:
    """Return the reference engine's answer."""
    return (
        at_once(VERBS[verb](body, SchedulerRules()))
        .decide(CallContext(snapshot, ReferenceEngine()))
        .body
    )


def often(row: Row) -> settings:
    """Return the settings for the number of runs of a row."""
    return settings(
        max_examples=row.times,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@often(ANY_BODY)
@given(bodies())
def test_any_body_is_answered_rightly_or_refused_in_one_line(asked: tuple[str, bytes]) -> None:
    with capture_logs():
        asyncio.run(ask(*asked))


async def ask(verb: str, body: bytes) -> None:
    serving = service_of_full_nodes()
    snapshot = serving.cluster.snapshot()
    status, answer = await answered(serving, verb, body)
    if status == 400:
        assert answer.startswith(b"reprieve: ")
        assert (answer.count(b"\n"), answer[-1:]) == (1, b"\n")
    else:
        assert (status, answer) == (200, right(verb, body, snapshot))
        if verb == "preempt":
            preempted(answer, snapshot)
        else:
            decode_filter_result(answer)
    whole_verb, whole = WHOLE[0]
    assert (await answered(serving, whole_verb, encoded(whole)))[0] == 200
