"""``reprieve demo questions``: requests of kube-scheduler, sent to the extender and explained.

A fake API server serves the demo cluster, and the extender follows it like a real one. The demo
sends three requests that were captured from a real kube-scheduler, and some additional ones in the
same format. Every table is made from the decision that was sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
from rich.console import Console
from rich.rule import Rule

from extender.config.component_config import Config
from extender.kube.decoders.pods import decode_pod
from extender.kube.rest.clock import SystemClock
from extender.observability.decision_log import DecisionLog
from extender.protocol.verb_context import AnswerContext, VerbResult
from extender.server.process import ServerProcess, run_server
from extender.terminal.output import TableRows
from extender.terminal.tables import filter_table, preempt_table
from fakeapi.demo.scenarios import captured_request, scenario
from fakeapi.demo.scenarios.demo_cluster import pending_pod
from fakeapi.testing.fake_cluster import FakeCluster
from policies import decide_preemption
from policies.preemption.explanation import explain_decision
from policies.preemption.filtering.status import FilterDecision

_SHOWN_BYTES = 300


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """One request to the extender, with a title."""

    title: str
    verb: str
    body: bytes


class LastResultLog(DecisionLog):
    """A decision log that also keeps the last result."""

    def __init__(self) -> None:
        super().__init__()
        self.last: VerbResult | None = None

    def log_answer(self, answer: VerbResult, context: AnswerContext, watch_silence: float) -> None:
        """Log the result and keep it."""
        super().log_answer(answer, context, watch_silence)
        self.last = answer


async def run_captured_requests(console: Console) -> None:
    """Start a cluster and the extender, send all requests and print the results."""
    async with FakeCluster(run="none") as cluster:
        objects = scenario("demo")
        cluster.load(objects)
        console.print(f"fakeapi listens on {cluster.url} with {len(objects)} objects")
        results = LastResultLog()
        transport = cluster.local_transport()
        rng = random.Random(0)  # noqa: S311 - jitter of reconnects
        async with run_server(Config(port=0), transport, SystemClock(), rng, results) as extender:
            console.print(f"reprieve listens on {extender.url}")
            await send_requests(extender, results, console)


async def send_requests(
    extender: ServerProcess, last_result: LastResultLog, console: Console
) -> None:
    """Send all requests to ``extender``; ``last_result`` must be its decision log."""
    await extender.wait_synced()
    async with aiohttp.ClientSession() as session:
        for captured in (*_captured(), *_additional(extender)):
            await _send(session, extender, captured, last_result, console)


def wide_console() -> Console:
    """Return a console on stdout that is wide enough for tables, on a terminal or not."""
    return Console(width=140, highlight=False)


async def _send(
    session: aiohttp.ClientSession,
    extender: ServerProcess,
    request: CapturedRequest,
    last_result: LastResultLog,
    console: Console,
) -> None:
    console.print(Rule(request.title, align="left"))
    async with session.post(f"{extender.url}/{request.verb}", data=request.body) as response:
        text = await response.text()
    console.print(
        f"POST /{request.verb} → {response.status} {text[:_SHOWN_BYTES]}", style="dim", markup=False
    )
    answer = last_result.last
    if response.status != 200 or answer is None:
        raise RuntimeError(f"{request.title}: the extender returned {response.status}: {text}")
    if isinstance(answer.decision, FilterDecision):
        console.print(filter_table(answer.decision, TableRows.LIMITED))
    else:
        rules, snapshot = extender.service.engine.rules, extender.service.cluster.snapshot()
        explanation = explain_decision(answer.decision, snapshot, rules)
        console.print(preempt_table(explanation, TableRows.LIMITED))
    for note in answer.notes:
        console.print(f"note: {note}", style="yellow", markup=False)


def _captured() -> Iterator[CapturedRequest]:
    yield CapturedRequest(
        "Captured from kube-scheduler 1.30: which of three nodes fit a probe pod?",
        "filter",
        captured_request("filter-cache-true"),
    )
    yield CapturedRequest(
        "Captured from kube-scheduler 1.30: three full nodes; which pods are preempted?",
        "preempt",
        captured_request("preempt-cache-true"),
    )
    yield CapturedRequest(
        "Captured from kube-scheduler 1.30: filter for the nominated node",
        "filter",
        captured_request("filter-after-preemption-cache-true"),
    )


def _additional(extender: ServerProcess) -> Iterator[CapturedRequest]:
    training = pending_pod("research", "pretrain", "research", {"cpu": "16", "nvidia.com/gpu": "4"})
    nodes = sorted(extender.service.cluster.snapshot().nodes)
    yield CapturedRequest(
        "A training job wants four GPUs: where does it fit?",
        "filter",
        _encoded({"Pod": training, "Nodes": None, "NodeNames": nodes}),
    )
    for title, pod in (
        ("It may preempt notebooks, but no training job of its own rank", training),
        (
            "A frontend preempts web and batch pods",
            pending_pod("shop", "web-burst", "production", {"cpu": "6", "memory": "12Gi"}),
        ),
        (
            "A critical pod needs most of a node: disruption budgets decide which one",
            pending_pod("shop", "failover", "critical", {"cpu": "12", "memory": "24Gi"}),
        ),
    ):
        yield CapturedRequest(title, "preempt", _preemption_request(pod, extender))
    hopeless = pending_pod("data", "too-big", "critical", {"cpu": "128"})
    yield CapturedRequest(
        "No node is large enough, however many pods are preempted",
        "filter",
        _encoded({"Pod": hopeless, "Nodes": None, "NodeNames": nodes}),
    )


def _preemption_request(pod: dict[str, Any], extender: ServerProcess) -> bytes:
    """Return the request that kube-scheduler would send after its own dry run on all nodes."""
    service = extender.service
    preemptor = decode_pod(_encoded(pod), service.engine.rules.release)
    candidates = decide_preemption(
        preemptor, service.cluster.snapshot(), service.engine.rules
    ).candidates
    offers = {
        node: {
            "Pods": [{"UID": victim.uid} for victim in candidate.victims.pods],
            "NumPDBViolations": candidate.victims.violations,
        }
        for node, candidate in candidates.items()
    }
    return _encoded({"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": offers})


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
