"""The commands of the README about WorkloadSpread webhooks, run as written."""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
import yaml

from tests.commands import ROOT, serving, start
from tests.e2e.clients import RELEASES, programs

HEADING = "## Webhooks of WorkloadSpreads\n"
URL = "http://127.0.0.1:8001"


def typed() -> list[list[str]]:
    """Return the commands of the section, by words."""
    section = (ROOT / "README.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    return [shlex.split(line) for line in lines]


async def kubectl(program: Path, url: str, *words: str) -> str:
    """Run kubectl, which must succeed, and return its output."""
    process = await asyncio.create_subprocess_exec(
        program, *(word.replace(URL, url) for word in words), cwd=ROOT, stdout=PIPE, stderr=PIPE
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors
    return out.decode()


@pytest.mark.parametrize("release", RELEASES)
async def test_the_commands_spread_pods_as_documented(release: str) -> None:
    server, controllers, apply, get_pods, get_old = typed()
    program = programs(release)["kubectl"]
    port = server.index("--port")
    async with serving(*server[1:port], *server[port + 2 :]) as url:
        process = await start(*(word.replace(URL, url) for word in controllers[1:]))
        try:
            assert process.stdout is not None
            assert (await process.stdout.readline()).startswith(b"webhooks on https://127.0.0.1:")
            assert await process.stdout.readline() == f"running workloadspread on {url}\n".encode()
            wait = ("wait", "mutatingwebhookconfigurations/reprieve-workloadspread")
            until = ("--for=create", "--timeout=60s")
            await kubectl(program, url, *get_old[1:3], *wait, *until)
            assert await kubectl(program, url, *apply[1:]) == (
                "workloadspread.apps.kruise.io/web created\nreplicaset.apps/web created\n"
            )
            named = (*get_old[1:3], "wait", "workloadspreads/web", "--timeout=60s")
            counted = "jsonpath={.status.subsetStatuses[1].replicas}=3"
            await kubectl(program, url, *named, f"--for={counted}")
            pods = await kubectl(program, url, *get_pods[1:])
            header, *lines = (line.split() for line in pods.splitlines())
            assert header[-1] == "POOL"
            assert sorted(line[5:] for line in lines) == [[], [], ["spot"], ["spot"], ["spot"]]
            spread = yaml.safe_load(await kubectl(program, url, *get_old[1:]))
        finally:
            process.terminate()
            _, log = await process.communicate()
    assert (process.returncode, log) == (0, b"")
    assert spread["apiVersion"] == "apps.kruise.io/v1alpha1"
    assert "requiredNodeSelectorTerm" in spread["spec"]["subsets"][0]
    counts = {each["name"]: each["replicas"] for each in spread["status"]["subsetStatuses"]}
    assert counts == {"reserved": 2, "spot": 3}
