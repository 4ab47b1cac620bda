"""A real kube-scheduler with ``reprieve serve`` as its extender does what it should."""

from __future__ import annotations

import pytest

from tests.conformance.scheduling import crowd, scenes, troubled
from tests.conformance.scheduling.releases import RELEASES, scheduler
from tests.conformance.scheduling.stage import Scene, stage


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "scene", [*scenes.SCENES, *troubled.SCENES, *crowd.SCENES], ids=lambda scene: scene.name
)
async def test_a_scene(scene: Scene, release: str) -> None:
    async with stage(scheduler(release), release, scene.setting) as there:
        await scene.play(there)
