"""What a kube-apiserver answers to faulty requests, and what we answer: the same words.

A line with ``differs`` in ``tests/transcripts/refusals`` is a known difference; it must differ.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Response
from tests.fakeapi.api_requests import send
from tests.fakeapi.apiserver.transcripts.refusals import NAMES, answered, exchanges, sent


def ask(api: Api, request: dict[str, Any]) -> dict[str, Any]:
    body = sent(request)
    asked = Request(
        request["method"],
        request["path"],
        request.get("query", {}),
        body or b"",
        "" if body is None else request.get("contentType", "application/json"),
        request.get("headers", {}).get("Accept", ""),
        user_agent="Python-urllib/3.11",
    )
    answer = api.handle(asked)
    assert isinstance(answer, Response)
    warnings = [f"299 - {orjson.dumps(text).decode()}" for text in answer.warnings]
    return answered(answer.status, answer.body, warnings)


@pytest.mark.parametrize("name", NAMES)
def test_a_faulty_request_has_the_answer_of_a_real_server(api: Api, name: str) -> None:
    send(api, "POST", "/api/v1/namespaces", {"metadata": {"name": "scene"}})
    for exchange in exchanges(name):
        request, reason = exchange.pop("request"), exchange.pop("differs", "")
        given = ask(api, request)
        if reason:
            assert given != exchange, f"{request} no longer differs: {reason}"
        else:
            assert given == exchange, request
