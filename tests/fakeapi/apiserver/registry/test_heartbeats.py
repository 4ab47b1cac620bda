"""Renewals: what is learned, and that it is what the whole way would have come to."""

from __future__ import annotations

from collections.abc import Iterable
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
from tests.fakeapi.api_requests import JSON, MERGE, STRATEGIC

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE = "/api/v1/nodes"
TYPES = ("MemoryPressure", "Ready")
PRETTY = "application/json;pretty=1"
FACES = (
    PRETTY,
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)

Document = dict[str, Any]


class Hand:
    """A clock that is set by hand, backwards too."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now_ns(self) -> int:
        return START_NS + round(self.seconds * 10**9)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def second(self) -> str:
        return f"2026-01-01T00:{int(self.seconds) // 60 % 60:02}:{int(self.seconds) % 60:02}Z"

    def micros(self) -> str:
        return f"{self.second()[:-1]}.{round(self.seconds % 1 * 1e6):06}Z"


class Cluster:
    """An API with or without the fast path, and clients that keep their answers."""

    def __init__(self, *, learns: bool) -> None:
        self.clock = Hand()
        self.api = create_api(self.clock, Random(1))
        self.learns = learns
        self.told: dict[str, Document] = {}
        self.accept = JSON

    def ask(
        self,
        method: str,
        path: str,
        body: Document,
        kind: str = JSON,
        agent: str = "kubelet/v1",
        query: dict[str, str] | None = None,
    ) -> Response:
        if not self.learns:
            self.api._heartbeats._known.clear()
        asked = (method, path, query or {}, orjson.dumps(body), kind, self.accept)
        answer = self.api.handle(Request(*asked, user_agent=agent))
        assert isinstance(answer, Response)
        if answer.status in (200, 201) and method != "DELETE":
            self.remember(path.removesuffix("/status"), answer)
        return answer

    def remember(self, path: str, answer: Response) -> None:
        """Take over what was answered; where it was not the object itself, look it up."""
        shown = orjson.loads(answer.body) if self.accept in (JSON, PRETTY) else {}
        if shown.get("kind") not in ("Lease", "Node"):
            found = self.api.handle(Request("GET", path, {}, b"", "", JSON))
            assert isinstance(found, Response)
            shown = orjson.loads(found.body)
        self.told[path] = shown

    def want(self, accept: str) -> None:
        self.accept = accept

    @property
    def known(self) -> list[str]:
        return list(self.api._heartbeats._known)

    def register(self) -> None:
        lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}}
        self.ask("POST", LEASE, lease)
        self.told[f"{LEASE}/n"] = self.told.pop(LEASE)
        self.ask("POST", NODE, {"metadata": {"name": "n"}})
        self.told[f"{NODE}/n"] = self.told.pop(NODE)

    def renew(self, agent: str = "kubelet/v1", **spec: Any) -> Response:
        lease = deepcopy(self.told[f"{LEASE}/n"])
        lease["spec"] |= {"renewTime": self.clock.micros(), **spec}
        return self.ask("PUT", f"{LEASE}/n", lease, agent=agent)

    def careless(self) -> Response:
        """Renew with managedFields as they were once, whatever the version is."""
        told = self.told[f"{LEASE}/n"]
        lease = deepcopy(self.told.setdefault("kept", told))
        lease["spec"] = told["spec"] | {"renewTime": self.clock.micros()}
        lease["metadata"].pop("resourceVersion", None)
        lease["metadata"].pop("uid", None)
        return self.ask("PUT", f"{LEASE}/n", lease)

    def beat(self, types: Iterable[str] = TYPES, agent: str = "kubelet/v1") -> Response:
        now = self.clock.second()
        conditions = [{"type": each, "lastHeartbeatTime": now} for each in types]
        body = {"status": {"conditions": conditions}}
        return self.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC, agent)

    def turn(self, to: str) -> Response:
        now = self.clock.second()
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        conditions = [{"type": each, "status": to, **times} for each in TYPES]
        body = {"status": {"conditions": conditions}}
        return self.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC)

    def wait(self, seconds: float) -> None:
        self.clock.seconds = max(0.0, self.clock.seconds + seconds)

    def hold(self, who: str) -> Response:
        return self.renew(holderIdentity=who)

    def label(self, path: str, value: str) -> Response:
        return self.ask("PATCH", f"{path}/n", {"metadata": {"labels": {"at": value}}}, MERGE, "a/1")

    def unmanage(self, path: str) -> Response:
        body: Document = {"metadata": {"managedFields": [{}]}}
        return self.ask("PATCH", f"{path}/n", body, MERGE, "a/1")

    def forget(self, path: str) -> None:
        self.want(JSON)
        self.ask("DELETE", f"{path}/n", {})
        self.ask("POST", path, {"metadata": {"name": "n"}, "spec": {}})
        self.told[f"{path}/n"] = self.told.pop(path)

    def dry(self) -> Response:
        lease = deepcopy(self.told[f"{LEASE}/n"])
        lease["spec"]["renewTime"] = self.clock.micros()
        told = dict(self.told)
        answer = self.ask("PUT", f"{LEASE}/n", lease, query={"dryRun": "All"})
        self.told = told
        return answer

    def stored(self) -> list[tuple[int, bytes]]:
        """Return every state of Leases and Nodes, with its version."""
        store = self.api.store
        events = [*store.since(LEASES, 0), *store.since(NODES, 0)]
        return [(event.version, event.entry.raw) for event in events]


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(learns=True)
    cluster.register()
    return cluster


def live(cluster: Cluster, beats: int) -> None:
    for _ in range(beats):
        cluster.clock.seconds += 10
        assert cluster.renew().status == 200


def test_a_lease_is_learned_from_the_second_renewal_by_the_same_client(cluster: Cluster) -> None:
    live(cluster, 1)
    assert cluster.known == []  # the field had no owner before, so there was more to it than time
    live(cluster, 1)
    assert cluster.known == [f"{LEASE}/n"]
    live(cluster, 3)
    told = cluster.told[f"{LEASE}/n"]
    assert told["spec"]["renewTime"] == "2026-01-01T00:00:50.000000Z"
    assert told["metadata"]["managedFields"][-1]["time"] == "2026-01-01T00:00:50Z"
    assert told["metadata"]["resourceVersion"] == "13"


def test_the_times_of_a_nodes_conditions_are_learned(cluster: Cluster) -> None:
    cluster.turn("True")
    for second in (10, 20, 30):
        cluster.clock.seconds = second
        cluster.beat()
    assert cluster.known == [f"{NODE}/n/status"]
    conditions = cluster.told[f"{NODE}/n"]["status"]["conditions"]
    assert {c["lastHeartbeatTime"] for c in conditions} == {"2026-01-01T00:00:30Z"}
    assert {c["lastTransitionTime"] for c in conditions} == {"2026-01-01T00:00:00Z"}


def test_a_watch_sees_renewals_as_it_sees_other_writes(cluster: Cluster) -> None:
    before = cluster.api.store.version
    live(cluster, 4)
    events = cluster.api.store.since(LEASES, before)
    assert [event.type for event in events] == ["MODIFIED"] * 4
    assert all(event.previous is not None for event in events)
    assert [each.entry for each in events[:-1]] == [each.previous for each in events[1:]]


def test_a_stale_renewal_is_refused_in_the_usual_words(cluster: Cluster) -> None:
    live(cluster, 3)
    stale = deepcopy(cluster.told[f"{LEASE}/n"])
    live(cluster, 1)
    stale["spec"]["renewTime"] = "2026-01-01T00:50:00.000000Z"
    answer = cluster.ask("PUT", f"{LEASE}/n", stale)
    assert answer.status == 409
    assert b"the object has been modified" in answer.body


def test_with_webhooks_no_renewal_takes_the_fast_path() -> None:
    cluster = Cluster(learns=True)
    cluster.register()
    seen = []

    def refuse(review: Document) -> Document:
        seen.append(review["request"]["name"])
        return {**review, "response": {"uid": review["request"]["uid"], "allowed": False}}

    live(cluster, 3)
    cluster.api.webhooks.handlers["a.b.c"] = refuse
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["leases"]}
    webhook = {
        "name": "a.b.c",
        "rules": [rule],
        "clientConfig": {"url": "https://nowhere.example"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    made = cluster.ask("POST", path, {"metadata": {"name": "w"}, "webhooks": [webhook]})
    assert made.status == 201
    cluster.clock.seconds += 10
    assert cluster.renew().status == 400
    assert seen == ["n"]


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
    ends = []
    for learns in (True, False):
        cluster = Cluster(learns=learns)
        cluster.register()
        live(cluster, 3)
        lease = deepcopy(cluster.told[f"{LEASE}/n"])
        for part, members in body.items():
            lease[part] |= members
        answer = cluster.ask("PUT", f"{LEASE}/n", lease)
        ends.append((answer, cluster.stored()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("accept", FACES)
def test_other_representations_are_answered(accept: str) -> None:
    ends = []
    for learns in (True, False):
        cluster = Cluster(learns=learns)
        cluster.register()
        cluster.want(accept)
        answers = []
        for _ in range(4):
            cluster.clock.seconds += 10
            answers.append(cluster.renew())
        ends.append((answers, cluster.stored()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("version", [None, ""])
def test_a_patch_of_no_version_is_as_good_as_any(cluster: Cluster, version: str | None) -> None:
    cluster.turn("True")
    for second in (10, 20, 30):
        cluster.clock.seconds = second
        conditions = [{"type": each, "lastHeartbeatTime": cluster.clock.second()} for each in TYPES]
        body = {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}
        assert cluster.ask("PATCH", f"{NODE}/n/status", body, STRATEGIC).status == 200
    conditions = cluster.told[f"{NODE}/n"]["status"]["conditions"]
    assert {c["lastHeartbeatTime"] for c in conditions} == {"2026-01-01T00:00:30Z"}


def test_a_value_equal_to_a_marker_is_kept(cluster: Cluster) -> None:
    mark = {"metadata": {"annotations": {"a": "\ue000version\ue000"}}}
    cluster.ask("PATCH", f"{NODE}/n", mark, MERGE, "a/1")
    cluster.turn("True")
    for second in (10, 20, 30):
        cluster.clock.seconds = second
        cluster.beat()
    assert cluster.told[f"{NODE}/n"]["metadata"]["annotations"] == {"a": "\ue000version\ue000"}


agents = st.sampled_from(["kubelet/v1", "kubelet/v1", "kubelet/v1", "zealot/v1", "curl/8"])
acts = st.one_of(
    st.tuples(st.just("renew"), agents),
    st.tuples(st.just("renew"), agents),
    st.tuples(st.just("beat"), st.just(TYPES), agents),
    st.tuples(st.just("beat"), st.just(TYPES), agents),
    st.tuples(st.just("beat"), st.sampled_from([TYPES[:1], TYPES[::-1], ("New",)]), agents),
    st.tuples(st.just("turn"), st.sampled_from(["True", "False"])),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.25, 1.0, 10.0, 10.0, -5.0])),
    st.tuples(st.just("hold"), st.sampled_from(["n", "m"])),
    st.tuples(st.just("label"), st.sampled_from([LEASE, NODE]), st.sampled_from(["1", "2"])),
    st.tuples(st.just("forget"), st.sampled_from([LEASE, NODE])),
    st.tuples(st.just("unmanage"), st.sampled_from([LEASE, NODE])),
    st.tuples(st.just("dry")),
    st.tuples(st.just("careless")),
    st.tuples(st.just("want"), st.sampled_from([JSON, *FACES])),
)


def play(cluster: Cluster, act: tuple[Any, ...]) -> Response | None:
    name, *given = act
    answer: Response | None = getattr(cluster, name)(*given)
    return answer


def both_ends(script: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Play a script where renewals are learned, and where they are not."""
    ends = []
    for learns in (True, False):
        cluster = Cluster(learns=learns)
        cluster.register()
        ends.append(([play(cluster, act) for act in script], cluster.stored()))
    return ends


WAIT = ("wait", 10.0)
RENEW = ("renew", "kubelet/v1")
BEAT = ("beat", TYPES, "kubelet/v1")
LABEL = ("label", LEASE, "1")
STORIES: dict[str, list[tuple[Any, ...]]] = {
    "the clock is set back behind another's write": [
        *(WAIT, RENEW, WAIT, LABEL, WAIT, RENEW, WAIT, RENEW, WAIT, RENEW),
        *(("wait", -45.0), RENEW, WAIT, RENEW),
    ],
    "two that take turns": [WAIT, RENEW, WAIT, ("renew", "zealot/v1"), WAIT, RENEW, WAIT, RENEW],
    "one whose name comes before the other's": [
        *(("renew", "zealot/v1"), RENEW, ("wait", 0.25), RENEW, ("wait", 0.25), RENEW),
        *(WAIT, RENEW, ("wait", 0.25), RENEW),
    ],
    "managedFields that were true once": [
        *(WAIT, RENEW, ("wait", 0.25), ("careless",), ("wait", 0.25), ("careless",)),
        *(WAIT, ("careless",), WAIT, ("careless",), LABEL, WAIT, ("careless",)),
    ],
    "what another has written, written again": [
        *(("renew", "curl/8"), RENEW, ("wait", 0.25), RENEW, WAIT, RENEW, WAIT, RENEW),
    ],
    "a condition that another has written, written again": [
        *(("turn", "True"), WAIT, ("beat", TYPES[:1], "curl/8"), BEAT, WAIT, BEAT, WAIT, BEAT),
    ],
    "the same time again": [WAIT, RENEW, WAIT, RENEW, WAIT, RENEW, RENEW, RENEW],
    "conditions that are told and others": [
        *(("turn", "True"), ("beat", ("New",), "zealot/v1"), WAIT, BEAT, WAIT, BEAT, WAIT, BEAT),
        *(WAIT, ("beat", TYPES[::-1], "kubelet/v1"), WAIT, BEAT, ("turn", "False"), WAIT, BEAT),
    ],
    "an owner forgotten": [WAIT, RENEW, WAIT, RENEW, ("unmanage", LEASE), WAIT, RENEW, WAIT, RENEW],
}


@pytest.mark.parametrize("story", STORIES)
def test_scripts_end_alike_with_and_without_the_fast_path(story: str) -> None:
    learned, plain = both_ends(STORIES[story])
    assert learned == plain


@given(st.lists(acts, max_size=40))
def test_the_fast_path_changes_no_response_and_no_stored_state(
    script: list[tuple[Any, ...]],
) -> None:
    learned, plain = both_ends(script)
    assert learned == plain
