"""Webhooks that scenarios may register: an HTTPS server for as long as one is played.

In the files of a scenario ``<webhooks>`` stands for its URL and ``<bundle>`` for its authority:

    /label    labels what it sees ``seen: yes``
    /warn     lets pass, and warns
    /quiet    refuses what is to hold ``volume: 11``, with a code and a reason
    /hold     refuses everything, and does not say why
    /broken   answers 500
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from tests.e2e.transcripts import Scenario
from tests.fakeapi.webhook_server import serving

_PATCH: Final = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]


@asynccontextmanager
async def webhooks_of(scenario: Scenario) -> AsyncIterator[Mapping[str, str]]:
    """Serve the webhooks of a scenario, if it has any; gives its files as they are to be."""
    if not any("<webhooks>" in content for content in scenario.files.values()):
        yield scenario.files
        return
    async with serving(_answer) as server:
        yield {
            name: content.replace("<webhooks>", server.url).replace("<bundle>", server.ca_bundle)
            for name, content in scenario.files.items()
        }


async def _answer(request: web.BaseRequest) -> web.Response:
    if request.path == "/broken":
        return web.Response(status=500, text="it broke")
    review = await request.json()
    response = {"uid": review["request"]["uid"], **_RESPONSES[request.path](review["request"])}
    header = {name: review[name] for name in ("apiVersion", "kind")}
    return web.json_response({**header, "response": response})


def _label(_request: Any) -> dict[str, Any]:
    patch = b64encode(json.dumps(_PATCH).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _warn(_request: Any) -> dict[str, Any]:
    return {"allowed": True, "warnings": ["mind the neighbours"]}


def _quiet(request: Any) -> dict[str, Any]:
    loud = request["object"]["data"].get("volume") == "11"
    status = {"code": 403, "reason": "Forbidden", "message": "too loud"}
    return {"allowed": not loud, "status": status}


def _hold(_request: Any) -> dict[str, Any]:
    return {"allowed": False}


_RESPONSES: Final = {"/label": _label, "/warn": _warn, "/quiet": _quiet, "/hold": _hold}
