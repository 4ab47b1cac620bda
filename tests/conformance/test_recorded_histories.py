"""The answers that fakeapi's tests of pod groups and devices expect are a real API server's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
import pytest

from tests.conformance.build import program
from tests.real_server import POD_GROUPS, TOKEN, real_server

_RECORDED: Final = Path(__file__).parents[1] / "fakeapi" / "recorded"
_GO_DIFF: Final = "\n@@"


@pytest.mark.parametrize("name", ["podgroups", "devices"])
async def test_a_history_of_calls_equals_upstreams(name: str) -> None:
    steps: list[dict[str, Any]] = orjson.loads((_RECORDED / f"{name}.json").read_bytes())
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        real_server(program("etcd"), program("apiserver"), serving=POD_GROUPS) as server,
        aiohttp.ClientSession(server.url, headers=headers) as session,
    ):
        for step in steps:
            answer = await _answer(session, step)
            request = ("method", "path", "body", "content")
            expected = {key: value for key, value in step.items() if key not in request}
            assert {key: answer.get(key) for key in expected} == expected, step


async def _answer(session: aiohttp.ClientSession, step: dict[str, Any]) -> dict[str, Any]:
    """Make a call; return the answer with its code and causes, without Go diffs."""
    body = orjson.dumps(step["body"]) if "body" in step else None
    content = {"Content-Type": step["content"]}
    async with session.request(
        step["method"], step["path"], data=body, headers=content, ssl=False
    ) as response:
        answer = await response.json()
    causes = answer.get("details", {}).get("causes", [])
    for error in (*causes, answer):
        if "message" in error:
            error["message"] = error["message"].partition(_GO_DIFF)[0]
    return {**answer, "code": response.status, "causes": causes}
