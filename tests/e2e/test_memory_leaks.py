"""An hour in which pods leak on fifty nodes; tests/fakeapi has the same on five."""

from __future__ import annotations

import pytest

from tests.fakeapi.controlplane.kubelet.memory_leak_checks import live_an_hour


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_an_hour_of_leaks_on_fifty_nodes(resource: str) -> None:
    await live_an_hour(resource, 50)
