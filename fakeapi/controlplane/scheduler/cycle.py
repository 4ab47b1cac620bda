"""The scheduling cycle: one attempt for one pod, decided without side effects.

    no nodes at all                        unschedulable, retried after the backoff
    an extender's filter fails             an error; the nomination ends, no preemption
    a node is feasible                     the pod is placed there
    no node is feasible                    unschedulable; preemption is tried

Source: schedulingCycle in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fakeapi.controlplane.scheduler.backlog import EVERYTHING, Awaited
from fakeapi.controlplane.scheduler.calling import Extender, ExtenderError, gather_scores
from fakeapi.controlplane.scheduler.hints import awaited_by
from fakeapi.controlplane.scheduler.preempting import Preempting, Preemption
from fakeapi.controlplane.scheduler.scoring import best_node
from fakeapi.controlplane.scheduler.searching import Case, Search, Searcher
from fakeapi.controlplane.scheduler.statuses import Nomination
from policies import wording
from policies.decision import Candidate

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
RETRIED: Final[Awaited] = frozenset()
"""No events are awaited: the pod is retried after its backoff."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod is assigned to a node."""

    node: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod cannot be scheduled now; ``failure`` is the first sentence of its ``message``.

    Without a ``nomination`` the pod keeps its current one. The victims of a ``chosen`` candidate
    are to be evicted.
    """

    reason: str
    failure: str
    awaited: Awaited
    nomination: Nomination | None
    message: str = ""
    chosen: Candidate | None = None


class Cycle:
    """Decides about pods, one after another."""

    def __init__(
        self,
        searcher: Searcher,
        preempting: Preempting,
        extenders: Sequence[Extender],
        rng: Random,
    ) -> None:
        self._searcher = searcher
        self._preempting = preempting
        self._scoring = [each for each in extenders if each.config.prioritize_verb]
        self._rng = rng

    async def attempt(self, case: Case) -> Placed | Refused:
        """Decide where a pod is placed, or why it is not."""
        if not case.snapshot.nodes:
            return _refused(UNSCHEDULABLE, wording.NO_NODES, RETRIED)
        try:
            search = await self._searcher.search(case)
        except ExtenderError as error:
            return _refused(SCHEDULER_ERROR, str(error), RETRIED)
        if search.left:
            return Placed(await self._choose(case, search))
        return await self._refuse(case, search)

    async def _choose(self, case: Case, search: Search) -> str:
        """Return the best of the feasible nodes; a single node is not scored."""
        if len(search.left) == 1:
            return search.left[0]
        asked = [each for each in self._scoring if each.is_interested(case.pod)]
        nodes = self._searcher.written(search.left)
        said = await gather_scores(asked, case.seen, nodes)
        known = case.snapshot.nodes
        states = [known[name] for name in dict.fromkeys(search.left) if name in known]
        return best_node(case.pod, states, said, self._rng) if states else search.left[0]

    async def _refuse(self, case: Case, search: Search) -> Refused:
        rules = case.playing.profile.rules
        counted = Counter(r for each in search.statuses.values() for r in each.reasons)
        nodes = len(case.snapshot.nodes)
        failure = wording.unfit(nodes, search.conflict, counted, rules.release)
        awaited = EVERYTHING if search.sieved else awaited_by(search.statuses.values())
        args = case.playing.profile.preemption
        if args is None:
            return _refused(UNSCHEDULABLE, failure, awaited)
        found = await self._preempting.decide(case, search, args)
        message = f"{failure} {found.message}" if found.message else failure
        return Refused(UNSCHEDULABLE, failure, awaited, _nomination(found), message, found.chosen)


def _refused(reason: str, failure: str, awaited: Awaited) -> Refused:
    """Return a refusal without victims; it clears the pod's nomination."""
    return Refused(reason, failure, awaited, Nomination(None), failure)


def _nomination(found: Preemption) -> Nomination | None:
    if found.chosen is not None:
        return Nomination(found.chosen.node)
    return Nomination(None) if found.clears else None
