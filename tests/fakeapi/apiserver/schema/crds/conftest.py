"""An API in which a definition has been created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.definitions import DEFINITIONS, definition
from tests.fakeapi.api_requests import Ask


@pytest.fixture
def define(ask: Ask) -> Callable[..., Any]:
    """Create a definition by the builder's arguments; return the stored one."""

    def define(**fields: Any) -> Any:
        made = definition(**fields)
        status, answer = ask("POST", DEFINITIONS, made)
        assert status == 201, answer
        return ask("GET", f"{DEFINITIONS}/{made['metadata']['name']}")[1]

    return define
