"""The fault injector of one world: its current plan, and the faults injected so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fakeapi.api.dispatch import Api
from fakeapi.api.faulting.asking import match_input_of, version_behind, with_created_name
from fakeapi.api.faulting.deciding import InjectedCount, PlanProgress, decide
from fakeapi.api.faulting.effects import Effect
from fakeapi.api.faulting.parsing import parse_plan, read_plan
from fakeapi.api.faulting.plans import FaultPlan
from fakeapi.api.messages import Request

_NO_PLAN = PlanProgress(FaultPlan(), 0)


class FaultInjector:
    """Injects faults into the requests of one API; ``now_ns`` returns the world's time in ns.

    ``seed`` is the seed of plans that have none.
    """

    def __init__(self, api: Api, now_ns: Callable[[], int], seed: int = 0) -> None:
        self._api = api
        self._now_ns = now_ns
        self._seed = seed
        self._progress = _NO_PLAN

    def read(self, text: bytes) -> None:
        """Start a plan in JSON or YAML; it replaces the current one. Raise PlanError."""
        self._begin(read_plan(text, self._api.kinds, self._seed))

    def begin(self, document: Any) -> None:
        """Start a plan; it replaces the current one. Raise PlanError."""
        self._begin(parse_plan(document, self._api.kinds, self._seed))

    def end(self) -> None:
        """End the current plan; watches that are open keep their effects."""
        self._progress = _NO_PLAN

    def ask(self, method: str, document: Any = None) -> dict[str, Any]:
        """Start (POST), end (DELETE) or return (GET) the plan. Raise PlanError."""
        if method == "POST":
            self.begin(document)
        told = self.document()
        if method == "DELETE":
            self.end()
        return told

    def copy_progress(self, other: FaultInjector) -> None:
        """Continue another world's plan with its progress and seed."""
        self._seed, self._progress = other._seed, other._progress

    def effects_on(self, request: Request) -> Sequence[Effect]:
        """Return the effects on a request, and count them."""
        rules = self._progress.plan.rules
        if not rules:
            return ()
        question = match_input_of(request)
        if any(rule.scope.names for rule in rules):
            question = with_created_name(question, request)
        self._progress, effects = decide(self._progress, question, self._now_ns())
        return effects

    def compact(self) -> None:
        """Compact the history up to now."""
        self._api.store.compact(self._api.store.version)

    def version_behind(self, request: Request, behind: int) -> int:
        """Return the version from which a lagging watch cache answers a list or a watch."""
        return version_behind(self._api.store, self._api.kinds, request, behind)

    def document(self) -> dict[str, Any]:
        """Return the plan as it was given, each rule with its counts of requests by client."""
        plan, tallies = self._progress.plan, self._progress.tallies
        rules = []
        for index, rule in enumerate(plan.rules):
            clients = {
                client: tally for (rule_, client), tally in tallies.items() if rule_ == index
            }
            rules.append(
                {
                    **rule.document,
                    "matched": sum(tally.matched for tally in clients.values()),
                    "injected": sum(tally.injected for tally in clients.values()),
                    "clients": {client: _counted(tally) for client, tally in clients.items()},
                }
            )
        return {"seed": plan.seed, "faults": rules}

    def _begin(self, plan: FaultPlan) -> None:
        self._progress = PlanProgress(plan, self._now_ns())


def _counted(tally: InjectedCount) -> dict[str, int]:
    return {"matched": tally.matched, "injected": tally.injected}
