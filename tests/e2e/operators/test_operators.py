"""Operators in Java, Rust and JavaScript: fabric8, kube-rs and client-node against fakeapi.

``OPERATOR_SECONDS=600`` in the environment runs them for ten minutes with faults injected.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest

from fakeapi.testing.faults import fault
from tests.e2e.operators.operator_cluster import IDENTITY, OperatorCase, cluster, running

DURATION: Final = timedelta(seconds=float(os.environ.get("OPERATOR_SECONDS", "15")))
SEED: Final = 22
STREAMED: Final = {"WATCH_LIST": "1"}
CASES: Final = [
    OperatorCase("java", "certificate"),
    OperatorCase("java", "token"),
    OperatorCase("rust", "certificate"),
    OperatorCase("rust", "token", STREAMED),
    OperatorCase("node", "plain-http"),
    OperatorCase("node", "certificate"),
]
WITH_FAULTS: Final = [
    OperatorCase("java", "plain-http"),
    OperatorCase("rust", "plain-http"),
    OperatorCase("node", "plain-http"),
]
KINDS: Final = ("widgets", "configmaps", "deployments", "leases", "events")
REQUESTS: Final = ("get", "list", "create", "update", "patch", "delete")
RULES: Final = (
    fault("latency", least=0.01, most=0.5).on(REQUESTS, KINDS).probability(0.2),
    fault(429, retry_after=1).on(REQUESTS, KINDS).every(13),
    fault(500).on(REQUESTS, KINDS).every(17),
    fault(503).on(REQUESTS, KINDS).every(19),
    fault(504).on(REQUESTS, KINDS).every(23),
    fault("drop").on(REQUESTS, KINDS).every(29),
    fault("drop", when="after").on(REQUESTS, KINDS).every(31),
    fault("lag", seconds=0.3).on("watch", KINDS).every(3),
    fault("silence", seconds=2, after_frames=2).on("watch", KINDS).every(5),
    fault("drop", when="after", after_frames=3).on("watch", KINDS).every(2),
    fault("expire", after_frames=3).on("watch", KINDS).every(3),
    fault("cut", after_frames=2).on("watch", KINDS).every(5),
    fault("compact").on("watch", KINDS).every(4),
    fault(503).on("watch", KINDS).every(7),
)
CUT_RESPONSES: Final = fault("cut").on(REQUESTS, KINDS).every(37)
"""Not for client-node, which waits for ever for the rest of such a response."""
OPERATORS: Final = "[!s]*"
"""The User-Agents of all clients but :data:`SCENARIO`."""
INJECTED: Final = re.compile(
    "injected fault|Too [Mm]any [Rr]equests|currently unable to handle|allotted timeout"
    "|too old resource version|Expired|410|[Cc]onnection (was )?reset|closed|hang up|aborted"
    "|EOF|reading a body|error sending request|SendRequest|HyperError|IncompleteBody|[Ww]atch"
    "|failed with status|evicted|ECONNRESET|Connection reset|[Pp]remature close|already exists"
    "|Operation cannot be fulfilled",
)
"""What clients report of :data:`RULES`. A write that was dropped after it succeeded is repeated."""


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_an_operator_reconciles_and_logs_no_error(case: OperatorCase, tmp_path: Path) -> None:
    async with cluster(case, tmp_path) as operated:
        widgets = operated.widgets
        one, two, three, *others = [await widgets.create_widget(size) for size in range(5)]
        async with running(case, operated):
            await widgets.until(widgets.is_reconciled)
            assert widgets.lease["holderIdentity"] == IDENTITY
            await widgets.patch("Widget", one, {"spec": {"size": 7}})
            await widgets.delete("Widget", two)
            await widgets.delete("ConfigMap", three)
            await widgets.until(widgets.is_reconciled)
            await widgets.until_renewed()
        await widgets.until(lambda: widgets.lease["leaseDurationSeconds"] == 1)
        assert not widgets.get("Widget", two)
        reported = {each["involvedObject"]["name"] for each in widgets.all("Event")}
        assert reported >= {one, two, three, *others}
        assert operated.errors() == []


@pytest.mark.slow
@pytest.mark.parametrize("case", WITH_FAULTS, ids=str)
async def test_an_operator_keeps_its_lease_and_reconciles_with_faults_injected(
    case: OperatorCase, tmp_path: Path
) -> None:
    rng = Random(SEED)
    async with cluster(case, tmp_path) as operated:
        widgets, faults = operated.widgets, operated.server.faults
        rules = RULES if case.language == "node" else (*RULES, CUT_RESPONSES)
        faults.plan(*(rule.by(OPERATORS) for rule in rules), seed=SEED)
        async with running(case, operated):
            started = widgets.renewed
            while widgets.renewed - started < DURATION:
                await widgets.change(rng)
                await widgets.until_renewed()
                assert widgets.lease["holderIdentity"] == IDENTITY
            injected = faults.injected
            faults.end()
            await widgets.until(widgets.is_reconciled)
        assert sum(injected) > 0
        assert [each for each in operated.errors() if not INJECTED.search(each)] == []
