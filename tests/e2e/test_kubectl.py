"""The output of kubectl and helm with fakeapi equals that with a real kube-apiserver.

``kubectl/golden`` has the output with the real one, for each release of kubectl;
``kubectl/differences.yaml`` has the commands whose output differs, and the reasons. A difference
that is not listed is a failure, and so is a listed one that does not occur.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Final

import pytest
import yaml

from fakeapi import FakeCluster
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.e2e.clients import RELEASES, programs
from tests.e2e.scenario_runner import Target, play, write_kubeconfig
from tests.e2e.transcripts import HERE, Exchange, Scenario, read_golden, scenarios

DIFFERENCES: Final = yaml.safe_load((HERE / "differences.yaml").read_text()) or []


def known_differences(scenario: str, release: str) -> list[str]:
    """Return the commands of a scenario whose output is known to differ, sorted."""
    return sorted(
        entry["command"]
        for entry in DIFFERENCES
        if entry["scenario"] == scenario and release in entry.get("releases", RELEASES)
    )


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
async def test_the_output_equals_that_with_a_real_server(
    scenario: Scenario, release: str, tmp_path: Path
) -> None:
    now = VirtualClock.from_host()
    clock = VirtualClock(now.now_ns()) if scenario.still else now
    async with FakeCluster(run=scenario.run, clock=clock) as cluster:
        kubeconfig = write_kubeconfig(tmp_path / ".kubeconfig", cluster.url)
        target = Target(cluster.url, kubeconfig)
        seen = await play(scenario, programs(release), target, tmp_path)
    golden = read_golden(release, scenario.name)
    assert [exchange.command for exchange in seen] == [exchange.command for exchange in golden]
    differing = [(there, here) for there, here in zip(golden, seen, strict=True) if there != here]
    found = sorted(there.command for there, _ in differing)
    known = known_differences(scenario.name, release)
    told = "\n".join(_diff(*pair) for pair in differing if pair[0].command not in known)
    assert found == known, f"\n{told}"


def _diff(there: Exchange, here: Exchange) -> str:
    before, after = str(there).splitlines(), str(here).splitlines()
    return "\n".join(unified_diff(before, after, "kube-apiserver", "fakeapi", "", "", 2, ""))


def test_every_known_difference_has_a_reason_and_a_command() -> None:
    commands = {
        (scenario.name, step.command)
        for scenario in scenarios()
        for outer in scenario.steps
        for step in (outer, *outer.during)
    }
    for entry in DIFFERENCES:
        assert entry["why"]
        assert (entry["scenario"], entry["command"]) in commands


def test_there_are_enough_steps() -> None:
    steps = [step for scenario in scenarios() for step in scenario.steps]
    assert len(steps) >= 70
