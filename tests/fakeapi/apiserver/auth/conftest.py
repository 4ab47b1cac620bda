"""Requests of users to an API that enforces RBAC."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.http_messages import User
from tests.fakeapi.api_requests import Ask, send


@pytest.fixture
def ask(api: Api) -> Ask:
    api.enforce_rbac()

    def ask(user: User, method: str, path: str, body: Any = None, **options: Any) -> Any:
        answer = send(api, method, path, body, user=user, **options)
        is_json = answer.body.startswith(b"{")
        return answer.status, orjson.loads(answer.body) if is_json else answer.body.decode()

    return ask
