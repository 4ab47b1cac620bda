"""A real kube-scheduler with ``reprieve serve`` as its extender does what it should."""

from __future__ import annotations

from typing import Final

import pytest

from tests.conformance.scheduling import extender_failures, large_cluster, scenes, subsets
from tests.conformance.scheduling.releases import scheduler
from tests.conformance.scheduling.servers import Opening
from tests.conformance.scheduling.stage import Scene, stage

SCENES: Final = [*scenes.SCENES, *extender_failures.SCENES, *subsets.SCENES, *large_cluster.SCENES]
PAIRS: Final = [("fakeapi", "1.37"), ("fakeapi", "1.30"), ("real", "1.37")]
"""API servers, and the kube-schedulers that are at work there."""


@pytest.mark.parametrize(("opening", "release"), PAIRS, indirect=["opening"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_a_scene(scene: Scene, opening: Opening, release: str) -> None:
    async with stage(scheduler(release), release, scene.setting, opening) as there:
        await scene.play(there)
