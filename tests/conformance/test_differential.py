"""Random clusters are decided as a real kube-scheduler decides them (make differential: more)."""

from __future__ import annotations

import pytest

from tests.conformance.scheduling.releases import RELEASES, scheduler
from tests.differential.__main__ import compare
from tests.differential.comparison import differences

_SEED = 1
_CLUSTERS = 100


@pytest.mark.parametrize("release", RELEASES)
async def test_random_clusters(release: str) -> None:
    scheduler(release)
    tally = await compare(release, _SEED, range(_CLUSTERS))
    assert {case.name: differences(case) for case in tally.mismatches} == {}
    assert all(tally.outcomes[outcome] > 20 for outcome in ("bound", "nominated", "refused"))
