"""Replays in real time as processes: with an extender, and with WorkloadSpreads and webhooks."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import start
from tests.recorded.spread import SIMULATION_SCRIPT

RECORDED = Path(__file__).parents[1] / "recorded"
PATIENCE_SECONDS = 240
_SAMPLING = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
_PLUGIN = {"name": "DefaultPreemption", "args": _SAMPLING}
ONE_CANDIDATE = {"profiles": [{"pluginConfig": [_PLUGIN]}]}


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


async def ended(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    await process.communicate()


async def report_of(process: Process) -> Any:
    """Read the report of a replay that continues to serve."""
    assert process.stdout is not None
    text = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not text.endswith("\n}\n"):
            text += (await process.stdout.readline()).decode()
    return json.loads(text)


@pytest.mark.parametrize("speed", ["1", "4"])
async def test_an_extender_process_decides_as_recorded(tmp_path: Path, speed: str) -> None:
    """The replay waits until the extender, which starts later, is ready."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(ONE_CANDIDATE))
    port = str(a_free_port())
    asked = ("--extender", f"http://127.0.0.1:{port}", "--scheduler-config", str(config))
    attached = ("--run", "scheduler,replicaset", "--upstream", "1.37", *asked)
    told = ("--port", "0", "--speed", speed, "-o", "json")
    replay = await start("replay", str(RECORDED / "preemption.jsonl.gz"), *attached, *told)
    assert replay.stdout is not None
    url = (await replay.stdout.readline()).decode().split()[-1]
    serve = await start("serve", "--server", url, "--port", port, "--search", "cluster")
    try:
        report = await report_of(replay)
    finally:
        await ended(serve)
        await ended(replay)
    assert report["scheduling"]["preempted"] == {"recorded": 6, "replayed": 6, "differences": []}
    assert report["same"], report


@pytest.mark.parametrize("run", ["replicaset,workloadspread", "workloadspread", "kubelet"])
async def test_pods_are_spread_as_recorded(tmp_path: Path, run: str) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(yaml.safe_dump(SIMULATION_SCRIPT))
    played = ("--kubelet", str(script)) if "kubelet" in run else ()
    told = ("--run", run, "--speed", "30", "-o", "json")
    replay = await start("replay", str(RECORDED / "spread.jsonl.gz"), *told, *played)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, errors = await replay.communicate()
    assert replay.returncode == 0, errors
    report = json.loads(out)
    assert report["same"], report
