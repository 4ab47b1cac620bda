"""Upstream's tables of the ReplicaSet controller, and short ways to write objects down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from extender.controllers.replicaset.types import (
    OwnedPod,
    ReplicaSet,
    decode_pod,
    decode_replica_set,
)
from extender.kube.rest.transport import Request, Response

Document = dict[str, Any]
Case = Mapping[str, Any]

_TABLES: dict[str, list[Document]] = msgspec.json.decode(
    (Path(__file__).parents[3] / "vectors" / "replicaset.json").read_bytes()
)


def cases(table: str) -> pytest.MarkDecorator:
    """Run a test for each case of a table."""
    found = _TABLES[table]
    return pytest.mark.parametrize(
        "case", found, ids=[case.get("name", str(number)) for number, case in enumerate(found)]
    )


def pod(document: Document) -> OwnedPod:
    return decode_pod(orjson.dumps(document))


def replica_set(document: Document) -> ReplicaSet:
    return decode_replica_set(orjson.dumps(document))


class Answers:
    """A server that answers as a test says, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._answer = answer
        self.asked: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(request)
        return self._answer(request)

    def stream(self, request: Request) -> Any:
        raise AssertionError(f"nobody watches here: {request}")

    async def close(self) -> None:
        """Nothing to close."""

    def bodies(self, method: str) -> list[Document]:
        """Return the bodies of the requests of a method."""
        return [orjson.loads(each.body or b"null") for each in self.asked if each.method == method]


def refused(status: int, reason: str = "Refused") -> Response:
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"{status} {reason}"}
    return Response(status, orjson.dumps(body))


def given(document: Document) -> Response:
    return Response(200, orjson.dumps(document))
