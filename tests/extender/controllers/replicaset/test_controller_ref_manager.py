"""Pods that are claimed, adopted and released: upstream's table, the patches, and errors."""

from __future__ import annotations

import re
from random import Random

import orjson
import pytest

from extender.controllers.replicaset.controller_ref_manager import (
    ClaimDecision,
    ControllerRefManager,
    decide_claim,
    release_patch,
    terminating_pods,
)
from extender.controllers.replicaset.pod_control import PodControl
from extender.controllers.replicaset.types import OwnedPod, ReplicaSet
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.client import Client
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import REPLICA_SETS
from extender.kube.rest.transport import Request, Response
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    cases,
    decoded_set,
    owned_pod,
)
from tests.transports import AnsweringTransport, refusal, success

DELETED = "2026-01-01T00:00:00Z"


def claims(transport: AnsweringTransport, of: ReplicaSet) -> ControllerRefManager[OwnedPod]:
    client = Client(transport)
    recorder = EventWriter(client, SystemClock(), Random(1)).recorder("tester")
    pods = PodControl(client, recorder, ConsistencyStore({}))
    return ControllerRefManager(client, of, REPLICA_SETS, "Pod", pods.patch)


def stored(of: Document, objection: str | None) -> Document:
    """Return the ReplicaSet as the server has it if it objects to the adoption of pods."""
    metadata = dict(of["metadata"])
    if objection is not None:
        other = re.search(r"got uid (\w+)", objection)
        metadata |= {"uid": other[1]} if other else {"deletionTimestamp": DELETED}
    return {**of, "metadata": metadata}


def server(owner: Document, objection: str | None, refusals: dict[str, int]) -> AnsweringTransport:
    def answer(request: Request) -> Response:
        name = request.path.rpartition("/")[2]
        if request.method == "GET":
            return success(stored(owner, objection))
        return (
            refusal(refusals[name]) if name in refusals else success({"metadata": {"name": name}})
        )

    return AnsweringTransport(answer)


@cases("claim")
async def test_upstreams_table(case: Case) -> None:
    controller = {**case["controller"], "spec": {"selector": case["selector"]}}
    transport = server(controller, case["can_adopt_error"], case["patch_errors"])
    pods = [owned_pod(each) for each in case["pods"]]
    claim = claims(transport, decoded_set(controller)).claim(pods)
    if case["expect_error"]:
        with pytest.raises(RetryError, match=case["can_adopt_error"]):
            await claim
    else:
        assert [each.metadata.name for each in await claim] == case["expect_claimed"]
    patched = [each for each in transport.requests if each.method == "PATCH"]
    assert [
        {"pod": each.path.rpartition("/")[2], "body": orjson.loads(each.body or b"")}
        for each in patched
    ] == case["expect_patches"]
    rechecks = [each for each in transport.requests if each.method == "GET"]
    adopts = any("apiVersion" in str(each["body"]) for each in case["expect_patches"])
    assert len(rechecks) == case.get("expect_can_adopt_calls", int(adopts))


@cases("release_patch")
def test_upstreams_table_of_release_patches(case: Case) -> None:
    expected = orjson.loads(case["expect_patch"])
    assert release_patch(case["owner_uids"][0], case["dependent_uid"]) == expected


WEB = a_replica_set()
LEAVING = stored(WEB, "deleting")
OTHERS = {"app": "db"}
OURS = a_pod("p", "web")
OURS_NO_MORE = a_pod("p", "web", labels=OTHERS)
ORPHAN = a_pod("p", labels={"app": "web"})
TERMINATING_ORPHAN = a_pod("p", labels={"app": "web"}, deleting=True)
DECISIONS = [
    ("ours", WEB, OURS, ClaimDecision.CLAIM),
    ("ours, and we are leaving", LEAVING, OURS, ClaimDecision.CLAIM),
    ("ours no more", WEB, OURS_NO_MORE, ClaimDecision.RELEASE),
    ("ours no more, but we are leaving", LEAVING, OURS_NO_MORE, ClaimDecision.IGNORE),
    ("another's", WEB, a_pod("p", "db", labels={"app": "web"}), ClaimDecision.IGNORE),
    ("an orphan", WEB, ORPHAN, ClaimDecision.ADOPT),
    ("an orphan, but we are leaving", LEAVING, ORPHAN, ClaimDecision.IGNORE),
    ("of another namespace", a_replica_set(namespace="n"), ORPHAN, ClaimDecision.IGNORE),
    ("a terminating orphan", WEB, TERMINATING_ORPHAN, ClaimDecision.IGNORE),
    ("without a matching label", WEB, a_pod("p", labels=OTHERS), ClaimDecision.IGNORE),
    ("without labels", WEB, a_pod("p"), ClaimDecision.IGNORE),
]


@pytest.mark.parametrize(
    ("of", "candidate", "decision"), [each[1:] for each in DECISIONS], ids=[d[0] for d in DECISIONS]
)
def test_a_pod_is_claimed_adopted_released_or_ignored(
    of: Document, candidate: Document, decision: ClaimDecision
) -> None:
    assert decide_claim(decoded_set(of), owned_pod(candidate)) is decision


def test_the_first_of_several_controllers_counts() -> None:
    candidate = a_pod("p", "web")
    candidate["metadata"]["ownerReferences"].append(controlled_by("db", "db"))
    assert decide_claim(decoded_set(WEB), owned_pod(candidate)) is ClaimDecision.CLAIM
    candidate["metadata"]["ownerReferences"].reverse()
    assert decide_claim(decoded_set(WEB), owned_pod(candidate)) is ClaimDecision.IGNORE


def test_an_owner_that_is_no_controller_does_not_count() -> None:
    candidate = a_pod("p", labels={"app": "web"})
    candidate["metadata"]["ownerReferences"] = [{**controlled_by("db", "db"), "controller": False}]
    assert decide_claim(decoded_set(WEB), owned_pod(candidate)) is ClaimDecision.ADOPT


def test_only_own_pods_are_terminating() -> None:
    pods = [
        a_pod("ours", "web", deleting=True),
        a_pod("active", "web"),
        a_pod("finished", "web", deleting=True, phase="Failed"),
        a_pod("orphan", labels={"app": "web"}, deleting=True),
        a_pod("relabelled", "web", labels=OTHERS, deleting=True),
    ]
    found = terminating_pods(decoded_set(WEB), map(owned_pod, pods))
    assert [each.metadata.name for each in found] == ["ours"]


async def test_a_missing_orphan_is_no_error_and_all_orphans_are_tried() -> None:
    transport = server(WEB, None, {"gone": 404, "invalid": 422, "busy": 500})
    names = ("gone", "invalid", "busy", "well")
    pods = [owned_pod(a_pod(name, labels={"app": "web"})) for name in names]
    with pytest.raises(RetryError, match=r"^\[422 Refused, 500 Refused\]$"):
        await claims(transport, decoded_set(WEB)).claim(pods)
    assert [each.method for each in transport.requests] == ["GET", *["PATCH"] * 4]


@pytest.mark.parametrize(
    ("answer", "objection"),
    [
        (refusal(404), "can't recheck DeletionTimestamp: 404 Refused"),
        (Response(200, b"<html>"), "can't recheck DeletionTimestamp: not a ReplicaSet: JSON"),
        (success(stored(WEB, "")), f"default/web has just been deleted at {DELETED}"),
    ],
)
async def test_nothing_is_adopted_unless_the_server_confirms_the_replica_set(
    answer: Response, objection: str
) -> None:
    transport = AnsweringTransport(lambda _: answer)
    pods = [owned_pod(a_pod(name, labels={"app": "web"})) for name in "ab"]
    with pytest.raises(RetryError) as raised:
        await claims(transport, decoded_set(WEB)).claim(pods)
    assert str(raised.value).startswith(f"[can't adopt Pod default/a (a): {objection}")
    assert "can't adopt Pod default/b (b): " in str(raised.value)
    assert len(transport.requests) == 1
