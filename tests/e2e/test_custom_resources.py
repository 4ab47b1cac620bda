"""kubectl on custom resources: its output, and the conversion of objects between versions.

``custom/expected`` has the expected output, checked against upstream's sources; unlike the golden
transcripts of ``kubectl/`` it was not recorded with a real kube-apiserver. ``python -m
tests.e2e.test_custom_resources`` writes it again.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.serving.client_access import Tls, create_tls
from tests.builders import manifest
from tests.e2e.clients import RELEASES, programs
from tests.e2e.scenario_runner import Target, Terminal, play, write_kubeconfig
from tests.e2e.transcripts import Exchange, Scenario, Step, read_transcript, scenarios
from tests.fakeapi.apiserver.schema.crds.webhooks import converted, serving

HERE: Final = Path(__file__).with_name("custom")


def expected_path(release: str, scenario: str) -> Path:
    return HERE / "expected" / release / f"{scenario}.txt"


async def played(scenario: Scenario, release: str, home: Path) -> list[Exchange]:
    async with FakeCluster() as cluster:
        kubeconfig = write_kubeconfig(home / ".kubeconfig", cluster.url)
        return await play(scenario, programs(release), Target(cluster.url, kubeconfig), home)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("scenario", scenarios(HERE), ids=lambda scenario: scenario.name)
async def test_kubectl_prints_the_expected_output(
    scenario: Scenario, release: str, tmp_path: Path
) -> None:
    seen = await played(scenario, release, tmp_path)
    expected = read_transcript(expected_path(release, scenario.name))
    assert list(map(str, seen)) == list(map(str, expected))


def at(port: int, trusted: Tls) -> dict[str, Any]:
    """Return a definition whose objects a webhook converts."""
    bundle = b64encode(trusted.authority.certificate).decode()
    return converted(url=f"https://127.0.0.1:{port}/convert", caBundle=bundle)


async def test_kubectl_reads_objects_that_a_webhook_converts(tmp_path: Path) -> None:
    tls = create_tls("127.0.0.1")
    async with FakeCluster() as cluster, serving(tls.server) as port:
        cluster.load([at(port, tls)])
        kubeconfig = write_kubeconfig(tmp_path / ".kubeconfig", cluster.url)
        terminal = Terminal(programs("1.37"), Target(cluster.url, kubeconfig), tmp_path)
        made = manifest("Widget", "one", version="example.com/v2", spec={"length": 3})
        await terminal.type(Step(("create", "-f", "-"), "create", json.dumps(made)))

        async def asked(version: str, path: str) -> str:
            words = ("get", f"widgets.{version}.example.com", "one", "-n", "default")
            [seen] = await terminal.type(Step((*words, "-o", f"jsonpath={path}"), "get"))
            return seen.output.strip()

        assert await asked("v1", "{.spec}") == '{"size":3}'
        assert await asked("v2", "{.spec}") == '{"color":"red","length":3}'


async def test_an_untrusted_conversion_webhook_is_an_error(tmp_path: Path) -> None:
    tls, other = create_tls("127.0.0.1"), create_tls("127.0.0.1")
    async with FakeCluster() as cluster, serving(tls.server) as port:
        cluster.load([at(port, other)])
        kubeconfig = write_kubeconfig(tmp_path / ".kubeconfig", cluster.url)
        terminal = Terminal(programs("1.37"), Target(cluster.url, kubeconfig), tmp_path)
        made = manifest("Widget", "one", version="example.com/v2")
        [seen] = await terminal.type(Step(("create", "-f", "-"), "create", json.dumps(made)))
    assert "conversion webhook for example.com/v2, Kind=Widget failed: Post" in seen.output
    assert "tls: failed to verify certificate" in seen.output


async def _record() -> None:
    for scenario in scenarios(HERE):
        for release in RELEASES:
            with TemporaryDirectory() as home:
                seen = await played(scenario, release, Path(home))
            path = expected_path(release, scenario.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(map(str, seen)))


if __name__ == "__main__":
    asyncio.run(_record())
