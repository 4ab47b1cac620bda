"""With ``mode: observe``, a real kube-scheduler preempts as it does without an extender.

The scheduler is configured by deploy/kube-scheduler/observe.yaml, with and without its entry. In
both cases the same pods are preempted on the same nodes. The ledger has these choices, and what the
policy and a shadow policy would have chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import yaml

from extender.ledger.entry import LedgerRecord
from extender.ledger.storage.database import LedgerError
from tests.builders import Document
from tests.commands import ROOT
from tests.conformance.scheduling.environment import Environment, Setting, environment
from tests.conformance.scheduling.kube_scheduler import Extender, Sampling
from tests.conformance.scheduling.pods import bound_pod, budget, pending_pod, small_node
from tests.conformance.scheduling.releases import RELEASES, scheduler
from tests.conformance.test_ledger import final_records
from tests.extender.server.test_shadow import FEWEST, choices, written

GUARDED: Final = {"app": "guarded"}
PREEMPTIONS: Final = {
    "first": ("node-0", ["cheap", "cheaper"]),
    "second": ("node-1", ["medium"]),
    "third": ("node-2", ["dear"]),
    "fourth": ("node-3", ["guarded"]),
}
"""Preemptors in order, with the nodes and victims that kube-scheduler chooses."""
WITH_FEWEST_VICTIMS: Final = ("node-3", ["guarded"])
"""What the policy would have chosen for each of them."""


def _observe_yaml(kubeconfig: Path, extenders: Sequence[Extender], _sampling: Sampling) -> Document:
    """Return the configuration of deploy/, with the addresses of this test and without TLS."""
    config: Document = yaml.safe_load((ROOT / "deploy/kube-scheduler/observe.yaml").read_text())
    [entry], [extender] = config["extenders"], extenders
    entry |= {"urlPrefix": extender.url, "enableHTTPS": False}
    del entry["tlsConfig"]
    return config | {
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
    }


def _without_entry(kubeconfig: Path, extenders: Sequence[Extender], sampling: Sampling) -> Document:
    return _observe_yaml(kubeconfig, extenders, sampling) | {"extenders": []}


async def _preempt(env: Environment) -> None:
    """Create the preemptors, each after the one before is bound, and check each preemption."""
    await env.load(budget("none", 0, GUARDED), *(small_node(f"node-{n}") for n in range(4)))
    await env.load(
        bound_pod("cheaper", "node-0", "1", 1),
        bound_pod("cheap", "node-0", "1", 5),
        bound_pod("medium", "node-1", priority=10),
        bound_pod("dear", "node-2", priority=50),
        bound_pod("guarded", "node-3", priority=1, labels=GUARDED),
    )
    for name, (node, victims) in PREEMPTIONS.items():
        await env.cluster.create(pending_pod(name))
        assert await env.wait_preempted(name, node, len(victims)) == victims


async def _records(path: Path) -> Sequence[LedgerRecord]:
    """Return the records of a ledger when both shadow policies have decided each call."""
    records: Sequence[LedgerRecord] = ()
    while [len(each.shadows) for each in records] != [2] * len(PREEMPTIONS):
        await asyncio.sleep(0.2)  # a file has no event
        with suppress(LedgerError):  # the first entries create it
            records = await final_records(path)
    return records


@pytest.mark.parametrize("release", RELEASES)
async def test_a_scheduler_without_an_extender(release: str) -> None:
    setting = Setting(configured=_without_entry)
    async with environment(scheduler(release), release, setting) as env:
        await _preempt(env)
        assert env.relay.calls == []


@pytest.mark.parametrize("release", RELEASES)
async def test_an_observed_scheduler_chooses_the_same(tmp_path: Path, release: str) -> None:
    path = tmp_path / "ledger.db"
    serving = {
        "mode": "observe",
        "policy": written(tmp_path, fewest=FEWEST)["fewest"],
        "shadow": ["kube-scheduler"],
        "shadowCPUShare": 1.0,
        "ledger": {"location": str(path)},
    }
    setting = Setting(configured=_observe_yaml, serving=serving)
    async with environment(scheduler(release), release, setting) as env:
        await _preempt(env)
        records = await _records(path)
        assert [each.pod for each in env.relay.preempt_calls()] == list(PREEMPTIONS)
    assert all(each.entry.observed for each in records)
    assert {each.entry.pod.name: choices(each) for each in records} == {
        name: {"": choice, "kube-scheduler": choice, "fewest": WITH_FEWEST_VICTIMS}
        for name, choice in PREEMPTIONS.items()
    }
