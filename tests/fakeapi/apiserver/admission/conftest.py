"""An API with webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.admission_webhooks import Hook, Recorder, configuration, webhook

Configure = Callable[..., Recorder]


@pytest.fixture
def configure(api: Api) -> Configure:
    """Load a configuration of one webhook; return what records its requests."""

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
