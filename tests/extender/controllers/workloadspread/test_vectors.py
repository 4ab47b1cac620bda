"""Upstream's tables of whole reconciles, over HTTP: what is in the world when the controller rests.

No case here shows an oddity of upstream's, so all of them hold in both modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies.replicaset import DELETION_COST
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.extender.controllers.workloadspread.objects import Document
from tests.extender.controllers.workloadspread.playing import Played, played
from tests.spreadcases import CASES, Case, of

TABLES = ("deletion_cost", "manage_existing", "reconcile", "requeue", "reschedule")
MATCHED = "apps.kruise.io/matched-workloadspread"


def annotation(pod: Document, name: str) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(name)
    return found


def counts(entries: Any) -> list[Document]:
    """Take conditions and empty maps away."""
    return [
        {key: value for key, value in entry.items() if key != "conditions" and value != {}}
        for entry in entries or ()
    ]


class Expected:
    """What a case expects, held against a world."""

    def __init__(self, case: Case, world: Played) -> None:
        self._case = case
        self._world = world

    @property
    def _expect(self) -> Mapping[str, Any]:
        return self._case.expect

    async def holds(self) -> None:
        spread, pods = await self._world.spread(), await self._world.pods()
        status = spread["status"]
        assert status["observedGeneration"] == spread["metadata"]["generation"]
        self._check_status(status)
        self._check_conditions(status)
        self._check_pods(pods)
        for reason in self._expect.get("events", ()):
            assert reason in await self._world.reasons()

    def _check_status(self, status: Document) -> None:
        if "subsetStatuses" in self._expect:
            written = counts(status.get("subsetStatuses"))
            assert written == counts(self._expect["subsetStatuses"])
        if "versionedSubsetStatuses" in self._expect:
            written_versions = status.get("versionedSubsetStatuses", {})
            wanted = self._expect["versionedSubsetStatuses"]
            assert {version: counts(each) for version, each in written_versions.items()} == {
                version: counts(each) for version, each in wanted.items()
            }
        replicas = {each["name"]: each["replicas"] for each in status.get("subsetStatuses", ())}
        assert replicas | self._expect.get("subsetReplicas", {}) == replicas

    def _check_conditions(self, status: Document) -> None:
        conditions: dict[str, Document] = {
            each["name"]: next(iter(each.get("conditions", ())), {})
            for each in status.get("subsetStatuses", ())
        }
        for wanted, key in (
            ("schedulable", "status"),
            ("reason", "reason"),
            ("lastTransitionTime", "lastTransitionTime"),
        ):
            for subset, value in self._expect.get(wanted, {}).items():
                assert conditions[subset].get(key) == value, (subset, key)

    def _check_pods(self, pods: Mapping[str, Document]) -> None:
        before = {each["metadata"]["name"] for each in self._case.data["pods"]}
        assert before - set(pods) == set(self._expect.get("podsDeleted", ()))
        for name, cost in self._expect.get("deletionCost", {}).items():
            assert annotation(pods[name], DELETION_COST) == (None if cost is None else str(cost))
        for name, subset in self._expect.get("podSubset", {}).items():
            assert f'"subset":"{subset}"' in (annotation(pods[name], MATCHED) or "")
        if "costCounts" in self._expect:
            self._check_costs([int(annotation(pod, DELETION_COST) or 0) for pod in pods.values()])

    def _check_costs(self, costs: list[int]) -> None:
        lowest = -100 * len(self._case.written.spread.subsets)
        assert self._expect["costCounts"] == {
            "positive": sum(cost > 0 for cost in costs),
            "negativeWithinSubsets": sum(lowest <= cost < 0 for cost in costs),
            "belowMinusHundredTimesSubsets": sum(cost < lowest for cost in costs),
        }

    def check_requeue(self) -> None:
        """Check when the controller means to look again, if the case says so."""
        wanted = self._expect.get("requeueAfterSeconds")
        if wanted is not None:
            due = self._world.part.controller.queue.due_in(self._world.key)
            assert due is not None
            assert wanted - 1 < due <= wanted + self._expect.get("toleranceSeconds", 0) + 0.01


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("data", [data for data in CASES if data["table"] in TABLES], ids=of)
async def test_the_world_is_as_upstream_leaves_it(data: dict[str, Any], quirks: Quirks) -> None:
    case = Case(data, quirks)
    async with played(case) as world:
        expected = Expected(case, world)
        await world.eventually(expected.holds)
        await world.copies_are_shown()
        expected.check_requeue()
        await world.part.controller.drain()
        await expected.holds()
