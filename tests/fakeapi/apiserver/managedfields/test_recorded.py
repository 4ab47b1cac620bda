"""The managedFields of a kube-apiserver 1.37.0, and ours for the same requests.

The requests create, replace, patch and apply objects of many kinds, one after another; in the
second file, four managers change one Deployment in ways drawn at random. Left out are times, the
order of entries of one second, and the order of causes, which upstream leaves to chance.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Response

RECORDED = Path(__file__).parents[2] / "recorded"


def shown(answer: Any) -> Any:
    """Return the recorded fields of an answer, with their order (FieldsV1 has one)."""
    if answer.get("kind") == "Status":
        kept = {name: answer[name] for name in ("code", "reason", "message") if name in answer}
        details = answer.get("details")
        if details:
            kept["details"] = details
            details.get("causes", []).sort(key=json.dumps)
        return kept
    entries = answer["metadata"].get("managedFields", [])
    bare = [{name: value for name, value in e.items() if name != "time"} for e in entries]
    return sorted(bare, key=lambda entry: json.dumps(entry, sort_keys=True))


def steps(name: str) -> Iterator[dict[str, Any]]:
    raw = (RECORDED / name).read_bytes()
    yield from json.loads(lzma.decompress(raw) if name.endswith(".xz") else raw)


def ask(api: Api, step: dict[str, Any]) -> tuple[int, Any]:
    body = step["body"]
    raw = b"" if body is None else body.encode() if isinstance(body, str) else orjson.dumps(body)
    request = Request(
        step["method"],
        step["path"].replace("NS", "ns"),
        step["query"],
        raw.replace(b'"NS', b'"ns'),
        step["contentType"],
        user_agent="kubectl/v1",
    )
    answer = api.handle(request)
    assert isinstance(answer, Response)
    text = answer.body.replace(b'"ns', b'"NS')
    return answer.status, shown(orjson.loads(text))


@pytest.mark.parametrize("name", ["managedfields.json", "managedfields-mixed.json.xz"])
def test_every_request_leaves_the_owners_that_a_real_server_left(api: Api, name: str) -> None:
    namespace = {"path": "/api/v1/namespaces", "body": {"metadata": {"name": "ns"}}}
    ask(api, {"method": "POST", "query": {}, "contentType": "application/json", **namespace})
    for step in steps(name):
        status, answer = ask(api, step)
        expected = (step["status"], step["answer"])
        request_line = f"{step['method']} {step['path']} {step['body']}"
        assert json.dumps((status, answer)) == json.dumps(expected), request_line
