"""A status is written with one retry onto what the server has by then."""

from __future__ import annotations

import msgspec
import pytest

from extender.controllers.replicaset.pod_control import SYNC_ERRORS
from extender.controllers.replicaset.status import write_status
from extender.controllers.replicaset.types import ReplicaSetStatus
from extender.kube.rest.client import Client
from extender.kube.rest.transport import Request, Response, TransportError
from tests.builders.replicas import a_replica_set
from tests.extender.controllers.replicaset.upstream_tables import (
    Answers,
    Case,
    Document,
    cases,
    given,
    refused,
    replica_set,
)


def stored(version: str, generation: int, status: Document) -> Document:
    document = a_replica_set()
    document["metadata"] |= {"resourceVersion": version, "generation": generation, "x": "kept"}
    return {**document, "status": status}


class Server:
    """Answers writes one after another, and reads as long as it may."""

    def __init__(self, writes: list[str], read: str | None, fresh: Document) -> None:
        self._writes = list(writes)
        self._read = read
        self._fresh = fresh
        self.answers = Answers(self.answer)

    def answer(self, request: Request) -> Response:
        if request.method == "GET":
            return given(self._fresh) if self._read == "ok" else refused(500)
        match self._writes.pop(0):
            case "ok":
                return Response(200, request.body or b"")
            case "conflict":
                return refused(409, "Conflict")
            case "lost":
                raise TransportError("connection reset")
            case _:
                return refused(500)

    def count(self, method: str) -> int:
        return len(self.answers.bodies(method))


@cases("status_update")
async def test_upstreams_table(case: Case) -> None:
    status = {"observedGeneration": case["observed_generation"], **case["current_status"]}
    document = stored("1", case["generation"], status)
    server = Server(case["update_results"], case["get_result"], stored("2", 9, {}))
    new = msgspec.convert(case["new_status"], ReplicaSetStatus)
    try:
        await write_status(Client(server.answers), replica_set(document), new)
    except SYNC_ERRORS:
        assert case["expect_error"]
    else:
        assert not case["expect_error"]
    assert (server.count("PUT"), server.count("GET")) == (
        case["expect_updates"],
        case["expect_gets"],
    )


TROUBLED = [
    (["conflict", "ok"], "ok", (2, 1), False),
    (["lost", "ok"], "ok", (2, 1), False),
    (["broken", "conflict"], "ok", (2, 1), True),
    (["conflict"], "broken", (1, 1), True),
    (["ok"], "ok", (1, 0), False),
]


@pytest.mark.parametrize(("writes", "read", "asked", "fails"), TROUBLED)
async def test_after_any_error_it_is_retried_once(
    *, writes: list[str], read: str, asked: tuple[int, int], fails: bool
) -> None:
    server = Server(writes, read, stored("2", 9, {}))
    before = replica_set(stored("1", 3, {}))
    try:
        await write_status(Client(server.answers), before, ReplicaSetStatus(5))
    except SYNC_ERRORS:
        assert fails
    else:
        assert not fails
    assert (server.count("PUT"), server.count("GET")) == asked


async def test_everything_else_goes_back_as_it_came() -> None:
    server = Server(["ok"], None, {})
    document = stored("1", 3, {"replicas": 1, "unknown": True})
    after = await write_status(Client(server.answers), replica_set(document), ReplicaSetStatus(5))
    written = server.answers.bodies("PUT")[0]
    assert written == {**document, "status": {"replicas": 5, "observedGeneration": 3}}
    assert after.status == ReplicaSetStatus(5, observed_generation=3)


async def test_a_retry_goes_onto_the_newer_object_but_speaks_of_the_generation_acted_on() -> None:
    server = Server(["conflict", "ok"], "ok", stored("2", 9, {}))
    await write_status(Client(server.answers), replica_set(stored("1", 3, {})), ReplicaSetStatus(5))
    first, second = server.answers.bodies("PUT")
    assert [each["metadata"]["resourceVersion"] for each in (first, second)] == ["1", "2"]
    assert [each["status"]["observedGeneration"] for each in (first, second)] == [3, 3]
