"""The service addresses that fakeapi's tests expect are those of a real API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

from tests.conformance.build import program
from tests.real_server import TOKEN, real_server

_RECORDED: Final = Path(__file__).parents[1] / "fakeapi" / "recorded" / "services.json"
_RANGE: Final = "--service-cluster-ip-range=10.96.0.0/12"
_OWN: Final = "/api/v1/namespaces/default/services/kubernetes"
_PATIENCE_SECONDS: Final = 30.0


async def test_service_addresses_equal_upstreams() -> None:
    steps: list[dict[str, Any]] = orjson.loads(_RECORDED.read_bytes())
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        real_server(program("etcd"), program("apiserver"), serving=(_RANGE,)) as server,
        aiohttp.ClientSession(server.url, headers=headers) as session,
    ):
        await its_own(session)
        for step in steps:
            answer = await asked(session, step)
            expected = {name: step[name] for name in ("code", "spec", "message") if name in step}
            assert {name: answer.get(name) for name in expected} == expected, step


async def its_own(session: aiohttp.ClientSession) -> None:
    """Return when the server has a service of its own, which takes an address."""
    for _ in range(int(_PATIENCE_SECONDS * 10)):
        if (await asked(session, {"method": "GET", "path": _OWN}))["code"] == 200:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"there is no {_OWN}")


async def asked(session: aiohttp.ClientSession, step: dict[str, Any]) -> dict[str, Any]:
    """Make a call, and give its code and what it was answered."""
    content = {"Content-Type": step.get("content", "application/json")}
    body = orjson.dumps(step["body"]) if "body" in step else None
    async with session.request(
        step["method"], step["path"], params=step.get("query"), data=body, headers=content,
        ssl=False,
    ) as answer:  # fmt: skip
        return {**await answer.json(), "code": answer.status}
