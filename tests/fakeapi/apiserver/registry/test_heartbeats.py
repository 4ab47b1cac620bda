"""Renewals of leases and heartbeats of nodes: the fast path has the results of the usual path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Request, Response
from fakeapi.apiserver.kinds.builtin import LEASES, NODES
from fakeapi.apiserver.serving.virtual_clock import START_NS
from fakeapi.simulation.world import create_api
from tests.builders import Document
from tests.fakeapi.admission_webhooks import (
    CONFIGURATIONS,
    Recorder,
    answering,
    configuration,
    webhook,
)
from tests.fakeapi.api_requests import JSON, MERGE, NAME, STRATEGIC, send
from tests.fakeapi.apiserver.manual_clock import ManualClock

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE = "/api/v1/nodes"
TYPES = ("MemoryPressure", "Ready")
PRETTY = "application/json;pretty=1"
REPRESENTATIONS = (
    PRETTY,
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)


class Cluster:
    """An API with or without the fast path, and a client that keeps its answers by path."""

    def __init__(self, *, fast: bool = True) -> None:
        self.clock = ManualClock(epoch_ns=START_NS)
        self.api = create_api(self.clock, Random(1))
        self.fast = fast
        self.answers: dict[str, Document] = {}
        self.accept = JSON
        for path, spec in ((LEASE, {"spec": {"holderIdentity": "n"}}), (NODE, {})):
            self.ask("POST", path, {"metadata": {"name": "n"}, **spec})
            self.answers[f"{path}/n"] = self.answers.pop(path)

    def ask(
        self,
        method: str,
        path: str,
        body: Document | None,
        kind: str = JSON,
        agent: str = "kubelet/v1",
        query: dict[str, str] | None = None,
    ) -> Response:
        if not self.fast:
            self.api._heartbeats._known.clear()
        asked = (method, path, query or {}, orjson.dumps(body), kind, self.accept)
        answer = self.api.handle(Request(*asked, user_agent=agent))
        assert isinstance(answer, Response)
        if answer.status in (200, 201) and method != "DELETE":
            self.remember(path.removesuffix("/status"), answer)
        return answer

    def remember(self, path: str, answer: Response) -> None:
        """Keep the object that was answered; look it up if the answer has another form."""
        shown = orjson.loads(answer.body) if self.accept in (JSON, PRETTY) else {}
        if shown.get("kind") not in ("Lease", "Node"):
            shown = orjson.loads(send(self.api, "GET", path).body)
        self.answers[path] = shown

    def accept_as(self, accept: str) -> None:
        self.accept = accept

    @property
    def known(self) -> list[str]:
        return list(self.api._heartbeats._known)

    def renew(self, agent: str = "kubelet/v1", **spec: Any) -> Response:
        lease = deepcopy(self.answers[f"{LEASE}/n"])
        lease["spec"] |= {"renewTime": self.clock.micros(), **spec}
        return self.ask("PUT", f"{LEASE}/n", lease, agent=agent)

    def renew_with_old_owners(self) -> Response:
        """Renew with the managedFields of an earlier answer, at any version."""
        last = self.answers[f"{LEASE}/n"]
        lease = deepcopy(self.answers.setdefault("kept", last))
        lease["spec"] = last["spec"] | {"renewTime": self.clock.micros()}
        lease["metadata"].pop("resourceVersion", None)
        lease["metadata"].pop("uid", None)
        return self.ask("PUT", f"{LEASE}/n", lease)

    def beat(self, types: Iterable[str] = TYPES, agent: str = "kubelet/v1") -> Response:
        return self._patch_conditions(types, agent, lastHeartbeatTime=self.clock.second())

    def set_status(self, status: str) -> Response:
        now = self.clock.second()
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        return self._patch_conditions(TYPES, "kubelet/v1", status=status, **times)

    def _patch_conditions(self, types: Iterable[str], agent: str, **fields: str) -> Response:
        body = {"status": {"conditions": [{"type": each, **fields} for each in types]}}
        return self.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC, agent)

    def wait(self, seconds: float) -> None:
        self.clock.seconds = max(0.0, self.clock.seconds + seconds)

    def hold(self, holder: str) -> Response:
        return self.renew(holderIdentity=holder)

    def label(self, path: str, value: str) -> Response:
        return self.ask("PATCH", f"{path}/n", {"metadata": {"labels": {"at": value}}}, MERGE, "a/1")

    def clear_owners(self, path: str) -> Response:
        body: Document = {"metadata": {"managedFields": [{}]}}
        return self.ask("PATCH", f"{path}/n", body, MERGE, "a/1")

    def recreate(self, path: str) -> None:
        self.accept_as(JSON)
        self.ask("DELETE", f"{path}/n", {})
        self.ask("POST", path, {"metadata": {"name": "n"}, "spec": {}})
        self.answers[f"{path}/n"] = self.answers.pop(path)

    def renew_dry(self) -> Response:
        lease = deepcopy(self.answers[f"{LEASE}/n"])
        lease["spec"]["renewTime"] = self.clock.micros()
        kept = dict(self.answers)
        answer = self.ask("PUT", f"{LEASE}/n", lease, query={"dryRun": "All"})
        self.answers = kept
        return answer

    def stored(self) -> list[tuple[int, bytes]]:
        """Return every state of Leases and Nodes, with its version."""
        store = self.api.store
        events = [*store.since(LEASES, 0), *store.since(NODES, 0)]
        return [(event.version, event.entry.raw) for event in events]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def renew_often(cluster: Cluster, times: int) -> None:
    for _ in range(times):
        cluster.clock.seconds += 10
        assert cluster.renew().status == 200


def beat_thrice(cluster: Cluster) -> set[str]:
    """Send three heartbeats of a node; return the times of its conditions."""
    cluster.set_status("True")
    for second in (10, 20, 30):
        cluster.clock.seconds = second
        cluster.beat()
    conditions = cluster.answers[f"{NODE}/n"]["status"]["conditions"]
    assert {c["lastTransitionTime"] for c in conditions} == {"2026-01-01T00:00:00Z"}
    return {c["lastHeartbeatTime"] for c in conditions}


def check_act(act: Callable[[Cluster], Any]) -> None:
    """Check that an act has the same results and stored states with and without the fast path."""
    fast, plain = Cluster(fast=True), Cluster(fast=False)
    assert act(fast) == act(plain)
    assert fast.stored() == plain.stored()


def test_a_lease_is_learned_from_the_second_renewal_by_the_same_client(cluster: Cluster) -> None:
    renew_often(cluster, 1)
    assert cluster.known == []  # the field had no owner before, so there was more to it than time
    renew_often(cluster, 1)
    assert cluster.known == [f"{LEASE}/n"]
    renew_often(cluster, 3)
    lease = cluster.answers[f"{LEASE}/n"]
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:50.000000Z"
    assert lease["metadata"]["managedFields"][-1]["time"] == "2026-01-01T00:00:50Z"
    assert lease["metadata"]["resourceVersion"] == "13"


def test_the_times_of_a_nodes_conditions_are_learned(cluster: Cluster) -> None:
    assert beat_thrice(cluster) == {"2026-01-01T00:00:30Z"}
    assert cluster.known == [f"{NODE}/n/status"]


def test_a_watch_sees_renewals_as_it_sees_other_writes(cluster: Cluster) -> None:
    before = cluster.api.store.version
    renew_often(cluster, 4)
    events = cluster.api.store.since(LEASES, before)
    assert [event.type for event in events] == ["MODIFIED"] * 4
    assert all(event.previous is not None for event in events)
    assert [each.entry for each in events[:-1]] == [each.previous for each in events[1:]]


def test_a_stale_renewal_conflicts(cluster: Cluster) -> None:
    renew_often(cluster, 3)
    stale = deepcopy(cluster.answers[f"{LEASE}/n"])
    renew_often(cluster, 1)
    stale["spec"]["renewTime"] = "2026-01-01T00:50:00.000000Z"
    answer = cluster.ask("PUT", f"{LEASE}/n", stale)
    assert answer.status == 409
    assert b"the object has been modified" in answer.body


def test_with_webhooks_no_renewal_takes_the_fast_path(cluster: Cluster) -> None:
    renew_often(cluster, 3)
    recorder = Recorder(answering(allowed=False))
    cluster.api.webhooks.handlers[NAME] = recorder
    made = configuration("validating", webhook(NAME, "leases"))
    assert cluster.ask("POST", CONFIGURATIONS["validating"], made).status == 201
    cluster.clock.seconds += 10
    assert cluster.renew().status == 400
    assert recorder.seen("name") == ["n"]


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"renewTime": "2026-13-01T00:00:00.000000Z"}},
        {"spec": {"renewTime": "2026-01-01T00:00:00.00000aZ"}},
        {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z", "holderIdentity": "m"}},
        {"metadata": {"labels": {"a": "b"}}, "spec": {"renewTime": "2026-01-01T00:09:00.000000Z"}},
    ],
)
def test_other_writes_have_their_usual_result(body: Document) -> None:
    def write(cluster: Cluster) -> Response:
        renew_often(cluster, 3)
        lease = deepcopy(cluster.answers[f"{LEASE}/n"])
        for part, members in body.items():
            lease[part] |= members
        return cluster.ask("PUT", f"{LEASE}/n", lease)

    check_act(write)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"status": None},
        {"status": {"conditions": None}},
        {"status": {"conditions": [None]}},
        {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
    ],
)
def test_a_patch_without_heartbeats_has_its_usual_result(body: Document | None) -> None:
    def write(cluster: Cluster) -> list[Response]:
        return [cluster.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC) for _ in range(3)]

    check_act(write)


@pytest.mark.parametrize("accept", REPRESENTATIONS)
def test_other_representations_are_answered(accept: str) -> None:
    def renew(cluster: Cluster) -> list[Response]:
        cluster.accept_as(accept)
        answers = []
        for _ in range(4):
            cluster.clock.seconds += 10
            answers.append(cluster.renew())
        return answers

    check_act(renew)


@pytest.mark.parametrize("version", [None, ""])
def test_heartbeats_without_a_version_are_accepted(cluster: Cluster, version: str | None) -> None:
    cluster.set_status("True")
    for second in (10, 20, 30):
        cluster.clock.seconds = second
        conditions = [{"type": each, "lastHeartbeatTime": cluster.clock.second()} for each in TYPES]
        body = {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}
        assert cluster.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC).status == 200
    conditions = cluster.answers[f"{NODE}/n"]["status"]["conditions"]
    assert {c["lastHeartbeatTime"] for c in conditions} == {"2026-01-01T00:00:30Z"}


def test_a_value_equal_to_a_marker_is_kept(cluster: Cluster) -> None:
    mark = {"metadata": {"annotations": {"a": "\ue000version\ue000"}}}
    cluster.ask("PATCH", f"{NODE}/n", mark, MERGE, "a/1")
    beat_thrice(cluster)
    assert cluster.answers[f"{NODE}/n"]["metadata"]["annotations"] == {"a": "\ue000version\ue000"}


agents = st.sampled_from(["kubelet/v1", "kubelet/v1", "kubelet/v1", "zealot/v1", "curl/8"])
acts = st.one_of(
    st.tuples(st.just("renew"), agents),
    st.tuples(st.just("renew"), agents),
    st.tuples(st.just("beat"), st.just(TYPES), agents),
    st.tuples(st.just("beat"), st.just(TYPES), agents),
    st.tuples(st.just("beat"), st.sampled_from([TYPES[:1], TYPES[::-1], ("New",)]), agents),
    st.tuples(st.just("set_status"), st.sampled_from(["True", "False"])),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.25, 1.0, 10.0, 10.0, -5.0])),
    st.tuples(st.just("hold"), st.sampled_from(["n", "m"])),
    st.tuples(st.just("label"), st.sampled_from([LEASE, NODE]), st.sampled_from(["1", "2"])),
    st.tuples(st.just("recreate"), st.sampled_from([LEASE, NODE])),
    st.tuples(st.just("clear_owners"), st.sampled_from([LEASE, NODE])),
    st.tuples(st.just("renew_dry")),
    st.tuples(st.just("renew_with_old_owners")),
    st.tuples(st.just("accept_as"), st.sampled_from([JSON, *REPRESENTATIONS])),
)


def check_script(script: Iterable[tuple[Any, ...]]) -> None:
    """Check that a script of acts has the same results with and without the fast path."""
    check_act(lambda cluster: [getattr(cluster, name)(*given) for name, *given in script])


WAIT, TICK = ("wait", 10.0), ("wait", 0.25)
RENEW, OTHERS_RENEW = ("renew", "kubelet/v1"), ("renew", "zealot/v1")
OLD_RENEW = ("renew_with_old_owners",)
BEAT = ("beat", TYPES, "kubelet/v1")
READY, UNREADY = ("set_status", "True"), ("set_status", "False")
LABEL, CLEAR = ("label", LEASE, "1"), ("clear_owners", LEASE)
SCRIPTS: dict[str, list[tuple[Any, ...]]] = {
    "the clock is set back behind another's write": [
        *(WAIT, RENEW, WAIT, LABEL, WAIT, RENEW, WAIT, RENEW, WAIT, RENEW),
        *(("wait", -45.0), RENEW, WAIT, RENEW),
    ],
    "two clients alternate": [WAIT, RENEW, WAIT, OTHERS_RENEW, WAIT, RENEW, WAIT, RENEW],
    "a client whose name sorts before the other's": [
        *(OTHERS_RENEW, RENEW, TICK, RENEW, TICK, RENEW, WAIT, RENEW, TICK, RENEW)
    ],
    "outdated managedFields": [
        *(WAIT, RENEW, TICK, OLD_RENEW, TICK, OLD_RENEW),
        *(WAIT, OLD_RENEW, WAIT, OLD_RENEW, LABEL, WAIT, OLD_RENEW),
    ],
    "a value of another client, written again": [
        *(("renew", "curl/8"), RENEW, TICK, RENEW, WAIT, RENEW, WAIT, RENEW)
    ],
    "a condition of another client, written again": [
        *(READY, WAIT, ("beat", TYPES[:1], "curl/8"), BEAT, WAIT, BEAT, WAIT, BEAT)
    ],
    "the same time again": [WAIT, RENEW, WAIT, RENEW, WAIT, RENEW, RENEW, RENEW],
    "known conditions and others": [
        *(READY, ("beat", ("New",), "zealot/v1"), WAIT, BEAT, WAIT, BEAT, WAIT, BEAT),
        *(WAIT, ("beat", TYPES[::-1], "kubelet/v1"), WAIT, BEAT, UNREADY, WAIT, BEAT),
    ],
    "a cleared owner": [WAIT, RENEW, WAIT, RENEW, CLEAR, WAIT, RENEW, WAIT, RENEW],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_end_alike_with_and_without_the_fast_path(name: str) -> None:
    check_script(SCRIPTS[name])


@given(st.lists(acts, max_size=40))
def test_the_fast_path_changes_no_response_and_no_stored_state(
    script: list[tuple[Any, ...]],
) -> None:
    check_script(script)
