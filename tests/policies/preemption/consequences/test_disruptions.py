"""What the recipe against cascades is for: fewer evictions until nothing changes."""

from __future__ import annotations

import pytest

from tests.bench.decisions.disruptions import outcomes, policies


@pytest.mark.slow
def test_the_least_cascade_evicts_no_more_pods_than_the_default() -> None:
    evicted = {
        name: sum(each.evicted for each in outcomes(policy))
        for name, policy in policies().items()
        if name in ("default", "least-cascade")
    }
    assert evicted["least-cascade"] <= evicted["default"]
