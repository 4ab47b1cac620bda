"""The faults of one world: the plan under way, and what it has done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fakeapi.api.dispatch import Api
from fakeapi.api.faulting.asking import question_of, version_behind, with_created_name
from fakeapi.api.faulting.deciding import Progress, Tally, decide
from fakeapi.api.faulting.effects import Effect
from fakeapi.api.faulting.parsing import parse_plan, read_plan
from fakeapi.api.faulting.plans import Plan
from fakeapi.api.messages import Request

_NO_PLAN = Progress(Plan(), 0)


class Faults:
    """What goes wrong in front of one API; ``now_ns`` tells the world's time in nanoseconds.

    ``seed`` is that of plans that name none.
    """

    def __init__(self, api: Api, now_ns: Callable[[], int], seed: int = 0) -> None:
        self._api = api
        self._now_ns = now_ns
        self._seed = seed
        self._progress = _NO_PLAN

    def read(self, text: bytes) -> None:
        """Begin a plan in JSON or YAML, in place of any other; raises PlanError."""
        self._begin(read_plan(text, self._api.kinds, self._seed))

    def begin(self, document: Any) -> None:
        """Begin a plan, in place of any other; raises PlanError."""
        self._begin(parse_plan(document, self._api.kinds, self._seed))

    def end(self) -> None:
        """Let nothing go wrong any more; watches that are under way keep what they have met."""
        self._progress = _NO_PLAN

    def ask(self, method: str, document: Any = None) -> dict[str, Any]:
        """Begin (POST), end (DELETE) or just tell (GET) the plan; raises PlanError."""
        if method == "POST":
            self.begin(document)
        told = self.document()
        if method == "DELETE":
            self.end()
        return told

    def adopt(self, other: Faults) -> None:
        """Go on with another world's plan from where it is."""
        self._seed, self._progress = other._seed, other._progress

    def meet(self, request: Request) -> Sequence[Effect]:
        """Return what a request meets, and count it."""
        rules = self._progress.plan.rules
        if not rules:
            return ()
        question = question_of(request)
        if any(rule.scope.names for rule in rules):
            question = with_created_name(question, request)
        self._progress, effects = decide(self._progress, question, self._now_ns())
        return effects

    def compact(self) -> None:
        """Forget the history up to now."""
        self._api.store.compact(self._api.store.version)

    def version_behind(self, request: Request, behind: int) -> int:
        """Return the version that a lagging watch cache shows to who asks for a list or a watch."""
        return version_behind(self._api.store, self._api.kinds, request, behind)

    def document(self) -> dict[str, Any]:
        """Return the plan as it was written, each rule with the requests it has met by client."""
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
                    "injected": sum(tally.struck for tally in clients.values()),
                    "clients": {client: _counted(tally) for client, tally in clients.items()},
                }
            )
        return {"seed": plan.seed, "faults": rules}

    def _begin(self, plan: Plan) -> None:
        self._progress = Progress(plan, self._now_ns())


def _counted(tally: Tally) -> dict[str, int]:
    return {"matched": tally.matched, "injected": tally.struck}
