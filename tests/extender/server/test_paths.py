"""Paths that are not served."""

from __future__ import annotations

import pytest

from fakeapi.demo.scenarios import captured_request
from tests.extender.conftest import Extender


async def test_a_missing_prefix_is_reported(demo_extender: Extender) -> None:
    reply = await demo_extender.post("/other/preempt", captured_request("preempt-cache-true"))
    assert reply.status == 404
    assert reply.text == (
        "reprieve: no path '/other/preempt'; expected /filter, /preempt, /scheduler/filter, "
        "/scheduler/preempt; pathPrefixes adds others\n"
    )
    figures = (await demo_extender.get("/metrics")).text
    assert 'reprieve_requests_total{status="404",verb="unknown"} 1.0' in figures


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/scheduler/filter", 405)])
async def test_a_page_that_does_not_exist(demo_extender: Extender, path: str, status: int) -> None:
    assert (await demo_extender.get(path)).status == status
