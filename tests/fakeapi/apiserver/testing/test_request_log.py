"""The log of requests: its records, and its limits."""

from __future__ import annotations

from base64 import b64decode

import orjson
import pytest

from fakeapi.apiserver.testing.request_log import (
    MAX_BODY_BYTES,
    MAX_REQUESTS,
    RequestLog,
    RequestRecord,
)
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import JSON, PROTOBUF
from fakeapi.apiserver.wire.request_bodies import YAML
from tests.builders import manifest
from tests.fakeapi.api_requests import MERGE

NAMESPACE = manifest("Namespace", "a")
AS_PROTOBUF = b64decode("azhzAAoPCgJ2MRIJTmFtZXNwYWNlEgUKAwoBYQ==")


def record(content_type: str = "", body: bytes = b"") -> RequestRecord:
    return RequestRecord("POST", "/api/v1/namespaces", "", "tester", 201, "", content_type, body)


BODIES = {
    "json": (JSON, orjson.dumps(NAMESPACE)),
    "yaml": (YAML, b"kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n"),
    "apply": ("application/apply-patch+yaml", orjson.dumps(NAMESPACE)),
    "protobuf": (PROTOBUF, AS_PROTOBUF),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_of_every_content_type_is_decoded(name: str) -> None:
    sent = record(*BODIES[name]).decoded_body()
    assert {key: value for key, value in sent.items() if value} == NAMESPACE


@pytest.mark.parametrize("name", BODIES)
def test_a_record_survives_serialization(name: str) -> None:
    here = record(*BODIES[name])
    there = RequestRecord.of(orjson.loads(orjson.dumps(here.document())))
    assert (there.content_type, there.decoded_body()) == (here.content_type, here.decoded_body())


def test_a_record_without_a_body_has_no_body_field() -> None:
    assert record().decoded_body() is None
    assert "body" not in record().document()
    assert RequestRecord.of(record().document()) == record()


def test_a_body_that_cannot_be_read_is_shown_as_text() -> None:
    broken = record(JSON, b'{"kind": "Name')
    assert broken.document()["body"] == '{"kind": "Name'
    with pytest.raises(StatusError):
        broken.decoded_body()


def test_a_record_of_a_patch_keeps_its_content_type() -> None:
    patch = record(MERGE, b'{"spec": null}')
    assert patch.document()["contentType"] == MERGE
    assert patch.document()["body"] == {"spec": None}


def test_the_oldest_requests_go_when_there_are_too_many() -> None:
    log = RequestLog()
    for number in range(MAX_REQUESTS + 2):
        log.append(RequestRecord("GET", f"/{number}", "", "tester", 404))
    paths = [each.path for each in log]
    assert (len(paths), paths[0]) == (MAX_REQUESTS, "/2")


def test_the_oldest_requests_go_when_their_bodies_are_too_much() -> None:
    log = RequestLog()
    for letter in b"abc":
        log.append(record(JSON, bytes([letter]) * (MAX_BODY_BYTES // 2)))
    assert [each.body[:1] for each in log] == [b"b", b"c"]
