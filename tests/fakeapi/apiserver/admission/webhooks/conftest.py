"""An API that webhooks watch over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Response
from tests.fakeapi.admission_webhooks import Hook, Recorder, configuration, webhook

Configure = Callable[..., Recorder]
Told = tuple[int, Any, tuple[str, ...]]


@pytest.fixture
def configure(api: Api) -> Configure:
    """Load a configuration of one webhook with a function behind it; gives what it will see."""

    def configure(
        role: str, *resources: str, answer: Hook | None = None, name: str = "", **fields: Any
    ) -> Recorder:
        name = name or f"{role}.example.com"
        made = configuration(role, webhook(name, *resources, **fields), name=name)
        api.load([made])
        recorder = Recorder(answer)
        api.webhooks.handlers[name] = recorder
        return recorder

    return configure


@pytest.fixture
def tell(api: Api) -> Callable[..., Told]:
    """Ask by method, path, body and query; gives status, body and warnings."""

    def tell(
        method: str, path: str, body: Any = None, content_type: str = "", **query: str
    ) -> Told:
        raw = b"" if body is None else orjson.dumps(body)
        kind = content_type or "application/json"
        answer = api.handle(Request(method, path, query, raw, kind))
        assert isinstance(answer, Response)
        return answer.status, orjson.loads(answer.body), answer.warnings

    return tell
