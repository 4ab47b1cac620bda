"""``reprieve fakeapi``: its lines about objects that no component handles."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from tests.builders import manifest
from tests.commands import start, written

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def cron_job(name: str) -> dict[str, Any]:
    spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}
    return {**manifest("CronJob", name, spec=spec), "apiVersion": "batch/v1"}


def autoscaler(name: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    return {**manifest("HorizontalPodAutoscaler", name, spec=spec), "apiVersion": "autoscaling/v2"}


OBJECTS = [cron_job("a"), cron_job("b"), autoscaler("a"), autoscaler("b")]
LINES = [
    f"reprieve: {resource}: stored without effect, no component {missing}"
    for resource, missing in (
        ("cronjobs.batch", "creates their Jobs"),
        ("horizontalpodautoscalers.autoscaling", "scales their targets"),
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "objects", "lines"),
    [
        ("all", OBJECTS, LINES),
        ("gc,job", OBJECTS, LINES[:1]),
        ("gc,namespaces", OBJECTS, []),
        ("all", [manifest("ConfigMap", "a")], []),
    ],
)
async def test_the_first_object_that_no_component_handles_is_logged(
    run: str, objects: list[dict[str, Any]], lines: list[str], tmp_path: Path
) -> None:
    file = written(tmp_path, "objects.json", *objects)
    process = await start("fakeapi", "--port", "0", "--run", run, "--load", file)
    assert process.stdout is not None
    async with asyncio.timeout(20):
        line = (await process.stdout.readline()).decode()
    async with ClientSession(line.removeprefix("listening on ").strip()) as session:
        for _ in range(2):
            async with session.post("/_fakeapi/reset") as answer:
                assert answer.status == 200
    process.terminate()
    _, errors = await process.communicate()
    assert errors.decode().splitlines() == lines
