"""Operators in Java, Rust and JavaScript: fabric8, kube-rs and client-node against fakeapi.

``OPERATOR_SECONDS=600`` in the environment runs them for ten minutes with faults injected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest

from fakeapi.testing.faults import Fault, fault
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
OBJECTS: Final = ("widgets", "configmaps", "deployments", "events")
KINDS: Final = (*OBJECTS, "leases")
REQUESTS: Final = ("get", "list", "create", "update", "patch", "delete")
OPERATORS: Final = "[!s]*"
"""The User-Agents of all clients but :data:`SCENARIO`."""
INJECTED: Final = re.compile(
    "injected fault|Too [Mm]any [Rr]equests|currently unable to handle|allotted timeout"
    "|too old resource version|Expired|410|[Cc]onnection (was )?reset|closed|hang up|aborted"
    "|EOF|reading a body|error sending request|SendRequest|HyperError|IncompleteBody|[Ww]atch"
    "|failed with status|evicted|ECONNRESET|Connection reset|[Pp]remature close|already exists"
    "|Operation cannot be fulfilled|deployments.apps .* not found"
    "|rejected our request due to an error in our request",
)
"""What clients report of :func:`rules`, and of a child that is deleted before they change it.

A write that was dropped after it succeeded is repeated: a JSON patch of kube-rs then finds that the
object is not as it was.
"""


def rules(language: str) -> Iterator[Fault]:
    """Yield the faults: some errors in ten calls for objects, and in a hundred for the Lease.

    With more of them, a leader would have to give up its Lease after ten seconds.
    """
    yield fault("latency", least=0.01, most=0.5).on(REQUESTS, KINDS).probability(0.2)
    for kinds, rarity in ((OBJECTS, 1), (("leases",), 10)):
        for code, calls in ((500, 17), (503, 19), (504, 23)):
            yield fault(code).on(REQUESTS, kinds).every(calls * rarity)
        yield fault(429, retry_after=1).on(REQUESTS, kinds).every(13 * rarity)
        yield fault("drop").on(REQUESTS, kinds).every(29 * rarity)
        yield fault("drop", when="after").on(REQUESTS, kinds).every(31 * rarity)
        if language != "node":  # it waits for ever for the rest of such a response
            yield fault("cut").on(REQUESTS, kinds).every(37 * rarity)
    for each, watches in (
        (fault("lag", seconds=0.3), 3),
        (fault("silence", seconds=2, after_frames=2), 5),
        (fault("drop", when="after", after_frames=3), 2),
        (fault("expire", after_frames=3), 3),
        (fault("cut", after_frames=2), 5),
        (fault("compact"), 4),
        (fault(503), 7),
    ):
        yield each.on("watch", KINDS).every(watches)


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
        faults.plan(*(rule.by(OPERATORS) for rule in rules(case.language)), seed=SEED)
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
